"""Stationary parts beside exact arithmetic and Lyapunov equations, up to the unit root."""

from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
import statsmodels.api as sm
from numpy.testing import assert_allclose
from scipy.linalg import solve_discrete_lyapunov

import kfdyn as kf
from kfdyn.errors import ModelError
from kfdyn.estimation.series.build import Builder

S = kf.series


def matrices(model, theta):
    return model.matrices(np.array(theta, dtype=float), 3)


@pytest.mark.parametrize(("p", "q"), [(1, 0), (2, 0), (9, 0), (0, 1), (0, 3), (1, 1), (2, 1), (1, 2), (5, 2), (2, 5)])
def test_the_states_of_arma_are_stationary(p, q):
    rng = np.random.default_rng(p + 10 * q)
    x = matrices(S.arma(p, q), [1.3, *rng.uniform(-0.8, 0.8, size=p + q)])
    expected = solve_discrete_lyapunov(x.F, x.Q)
    assert_allclose(x.P0, expected, rtol=0, atol=1e-11 * np.abs(expected).max())


@pytest.mark.parametrize("gap", [1e-3, 1e-9, 1e-15])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_near_a_unit_root_no_digit_is_lost(gap, sign):
    """P = F P F* + Q in 60 digits, for the F that the partial autocorrelations have."""
    partial = [sign * (1 - gap), -0.4]
    with mp.workdps(60):
        r = [mp.mpf(x) for x in partial]
        a = [r[0] * (1 - r[1]), r[1]]
        F = mp.matrix([[a[0], 1], [a[1], 0]])
        system = mp.eye(4)
        for i, j, k, l in np.ndindex(2, 2, 2, 2):
            system[2 * i + j, 2 * k + l] -= F[i, k] * F[j, l]
        b = [mp.mpf(1), -mp.mpf(0.3)]
        P = mp.lu_solve(system, mp.matrix([x * y for x in b for y in b]))
        exact = np.array([float(x) for x in P]).reshape(2, 2)
    assert_allclose(matrices(S.arma(2, 1), [1.0, *partial, 0.3]).P0, exact, rtol=1e-12)


@pytest.mark.parametrize("gap", [1e-3, 1e-9, 1e-15])
def test_the_variance_of_a_cycle_that_hardly_dies_away(gap):
    damping = Fraction(1 - gap)
    P0 = matrices(S.cycle(), [3.0, 7.0, float(damping)]).P0
    assert_allclose(P0, float(3 / (1 - damping**2)) * np.eye(2), rtol=1e-14)


def offset_series():
    rng = np.random.default_rng(4)
    return 20 + np.convolve(rng.normal(size=110), 0.7 ** np.arange(10))[:100]


MACRO = sm.datasets.macrodata.load_pandas().data


@pytest.mark.parametrize(
    ("model", "y"),
    [
        (S.ar(1), offset_series()),
        (S.ar(2), offset_series()),
        (S.ar(1) + S.noise(), offset_series()),
        (S.arma(1, 1), offset_series()),
        (S.ar(1), np.arange(100.0)),
        (S.ar(1), MACRO.unemp),
        (S.ar(1), MACRO.realgdp),
        (S.ar(1), MACRO.cpi),
    ],
)
def test_series_with_a_level_drive_an_autoregression_to_the_unit_root(model, y):
    """No error, and a maximum: better than what a grid of roots near 1 has at the other estimates."""
    fit = model.fit(y)
    assert fit.converged, fit.message
    i = next(i for i, name in enumerate(fit.names) if "partial" in name)
    assert 0.9 < fit.params[i] < 1.0
    value = model.likelihood(y, gradient=False)
    for gap in 10.0 ** np.arange(-12, 0):
        theta = fit.params.copy()
        theta[i] = 1 - gap
        assert value(theta) <= fit.llf + 1e-6


@pytest.mark.parametrize("gap", [1e-2, 1e-5, 1e-7])
@pytest.mark.parametrize("name", ["ar", "cycle"])
def test_slopes_near_a_unit_root(name, gap):
    """Beside differences of the likelihood."""
    model, theta = {
        "ar": (S.ar(2) + S.noise(), [0.1, 1.0, 0.0, 0.3]),
        "cycle": (S.cycle() + S.noise(), [0.1, 1.0, 9.0, 0.0]),
    }[name]
    i, y = (2, 3)[name == "cycle"], np.random.default_rng(0).normal(size=40).cumsum()
    llf = model.likelihood(y)

    def at(r):
        return llf([*theta[:i], r, *theta[i + 1 :]])

    r = 1 - gap
    up, down = r + 1e-3 * gap, r - 1e-3 * gap
    slope = (at(up)[0] - at(down)[0]) / (up - down)
    assert at(r)[1][i] * gap == pytest.approx(slope * gap, rel=1e-5, abs=1e-6)


def test_slopes_at_a_partial_autocorrelation_of_zero():
    """A share of its size would be no step."""
    model, y = S.ar(2), np.random.default_rng(0).normal(size=30)
    build, theta = Builder(model, 30), np.array([1.0, 0.5, 0.0])
    h = np.array([0.0, 0.0, 1e-5])
    slope = (build.value(theta + h, y) - build.value(theta - h, y)) / 2e-5
    assert build.evaluate(theta, y)[1][2] == pytest.approx(slope, rel=1e-7)


def test_there_is_no_stationary_model_at_the_unit_root():
    for value in (1.0, -1.0):
        with pytest.raises(ModelError, match=r"ar\.partial\[1\] is -?1; .*local_level"):
            S.ar(1).forecast([1.0, value], np.ones(5), 1)
    assert np.isfinite((S.cycle() + S.noise()).likelihood(np.arange(9.0))([1.0, 1.0, 5.0, 1 - 2e-16])[1]).all()
    assert np.isfinite(S.arma(0, 1).likelihood(np.arange(9.0))([1.0, 1.0])[0])  # a moving average has no such limit


@pytest.mark.parametrize("seed", range(4))
def test_a_noisy_sine_is_a_cycle_that_does_not_die_away(seed):
    """Its damping goes to 1 and its kicks to 0; the likelihood is that of a sine with normal amplitudes, or better."""
    rng = np.random.default_rng(seed)
    period, k = rng.uniform(6, 20), np.arange(120)
    y = 2 * np.sin(2 * np.pi * k / period) + rng.normal(size=120)
    fit = (S.cycle() + S.noise()).fit(y)
    assert fit.converged, fit.message
    X = np.stack([np.cos(2 * np.pi * k / period), np.sin(2 * np.pi * k / period)], axis=1)
    V = np.eye(120) + 2 * X @ X.T
    dense = -0.5 * (y @ np.linalg.solve(V, y) + np.linalg.slogdet(V)[1] + 120 * np.log(2 * np.pi))
    assert fit.llf >= dense and fit.params[3] > 0.99
