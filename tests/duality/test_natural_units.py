"""The inverse that parties compute: as exact as the rounding bound promises, in any units."""

import mpmath
import numpy as np
import pytest

from kfdyn.duality.tolerance.natural_units import inverse


def graded(seed, spread=6, d=8):
    """A covariance whose units differ by 10^±spread, with correlations of condition 1e6 or so."""
    rng = np.random.default_rng(seed)
    V, _ = np.linalg.qr(rng.normal(size=(d, d)))
    unit = 10.0 ** rng.uniform(-spread, spread, d)
    Sigma = (V * 10.0 ** rng.uniform(-6, 0, d)) @ V.T * np.outer(unit, unit)
    return 0.5 * (Sigma + Sigma.T)


def astray(found, Sigma):
    """Largest error in units √(Σ⁻¹_ii Σ⁻¹_jj), over ε κ, κ = Σ Σ_ii Σ⁻¹_ii."""
    with mpmath.workdps(60):
        exact = mpmath.matrix(Sigma.tolist()) ** -1
        unit = [mpmath.sqrt(exact[i, i]) for i in range(len(Sigma))]
        worst = max(
            abs(exact[i, j] - mpmath.mpf(found[i, j])) / (unit[i] * unit[j])
            for i in range(len(Sigma))
            for j in range(len(Sigma))
        )
        return float(worst / sum(exact[i, i] * Sigma[i, i] for i in range(len(Sigma)))) / np.finfo(float).eps


@pytest.mark.parametrize("seed", range(6))
def test_graded_covariances_keep_to_the_bound(seed):
    Sigma = graded(seed)
    assert astray(inverse(Sigma), Sigma) < 2


def test_an_lu_factor_does_not():
    """Which is why numpy's inverse rejected honest robots."""
    assert max(astray(np.linalg.inv(graded(seed)), graded(seed)) for seed in range(6)) > 8


def test_what_is_no_covariance_is_inverted_all_the_same():
    np.testing.assert_allclose(inverse(np.array([[0.0, 2.0], [2.0, 0.0]])), [[0.0, 0.5], [0.5, 0.0]])
    assert inverse(np.zeros((0, 0))).shape == (0, 0)
