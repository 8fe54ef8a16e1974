"""Brownian motion, Ornstein–Uhlenbeck and Pagel's λ on phylogenies against PhyKIT: same estimates.

PhyKIT takes the root's mean as a parameter and the rate at its maximum; so do these tests. It factors the dense
covariance of the tips each time: how much longer that takes is in ``benchmarks/fits.py``.
"""

import pytest

pytest.importorskip("phykit")
from benchmarks.fits import coalescing, fit_traits, phykit


def agree(ours, theirs, digits=1e-8):
    for mine, name in zip(ours, ("log_likelihood", "sigma2", "z0")):
        assert abs(mine - theirs[name]) <= digits * max(1.0, abs(theirs[name])), name


def test_same_estimates_as_phykit():
    tree, y, C = coalescing(0, 60)
    brownian, (lam, pagel) = fit_traits(tree, y)
    agree(brownian, phykit()._fit_bm(y, C), 1e-10)
    theirs = phykit()._fit_lambda(y, C, 1.0)
    # the place of a flat maximum is known to half of the digits of its height
    assert abs(lam - theirs["param_value"]) < 1e-5
    agree(pagel, theirs, 1e-5)
    assert abs(pagel[0] - theirs["log_likelihood"]) < 1e-9
    a = 1.7
    want = phykit()._concentrated_ll(y, phykit()._vcv_ou(C, a))
    model = tree.ornstein_uhlenbeck(want[1], a, want[2], root_mean=want[2], root_cov=0.0)
    assert abs(model.smooth(y).llf - want[0]) < 1e-9


@pytest.mark.slow
def test_same_estimates_on_two_thousand_tips():
    tree, y, C = coalescing(1, 2000)
    brownian, (lam, pagel) = fit_traits(tree, y)
    agree(brownian, phykit()._fit_bm(y, C), 1e-8)
    theirs = phykit()._fit_lambda(y, C, 1.0)
    assert abs(lam - theirs["param_value"]) < 1e-4
    assert abs(pagel[0] - theirs["log_likelihood"]) < 1e-6
