"""Extreme roots of a Wishart matrix: their tails against simulation and χ², and what they see first."""

import numpy as np
import pytest
from scipy.stats import chi2

from kfdyn.duality.hypothesis.roys_test import eigenvalue_limit, eigenvalue_tail, roys_test
from kfdyn.errors import ModelError


def wishart(d, n, rng):
    """By Bartlett's decomposition: a Wishart matrix of any n in O(d²) numbers."""
    L = np.tril(rng.standard_normal((d, d)), -1) + np.diag(np.sqrt(rng.chisquare(n - np.arange(d))))
    return L @ L.T


@pytest.mark.parametrize("n", [3, 100, 200_000])
def test_one_dimension_is_chi_square(n):
    for z in (-3.0, -1.0, 1.0, 4.0):
        x = max(n + z * np.sqrt(2 * n), 0.05 * n)
        assert eigenvalue_tail(x, 1, n, upper=True) == pytest.approx(chi2.sf(x, n), rel=1e-5)
        assert eigenvalue_tail(x, 1, n, upper=False) == pytest.approx(chi2.cdf(x, n), rel=1e-4)


@pytest.mark.parametrize(("d", "n"), [(2, 20), (5, 40), (6, 100_000), (25, 200)])
def test_tails_are_those_of_simulation(d, n):
    """At the simulated 5 % and 1 % points: within four standard errors of the simulation, and 5 % of p for the rest."""
    rng, runs = np.random.default_rng(0), 3000
    roots = np.array([np.linalg.eigvalsh(wishart(d, n, rng))[[0, -1]] for _ in range(runs)])
    for p in (0.05, 0.01):
        error = 4 * np.sqrt(p / runs) + 0.05 * p
        assert abs(eigenvalue_tail(np.quantile(roots[:, 1], 1 - p), d, n, upper=True) - p) < error
        assert abs(eigenvalue_tail(np.quantile(roots[:, 0], p), d, n, upper=False) - p) < error


@pytest.mark.parametrize("d", [1, 2, 3, 10, 40])
def test_smallest_root_of_as_many_samples_as_dimensions(d):
    """Edelman (1988), exact: f(x) = d Γ((d+1)/2)/√(2πx) e^(−dx/2) U((d−1)/2, −½, x/2), infinite at 0."""
    from scipy.integrate import quad
    from scipy.special import gammaln, hyperu

    def of_singular_value(t):
        x = t * t
        log = np.log(2.0 * d) + gammaln(0.5 * (d + 1)) - 0.5 * np.log(2.0 * np.pi) - 0.5 * d * x
        return np.exp(log) * hyperu(0.5 * (d - 1), -0.5, 0.5 * x)

    for p in (1e-8, 1e-4, 0.01):
        x = (p / of_singular_value(0.0)) ** 2
        want = quad(of_singular_value, 0.0, np.sqrt(x), epsabs=0.0, epsrel=1e-10)[0]
        assert eigenvalue_tail(x, d, d, upper=False) == pytest.approx(want, rel=1e-9 if p < 1e-3 else 1e-3)


@pytest.mark.parametrize("d", [1, 2, 3, 10, 40])
def test_smallest_root_of_one_sample_more_is_exponential(d):
    """Edelman (1988), exact: d times the smallest root is χ² of two degrees of freedom."""
    for p in (1e-8, 1e-4, 0.01):
        x = -2.0 * np.log1p(-p) / d
        assert eigenvalue_tail(x, d, d + 1, upper=False) == pytest.approx(p, rel=max(0.1 * p, 1e-8) + 1e-3 * (p > 1e-3))


@pytest.mark.parametrize("more", [0, 1, 2, 5])
def test_p_values_are_uniform_for_hardly_more_samples_than_dimensions(more):
    """Each side's p-value below 0.1, of 40,000 draws: with n = d that of the smallest root was 1 whatever it was."""
    d, runs, rng = 4, 40_000, np.random.default_rng(more)
    n = d + more
    X = rng.standard_normal((runs, d, n))
    roots = np.linalg.eigvalsh(X @ X.transpose(0, 2, 1))
    for level in (0.1, 0.01, 0.001):
        error = 4.0 * np.sqrt(level / runs) + 0.02 * level
        for upper, i in ((False, 0), (True, -1)):
            limit = n * eigenvalue_limit(level, d, n, upper=upper)
            share = np.mean(roots[:, i] > limit if upper else roots[:, i] < limit)
            assert abs(share - level) < error, (upper, level, share)


@pytest.mark.parametrize(("d", "n"), [(4, 4), (4, 200)])
def test_the_test_keeps_its_level(d, n):
    rng, runs = np.random.default_rng(1), 1000
    p = np.array([roys_test(wishart(d, n, rng) / n, n).p_value for _ in range(runs)])
    for level in (0.1, 0.01):
        assert np.mean(p < level) < level + 4 * np.sqrt(level / runs)
    assert np.mean(p < 0.1) > 0.05  # and can fail


def test_it_sees_a_direction_that_the_likelihood_ratio_does_not():
    from kfdyn.estimation.consistency import covariance_test

    d, n, rng = 40, 20_000, np.random.default_rng(2)
    W = wishart(d, n, rng)
    v = rng.standard_normal(d)
    root = np.eye(d) + (np.sqrt(1.12) - 1) * np.outer(v, v) / (v @ v)  # one direction 12 % too large
    W = root @ W @ root
    assert roys_test(W / n, n).p_value < 1e-4
    assert covariance_test(W, np.eye(d), n).p_value > 1e-3


def test_limit_is_the_inverse_of_the_tail():
    for d, n in ((1, 1), (1, 1000), (6, 6), (6, 7), (6, 200_000), (30, 500)):
        for upper in (False, True):
            limit = n * eigenvalue_limit(1e-5, d, n, upper=upper)
            assert eigenvalue_tail(limit, d, n, upper=upper) == pytest.approx(1e-5, rel=1e-6)


def test_bad_input_names_the_culprit():
    with pytest.raises(ModelError, match="at least 3"):
        roys_test(np.eye(3), 2)
    with pytest.raises(ModelError, match="square"):
        roys_test(np.ones((2, 3)), 10)
    with pytest.raises(ModelError, match="not finite"):
        roys_test(np.diag([1.0, np.nan]), 10)
