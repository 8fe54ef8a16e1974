r"""
Velocities and torques from encoders
====================================

An arm moves, and all that is recorded are its encoders, with an error of half a milliradian, and the torques that were
ordered. How fast was it, and did somebody push it?

Three ways to find the velocity:

* differences of readings, which multiply the error by :math:`\sqrt 2 / \Delta t`;
* a polynomial through a window of readings, by Savitzky and Golay, which knows nothing of the arm;
* the filter in time, which knows its dynamics: :class:`kfdyn.MotionModel` and :func:`kfdyn.iterated_kalman_smoother`.

Only the last says how sure it is, and only the last sees the push.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.signal import savgol_filter

import kfdyn as kf
from kfdyn.viz import COLORS, STYLE

plt.style.use(STYLE)

# %%
# A motion with a push
# --------------------
#
# The arm swings about a pose under torques that hold it and shake it a little. Every torque is off by a random 0.5 N m,
# and for a tenth of a second somebody leans on the elbow.

arm, dt, N = kf.models.puma560(), 0.005, 240
rng = np.random.default_rng(4)
t = dt * np.arange(N)
q0 = np.array([0.2, -0.6, 0.5, 0.3, 0.4, 0.0])
hold = kf.gravity_torques(arm, q0)
ordered = hold + np.sin(2 * np.pi * np.outer(t[:-1], [0.8, 1.0, 1.3, 1.5, 1.1, 0.9])) * [20, 25, 8, 0.5, 0.5, 0.4]
spread = np.array([0.5, 0.5, 0.5, 0.1, 0.1, 0.1])
w = spread * rng.normal(size=(N - 1, 6))
pushed = slice(120, 140)
w[pushed, 2] += 4.0

q, v = np.empty((N, 6)), np.zeros((N, 6))
q[0] = q0
for k in range(N - 1):
    run = kf.simulate(arm, q[k], v[k], [0.0, dt], ordered[k] + w[k], method="rk4")
    q[k + 1], v[k + 1] = run.q[-1], run.v[-1]
deviation = 5e-4
seen = q + deviation * rng.normal(size=q.shape)

# %%
# Three velocities
# ----------------

differences = np.gradient(seen, dt, axis=0)
polynomial = savgol_filter(seen, 15, 3, deriv=1, delta=dt, axis=0)

force_noise = np.where(np.arange(6) == 2, 1.5, spread) ** 2  # more is thought possible at the elbow
model = kf.MotionModel(arm, dt, [kf.sensors.JointPosition(deviation**2)], force_noise, method="rk4")
post = kf.iterated_kalman_smoother(model, [seen], tau=ordered, prior=(q0, np.zeros(6), [1e-4] * 12))
print(post)
assert post.converged


def rms(found):
    """Root mean square error of all joints."""
    return np.sqrt(np.mean((found - v) ** 2))


errors = {"differences": rms(differences), "Savitzky–Golay": rms(polynomial), "filter in time": rms(post.v)}
for name, error in errors.items():
    print(f"{name:15} is wrong by {error:.4f} rad/s")
inside = (np.abs(post.v - v) < 1.96 * post.std("v")).mean()
print(f"{100 * inside:.0f} % of its velocities lie within their 95 % bands")
assert errors["filter in time"] < 0.5 * errors["Savitzky–Golay"] < 0.5 * errors["differences"]
assert 0.9 < inside <= 1.0

# %%
# The force nobody ordered
# ------------------------
#
# It is the co-state of the smoother, :math:`\hat w_k = W B^* \lambda_{k+1}`, and has a covariance as well.

found, band = post.force[:, 2], 1.96 * post.std("force")[:, 2]
print(f"push at the elbow: {found[pushed].mean():.1f} N m found, {w[pushed, 2].mean():.1f} N m true")
assert abs(found[pushed].mean() - w[pushed, 2].mean()) < 1.0

# %%
# The figure
# ----------

figure, axes = plt.subplots(2, 1, figsize=(10, 6.4), sharex=True, layout="constrained")
joint = 2
limit = 1.96 * post.std("v")[:, joint]
axes[0].plot(t, (differences - v)[:, joint], color=COLORS["pale"], linewidth=0.8, label="differences")
axes[0].plot(t, (polynomial - v)[:, joint], color=COLORS["orange"], linewidth=1.1, label="Savitzky–Golay")
axes[0].fill_between(t, -limit, limit, color=COLORS["blue"], alpha=0.3, linewidth=0, label="95 % band")
axes[0].plot(t, (post.v - v)[:, joint], color=COLORS["blue"], linewidth=1.4, label="filter in time")
axes[0].set(title="Elbow of a PUMA, from encoders alone", ylabel="error of the velocity [rad/s]", ylim=(-0.2, 0.2))
axes[1].fill_between(
    t[:-1], found - band, found + band, color=COLORS["blue"], alpha=0.25, linewidth=0, label="95 % band"
)
axes[1].plot(t[:-1], w[:, joint], ".", color=COLORS["grey"], markersize=2.5, label="true disturbance")
axes[1].plot(t[:-1], found, color=COLORS["blue"], label="force nobody ordered")
axes[1].axvspan(t[pushed.start], t[pushed.stop], color=COLORS["pale"], alpha=0.3, linewidth=0)
axes[1].set(xlabel="time [s]", ylabel="torque [N m]")
for axis in axes:
    axis.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
plt.show()
