r"""
A payload picked up in mid-motion
=================================

An arm swings with nothing in its hand. Then its gripper closes on something. Nobody tells the filter, which reads
encoders and the torques that were ordered; but the next readings are not where it expects them. Their distance,
measured by what was to be expected,

.. math::

   \text{NIS}_k = \varepsilon_k^* D_k^{-1} \varepsilon_k ,

is :math:`\chi^2` as long as the model is right, and leaves that law within milliseconds. A second filter, which allows
for a force at the hand, says how heavy the thing is.
"""

import warnings
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import chi2

import kfdyn as kf
from kfdyn.spatial import TriangleInequalityWarning, spatial_inertia
from kfdyn.viz import COLORS, STYLE

plt.style.use(STYLE)
warnings.simplefilter("ignore", TriangleInequalityWarning)  # one of the published moments of this arm breaks it

# %%
# The plant
# ---------
#
# One arm with an empty hand, one with a kilogram in it: from the grip on, the second is simulated. Torques are off by a
# random amount at every step.

mass, dt, N, grip = 1.0, 0.001, 800, 400
arm = kf.models.puma560()
*rest, hand = arm.bodies
held = spatial_inertia(mass, [0.0, 0.0, 0.08], 1e-4 * np.eye(3))
loaded = kf.System([*rest, replace(hand, inertia=hand.inertia + held)], gravity=arm.gravity)

rng = np.random.default_rng(2)
t = dt * np.arange(N)
q0 = np.array([0.2, -0.6, 0.5, 0.3, 0.4, 0.0])
spread = np.array([0.5, 0.5, 0.3, 0.05, 0.05, 0.05])
q, v, ordered = np.empty((N, 6)), np.zeros((N, 6)), np.empty((N, 6))
q[0] = q0
for k in range(N):
    wanted = q0 + 0.15 * np.sin(2 * np.pi * t[k] * np.array([0.8, 1.0, 1.3, 1.5, 1.1, 0.9]))
    pull = 400.0 * (wanted - q[k]) - 40.0 * v[k]
    ordered[k] = kf.inverse_dynamics(arm, q[k], v[k], pull)  # it does not know of the payload either
    if k + 1 < N:
        plant = loaded if k >= grip else arm
        run = kf.simulate(plant, q[k], v[k], [0.0, dt], ordered[k] + spread * rng.normal(size=6), method="euler")
        q[k + 1], v[k + 1] = run.q[-1], run.v[-1]
deviation = 2e-5
seen = q + deviation * rng.normal(size=q.shape)

# %%
# The filter that is not told
# ---------------------------
#
# One reading at a time. The alarm is a NIS that would come once in a million readings.

model = kf.MotionModel(arm, dt, [kf.sensors.JointPosition(deviation**2)], spread**2)
live = kf.OnlineFilter(model, prior=(q0, np.zeros(6), 1e-6))
nis = np.empty(N)
for k in range(N):
    live.step(seen[k], ordered[k])
    nis[k] = live.nis
limit = chi2.ppf(1 - 1e-6, 6)
alarm = int(np.argmax(nis > limit))
print(f"mean NIS before the grip {nis[:grip].mean():.2f}, of 6 to be expected")
print(f"the alarm comes {1000 * (t[alarm] - t[grip]):.0f} ms after the grip")
assert 5.5 < nis[:grip].mean() < 6.5
assert grip < alarm < grip + 30

# %%
# How heavy is it?
# ----------------
#
# The same arm with a force [moment; force] at its hand that walks at random. It is a state like any other; its vertical
# part, over g, is the mass, as long as the hand is not shaken much.

feeling = kf.MotionModel(
    arm, dt, [kf.sensors.JointPosition(deviation**2)], spread**2, wrenches={"link_6": (1e-6, [1e-5] * 3 + [0.02] * 3)}
)
filt = kf.extended_kalman_filter(feeling, [seen], tau=ordered[:-1], prior=(q0, np.zeros(6), 1e-6))
weight, sure = -filt.wrenches["link_6"][:, 5], filt.std("link_6")[:, 5]
last = slice(N - 100, N)
print(f"weighed {weight[last].mean() / 9.81:.2f} kg of {mass:.2f}")
assert abs(weight[last].mean() / 9.81 - mass) < 0.25
assert np.abs(weight[100:grip]).mean() < 1.5

# %%
# The figure
# ----------

figure, axes = plt.subplots(2, 1, figsize=(10, 6.0), sharex=True, layout="constrained")
axes[0].semilogy(t, nis, color=COLORS["blue"], linewidth=0.8)
axes[0].axhline(limit, color=COLORS["orange"], label="once in a million readings")
axes[0].set(title="A PUMA picks up a kilogram, and nobody says so", ylabel="NIS")
axes[1].fill_between(t, weight - 2 * sure, weight + 2 * sure, color=COLORS["blue"], alpha=0.25, linewidth=0)
axes[1].plot(t, weight, color=COLORS["blue"], label="force at the hand, downward")
axes[1].plot(
    t, np.where(t >= t[grip], 9.81 * mass, 0.0), color=COLORS["grey"], linestyle="--", label="weight of the payload"
)
axes[1].set(xlabel="time [s]", ylabel="[N]")
for axis in axes:
    axis.axvline(t[grip], color=COLORS["pale"], linewidth=1.0)
    axis.legend(loc="upper left")
plt.show()
