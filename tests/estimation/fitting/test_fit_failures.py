"""Where there is no model: a step that is not taken in mid-search, words at the start."""

import warnings

import numpy as np
import pytest
import statsmodels.api as sm
from numpy.testing import assert_allclose

import kfdyn as kf
from kfdyn.errors import ModelError, ShapeError
from kfdyn.estimation.datasets import airline, nile

S = kf.series
ONE = np.ones((1, 1))
Y = np.random.default_rng(0).normal(0.9, 1.0, size=50)


def normal(theta):
    return kf.StateSpace([-1] * 50, [None] * 50, [ONE] * 50, [theta[1] * ONE] * 50, xi=np.full(50, theta[0]))


def failing(how):
    """No model for means beyond 2."""

    def build(theta):
        if abs(theta[0]) > 2.0:
            how()
        return normal(theta)

    return build


def bad_value():
    raise ValueError("no")


def bad_matrix():
    raise np.linalg.LinAlgError("Eigenvalues did not converge")


def bad_number():
    return 1.0 / 0.0


@pytest.mark.parametrize("how", [bad_value, bad_matrix, bad_number])
def test_an_error_of_build_is_a_step_not_taken(how):
    fit = kf.fit(failing(how), [-1.9, 1e-3], Y, bounds=[None, (0, None)])
    assert fit.converged
    assert_allclose(fit.params, [Y.mean(), Y.var()], rtol=1e-6)
    with pytest.raises(ModelError, match=r"no likelihood at theta0 = \[3\. 1\.\]: \w*Error: .*; start elsewhere"):
        kf.fit(failing(how), [3.0, 1.0], Y, bounds=[None, (0, None)])


class Evaluated:
    """A build that evaluates itself, and answers NaN."""

    def __call__(self, theta):
        return normal(theta)

    def evaluate(self, theta, T):
        g = kf.score(normal(theta), T)
        slope = np.array([g.xi.sum(), np.sum(g.Q.flat)])
        return (g.llf, slope) if abs(theta[0]) < 2.0 else (float(g.llf), np.full(2, np.nan))


def test_nan_is_a_step_not_taken():
    fit = kf.fit(Evaluated(), [-1.9, 1e-3], Y, bounds=[None, (0, None)])
    assert fit.converged
    assert_allclose(fit.params, [Y.mean(), Y.var()], rtol=1e-6)
    with pytest.raises(ModelError, match="must be finite"):
        kf.fit(Evaluated(), [3.0, 1.0], Y, bounds=[None, (0, None)])


def test_bugs_are_not_hidden():
    def build(theta):
        if theta[0] != -1.9:
            raise TypeError("a bug")
        return normal(theta)

    with pytest.raises(TypeError, match="a bug"):
        kf.fit(build, [-1.9, 1.0], Y)


@pytest.mark.parametrize("model", [S.ar(1), S.ar(2), S.ar(1) + S.noise(), S.arma(1, 1)])
def test_autoregressions_of_a_series_with_a_level(model):
    for offset in (3.0, 30.0):
        fit = model.fit(offset + np.random.default_rng(1).normal(size=100))
        assert np.isfinite(fit.llf) and fit.message


def test_no_parameters():
    ss = kf.StateSpace.chain(ONE, ONE, ONE, ONE, [0.0], ONE, steps=20)
    fit = kf.fit(lambda theta: ss, [], np.arange(20.0))
    assert fit.converged and fit.llf == kf.kalman_filter(ss, np.arange(20.0)).llf
    assert "Parameters:                             0" in fit.summary()
    assert fit.stderr.shape == (0,) and fit.conf_int().shape == (0, 2)


def test_a_derivative_of_a_stacked_phi():
    """A root's slice is ignored, in an array and in a list."""
    y = np.random.default_rng(2).normal(size=20).cumsum()
    one = np.ones((20, 1, 1))

    def build(theta):
        return kf.StateSpace.chain(theta[0] * one[1:], one, one[1:], one, [0.0], ONE)

    plain = kf.fit(build, [0.5], y)
    for change in (one, list(one), one[1:], [*one[1:], None]):
        fit = kf.fit(build, [0.5], y, derivative=lambda theta: [{"phi": change}])  # noqa: B023
        assert_allclose(fit.params, plain.params, rtol=1e-7)


