r"""
A four-bar linkage through its dead centre
==========================================

A loop can be cut: forward dynamics of the tree knows the accelerations without it, :math:`a_0 \sim N(\cdot,
\mathcal M^{-1})`, and the loop reports one more measurement about them, :math:`J a = -\dot J v`. Closing it again is a
Kalman update,

.. math::

   \Omega = J \mathcal M^{-1} J^*, \qquad a = a_0 + \mathcal M^{-1} J^* \Omega^{+} (-\dot J v - J a_0) .

Where the bars of a linkage fall into line, it could go on in two ways: :math:`\Omega` loses rank, minimal coordinates
have no good choice, and the update needs nothing but the rank.
"""

import matplotlib.pyplot as plt
import numpy as np

import kfdyn as kf
from kfdyn.errors import SingularError
from kfdyn.viz import COLORS, STYLE, draw_system

plt.style.use(STYLE)

# %%
# A parallelogram
# ---------------
#
# Crank and rocker are of one length, coupler and ground of another. The crank is pushed from hanging; on its way it
# passes the place where all four bars lie along one line.

lengths = {"ground": 2.0, "crank": 1.0, "coupler": 2.0, "rocker": 1.0}
linkage = kf.models.four_bar(**lengths)
q0 = kf.assemble(linkage, np.array([-1.2, 1.2, -1.2]))
push = kf.minimal_coordinates(linkage, q0)
v0 = push.X @ [8.0 / push.X[0, 0]]
t = np.linspace(0, 1.0, 401)
motion = kf.simulate(linkage, q0, v0, t)
gap = np.array([kf.cut_joint(linkage, q, v, np.zeros(3)).compliance for q, v in zip(motion.q, motion.v)])
coupler = kf.frame_pose(linkage, motion.q, "coupler_end").position
rocker = kf.frame_pose(linkage, motion.q, "rocker_end").position
assert np.abs(coupler - rocker).max() < 1e-11
assert motion.worst_energy_drift < 1e-5
crank = motion.q[:, 0]
assert crank.min() < 0 < crank.max()  # it went through

# %%
# Who passes, who says no
# -----------------------
#
# Exactly in line, the embedding refuses and names the loop; cut joint and proximal iteration agree.

flat, tau = np.zeros(3), np.array([1.0, 0.5, -0.5])
try:
    kf.forward_dynamics(linkage, flat, None, tau, method="embedding")
except SingularError as refusal:
    said = str(refusal)
assert "dead centre" in said
cut, proximal = (kf.forward_dynamics(linkage, flat, None, tau, method=m) for m in ("cut", "proximal"))
assert np.allclose(cut, proximal, rtol=1e-9)

# The two ways out: the second eigenvalue of Ω in the plane, as the bars line up.
angles = np.linspace(-0.6, 0.6, 241)
lowest = np.empty(angles.size)
for i, angle in enumerate(angles):
    q = kf.models.four_bar_configuration(angle, **lengths)
    values = np.linalg.eigvalsh(kf.cut_joint(linkage, q, None, tau).compliance)
    lowest[i] = values[1]  # the first is the row across the plane, which never moves
assert lowest[120] < 1e-12 < lowest[0]

# %%
# The figure
# ----------

figure, (scene, energy, rank) = plt.subplots(1, 3, figsize=(11, 3.6), width_ratios=(1.4, 1, 1))
for i in range(0, t.size, 40):
    draw_system(scene, linkage, motion.q[i], color=COLORS["blue"], linewidth=2.2, alpha=0.2 + 0.8 * i / t.size)
scene.plot([0, 2], [0, 0], color="0.6", linewidth=1, linestyle=":")
scene.set(aspect="equal", title="every 0.1 s", xlabel="x [m]", ylabel="z [m]")
energy.plot(t, motion.kinetic, color=COLORS["orange"], label="kinetic")
energy.plot(t, motion.potential - motion.potential.min(), color=COLORS["green"], label="potential")
energy.plot(t, motion.energy - motion.potential.min(), color="0.3", label="sum")
energy.set(xlabel="time [s]", ylabel="energy [J]", title="nothing is lost in the loop")
energy.legend()
rank.semilogy(np.degrees(angles), np.maximum(lowest, 1e-17), color=COLORS["blue"])
rank.set(xlabel="crank [°]", ylabel="second eigenvalue of Ω [1/kg]", title="Ω loses rank in line")
plt.show()
