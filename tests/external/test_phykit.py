"""Brownian motion, Ornstein–Uhlenbeck and Pagel's λ on phylogenies against PhyKIT: same estimates, much sooner.

PhyKIT takes the root's mean as a parameter and the rate at its maximum; so do these tests. It factors the dense
covariance of the tips each time.
"""

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
    """Log-likelihood with the root's mean and the rate at their maxima, the rate, the mean.

    A flat root is the mean of generalised least squares and adds its information to log det V.
    """
    post = model.smooth(y)
    root, n = model.tree.roots[0], y.size
    mean, rate = post.mean[root].item(), post.quadratic / n
    fixed = post.llf - 0.5 * np.log(post.cov[root].item()) + 0.5 * post.quadratic  # of a known mean, at rate 1
    return fixed - 0.5 * n * (1.0 + np.log(rate)), rate, mean


def fits(tree, y):
    """Both models fitted with this library."""
    found = minimize_scalar(lambda lam: -profile(tree.pagel(lam), y)[0], bounds=(0, 1), method="bounded")
    return profile(tree.brownian(), y), (found.x, profile(tree.pagel(found.x), y))


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
    want = peer()._concentrated_ll(y, peer()._vcv_ou(C, a))
    model = tree.ornstein_uhlenbeck(want[1], a, want[2], root_mean=want[2], root_cov=0.0)
    assert abs(model.smooth(y).llf - want[0]) < 1e-9


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
