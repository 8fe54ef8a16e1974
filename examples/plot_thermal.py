r"""
Thermal velocities without a mass matrix
========================================

A molecule with stiff bonds is a tree of rigid bodies, and at temperature :math:`\theta` its joint velocities are normal
with covariance :math:`k\theta\, \mathcal M^{-1}`. The usual way to draw them is to form :math:`\mathcal M` and factor
it, in :math:`O(N^3)`. The innovations factor does it in :math:`O(N)`: white noise goes through the smoother,

.. math:: \dot q = \sqrt{k\theta}\; (I - H\psi K)^* D^{-1/2} e, \qquad e \sim N(0, I) ,

and comes out with the covariance :math:`\mathcal M^{-1}`, exactly.
"""

from time import process_time

import matplotlib.pyplot as plt
import numpy as np
from scipy.linalg import solve_triangular
from scipy.stats import chi2
from threadpoolctl import threadpool_limits

import kfdyn as kf
from kfdyn.dynamics import as_estimation
from kfdyn.estimation.consistency import covariance_test
from kfdyn.viz import COLORS, STYLE

plt.style.use(STYLE)

# %%
# Equipartition
# -------------
#
# A chain of twenty rods on universal joints: 40 degrees of freedom, each with ½ kθ of energy on average. The kinetic
# energy of a draw is ½ kθ times a χ² variable of 40 degrees of freedom.

chain = kf.models.uniform_chain(20, length=0.3, hinge=kf.Hinge.universal([0, 1, 0], [0, 0, 1]))
rng = np.random.default_rng(2)
q = rng.uniform(-1, 1, chain.nq)
factor = kf.innovations_factor(as_estimation(chain, q))
v = factor.sample_inverse(rng, 20_000)
energy = kf.kinetic_energy(chain, q, v)
verdict = covariance_test(v, np.linalg.inv(kf.mass_matrix(chain, q)))
print(f"{energy.mean():.2f} kθ on average, {chain.nv} degrees of freedom; p = {verdict.p_value:.2f}")
assert verdict.p_value > 0.001
assert abs(energy.mean() - chain.nv / 2) < 4 * np.sqrt(chain.nv / 2 / energy.size)

# %%
# What it costs
# -------------
#
# Ten draws of chains of growing length, from the model on. Dense, the mass matrix is formed and factored: for short
# chains that is the faster way.


def shortest(run, repeats=5):
    """Seconds of processor time of the fastest run, after one that warms up."""
    times = []
    for _ in range(repeats + 1):
        start = process_time()
        run()
        times.append(process_time() - start)
    return min(times[1:])


def by_filter(system, q):
    """Ten draws in O(N)."""
    kf.innovations_factor(as_estimation(system, q)).sample_inverse(rng, 10)


def by_cholesky(system, q):
    """Ten draws by the mass matrix."""
    L = np.linalg.cholesky(kf.mass_matrix(system, q))
    solve_triangular(L, rng.normal(size=(system.nv, 10)), lower=True, trans="T")


sizes = np.array([16, 64, 256, 1024, 4096])
dense_sizes = sizes[sizes <= 1024]
systems = {n: kf.models.uniform_chain(int(n)) for n in sizes}
bends = {n: rng.uniform(-0.5, 0.5, n) for n in sizes}
with threadpool_limits(1):  # threads of BLAS that wait take processor time, too
    fast = [shortest(lambda: by_filter(systems[n], bends[n])) for n in sizes]  # noqa: B023
    dense = [shortest(lambda: by_cholesky(systems[n], bends[n])) for n in dense_sizes]  # noqa: B023
growth = np.log(fast[-1] / fast[-2]) / np.log(sizes[-1] / sizes[-2])
print(f"O(N^{growth:.2f}) for the filter")
assert growth < 1.5

figure, (left, middle, right) = plt.subplots(1, 3, figsize=(11, 3.9))
grid = np.linspace(8, 36, 300)
left.hist(energy, bins=70, density=True, color=COLORS["sky"], label="20,000 draws")
left.plot(grid, 2 * chi2.pdf(2 * grid, chain.nv), color=COLORS["orange"], linewidth=2.4, label="χ², exact")
left.set(xlabel="kinetic energy [kθ]", ylabel="density", title=f"{chain.nv} degrees of freedom, ½ kθ each")
left.legend()

modal = factor.whiten(np.einsum("ij,...j->...i", kf.mass_matrix(chain, q), v))
middle.plot(0.5 * (modal**2).mean(axis=0), ".", color=COLORS["blue"], label="modes, D$^{½}$ν")
half = 2 * 0.5 * np.sqrt(2 / len(v))
middle.axhspan(0.5 - half, 0.5 + half, color=COLORS["orange"], alpha=0.3, linewidth=0, label="½ kθ ± 2 standard errors")
middle.set(xlabel="mode", ylabel="mean energy [kθ]", title="equipartition", ylim=(0.45, 0.55))
middle.legend(loc="upper right")

right.loglog(dense_sizes, 1000 * np.array(dense), "s-", color=COLORS["vermilion"], label="Cholesky of the mass matrix")
right.loglog(sizes, 1000 * np.array(fast), "o-", color=COLORS["blue"], label="filter and smoother")
right.set(xlabel="links", ylabel="processor time for ten draws [ms]", title="O(N) draws")
right.set_ylim(top=20 * right.get_ylim()[1])  # room for the legend
right.legend(loc="upper left")

plt.show()
