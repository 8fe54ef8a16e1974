r"""
A pendulum seen through the sine of its angle
=============================================

A pendulum swings over the top now and then. A camera sees only how far it is to the side, with noise:

.. math::

   \ddot q = -\tfrac g l \sin q + d, \qquad \dot d = w, \qquad y = \sin q + r.

The sine of an angle does not tell whether the pendulum hangs or stands, and above all not how fast it is. The motion
does: no other trajectory explains all readings. :func:`~kfdyn.estimation.iterated_kalman_smoother` finds the most
probable one, with error bars, and with it the wind :math:`d` that pushes the pendulum and wanders. The sensor fails for
half a second.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

import kfdyn as kf
from kfdyn.spatial import TriangleInequalityWarning
from kfdyn.viz import COLORS, STYLE

plt.style.use(STYLE)

# %%
# The model
# ---------
#
# ``step`` and ``observe`` take rows of states, so that a smoother can ask for all times at once. The noise is inside
# ``step``: its argument is called ``w``.

dt, N = 0.02, 200
W = 0.15  # variance of what the wind changes over one step
R = 0.15**2


def step(x, w, k):
    """One step of angle, speed and wind: speed first, then the angle with the new speed."""
    v = x[:, 1] + dt * (-9.81 * np.sin(x[:, 0]) + x[:, 2])
    return np.stack([x[:, 0] + dt * v, v, x[:, 2] + w[:, 0]], axis=1)


def observe(x, k):
    """The camera."""
    return np.sin(x[:, :1])


model = kf.NonlinearModel(step, observe, W, R, x0=[0.0, 6.0, 0.0], P0=[0.3, 1.0, 0.1])
print(model)

# %%
# One motion, and its readings
# ----------------------------

rng = np.random.default_rng(3)
truth, w = np.empty((N, 3)), rng.normal(scale=np.sqrt(W), size=(N - 1, 1))
truth[0] = [0.2, 6.4, 0.1]
for k in range(N - 1):
    truth[k + 1] = step(truth[k : k + 1], w[k : k + 1], k)[0]
y = observe(truth, None) + rng.normal(scale=np.sqrt(R), size=(N, 1))
hidden = slice(110, 135)
y[hidden] = np.nan

# %%
# Smooth it
# ---------

post = kf.iterated_kalman_smoother(model, y)
print(post)
assert post.converged
std, error = post.std(), post.error(truth)
inside = (np.abs(error) < 1.96 * std).mean(axis=0)
print(
    "within their 95 % bands:", *(f"{100 * c:.0f} % of the {n}" for c, n in zip(inside, ("angles", "speeds", "winds")))
)
assert (inside > 0.8).all() and np.abs(error[:, 0]).max() < 0.4

# %%
# The same call for a robot
# -------------------------
#
# A robot's step is its own dynamics, and cameras see sines of its angles, too: three markers on the hand of a PUMA,
# to a millimetre. :class:`kfdyn.MotionModel` has both functions, with their Jacobians.

warnings.simplefilter("ignore", TriangleInequalityWarning)  # one of the published moments of this arm breaks it
puma = kf.models.puma560()
places = {"left": [0.06, 0.0, 0.1], "right": [-0.06, 0.0, 0.1], "front": [0.0, 0.08, 0.12]}
frames = {name: kf.Frame("link_6", position=place) for name, place in places.items()}
arm = kf.System(puma.bodies, gravity=puma.gravity, frames=frames, name=puma.name)
spread = np.array([0.5, 0.5, 0.3, 0.02, 0.02, 0.01])
moves = kf.MotionModel(arm, dt, [kf.sensors.Position(name, 0.001**2) for name in frames], spread**2)

q0, clock = np.array([0.2, -0.6, 0.5, 0.3, 0.6, 0.0]), dt * np.arange(60)
tau = kf.gravity_torques(arm, q0) + np.sin(6.0 * clock[:-1, None]) * [10, 10, 4, 0.3, 0.3, 0.2]
pushed = tau + spread * rng.normal(size=tau.shape)
run = kf.simulate(arm, q0, np.zeros(6), clock, lambda s, q, v: pushed[min(round(s / dt), 58)], method="euler")
seen = [kf.frame_pose(arm, run.q, name).position + 0.001 * rng.normal(size=(60, 3)) for name in frames]
moved = kf.iterated_kalman_smoother(moves, seen, tau=tau, prior=(q0, np.zeros(6), np.full(12, 0.04)))
print(moved.message, f"and {100 * (np.abs(moved.v - run.v) < 1.96 * moved.std('v')).mean():.0f} % of speeds in bands")
assert moved.converged and np.abs(moved.q - run.q).max() < 0.03

# %%
# The figure
# ----------
#
# Grey dots are what one would get by an arcsine of each reading: nothing beyond a quarter turn, and no speed.

t = dt * np.arange(N)
figure, axes = plt.subplots(3, 1, figsize=(10, 7.5), sharex=True, height_ratios=[1.3, 1, 0.8])
axes[0].plot(
    t, np.arcsin(np.clip(y[:, 0], -1.0, 1.0)), ".", color=COLORS["grey"], markersize=3, label="arcsine of a reading"
)
for i, (name, color) in enumerate({"angle [rad]": "blue", "speed [rad/s]": "blue", "wind [rad/s²]": "orange"}.items()):
    band = post.x[:, i] - 1.96 * std[:, i], post.x[:, i] + 1.96 * std[:, i]
    axes[i].fill_between(t, *band, color=COLORS[color], alpha=0.25, linewidth=0, label="95 % band")
    axes[i].plot(t, truth[:, i], color=COLORS["pale"], linewidth=3, label="truth")
    axes[i].plot(t, post.x[:, i], color=COLORS[color], label="smoothed")
    axes[i].set(ylabel=name)
axes[2].set(xlabel="time [s]")
for axis in axes:
    axis.axvspan(t[hidden.start], t[hidden.stop], color=COLORS["pale"], alpha=0.25, linewidth=0)
    axis.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
axes[0].set(title="A pendulum, of which only sin q is seen; nothing in the grey interval")
plt.show()
