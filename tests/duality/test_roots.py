"""Extreme roots of a Wishart matrix: their tails against simulation and χ², and what they see first."""

import numpy as np
import pytest
from scipy.stats import chi2

from kfdyn.duality.roots import root_limit, root_tail, roots_test
from kfdyn.errors import ModelError


def wishart(d, n, rng):
    """By Bartlett's decomposition: a Wishart matrix of any n in O(d²) numbers."""
    L = np.tril(rng.standard_normal((d, d)), -1) + np.diag(np.sqrt(rng.chisquare(n - np.arange(d))))
    return L @ L.T


@pytest.mark.parametrize("n", [3, 100, 200_000])
def test_one_dimension_is_chi_square(n):
    for z in (-3.0, -1.0, 1.0, 4.0):
        x = max(n + z * np.sqrt(2 * n), 0.05 * n)
        assert root_tail(x, 1, n, upper=True) == pytest.approx(chi2.sf(x, n), rel=1e-5)
        assert root_tail(x, 1, n, upper=False) == pytest.approx(chi2.cdf(x, n), rel=1e-4)


@pytest.mark.parametrize(("d", "n"), [(2, 20), (5, 40), (6, 100_000), (25, 200)])
def test_tails_are_those_of_simulation(d, n):
    """At the simulated 5 % and 1 % points: within four standard errors of the simulation, and 5 % of p for the rest."""
    rng, runs = np.random.default_rng(0), 3000
    roots = np.array([np.linalg.eigvalsh(wishart(d, n, rng))[[0, -1]] for _ in range(runs)])
    for p in (0.05, 0.01):
        error = 4 * np.sqrt(p / runs) + 0.05 * p
        assert abs(root_tail(np.quantile(roots[:, 1], 1 - p), d, n, upper=True) - p) < error
        assert abs(root_tail(np.quantile(roots[:, 0], p), d, n, upper=False) - p) < error


def test_the_test_keeps_its_level():
    rng, runs = np.random.default_rng(1), 1000
    p = np.array([roots_test(wishart(4, 200, rng) / 200, 200).p_value for _ in range(runs)])
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
    assert roots_test(W / n, n).p_value < 1e-4
    assert covariance_test(W, np.eye(d), n).p_value > 1e-3


def test_limit_is_the_inverse_of_the_tail():
    for d, n in ((1, 1000), (6, 200_000), (30, 500)):
        assert root_tail(n * root_limit(1e-5, d, n), d, n, upper=True) == pytest.approx(1e-5, rel=0.02)


def test_bad_input_names_the_culprit():
    with pytest.raises(ModelError, match="at least 3"):
        roots_test(np.eye(3), 2)
    with pytest.raises(ModelError, match="square"):
        roots_test(np.ones((2, 3)), 10)
