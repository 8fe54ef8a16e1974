r"""
A vibrating arm
===============

Two links, the first of which bends: a beam of 1.5 m with a rigid forearm. First its vibrations, then
the arm let go from the side, frame by frame. The node of the beam has nine states, its three modes and the force at the
hinge; the filter and the smoother are those of every other robot.
"""

import matplotlib.pyplot as plt
import numpy as np

import kfdyn as kf
from kfdyn.spatial import spatial_inertia
from kfdyn.viz import COLORS, STYLE

plt.style.use(STYLE)

LENGTH = 1.5
along = np.linspace(0, LENGTH, 31)
rod = kf.beam("rod", LENGTH, 0.8, bending=(0.0, 12.0), modes=3, damping=0.01, hinge=kf.Hinge.revolute([0, 1, 0]))
forearm = kf.Body(
    "forearm", spatial_inertia(0.6, [0.25, 0, 0], 0.6 / 48 * np.diag([1e-3, 1, 1])), kf.Hinge.revolute([0, 1, 0]),
    "rod", position=[LENGTH, 0, 0],
)  # fmt: skip
frames = {f"x{i}": kf.Frame("rod", position=[x, 0, 0]) for i, x in enumerate(along)}
arm = kf.FlexibleSystem([rod, forearm], frames={**frames, "hand": kf.Frame("forearm", position=[0.5, 0, 0])})


def outline(q):
    """Points of the bent beam and of the forearm, (n, 3)."""
    return np.array([kf.frame_pose(arm, q, name).position for name in (*frames, "hand")])


# %%
# Vibrations about the arm that hangs
# -----------------------------------
#
# Frequencies of the whole: the two that swing, then those that bend.

down = np.array([0.5 * np.pi, 0.0, 0.0, 0.0, 0.0])
found = kf.modes(arm, down)
print("rad/s:", found.frequencies.round(2))
assert np.abs(found.residual).max() < 1e-9  # an equilibrium
assert (found.frequencies > 0).all()

figure, axes = plt.subplots(1, 4, figsize=(10, 4), sharey=True)
for ax, k in zip(axes, range(4)):
    shape = found.shapes[:, k] / np.abs(found.shapes[:, k]).max()
    still = outline(down)
    moved = outline(kf.integrate(arm, down, 1e-4 * shape)) - still  # small, then drawn as large as can be seen
    for s, tone in ((0.0, "#bbbbbb"), (0.3, COLORS["blue"]), (-0.3, COLORS["orange"])):
        points = still + s * moved / np.abs(moved).max()
        ax.plot(points[:, 0], points[:, 2], color=tone, linewidth=2)
    ax.set(aspect="equal", title=f"{found.frequencies[k]:.1f} rad/s", xlabel="x [m]", xlim=(-0.8, 0.8))
axes[0].set_ylabel("z [m]")

# %%
# Let go from the side
# --------------------
#
# A strip of frames, 60 ms apart. The beam bends back while the forearm is thrown out, and its energy goes to and fro
# between height, speed and strain.

t = np.linspace(0, 0.6, 11)
fall = kf.simulate(arm, arm.neutral(), np.zeros(arm.nv), t, substeps=60)
figure, ax = plt.subplots(figsize=(9, 5))
for i, q in enumerate(fall.q):
    points = outline(q)
    ax.plot(points[:-1, 0], points[:-1, 2], color=plt.cm.viridis(i / len(t)), linewidth=2.5)
    ax.plot(points[-2:, 0], points[-2:, 2], color=plt.cm.viridis(i / len(t)), linewidth=1)
ax.set(aspect="equal", xlabel="x [m]", ylabel="z [m]", title="released from the side, a frame every 60 ms")

bent = max(np.abs(np.linalg.norm(np.diff(outline(q)[[0, 15, 30]], n=2, axis=0), axis=-1)).max() for q in fall.q)
assert bent > 0.01  # the middle of the beam leaves the straight line by centimetres
drift = np.abs(np.diff(fall.kinetic + fall.potential)).max() / fall.kinetic.max()
assert drift < 0.01  # what is lost is what the modes' damping takes

plt.show()
