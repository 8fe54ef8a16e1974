"""Fits do not depend on the units of data, time and parameters."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import kfdyn as kf

ONE = np.ones((1, 1))
UNITS = [1e-10, 1e-6, 1e-3, 1e3, 1e6, 1e8, 1e10]


def normals(N):
    def build(theta):
        return kf.StateSpace([-1] * N, [None] * N, [ONE] * N, [theta[1] * ONE] * N, xi=np.full(N, theta[0]))

    return build


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("start", [0.0, 900.0, 1e-3])
def test_a_mean_without_bounds(unit, start):
    y = 1000 + 50 * np.random.default_rng(0).normal(size=50)
    fit = kf.fit(normals(50), [start * unit, 2500 * unit**2], y * unit, bounds=[None, (0, None)])
    assert fit.converged and fit.unidentified == ()
    assert_allclose(fit.params / [unit, unit**2], [y.mean(), y.var()], rtol=1e-6)
    assert_allclose(fit.stderr / [unit, unit**2], [np.sqrt(y.var() / 50), y.var() * 0.2], rtol=1e-6)
    assert fit.llf == pytest.approx(-25 * (np.log(2 * np.pi * y.var() * unit**2) + 1), rel=1e-12, abs=1e-9)


@pytest.mark.parametrize("mean", [0.0, 900.0, 1e6])
@pytest.mark.parametrize("variance", [1e-6, 1e6, 1e20])
def test_a_start_far_off(mean, variance):
    """The scale of a mean at the start may be anything beside that at the maximum."""
    y = 1000 + 50 * np.random.default_rng(0).normal(size=50)
    fit = kf.fit(normals(50), [mean, variance], y, bounds=[None, (0, None)])
    assert fit.converged and fit.n_evaluations < 200
    assert_allclose(fit.params, [y.mean(), y.var()], rtol=1e-6)
    assert_allclose(fit.stderr, [np.sqrt(y.var() / 50), y.var() * 0.2], rtol=1e-6)


@pytest.mark.parametrize("unit", UNITS)
def test_variances(unit):
    rng = np.random.default_rng(3)
    y = rng.normal(size=80).cumsum() + rng.normal(size=80)
    ss = kf.StateSpace.chain(ONE, ONE, ONE, ONE, steps=80)

    def build(theta):
        return ss.replace(Q=np.full((80, 1, 1), theta[1]), R=np.full((80, 1, 1), theta[0]))

    one = kf.fit(build, [1.0, 1.0], y, bounds=[(0, None)] * 2)
    fit = kf.fit(build, [unit**2] * 2, y * unit, bounds=[(0, None)] * 2)
    assert fit.converged
    assert_allclose(fit.params / unit**2, one.params, rtol=1e-6)
    assert_allclose(fit.stderr / unit**2, one.stderr, rtol=1e-6)
    assert fit.llf == pytest.approx(one.llf - 79 * np.log(unit), rel=1e-12)


@pytest.mark.parametrize("unit", UNITS)
def test_a_rate_in_any_unit_of_time(unit):
    rng, x = np.random.default_rng(0), np.zeros(300)
    for k in range(1, 300):
        x[k] = np.exp(-0.1) * x[k - 1] + rng.normal()

    def build(theta):
        return kf.StateSpace.chain(np.exp(-theta[0] * unit) * ONE, ONE, ONE, 0 * ONE, [0.0], ONE, steps=300)

    a = (x[1:] @ x[:-1]) / (x[:-1] @ x[:-1])  # least squares
    for start in (0.2, 0.0):
        fit = kf.fit(build, [start / unit], x)
        assert fit.converged
        assert_allclose(fit.params * unit, -np.log(a), rtol=1e-6)
        assert_allclose(fit.stderr * unit, 1 / (a * np.sqrt(x[:-1] @ x[:-1])), rtol=1e-4)


@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_parameters_in_different_units(unit):
    """An intercept and a slope by years or by their millionths: the scales of the two differ by any factor."""
    rng = np.random.default_rng(4)
    t = np.linspace(-1, 1, 40)
    y = 3 + 2 * t + 0.1 * rng.normal(size=40)

    def build(theta):
        xi = theta[0] + theta[1] * t * unit
        return kf.StateSpace([-1] * 40, [None] * 40, [ONE] * 40, [theta[2] * ONE] * 40, xi=xi)

    X = np.stack([np.ones(40), t * unit], axis=-1)
    exact, rest = np.linalg.lstsq(X, y, rcond=None)[:2]
    fit = kf.fit(build, [0.0, 0.0, 1.0], y, bounds=[None, None, (0, None)])
    assert fit.converged
    assert_allclose(fit.params, [*exact, rest[0] / 40], rtol=1e-6)
    cov = rest[0] / 40 * np.linalg.inv(X.T @ X)
    assert_allclose(fit.stderr[:2], np.sqrt(np.diagonal(cov)), rtol=1e-5)
