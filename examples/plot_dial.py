r"""
The dial from forward to inverse dynamics
=========================================

Exact torques are forward dynamics; exact accelerations are inverse dynamics. Both are one estimator,
:func:`kfdyn.estimate_dynamics`, with noise-free sensors. Between them lies a dial: let the torques' noise grow and the
accelerations' shrink, and the estimate moves from one to the other. Here an arm's torque readings and its
acceleration readings contradict each other on purpose, so that one can see whom the estimator believes.
"""

import matplotlib.pyplot as plt
import numpy as np

import kfdyn as kf
from kfdyn.viz import COLORS, STYLE

plt.style.use(STYLE)

arm = kf.models.puma560()
rng = np.random.default_rng(8)
q, v, tau, a_read = arm.random_configuration(rng), *rng.normal(size=(3, arm.nv))
tau *= 10
forward = kf.forward_dynamics(arm, q, v, tau)
inverse = kf.inverse_dynamics(arm, q, v, a_read)

# %%
# One call for each position of the dial
# --------------------------------------
#
# The two ends are exact sensors, covariance 0, one of them missing. They agree with forward and inverse dynamics to
# rounding, and not because one of those was called: it is the same gather and the same scatter.

S = kf.sensors
missing = np.full(arm.nv, np.nan)
ends = [
    kf.estimate_dynamics(arm, q, v, [S.JointTorque(0.0), S.JointAcceleration(0.0)], readings)
    for readings in ([tau, missing], [missing, a_read])
]
assert np.allclose(ends[0].a, forward, rtol=1e-9)
assert np.allclose(ends[1].tau, inverse, rtol=1e-9)

dial = np.linspace(-6, 6, 121)
settings = [[S.JointTorque(10.0**x), S.JointAcceleration(10.0**-x)] for x in dial]
turned = [kf.estimate_dynamics(arm, q, v, sensors, [tau, a_read]) for sensors in settings]
a = np.array([est.a for est in turned])
torque = np.array([est.tau for est in turned])
doubt_a, doubt_tau = (np.array([est.std(key) for est in turned]) for key in ("a", "tau"))
assert np.allclose(a[0], forward, rtol=1e-2, atol=1e-2) and np.allclose(torque[-1], inverse, rtol=1e-2, atol=1e-2)
assert np.allclose(a[-1], a_read, atol=1e-3) and np.allclose(torque[0], tau, atol=1e-3)

# %%
# The figure
# ----------

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), sharex=True)
shades = [COLORS[name] for name in ("blue", "orange", "green")]
for ax, value, doubt, start, end, unit in (
    (left, a, doubt_a, forward, a_read, "acceleration [rad/s²]"),
    (right, torque, doubt_tau, tau, inverse, "torque [N m]"),
):
    for i, color in enumerate(shades):
        ax.plot(dial, value[:, i], color=color, label=arm.hinge_names[i])
        ax.fill_between(dial, value[:, i] - doubt[:, i], value[:, i] + doubt[:, i], color=color, alpha=0.15, lw=0)
        ax.plot(dial[0], start[i], "o", color=color, ms=6, clip_on=False)
        ax.plot(dial[-1], end[i], "s", color=color, ms=6, clip_on=False)
    low, high = value[:, :3].min(), value[:, :3].max()
    ax.set(xlabel=r"$\log_{10}$ of torque variance = −$\log_{10}$ of acceleration variance", ylabel=unit)
    ax.set_ylim(low - 0.15 * (high - low), high + 0.15 * (high - low))
left.set_title("circles: forward dynamics; squares: what was read")
right.set_title("circles: what was read; squares: inverse dynamics")
left.legend(title="hinge", loc="upper right")

plt.show()
