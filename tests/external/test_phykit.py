"""Brownian motion, Ornstein–Uhlenbeck and Pagel's λ on phylogenies against PhyKIT: same estimates, much sooner.

PhyKIT takes the root's mean as a parameter and the rate at its maximum; so do these tests. It factors the dense
covariance of the tips each time.
"""

from itertools import pairwise
from time import process_time

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import kfdyn as kf

pytest.importorskip("phykit")
from phykit.services.tree.fit_continuous import FitContinuous


def peer():
    """Its fits, without the files that its command line reads."""
    return object.__new__(FitContinuous)


def random_case(seed, tips):
    """A tree of coalescing lineages, a trait that has evolved on it with λ = 0.7, and what PhyKIT wants of them."""
    rng = np.random.default_rng(seed)
    N = 2 * tips - 1
    parent, time, now, alive = np.full(N, -1), np.zeros(N), 0.0, list(range(tips))
    for k in range(tips, N):
        now += rng.exponential(2.0 / (len(alive) * (len(alive) - 1)))
        time[k] = now
        for _ in range(2):
            parent[alive.pop(rng.integers(len(alive)))] = k
        alive.append(k)
    length = np.where(parent >= 0, time[parent] - time, 0.0)
    tree = kf.Phylogeny(parent, length, tuple(f"t{k}" for k in range(N)))
    # time that two tips share, by outer sums over the subtrees
    C, below = np.zeros((tips, tips)), [[k] for k in range(tips)] + [[] for _ in range(tips, N)]
    for k in range(N):
        if k < tips:
            C[k, k] = now
        else:
            left, right = (below[c] for c in np.flatnonzero(parent == k))
            C[np.ix_(left, right)] = C[np.ix_(right, left)] = now - time[k]
            below[k] = left + right
    V = 2.0 * (0.7 * C + 0.3 * now * np.eye(tips))
    return tree, 5.0 + np.linalg.cholesky(V) @ rng.normal(size=tips), C


def profile(model, y):
    """Log-likelihood with the root's mean and the rate at their maxima, the rate, the mean."""
    root = model(None, None).smooth(y)
    mean = root.mean[root.model.tree.roots[0]].item()
    both = model(mean, 0.0).smooth(np.stack([y, np.full(y.size, mean)]), covariances=False).llf
    rate = 2.0 * (both[1] - both[0]) / y.size
    return both[1] - 0.5 * y.size * (1.0 + np.log(rate)), rate, mean


def maximum(function, low, high, parts=10):
    """PhyKIT's search: bounded Brent in each of ten parts."""
    edges = np.linspace(low, high, parts + 1)
    found = [minimize_scalar(lambda p: -function(p)[0], bounds=pair, method="bounded") for pair in pairwise(edges)]
    best = min(found, key=lambda r: r.fun).x
    return best, function(best)


def fits(tree, y):
    """Both models fitted with this library."""
    brownian = profile(lambda mean, cov: tree.brownian(root_mean=mean, root_cov=cov), y)
    pagel = maximum(lambda lam: profile(lambda mean, cov: tree.pagel(lam, root_mean=mean, root_cov=cov), y), 0.0, 1.0)
    return brownian, pagel


def agree(ours, theirs, digits=1e-8):
    for mine, name in zip(ours, ("log_likelihood", "sigma2", "z0")):
        assert abs(mine - theirs[name]) <= digits * max(1.0, abs(theirs[name])), name


def test_same_estimates_as_phykit():
    tree, y, C = random_case(0, 60)
    brownian, (lam, pagel) = fits(tree, y)
    agree(brownian, peer()._fit_bm(y, C), 1e-10)
    theirs = peer()._fit_lambda(y, C, 1.0)
    # the place of a flat maximum is known to half of the digits of its height
    assert abs(lam - theirs["param_value"]) < 1e-5
    agree(pagel, theirs, 1e-5)
    assert abs(pagel[0] - theirs["log_likelihood"]) < 1e-9
    a = 1.7
    ours = profile(lambda m, c: tree.ornstein_uhlenbeck(1.0, a, 0.0 if m is None else m, root_mean=m, root_cov=c), y)
    V = peer()._vcv_ou(C, a)
    one = np.ones(60)
    mean = one @ np.linalg.solve(V, y) / (one @ np.linalg.solve(V, one))
    want = peer()._concentrated_ll(y, V)
    at_mean = tree.ornstein_uhlenbeck(want[1], a, mean, root_mean=mean, root_cov=0.0).smooth(y).llf
    assert abs(at_mean - want[0]) < 1e-9 and ours[0] <= want[0] + 1e-9


@pytest.mark.slow
def test_two_thousand_tips_a_hundred_times_sooner():
    tree, y, C = random_case(1, 2000)
    fits(tree, y)  # compiled
    start = process_time()
    brownian, (lam, pagel) = fits(tree, y)
    ours = process_time() - start
    start = process_time()
    theirs = peer()._fit_bm(y, C), peer()._fit_lambda(y, C, 1.0)
    other = process_time() - start
    print(f"kfdyn {ours:.2f} s, PhyKIT {other:.1f} s: {other / ours:.0f}×")
    agree(brownian, theirs[0], 1e-8)
    assert abs(lam - theirs[1]["param_value"]) < 1e-4
    assert abs(pagel[0] - theirs[1]["log_likelihood"]) < 1e-6
    assert other > 100 * ours
