r"""
Damping is measurement noise
============================

A stiff damper ruins an explicit integrator: when :math:`h B` exceeds twice the inertia, each step overshoots by more
than it corrects. The remedy is to take the damping force at the end of the step, :math:`B (v + h a)`:

.. math::

   (\mathcal M + h B)\, a = \tau - c - B v .

The matrix on the left is a mass matrix with :math:`R \leftarrow R + h B`. In the filter's reading :math:`R` is the
covariance of the measurement noise: the implicit step is the same Kalman filter, told that its torque sensors are
a little noisier. It costs nothing.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

import kfdyn as kf
from kfdyn.dynamics import as_estimation
from kfdyn.dynamics.simulation.motion_arguments import motion
from kfdyn.dynamics.simulation.simulate import simulate
from kfdyn.viz import COLORS, STYLE

plt.style.use(STYLE)

EXPLICIT, IMPLICIT, TRUTH = COLORS["vermilion"], COLORS["blue"], "black"

# %%
# A PUMA with grease in its wrist
# -------------------------------
#
# The arm falls from a bend. The dampers of the wrist joints are stiff against their small inertia of about 0.2 kg m².

arm = kf.models.puma560()
q, v = np.array([0.3, -1.0, 0.8, 0.5, 0.8, 0.2]), np.array([0.0, 0.0, 0.0, 3.0, -2.0, 4.0])
B = np.array([4.0, 4.0, 4.0, 30.0, 30.0, 30.0])
h = 0.02

t = h * np.arange(16)
with warnings.catch_warnings():
    warnings.simplefilter("ignore", RuntimeWarning)  # of energy from nowhere: that is what is shown
    explicit = simulate(arm, q, v, t[:6], damping=B, method="euler")
implicit = simulate(arm, q, v, t, damping=B, method="implicit")
truth = simulate(arm, q, v, np.linspace(0, t[-1], 121), damping=B, method="LSODA", rtol=1e-7, atol=1e-9)

assert np.abs(explicit.v).max() > 100 and np.abs(implicit.v[-1] - truth.v[-1]).max() < 0.1

# %%
# How much per step?
# ------------------
#
# A single joint with inertia I and damper B: an explicit step multiplies the velocity by 1 − hB/I, an implicit one
# divides it by 1 + hB/I, the truth is exp(−hB/I). The points are single steps of the two integrators.

single, inertia = kf.models.pendulum(mass=1.0, length=1.0), 1.0
ratios = np.arange(0.5, 4.01, 0.5)
steps = {
    method: [
        simulate(single, [0.0], [1.0], [0.0, 1.0], damping=[x * inertia], gravity=[0, 0, 0], method=method).v[-1, 0]
        for x in ratios
    ]
    for method in ("euler", "implicit")
}
assert np.allclose(steps["euler"], 1 - ratios) and np.allclose(steps["implicit"], 1 / (1 + ratios))

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2))
left.plot(truth.t, truth.v[:, 3], color=TRUTH, linewidth=3, alpha=0.35, label="truth (LSODA)")
left.plot(explicit.t, explicit.v[:, 3], "o-", color=EXPLICIT, markersize=3.5, linewidth=1, label="explicit step, R")
left.plot(t, implicit.v[:, 3], "o-", color=IMPLICIT, markersize=3.5, linewidth=1.4, label="implicit step, R + hB")
left.set(
    xlabel="time [s]", ylabel="joint 4 [rad/s]", ylim=(-26, 26), title=f"steps of {1000 * h:.0f} ms, hB / inertia ≈ 3"
)
left.legend()

ratio = np.linspace(0, 4, 200)
right.plot(ratio, np.exp(-ratio), color=TRUTH, linewidth=3, alpha=0.35)
right.plot(ratio, 1 - ratio, color=EXPLICIT)
right.plot(ratio, 1 / (1 + ratio), color=IMPLICIT)
right.plot(ratios, steps["euler"], "o", color=EXPLICIT, markersize=5)
right.plot(ratios, steps["implicit"], "o", color=IMPLICIT, markersize=5)
right.axhspan(-1, 1, color="0.93", zorder=0)
right.text(3.95, 0.86, "stable", ha="right", color="0.45")
right.set(xlabel="hB / I", ylabel="velocity after one step / before", xlim=(0, 4), ylim=(-3, 1.15), title="one step")

# %%
# What the filter sees
# --------------------
#
# The innovation covariance D = HPH* + R is the inertia that a hinge feels. The dampers of this step add hB to it, and
# by way of the gains a little more of the inertia outboard. To the wrist the noise is most of what it feels; the
# shoulder hardly takes notice.

plain = kf.riccati(as_estimation(arm, q))
damped = kf.riccati(as_estimation(motion(arm, damping=B).damped(h), q))
D, D_damped = (np.array([float(D[0, 0]) for D in run.D]) for run in (plain, damped))
figure, ax = plt.subplots(figsize=(7.5, 3.4))
joint = np.arange(1, 7)
ax.bar(joint, (D_damped - h * B) / D, 0.5, color="0.75", label="HPH* + rotor")
ax.bar(joint, h * B / D, 0.5, bottom=(D_damped - h * B) / D, color=IMPLICIT, label="hB")
ax.axhline(1, color="k", linewidth=1, linestyle=":")
ax.set(xlabel="joint", ylabel="D, implicit step / explicit step")
ax.legend(loc="upper left")

plt.show()
