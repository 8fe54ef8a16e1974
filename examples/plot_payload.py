r"""
A payload, weighed by the gradient of a likelihood
==================================================

An arm picks something up. Its mass enters the spatial inertia of the last link, so it shifts every torque by a
little; the readings' log-likelihood knows, and :meth:`DynamicsEstimate.gradient` has its slope with respect to the ten
inertial parameters of every body,

.. math::

   \frac{\partial \ell}{\partial M(k)} = -\left(\lambda\alpha^* + Z_{\lambda\alpha}\right), \qquad
   \frac{\partial \ell}{\partial \xi(k)} = -\lambda ,

from the same two sweeps. Summed over a recording and followed uphill, it weighs the payload and finds where it sits.
"""

import warnings
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize

import kfdyn as kf
from kfdyn.spatial import TriangleInequalityWarning, spatial_inertia
from kfdyn.viz import COLORS, STYLE

plt.style.use(STYLE)
warnings.simplefilter("ignore", TriangleInequalityWarning)  # one of the published moments of this arm breaks it

# %%
# The recording
# -------------
#
# Two seconds of an arm that swings with 0.8 kg in its gripper, 12 cm ahead of the wrist: torques with a standard
# deviation of 0.2 N m and accelerations with 0.1 rad/s².

arm, hand = kf.models.puma560(), kf.models.puma560().body_names[-1]
TRUTH = np.array([0.8, 0.8 * 0.02, 0.8 * 0.01, 0.8 * 0.12])  # mass, and mass times its place


def loaded(point):
    """The arm with a point mass in its hand: mass, mass × place."""
    m, *first = point
    place = np.array(first) / m
    inertia = spatial_inertia(m, place, np.zeros((3, 3)))
    bodies = [replace(b, inertia=b.inertia + inertia) if b.name == hand else b for b in arm.bodies]
    return kf.System(bodies, arm.gravity, dict(arm.frames), arm.name)


rng = np.random.default_rng(0)
t = np.linspace(0, 2, 200)[:, None]
rate, phase = rng.uniform(2, 5, arm.nv), rng.uniform(0, 6, arm.nv)
q = 0.8 * np.sin(rate * t + phase)
v, a = 0.8 * rate * np.cos(rate * t + phase), -0.8 * rate**2 * np.sin(rate * t + phase)
tau = kf.inverse_dynamics(loaded(TRUTH), q, v, a)
readings = [tau + 0.2 * rng.normal(size=tau.shape), a + 0.1 * rng.normal(size=a.shape)]
sensors = [kf.sensors.JointTorque(0.2**2), kf.sensors.JointAcceleration(0.1**2)]

# %%
# Uphill
# ------
#
# The moments of a point mass follow from its mass and place, so the slope with respect to those is a chain rule away.

k = arm.body_index(hand)


def score(point):
    """Minus the log-likelihood of the recording, and its gradient."""
    est = kf.estimate_dynamics(loaded(point), q, v, sensors, readings)
    g = est.gradient().inertia[:, k].sum(0)
    m, *h = point
    x, y, z = np.array(h) / m
    # J = (|h|²1 − hh*)/m, entries xx, xy, xz, yy, yz, zz
    moments = np.array([
        [-(y * y + z * z), x * y, x * z, -(x * x + z * z), y * z, -(x * x + y * y)],
        [0, -y, -z, 2 * x, 0, 2 * x],
        [2 * y, -x, 0, 0, -z, 2 * y],
        [2 * z, 0, -x, 2 * z, -y, 0],
    ])  # fmt: skip
    return -est.llf.sum(), -(g[:4] + moments @ g[4:])


start = np.array([0.2, 0.0, 0.0, 0.01])
value, slope = score(start)
nudge = np.array([1e-5, 2e-5, -1e-5, 3e-5])
assert np.isclose((score(start + nudge)[0] - score(start - nudge)[0]) / 2, slope @ nudge, rtol=1e-5)

path = [start]
found = minimize(score, start, jac=True, method="BFGS", callback=path.append, options={"gtol": 1e-2})
path = np.array(path)
step = np.array([1e-3, 1e-4, 1e-4, 1e-4])
information = np.array([(score(found.x + d)[1] - score(found.x - d)[1]) / (2 * d.sum()) for d in np.diag(step)])
stderr = np.sqrt(np.diag(np.linalg.inv(information)))
assert (np.abs(found.x - TRUTH) < 3.5 * stderr).all() and stderr[0] < 0.02
print(f"mass {found.x[0]:.3f} ± {stderr[0]:.3f} kg, at {np.round(found.x[1:] / found.x[0], 3)} m")

# %%
# The figure
# ----------

masses = np.linspace(0.1, 1.4, 27)
profile = [-score([m, *(m * found.x[1:] / found.x[0])])[0] for m in masses]
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
left.plot(masses, np.array(profile) - max(profile), color=COLORS["blue"])
left.axvline(TRUTH[0], color=COLORS["pale"], label="truth")
left.plot(
    path[:, 0],
    [-score(p)[0] - max(profile) for p in path],
    "o-",
    ms=4,
    color=COLORS["vermilion"],
    lw=1,
    label="path uphill",
)
left.set(xlabel="mass in the hand [kg]", ylabel="log-likelihood, less the best", title="200 samples, 12 readings each")
left.legend(loc="lower right")
names = ["mass [kg]", "x [m]", "y [m]", "z [m]"]
place = np.r_[found.x[0], found.x[1:] / found.x[0]]
true = np.r_[TRUTH[0], TRUTH[1:] / TRUTH[0]]
spread = np.r_[stderr[0], stderr[1:] / found.x[0]]
right.errorbar(range(4), place - true, yerr=2 * spread, fmt="o", color=COLORS["vermilion"], capsize=4)
right.axhline(0, color=COLORS["pale"])
right.set(xticks=range(4), xticklabels=names, ylabel="estimate less truth, ± 2 standard errors", title="what was found")

plt.show()
