r"""
The gain without the covariance
===============================

Rodriguez's last wish but one: "fast" filtering, "which involves direct propagation of the filter gain as opposed to
indirect methods requiring covariance propagation". On a uniform chain, where every node has the same :math:`\phi`, H, Q
and R, the prediction covariance changes by increments of low rank,

.. math::

   P(k+1) - P(k) = L(k)\, \Sigma(k)\, L(k)^*,

and L and Σ obey a recursion of their own (Chandrasekhar, Morf and Kailath). :func:`kfdyn.fast_gain
<kfdyn.estimation.uniform_chain.fast_gain>` never forms P. It is exact; what it saves depends on the rank, and
for a robot that is little.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.linalg import solve_discrete_lyapunov

import kfdyn as kf
from kfdyn.viz import COLORS, STYLE

plt.style.use(STYLE)

# %%
# A uniform robot
# ---------------
#
# Rods on pins, straight. The gain settles after a dozen links, though P itself never does: a force along the chain and
# a moment about it pass every pin unseen, so that their variance only grows. The increments keep rank four, of six: the
# pin leaves no variance about its axis, and a thin rod has no inertia about its own.

rods = kf.models.uniform_chain(40, hinge=kf.Hinge.revolute([0, 1, 0]))
q, tau = np.zeros(40), np.random.default_rng(0).normal(size=40)
ss = kf.as_estimation(rods, q)
fast = kf.fast_filter(ss, tau)
accelerations = kf.forward_dynamics(rods, q, np.zeros(40), tau)
assert np.abs(fast.a - accelerations).max() < 1e-10 * np.abs(accelerations).max()
cov = kf.riccati(ss)
largest = np.array([np.linalg.eigvalsh(cov.P[k]).max() for k in range(39, -1, -1)])
gain = np.array([np.abs(fast.gains.gain(k)).max() for k in range(40)])
change = np.abs(np.diff([fast.gains.gain(k) for k in range(40)], axis=0)).max(axis=(1, 2))
assert fast.gains.settled < 20 and largest[-1] > 2 * largest[18]
print(f"rank {fast.gains.rank} of 6, settled at link {fast.gains.settled}")
print(f"P still grows: largest eigenvalue {largest[18]:.0f} at link 19, {largest[-1]:.0f} at link 40")

# %%
# A long time series with many states
# -----------------------------------
#
# This is what the method was made for: two outputs, a stationary prior, and up to 200 states. The rank is two.


def stationary(n, m=2):
    """A stable random system and the covariance it settles at without measurements."""
    rng = np.random.default_rng(n)
    F = rng.normal(size=(n, n))
    F *= 0.98 / np.abs(np.linalg.eigvals(F)).max()
    B = rng.normal(size=(n, n)) / np.sqrt(n)
    P = solve_discrete_lyapunov(F, B @ B.T)
    return F, rng.normal(size=(m, n)), B @ B.T, np.eye(m), (P + P.T) / 2


def riccati(F, H, Q, R, P, steps):
    """Gains by the Riccati recursion."""
    gains = []
    for _ in range(steps):
        U = P @ H.T
        gains.append(np.linalg.solve(H @ U + R, U.T).T)
        P = F @ (P - gains[-1] @ U.T) @ F.T + Q
    return np.array(gains)


sizes, steps = (5, 10, 20, 50, 100, 200), 60
saved, errors = [], []
for n in sizes:
    given = stationary(n)
    exact, found = riccati(*given, steps), kf.fast_gain(*given, steps, tolerance=0.0)
    errors.append(max(np.abs(found.gain(k) - exact[k]).max() / np.abs(exact[k]).max() for k in range(steps)))
    each = (found.flops - 8 * n**3) / (steps - 1)  # without the first increment, which is made once
    saved.append((4 * n**3 + 8 * n**2 * 2) / each)
assert max(errors) < 1e-10
assert saved[-1] > 50 > saved[1]
print("operations saved:", *(f"{n} states {s:.0f} times," for n, s in zip(sizes, saved)))

# %%
# In time the gain is smaller: with few states every step costs the same twenty microseconds of Python, and only with
# many states does the recursion win, by a factor of five at 200 (see the benchmarks). If you
# want the limit alone, solve one matrix equation; if nodes differ, or the prior is far from stationary, there is no low
# rank.

figure, (settle, ranks, save) = plt.subplots(1, 3, figsize=(11, 3.8))
links = np.arange(1, 41)
settle.semilogy(links[1:], np.maximum(change / gain[0], 1e-17), color=COLORS["blue"], label="change of the gain")
settle.semilogy(links, largest / largest[0], color=COLORS["orange"], label="largest eigenvalue of P")
settle.set(xlabel="link, from the tip", ylabel="relative to the first link", title="the gain settles, P does not")
settle.legend(loc="center right")

for k, color in ((1, "blue"), (4, "green"), (8, "orange")):
    node = 39 - k
    drop = np.linalg.svd(cov.P[node] - cov.P[node + 1], compute_uv=False)
    ranks.semilogy(np.arange(1, 7), np.maximum(drop, 1e-16), "o-", color=COLORS[color], label=f"P({k + 1}) − P({k})")
ranks.set(xlabel="singular value", title="increments have rank four of six")
ranks.legend(loc="lower left")

save.loglog(sizes, saved, "o-", color=COLORS["blue"], label="two outputs, rank two")
save.loglog(sizes, np.array(sizes) / 2 * saved[-1] / 100, ":", color=COLORS["grey"], label="∝ n")
save.plot(6, 4 * 6**3 / (2 * 36 * 4 + 6 * 24 + 4 * 16), "s", color=COLORS["orange"], label="a robot's chain, rank four")
save.set(xlabel="states n", ylabel="operations saved, times", title="many states, few outputs")
save.legend(loc="upper left")

plt.show()
