"""A fit ends where the first-order conditions hold, bounds included, and not below the best of SciPy's."""

import numpy as np
import pytest
import statsmodels.api as sm
from numpy.testing import assert_allclose
from scipy.optimize import minimize

import kfdyn as kf

S = kf.series
ONE = np.ones((1, 1))
MODELS = {
    "level": (S.local_level(), 0),
    "trend": (S.local_trend(), 0),
    "level + seasonal": (S.local_level() + S.seasonal(4), 4),
    "trend + seasonal": (S.local_trend() + S.seasonal(12), 12),
    "velocity": (S.constant_velocity(), 0),
}


def drawn(model, period, seed, N=120):
    """A series with variances over four decades, and random starts for an oracle."""
    rng = np.random.default_rng(seed)
    theta = 10 ** rng.uniform(-3, 1, size=len(model.names))
    y = model.simulate(theta, N, rng)
    if period:
        pattern = 3 * rng.normal(size=period)
        y = y + np.tile(pattern - pattern.mean(), N // period + 1)[:N]
    return y, [theta, *(np.var(np.diff(y)) * 10 ** rng.uniform(-4, 0, size=theta.size) for _ in range(3))]


def best_of_scipy(model, y, starts):
    llf = model.likelihood(y)

    def objective(z):
        try:
            value, gradient = llf(np.exp(z))
        except kf.errors.KfdynError:
            return 1e10, 0 * z
        return -value, -gradient * np.exp(z)

    limits = np.log(np.nanvar(y)) + np.array([np.log(1e-14), 5.0])
    found = [
        minimize(objective, np.log(s), jac=True, method="L-BFGS-B", bounds=[tuple(limits)] * len(s)) for s in starts
    ]
    return -min(r.fun for r in found)


def expect_maximum(model, y, starts):
    fit = model.fit(y)
    assert fit.converged, fit.message
    assert fit.n_evaluations < 90
    slope = model.likelihood(y)(fit.params)[1]
    at = fit.at_bound
    assert_allclose((slope * fit.params)[~at], 0.0, atol=1e-4)
    assert (slope[at] * np.var(y) < 1e-4).all()  # uphill is outward
    floor = np.maximum(fit.params, 1e-6 * np.var(np.diff(y)))
    assert fit.llf > best_of_scipy(model, y, [floor, *starts]) - 1e-3


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("seed", [3, 27])
def test_fits_are_maxima(name, seed):
    model, period = MODELS[name]
    expect_maximum(model, *drawn(model, period, seed))


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_many_fits_are_maxima(name):
    model, period = MODELS[name]
    for seed in range(100):
        expect_maximum(model, *drawn(model, period, seed))


def test_a_season_of_small_noise():
    """The start is far too large; noise fell to 0 on the way and must come back."""
    y = np.tile([10.0, -5, 3, -8], 20) + 0.01 * np.random.default_rng(0).normal(size=80)
    model = S.local_level() + S.seasonal(4)
    near = model.fit(y, theta0=[1e-4, 1e-6, 1e-6])
    for fit in (model.fit(y), kf.fit(lambda t: model.state_space(t, 80), [30.0, 30, 5], y, bounds=[(0, None)] * 3)):
        assert fit.converged and fit.llf == pytest.approx(233.33967, abs=1e-4)
        assert fit.llf == pytest.approx(near.llf, abs=1e-6)


def test_co2_as_statsmodels_has_it():
    """Monthly means at Mauna Loa; statsmodels, exact diffuse, reaches −159.0852."""
    co2 = sm.datasets.co2.load_pandas().data.co2.resample("MS").mean()
    fit = (S.local_trend() + S.seasonal(12)).fit(co2)
    assert fit.converged and not fit.at_bound.any()
    assert fit.llf == pytest.approx(-159.08515, abs=1e-4)
    peer = sm.tsa.UnobservedComponents(co2, "lltrend", seasonal=12, use_exact_diffuse=True)
    assert fit.llf == pytest.approx(peer.loglike(fit.params), abs=1e-6)


def test_a_cycle_beside_a_level():
    rng = np.random.default_rng(0)
    rng.normal(size=200)
    y = np.cumsum(0.2 * rng.normal(size=150)) + np.sin(np.arange(150) / 3) + 0.3 * rng.normal(size=150)
    fit = (S.local_level() + S.cycle((2, 100))).fit(y)
    assert fit.converged and fit.llf > -97.45
    assert fit.params[3] == pytest.approx(6 * np.pi, rel=0.01)


def test_the_brink_of_a_bound_without_a_model():
    """A sine is a cycle of damping 1, where no stationary cycle is; the fit stops short of it, and soon."""
    for seed in (6, 9, 13, 18):
        rng = np.random.default_rng(seed)
        y = np.sin(2 * np.pi * np.arange(120) / rng.uniform(6, 20)) * 2 + rng.normal(size=120)
        fit = (S.local_level() + S.cycle((4, 30))).fit(y)
        assert fit.converged and fit.n_evaluations < 200
        assert fit.at_bound[-1] and 0 < 1 - fit.params[-1] < 1e-7


def deviations(N):
    ss = kf.StateSpace.chain(ONE, ONE, ONE, ONE, steps=N)

    def build(theta):
        Q = np.full((N, 1, 1), theta[1] ** 2)
        return ss.replace(Q=Q, R=np.full((N, 1, 1), theta[0] ** 2))

    return build


def test_a_deviation_is_not_trapped_at_zero():
    """Where the parameter is a square root the slope at 0 is 0 whether or not that is best."""
    rng = np.random.default_rng(1)
    y = rng.normal(size=100) + 0.05 * rng.normal(size=100).cumsum()
    variances = S.local_level().fit(y)
    for start in ([1.0, 1.0], [1.0, 1e-3], [30.0, 30.0]):
        fit = kf.fit(deviations(100), start, y, bounds=[(0, None)] * 2)
        assert fit.converged
        assert fit.llf == pytest.approx(variances.llf, abs=1e-6)
        assert_allclose(fit.params**2, variances.params, rtol=1e-3)


def test_upper_bounds_and_bounds_that_are_not_zero():
    rng = np.random.default_rng(2)
    y = rng.normal(size=60)

    def build(theta):
        return kf.StateSpace([-1] * 60, [None] * 60, [ONE] * 60, [theta[1] * ONE] * 60, xi=np.full(60, theta[0]))

    for mean, bounds in (([2.0], (1.0, None)), ([-2.0], (None, -1.0)), ([1.5], (1.0, 2.0)), ([-1.5], (-2.0, -1.0))):
        fit = kf.fit(build, [*mean, 1.0], y, bounds=[bounds, (0, None)])
        at = np.sign(mean[0])
        assert fit.converged and fit.at_bound.tolist() == [True, False]
        assert_allclose(fit.params, [at, ((y - at) ** 2).mean()], rtol=1e-6)
    fit = kf.fit(build, [0.9, 1.0], y, bounds=[(-1.0, 1.0), (0, None)])
    assert fit.converged and not fit.at_bound.any()
    assert_allclose(fit.params, [y.mean(), y.var()], rtol=1e-6)


@pytest.mark.parametrize(
    ("model", "y"),
    [
        (S.local_trend(), np.arange(30.0)),
        (S.local_trend(smooth=True), np.arange(30.0)),
        (S.constant_velocity(), np.arange(30.0)),
        (S.constant_acceleration(), np.arange(30.0) ** 2),
        (S.local_level(), np.ones(30)),
        (S.local_level() + S.seasonal(4), np.tile([1.0, 2, 3, 4], 10)),
        (S.regression(np.arange(20.0)) + S.noise(), 2 * np.arange(20.0)),
    ],
)
def test_data_that_the_model_explains_without_noise(model, y):
    fit = model.fit(y)
    assert not fit.converged
    assert "no maximum" in fit.message and "explains the data without noise" in fit.message


def test_a_start_that_is_far_too_large():
    """A fall of the variances by 1e-40 is found where the data are so small, not called endless."""
    y = np.random.default_rng(0).normal(size=(2, 60))
    y = y[0].cumsum() + y[1]
    one = S.local_level().fit(y)
    ss = kf.StateSpace.chain(ONE, ONE, ONE, ONE, steps=60)
    each = np.ones((60, 1, 1))
    fit = kf.fit(lambda t: ss.replace(Q=t[1] * each, R=t[0] * each), [1e10, 1e10], 1e-15 * y, bounds=[(0, None)] * 2)
    assert fit.converged, fit.message
    assert_allclose(fit.params * 1e30, one.params, rtol=1e-5)