def test_criteria_count_flat_states_as_statsmodels_does():
    for model, y, options in (
        (S.local_level(), nile().flow, {"level": "llevel"}),
        (S.local_trend() + S.seasonal(12), np.log(airline().passengers), {"level": "lltrend", "seasonal": 12}),
    ):
        fit = model.fit(y)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            peer = sm.tsa.UnobservedComponents(y, use_exact_diffuse=True, **options).smooth(fit.params)
        assert fit.n_flat == peer.k_diffuse_states
        for name in ("aic", "bic", "hqic"):
            assert getattr(fit, name) == pytest.approx(getattr(peer, name), abs=1e-5)
    two = S.local_level().fit(np.stack([nile().flow, nile().flow[::-1]]))
    assert two.n_flat == 2  # each series has its own
    star = kf.OutwardTree([2, 2, -1], [ONE] * 3, [ONE] * 3, [ONE, ONE, np.zeros((0, 1))])
    assert kf.fit(lambda theta: star, [], [1.0, 2.0]).n_flat == 1


STEPS = np.arange(40.0)
EXPLAINED = {
    "a line": (S.ar(2), STEPS),
    "a constant": (S.ar(3), np.full(40, 5.0)),
    "a constant and noise": (S.ar(1) + S.noise(), np.full(40, 5.0)),
    "to and fro": (S.ar(2), (-1.0) ** STEPS),
    "a wave": (S.cycle() + S.noise(), np.sin(0.2 * np.pi * STEPS)),
    "three numbers": (S.cycle() + S.noise(), np.array([1.0, 3.0, 2.0])),
    "rounding": (S.local_trend(), 5.0 + 1e-15 * STEPS),
}


@pytest.mark.parametrize("name", EXPLAINED)
def test_where_the_likelihood_is_rounding_the_search_ends(name):
    """Data that a model explains exactly: it took the line search thirty looks for each of 200 steps of length 0.

    Nor does anything that is read off such a fit raise or warn, whose parameters may have no interval.
    """
    model, y = EXPLAINED[name]
    fit = model.fit(y)
    assert fit.n_evaluations < 500 and np.isfinite(fit.llf) and np.isfinite(fit.params).all()
    assert fit.message in fit.summary()
    assert fit.conf_int().shape == (len(fit.names), 2) and fit.stderr.shape == (len(fit.names),)
    assert np.isfinite(fit.forecast(3).mean).all()


def test_variances_whose_covariance_is_beyond_a_double():
    """Of data of 1e150 the variance is 1e300, its standard error as well, and the square of that no number."""
    y = np.cumsum(Y)
    here, there = S.local_level().fit(y), S.local_level().fit(1e150 * y)
    assert_allclose(there.stderr / 1e300, here.stderr, rtol=1e-3)
    free = int(np.flatnonzero(~there.at_bound)[0])
    assert np.isinf(there.cov_params[free, free]) and there.summary()


def test_one_measurement_of_a_flat_level_identifies_nothing():
    """Rounding of the score's differences passed for information: a standard error of 735,177 was reported."""
    fit = kf.series.local_level().fit([3.0])
    assert np.isnan(fit.stderr).all()
    assert sorted(fit.unidentified) == ["+1 level", "+1 noise"]


def test_a_parameter_that_is_all_but_zero_ends():
    """Steps were shortened to shares of it, which are 0, for ever."""
    one = np.ones((1, 1))

    def build(theta):
        return kf.StateSpace.chain(one, one, theta[0] * one, one, [0.0], one, steps=5)

    T = [1.0, -1.0, 2.0, 0.5, 0.1]
    found = kf.likelihood(build, [[5e-324], [1e-305], [0.0], [1e-12]], T)
    np.testing.assert_allclose(found.llf[:3], found.llf[2], rtol=1e-14)
    np.testing.assert_allclose(found.score.ravel(), found.score[3].item(), rtol=1e-6)
    with pytest.raises(ShapeError, match="at least one row"):
        kf.likelihood(build, [], T)


@pytest.mark.parametrize("bounds", [[(0,)], [(0, 1, 2)], [5], 0, [("a", None)], [[]], ["ab"]])
def test_bounds_that_are_no_pairs_are_refused(bounds):
    one = np.ones((1, 1))

    def build(theta):
        return kf.StateSpace.chain(one, one, theta[0] * one, one, [0.0], one, steps=5)

    with pytest.raises(ShapeError, match="bounds"):
        kf.fit(build, [0.5], np.arange(5.0), bounds=bounds)
    with pytest.raises(ShapeError, match="bounds"):
        kf.series.local_level().fit(np.arange(5.0), bounds=bounds)
