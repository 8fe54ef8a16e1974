"""Matérn processes at dense times beside exact arithmetic."""

import mpmath as mp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import kfdyn as kf
from kfdyn.errors import ModelError

S = kf.series
ORDERS = {0.5: 1, 1.5: 2, 2.5: 3}


def exact_noise(smoothness, variance, length, gap):
    """∫ F q F* by the exponential of Van Loan's matrix, in 60 digits."""
    n = ORDERS[smoothness]
    with mp.workdps(60):
        rate = mp.sqrt(2 * mp.mpf(smoothness)) / mp.mpf(length)
        both = mp.zeros(2 * n)
        for j in range(n):
            both[n - 1, j] = mp.binomial(n, j) * rate ** (n - j)
            if j < n - 1:
                both[j, j + 1] = -1
        for i in range(n):
            for j in range(n):
                both[n + i, n + j] = -both[j, i]
        both[n - 1, 2 * n - 1] = mp.mpf(variance) * {1: 2, 2: 4, 3: mp.mpf(16) / 3}[n] * rate ** (2 * n - 1)
        E = mp.expm(both * mp.mpf(gap))
        return np.array((E[n:, n:].T * E[:n, n:]).tolist(), dtype=float)


@pytest.mark.parametrize("smoothness", ORDERS)
@pytest.mark.parametrize("ratio", [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 0.5, 1.0, 3.0, 10.0])
def test_noise_of_a_step(smoothness, ratio):
    Q = S.matern(smoothness, [0.0, 2 * ratio]).matrices(np.array([0.0, 1.7, 2.0]), 2).Q[0]
    expected = exact_noise(smoothness, 1.7, 2.0, 2 * ratio)
    size = np.sqrt(np.diag(expected))
    assert_allclose(Q / np.outer(size, size), expected / np.outer(size, size), atol=1e-13)


@pytest.mark.parametrize("smoothness", ORDERS)
@pytest.mark.parametrize("ratio", [1e-4, 1e-3, 2e-3, 1e-2])
def test_likelihood_of_exact_measurements_at_dense_times(smoothness, ratio):
    """Cholesky of the covariance in 50 digits."""
    times = ratio * np.arange(40)
    y = np.sin(times)
    with mp.workdps(50):
        N = times.size
        u = [[mp.sqrt(2 * mp.mpf(smoothness)) * abs(mp.mpf(s) - mp.mpf(t)) for t in times] for s in times]
        shape = {0.5: lambda r: 1, 1.5: lambda r: 1 + r, 2.5: lambda r: 1 + r + r * r / 3}[smoothness]
        L = mp.cholesky(mp.matrix([[shape(r) * mp.exp(-r) for r in row] for row in u]))
        e = []
        for i in range(N):
            e.append((mp.mpf(y[i]) - mp.fsum(L[i, k] * e[k] for k in range(i))) / L[i, i])
        exact = float(-(N * mp.log(2 * mp.pi) + mp.fsum(x * x + 2 * mp.log(L[i, i]) for i, x in enumerate(e))) / 2)
    value = S.matern(smoothness, times).likelihood(y, gradient=False)([0.0, 1.0, 1.0])
    assert value == pytest.approx(exact, rel=1e-7)


def test_a_length_of_zero_is_refused():
    with pytest.raises(ModelError, match=r"matern\.length is 0"):
        S.matern(1.5, [0.0, 1.0]).state_space([1.0, 1.0, 0.0], 2)
