"""
Four forms beside sixty digits
==============================

Covariance, covariance output by output, roots of covariances, and one dense normal: on paper the same answer. In
sixteen digits they part company as a model gets worse conditioned. Here each is held against sixty digits over more
than ten decades: a track whose prior grows wider and wider, and an arm whose hand grows heavier and heavier.
"""

import warnings

import matplotlib.pyplot as plt
import mpmath as mp
import numpy as np

import kfdyn as kf
from kfdyn.errors import LostDigitsWarning, SingularError
from kfdyn.viz import COLORS, STYLE

plt.style.use(STYLE)
mp.mp.dps = 60

FORMS = {
    "block": ("covariance", "blue", "-"),
    "univariate": ("output by output", "orange", "--"),
    "dense": ("dense normal", "grey", ":"),
    "square_root": ("square root", "vermilion", "-"),
}


def exact(matrix):
    """A matrix of floats in sixty digits."""
    return mp.matrix(np.atleast_2d(matrix).tolist())


# %%
# A wider and wider prior
# -----------------------
#
# Position and velocity of a track of which only the position is measured: it takes two measurements to know both,
# and between them the width of the prior stands beside the noise of the first. The error is that of the smoothed state,
# in standard deviations.

F, H, R = np.array([[1.0, 1.0], [0.0, 1.0]]), np.array([[1.0, 0.0]]), np.array([[1e-2]])
Q = 1e-4 * np.array([[1 / 3, 1 / 2], [1 / 2, 1.0]])
N = 8
T = 3.0 * np.arange(N) + 0.1 * np.random.default_rng(1).normal(size=N)
WIDTHS = 10.0 ** np.arange(0, 15, 2)


def joint(P0):
    """Covariance of all states, and the map from states to measurements, as nested lists of sixty digits."""
    step = mp.eye(2 * N)
    noise = mp.zeros(2 * N)
    for k in range(N):
        block = exact(P0 * np.eye(2)) if k == 0 else exact(Q)
        for i in range(2):
            for j in range(2):
                noise[2 * k + i, 2 * k + j] = block[i, j]
                if k:
                    step[2 * k + i, 2 * k - 2 + j] = -mp.mpf(F[i, j])
    inverse = mp.inverse(step)
    see = mp.zeros(N, 2 * N)
    for k in range(N):
        see[k, 2 * k] = 1
    return inverse * noise * inverse.T, see


def track(method, P0):
    """Smoothed states by one of the forms."""
    ss = kf.StateSpace.chain(F, H, Q, R, [0.0, 0.0], P0 * np.eye(2), steps=N)
    if method == "dense":
        cov, see = (np.array(m.tolist(), dtype=float) for m in joint(P0))
        return cov @ see.T @ np.linalg.solve(see @ cov @ see.T + R[0, 0] * np.eye(N), T)
    with warnings.catch_warnings():  # the covariance forms warn of what is shown here
        warnings.simplefilter("ignore", LostDigitsWarning)
        return kf.bryson_frazier(ss, kf.kalman_filter(ss, T, method=method)).x.flat


off = {method: [] for method in FORMS}
for P0 in WIDTHS:
    cov, see = joint(P0)
    gain = cov * see.T * mp.inverse(see * cov * see.T + mp.mpf(R[0, 0]) * mp.eye(N))
    want, left = gain * exact(T).T, cov - gain * see * cov
    for method, errors in off.items():
        try:
            x = track(method, P0)
        except np.linalg.LinAlgError:  # numpy finds the dense matrix singular
            errors.append(np.nan)
            continue
        errors.append(max(float(abs(mp.mpf(x[i]) - want[i]) / mp.sqrt(left[i, i])) for i in range(2 * N)))

assert max(off["square_root"]) < 1e-8
assert off["block"][-2] > 1e-4 and off["dense"][-3] > 1e-4

# %%
# A heavier and heavier hand
# --------------------------
#
# The same filter reads the accelerations of an arm from its torques. The mass of the last link grows until the mass
# matrix has a condition of 1e16; a dense solver has lost its last digit then.

arm, q, torque = kf.models.chain(8), np.linspace(0.3, 1.0, 8), np.arange(1.0, 9.0)
light = kf.as_estimation(arm, q, gravity=(0.0, 0.0, 0.0))
RATIOS = 10.0 ** np.arange(0, 17, 2)


def heavy(ratio):
    """The arm with a hand so many times as heavy."""
    inertia = [block.copy() for block in light.Q]
    inertia[light.tree.leaves[0]] *= ratio
    return kf.StateSpace(light.tree, light.phi, light.H, inertia, light.R)


def sixty_digits(ss):
    """The accelerations by the dense mass matrix in sixty digits."""
    state, n = ss.arrays.state, ss.n_states
    step, inertia, hinge = mp.eye(n), mp.zeros(n), mp.zeros(ss.n_outputs, n)
    for k, p in enumerate(ss.tree.parent):
        for i in range(6):
            hinge[k, int(state[k]) + i] = mp.mpf(ss.H[k][0, i])
            for j in range(6):
                inertia[int(state[k]) + i, int(state[k]) + j] = mp.mpf(ss.Q[k][i, j])
                if p >= 0:
                    step[int(state[p]) + i, int(state[k]) + j] -= mp.mpf(ss.phi[k][i, j])
    seen, rotors = hinge * mp.inverse(step), mp.diag([mp.mpf(block[0, 0]) for block in ss.R])
    return mp.lu_solve(seen * inertia * seen.T + rotors, exact(torque).T)


lost = {method: [] for method in FORMS}
for ratio in RATIOS:
    ss = heavy(ratio)
    want = sixty_digits(ss)
    for method, errors in lost.items():
        try:
            if method == "dense":
                a = np.linalg.solve(kf.Covariances(ss).T.dense(), torque)
            else:
                a = kf.innovations_factor(ss, method=method).solve(torque)
            errors.append(float(max(abs(mp.mpf(a[i]) - want[i]) for i in range(8)) / max(abs(w) for w in want)))
        except SingularError:
            errors.append(np.nan)  # refused, with the advice to take roots
        except np.linalg.LinAlgError:
            errors.append(np.nan)  # NumPy meets a pivot of zero, or one of rounding, as its library happens to round

assert max(lost["square_root"]) < 1e-11
assert not lost["block"][-1] < 1e-2 and not lost["dense"][-1] < 1e-2

# %%
# Both at a glance
# ----------------
#
# The root of a covariance has half its decades, and sums of squares cannot cancel. What is more, each reflection starts
# from the largest number of its row, so that a small column keeps digits in proportion to its own size.

figure, axes = plt.subplots(1, 2, figsize=(9.5, 3.8), sharey=True)
for ax, x, errors, label in (
    (axes[0], WIDTHS, off, "variance of the prior"),
    (axes[1], RATIOS, lost, "mass of the hand, relative"),
):
    for method, (name, color, style) in FORMS.items():
        ax.loglog(x, np.maximum(errors[method], 1e-17), style, color=COLORS[color], marker="o", ms=3, label=name)
    ax.set(xlabel=label, ylim=(1e-17, 1e5))
axes[0].set(ylabel="error", title="smoothed state, in standard deviations")
axes[1].set(title="accelerations, relative")
axes[0].legend(loc="upper left")
plt.show()
