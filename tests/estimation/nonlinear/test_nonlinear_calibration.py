"""Are the errors as large as the covariances say? Several hundred simulated series of a mildly nonlinear model."""

import numpy as np
import pytest
from scipy.stats import binom, chi2

import kfdyn as kf
from kfdyn.estimation.consistency import holm, nis

RUNS, N, dt = 400, 40, 0.1
Q, R = np.array([[0.02]]), np.diag([2e-3, 5e-2])
x0, P0 = np.array([0.5, 0.0, 0.0]), np.diag([0.05, 0.05, 0.02])


def step(x, w, k):
    """A damped pendulum with a constant bias of its gyroscope."""
    v = x[:, 1] + dt * (-4.0 * np.sin(x[:, 0]) - 0.2 * x[:, 1] + w[:, 0])
    return np.stack([x[:, 0] + dt * v, v, x[:, 2]], axis=1)


def observe(x, k):
    return np.stack([np.sin(x[:, 0]), x[:, 1] + x[:, 2]], axis=1)


def simulated(seed):
    rng = np.random.default_rng(seed)
    x = rng.multivariate_normal(x0, P0, RUNS)
    truth, y = np.empty((RUNS, N, 3)), np.empty((RUNS, N, 2))
    for k in range(N):
        truth[:, k] = x
        y[:, k] = observe(x, None) + rng.normal(size=(RUNS, 2)) * np.sqrt(np.diag(R))
        x = step(x, rng.normal(size=(RUNS, 1)) * np.sqrt(Q[0, 0]), None)
    y[:, 7], y[:, 11, 0] = np.nan, np.nan
    return truth, y


@pytest.fixture(scope="module")
def series():
    return simulated(1)


@pytest.mark.parametrize(
    "estimate", [kf.extended_kalman_filter, kf.unscented_kalman_filter, kf.iterated_kalman_smoother]
)
def test_bands_cover_and_errors_have_the_covariance_claimed(estimate, series):
    truth, y = series
    model = kf.NonlinearModel(step, observe, Q, R, x0, P0)
    found = estimate(model, y)
    if estimate is kf.iterated_kalman_smoother:
        assert found.converged.all()
    error, std = found.error(truth), found.std()
    p_values = []
    for k in (0, 10, 20, N - 1):  # runs are independent, steps of one run are not
        covered = (np.abs(error[:, k]) < 1.959963985 * std[:, k]).sum(axis=0)
        p_values += list(
            2 * np.minimum(binom.cdf(covered, RUNS, 0.95), binom.sf(covered - 1, RUNS, 0.95)).clip(max=0.5)
        )
        total = found.nees(truth)[:, k].sum()
        p_values.append(2 * min(chi2.cdf(total, 3 * RUNS), chi2.sf(total, 3 * RUNS)))
    assert holm(p_values).min() > 0.01


def test_innovations_are_chi_squared(series):
    _, y = series
    model = kf.NonlinearModel(step, observe, Q, R, x0, P0)
    for estimate in (kf.extended_kalman_filter, kf.unscented_kalman_filter):
        found = estimate(model, y)
        squares = found.nis.sum(axis=1)
        dof = int(found.observed[0].sum())
        assert dof == 2 * N - 3
        assert 2 * min(chi2.cdf(squares.sum(), dof * RUNS), chi2.sf(squares.sum(), dof * RUNS)) > 0.01
        one = estimate(model, y[0])
        assert nis(one).dof == dof
        np.testing.assert_allclose(nis(one).statistic, squares[0], rtol=1e-10)


def test_a_wrong_noise_is_found_out(series):
    """The test itself can fail: half the process noise, or twice the noise of readings."""
    truth, y = series
    for wrong in ({"Q": 0.3 * Q, "R": R}, {"Q": Q, "R": 1.5 * R}):
        found = kf.iterated_kalman_smoother(kf.NonlinearModel(step, observe, x0=x0, P0=P0, **wrong), y)
        total = found.nees(truth)[:, 20].sum()
        assert min(chi2.cdf(total, 3 * RUNS), chi2.sf(total, 3 * RUNS)) < 1e-4
