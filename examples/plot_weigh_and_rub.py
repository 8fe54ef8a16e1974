r"""
A payload weighed, and friction found, from a log of the robot at work
======================================================================

A PUMA carries something that its file knows nothing of, one of its hinges rubs, and nobody measured a torque: there are
encoders, and the torques that were ordered. :func:`kfdyn.identify` asks under which numbers the log is most likely,

.. math::

   \ell(\theta) = -\tfrac12 \sum_k \left(\varepsilon_k^* D_k^{-1} \varepsilon_k + \log\det D_k\right) + \text{const},

with the innovations of the smoothed motion, the noise levels among :math:`\theta`. The likelihood also tells how well
each number is known, and whether there is friction at all.
"""

import warnings
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np

import kfdyn as kf
from kfdyn.spatial import TriangleInequalityWarning, spatial_inertia
from kfdyn.viz import COLORS, STYLE

plt.style.use(STYLE)
warnings.simplefilter("ignore", TriangleInequalityWarning)  # one of the published moments of this arm breaks it

# %%
# A log
# -----
#
# Six seconds of a slow swing. Half a kilogram hangs 10 cm ahead of the wrist; hinge 4 rubs with 0.3 N m.

DT, N, RUB = 0.01, 600, 0.3
arm = kf.models.puma560()
bodies = list(arm.bodies)
bodies[-1] = replace(bodies[-1], inertia=bodies[-1].inertia + spatial_inertia(0.5, [0.02, 0.0, 0.1], np.zeros((3, 3))))
bodies[3] = replace(bodies[3], friction=RUB)
truth = kf.System(bodies, arm.gravity)

rng = np.random.default_rng(4)
t, q0 = DT * np.arange(N), np.array([0.2, -0.6, 0.5, 0.3, 0.4, 0.0])
swing = np.sin(np.outer(t, [2, 2.6, 3.1, 3.7, 4.3, 4.9])) * [15, 15, 8, 1, 1, 0.5]
tau = kf.gravity_torques(arm, q0) + swing
pushed = tau + 0.1 * rng.normal(size=tau.shape)
drag = {"damping": [3, 3, 2, 0.3, 0.3, 0.2], "friction": True, "friction_speed": 0.1}
run = kf.simulate(
    truth, q0, np.zeros(6), t, lambda s, q, v: pushed[min(round(s / DT), N - 2)], method="implicit", **drag
)
seen = run.q + 1e-4 * rng.normal(size=run.q.shape)

# %%
# With friction, and without
# --------------------------

model = kf.MotionModel(
    arm, DT, [kf.sensors.JointPosition(1e-8, name="encoders")], np.full(6, 0.02), method="implicit",
    damping=np.full(6, 0.5), friction_speed=0.1,
)  # fmt: skip
names = ["link_6/payload", "*/damping", "force_noise", "encoders/cov"]
found = kf.identify(model, [seen], tau[:-1], [*names, "joint_4/friction"])
without = kf.identify(model, [seen], tau[:-1], names)
print(found.summary())
test = found.likelihood_ratio(without)
print(f"friction in joint 4: twice the log-likelihood ratio {test.statistic:.0f}, p = {test.p_value:.2g}")
at = dict(zip(found.names, range(len(found.names))))
low, high = found.conf_int().T
for name, value in (("link_6/payload/m", 0.5), ("link_6/payload/z", 0.1), ("joint_4/friction", RUB)):
    assert abs(found.params[at[name]] - value) < 3.5 * found.stderr[at[name]]
assert found.stderr[at["link_6/payload/m"]] < 0.02 and test.p_value < 1e-9
assert found.residual_tests()["encoders"].fine and not without.residual_tests()["encoders"].fine

# %%
# The figure
# ----------
#
# Left: what is known of the payload's mass and place, which share an error. Right: the likelihood with friction held at
# each value, all else fitted anew; it would be cut at the line if the interval of 95 % ended there.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
centre, axes = found.ellipsoid(["link_6/payload/m", "link_6/payload/z"])
turn = np.linspace(0.0, 2.0 * np.pi, 200)
ring = centre + np.stack([np.cos(turn), np.sin(turn)], axis=1) @ axes.T
left.plot(*ring.T, color=COLORS["blue"], label="95 % ellipse")
left.plot(*centre, "o", color=COLORS["blue"])
left.plot(0.5, 0.1, "x", color=COLORS["vermilion"], markersize=9, label="truth")
left.set(xlabel="mass [kg]", ylabel="ahead of the wrist [m]", title="What hangs at the hand")
left.legend(loc="best")
i = at["joint_4/friction"]
values = found.params[i] + found.stderr[i] * np.linspace(-3, 3, 9)
profile = found.profile("joint_4/friction", values) - found.llf
right.plot(values, profile, "o-", color=COLORS["blue"], markersize=4, label="profile")
right.plot(values, -0.5 * ((values - found.params[i]) / found.stderr[i]) ** 2, color=COLORS["grey"], linestyle=":",
           label="parabola of the standard error")  # fmt: skip
right.axhline(-1.92, color=COLORS["orange"], linestyle="--", label="95 %")
right.axvline(RUB, color=COLORS["vermilion"], linewidth=1.0, label="truth")
right.set(xlabel="friction of joint 4 [N m]", ylabel="log-likelihood, less the best", title="How much it rubs")
right.legend(loc="lower center")
plt.show()
