"""Models of time series against statsmodels, dense Gaussian processes and differences."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from numpy.testing import assert_allclose

import kfdyn as kf
from kfdyn.errors import ModelError, ShapeError, SingularError
from kfdyn.estimation.datasets import airline, nile
from kfdyn.estimation.series.arma import coefficients_of
from kfdyn.estimation.series.build import Builder
from kfdyn.sweeps import Checks

S = kf.series
RNG = np.random.default_rng(0)
TIMES = np.cumsum(RNG.uniform(0.3, 2.0, size=30))
STEP = (np.arange(30) > 12).astype(float)
PASSENGERS = np.log(airline().passengers)

MODELS = {
    "level": (S.local_level(), [0.7, 0.4]),
    "trend": (S.local_trend(), [0.7, 0.4, 0.1]),
    "smooth": (S.local_trend(smooth=True), [0.7, 0.1]),
    "seasonal": (S.local_level() + S.seasonal(4), [0.7, 0.4, 0.2]),
    "cycle": (S.cycle((3, 20)) + S.noise(), [0.5, 0.6, 7.0, 0.8]),
    "ar": (S.ar(2), [0.8, 0.5, -0.3]),
    "arma": (S.arma(2, 1) + S.local_level(), [0.3, 0.8, 0.5, -0.3, 0.4, 0.2]),
    "regression": (S.regression(STEP) + S.local_level(), [0.5, 0.2]),
    "drifting": (S.regression(np.stack([STEP, TIMES], axis=1), drifting=True) + S.noise(), [0.5, 0.2, 0.01]),
    "velocity": (S.constant_velocity(0.5), [0.5, 0.7]),
    "acceleration": (S.constant_acceleration(), [0.5, 0.1]),
    "matern 1/2": (S.matern(0.5, TIMES), [0.4, 1.2, 3.0]),
    "matern 3/2": (S.matern(1.5, TIMES), [0.4, 1.2, 3.0]),
    "matern 5/2": (S.matern(2.5, TIMES) + S.local_level(), [0.4, 1.2, 3.0, 0.2]),
}


@pytest.mark.parametrize("name", MODELS)
def test_own_gradient_and_likelihood(name):
    """The builder's likelihood is the engine's with flat priors, and its gradient that of the likelihood."""
    model, theta = MODELS[name]
    theta = np.array(theta)
    y = np.random.default_rng(1).normal(size=(3, 30)).cumsum(axis=1)
    y[:, [4, 5, 17]] = np.nan
    build = Builder(model, 30)
    value, gradient = build.evaluate(theta, y)
    ss = model.state_space(theta, 30)
    assert value == pytest.approx(np.sum(kf.kalman_filter(ss, y).llf), rel=1e-10)
    assert build.value(theta, y) == value
    by_engine = build.evaluate_by_engine(theta, y)
    assert value == pytest.approx(by_engine[0], rel=1e-12)
    assert_allclose(gradient, by_engine[1], rtol=1e-8, atol=1e-8)
    for i, axis in enumerate(np.eye(theta.size)):
        h = 1e-5 * theta[i]
        slope = (build.evaluate(theta + h * axis, y)[0] - build.evaluate(theta - h * axis, y)[0]) / (2 * h)
        assert gradient[i] == pytest.approx(slope, rel=2e-6, abs=1e-6)


def test_several_outputs():
    model, theta = S.constant_velocity(0.5, 2), np.array([0.5, 0.7])
    y = np.random.default_rng(2).normal(size=(20, 2)).cumsum(axis=0)
    y[3, 1] = np.nan
    build = Builder(model, 20)
    value, gradient = build.evaluate(theta, y.reshape(-1))
    for i, axis in enumerate(np.eye(2)):
        slope = (
            build.evaluate(theta + 1e-5 * axis, y.reshape(-1))[0]
            - build.evaluate(theta - 1e-5 * axis, y.reshape(-1))[0]
        ) / 2e-5
        assert gradient[i] == pytest.approx(slope, rel=1e-6)
    one, other = (S.constant_velocity(0.5).state_space(theta, 20) for _ in range(2))
    apart = kf.kalman_filter(one, y[:, 0]).llf + kf.kalman_filter(other, y[:, 1]).llf
    assert value == pytest.approx(apart, rel=1e-10)
    assert model.fit(y).converged


def test_nile_has_the_exact_diffuse_likelihood_of_statsmodels():
    fit = S.local_level().fit(nile().flow)
    peer = sm.tsa.UnobservedComponents(nile().flow, "local level", use_exact_diffuse=True)
    assert fit.converged
    assert fit.llf == pytest.approx(peer.loglike(fit.params), rel=1e-12)
    assert fit.llf >= peer.fit(disp=0).llf - 1e-8
    assert_allclose(fit.params, [15098.5, 1469.2], rtol=1e-4)  # Durbin and Koopman (2012)
    assert fit.diagnostics().fine


def test_airline_has_the_maximum_of_statsmodels():
    """Trend and seasons of the logarithms; its slope does not wander, which the fit finds exactly."""
    fit = (S.local_trend() + S.seasonal(12)).fit(PASSENGERS)
    peer = sm.tsa.UnobservedComponents(PASSENGERS, "local linear trend", seasonal=12, use_exact_diffuse=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = peer.fit(disp=0)
    assert fit.converged and fit.names == ("noise", "level", "trend", "seasonal")
    assert fit.llf == pytest.approx(peer.loglike(fit.params), abs=1e-7)
    assert theirs.llf - 1e-8 <= fit.llf <= theirs.llf + 1e-3
    assert fit.params[2] == 0.0 and fit.at_bound.tolist() == [False, False, True, False]
    assert_allclose(fit.params[[0, 1, 3]], theirs.params[[0, 1, 3]], rtol=0.01)
    ahead = fit.forecast(12)
    future = peer.smooth(fit.params).get_forecast(12)
    assert_allclose(ahead.mean, future.predicted_mean, rtol=1e-8)
    assert_allclose(ahead.std, future.se_mean, rtol=1e-6)
    level, seasons = fit.components()
    assert level.kind == "trend" and seasons.kind == "seasonal"
    smoothed = peer.smooth(fit.params)
    assert_allclose(level.mean, smoothed.level["smoothed"], rtol=1e-7)
    assert_allclose(level.std, np.sqrt(smoothed.level["smoothed_cov"]), rtol=1e-5)
    assert_allclose(seasons.mean, smoothed.seasonal["smoothed"], atol=1e-7)


def track():
    """A smooth path in noise, a quarter of it not seen."""
    rng = np.random.default_rng(5)
    y = S.local_trend(smooth=True).simulate([1.0, 0.01], 200, rng)
    y[60:100] = np.nan
    y[150:160] = np.nan
    return y


@pytest.mark.filterwarnings("ignore:Maximum Likelihood optimization failed")  # the peer's own, on some processors
def test_a_track_with_gaps_has_the_maximum_of_statsmodels():
    y = track()
    fit = S.local_trend(smooth=True).fit(y)
    peer = sm.tsa.UnobservedComponents(y, "smooth trend", use_exact_diffuse=True)
    assert fit.converged
    assert fit.llf == pytest.approx(peer.loglike(fit.params), rel=1e-9)
    assert -1e-7 <= fit.llf - peer.fit(disp=0).llf < 1e-6


@pytest.mark.parametrize(("p", "q"), [(1, 0), (2, 0), (0, 1), (2, 1), (1, 2)])
def test_arma_has_the_likelihood_of_statsmodels(p, q):
    y = np.random.default_rng(6).normal(size=60).cumsum() * 0.3
    theta = np.array([0.9, *([0.4, -0.3][:p]), *([0.5, 0.2][:q])])
    peer = sm.tsa.SARIMAX(y, order=(p, 0, q))
    peer.ssm.tolerance = 0  # else it takes the filter for converged after some steps
    mine = kf.kalman_filter(S.arma(p, q).state_space(theta, 60), y).llf
    a, b = coefficients_of(theta[1 : 1 + p]), -coefficients_of(theta[1 + p :])
    assert mine == pytest.approx(peer.loglike(np.array([*a, *b, 0.9])), rel=1e-9)


@pytest.mark.parametrize("smoothness", [0.5, 1.5, 2.5])
def test_matern_is_the_gaussian_process(smoothness):
    noise, variance, length = 0.2, 1.3, 2.0
    y = np.random.default_rng(7).normal(size=30)
    r = np.abs(TIMES[:, None] - TIMES) * np.sqrt(2 * smoothness) / length
    shape = {0.5: 1.0, 1.5: 1 + r, 2.5: 1 + r + r**2 / 3}[smoothness]
    K = variance * shape * np.exp(-r)
    cov = K + noise * np.eye(30)
    dense = -0.5 * (y @ np.linalg.solve(cov, y) + np.linalg.slogdet(cov)[1] + 30 * np.log(2 * np.pi))
    model = S.matern(smoothness, TIMES)
    ss = model.state_space([noise, variance, length], 30)
    assert kf.kalman_filter(ss, y).llf == pytest.approx(dense, rel=1e-10)
    (part,) = model.components([noise, variance, length], y)
    assert_allclose(part.mean, K @ np.linalg.solve(cov, y), atol=1e-9)
    assert_allclose(part.std**2, np.diag(K - K @ np.linalg.solve(cov, K)), atol=1e-9)


def test_pandas_in_and_out():
    index = pd.period_range("1949-01", periods=144, freq="M")
    y = pd.Series(PASSENGERS, index=index)
    fit = (S.local_trend() + S.seasonal(12)).fit(y)
    ahead = fit.forecast(3)
    assert isinstance(ahead.mean, pd.Series) and str(ahead.mean.index[0]) == "1961-01"
    assert fit.components()[0].mean.index.equals(index)
    dated = pd.Series(nile().flow, index=pd.date_range("1871", periods=100, freq="YS"))
    assert S.local_level().forecast([1.0, 1.0], dated, 2).upper.index[1].year == 1972
    counted = pd.Series(nile().flow, index=nile().year)
    assert S.local_level().forecast([1.0, 1.0], counted, 2).lower.index.tolist() == [1971, 1972]
    assert isinstance(S.local_level().forecast([1.0, 1.0], nile().flow, 2).mean, np.ndarray)
    masked = pd.Series([1.0, None, 3.0], dtype="Float64")
    assert np.isfinite(S.local_level().forecast([1.0, 1.0], masked, 1).mean.iloc[0])


def test_likelihood_as_a_function():
    y = np.random.default_rng(8).normal(size=(3, 20)).cumsum(axis=1)
    y[0, 3] = y[1, 4] = np.nan
    model = S.local_level()
    value, gradient = model.likelihood(y)([0.5, 0.3])
    assert value == pytest.approx(model.likelihood(y, gradient=False)([0.5, 0.3]), rel=1e-14)
    each = [kf.kalman_filter(model.state_space([0.5, 0.3], 20), row).llf for row in y]
    assert value == pytest.approx(sum(each), rel=1e-12) and gradient.shape == (2,)


def test_a_likelihood_takes_many_parameter_vectors():
    y = np.random.default_rng(8).normal(size=(3, 20)).cumsum(axis=1)
    y[0, 3] = y[1, 4] = np.nan
    model, thetas = S.local_level(), np.random.default_rng(0).uniform(0.1, 2.0, size=(5, 2))
    as_forest = kf.likelihood(
        lambda theta: model.state_space(theta, 20), thetas, y
    )  # the engine, not the series' own way
    alone = kf.likelihood(lambda theta: model.state_space(theta, 20), thetas, y, gradient=False)
    assert_allclose(alone.llf, as_forest.llf, rtol=1e-13)
    llf, gradient = model.likelihood(y)(thetas)
    for found in (kf.likelihood(model, thetas, y), (llf, gradient)):
        assert_allclose(found[0], as_forest.llf, rtol=1e-12)
        assert_allclose(found[1], as_forest.score, rtol=1e-7)  # of differences of the model
    assert (kf.likelihood(model, thetas, y, gradient=False).llf == model.likelihood(y, gradient=False)(thetas)).all()
    assert model.likelihood(y)(np.zeros((0, 2)))[1].shape == (0, 2)
    with pytest.raises(kf.errors.ShapeError, match="theta must have one number"):
        kf.likelihood(model, thetas[:, :1], y)


@pytest.mark.parametrize("name", MODELS)
def test_many_parameter_vectors_side_by_side_are_each_what_they_are_alone(name, monkeypatch):
    """And have the same bits in any company, on any number of threads."""
    model, theta = MODELS[name]
    rng = np.random.default_rng(1)
    y = rng.normal(size=(3, 30)).cumsum(axis=1)
    y[:, [4, 5, 17]] = y[0, 6] = np.nan  # two patterns
    both = model.likelihood(y)
    thetas = np.array(theta) * np.exp(0.1 * rng.normal(size=(19, len(theta))))
    llf, gradient = both(thetas)
    for row, value, slope in zip(thetas, llf, gradient):
        alone, own = both(row)
        assert value == pytest.approx(alone, rel=1e-12)
        assert_allclose(slope, own, rtol=1e-9, atol=1e-9 * np.abs(own).max())
    assert_allclose(model.likelihood(y, gradient=False)(thetas), llf, rtol=1e-15)
    monkeypatch.setenv("KFDYN_NUM_THREADS", "2")
    for count in (1, 3, 8, 19):
        some, slopes = both(thetas[:count])
        assert (some == llf[:count]).all() and (slopes == gradient[:count]).all()


def test_a_parameter_vector_without_an_answer_side_by_side_gets_the_error_that_it_gets_alone():
    y = np.random.default_rng(8).normal(size=20).cumsum()
    both, thetas = S.local_trend().likelihood(y), np.full((11, 3), 0.5)
    thetas[7] = 0.0
    with pytest.raises(SingularError, match="give the series some noise"):
        both(thetas)
    thetas[7] = 0.5
    thetas[9, 1] = -1.0
    with pytest.raises(kf.errors.ModelError, match="level is -1"):
        both(thetas)
    unseen = S.local_trend().likelihood(np.full(20, np.nan))(thetas[:3])
    assert (unseen[0] == 0.0).all() and (unseen[1] == 0.0).all()


def test_the_sweeps_of_a_likelihood_run_as_they_stand(monkeypatch):
    """Every index checked, on Python's floats: gaps, several series, seasons; one parameter vector, and many."""
    model, y = S.local_trend() + S.seasonal(4), np.stack([PASSENGERS[:30], 0.5 * PASSENGERS[30:60]])
    y[:, [3, 17, 18]] = np.nan
    both, theta = model.likelihood(y), [0.1, 0.2, 0.3, 0.05]
    compiled = *both(theta), *both([theta])
    monkeypatch.setattr(Checks, "on", True)
    for plain, right in zip((*both(theta), *both([theta])), compiled):
        assert_allclose(plain, right, rtol=1e-12)


def test_series_that_lack_different_measurements():
    model, rng = S.local_level(), np.random.default_rng(8)
    y = model.simulate([1.0, 0.5], 60, rng, 5)
    y[rng.random(y.shape) < 0.2] = np.nan
    fit = model.fit(y)
    each = sum(kf.kalman_filter(model.state_space(fit.params, 60), row).llf for row in y)
    assert fit.converged and fit.llf == pytest.approx(each, rel=1e-10)


def test_draws_have_the_models_variance():
    y = S.local_level().simulate([2.0, 0.5], 30, np.random.default_rng(9), 20_000)
    assert y.shape == (20_000, 30)
    assert_allclose(y.var(axis=0), 2.0 + 0.5 * np.arange(30), rtol=0.06)  # 6 standard errors
    assert S.constant_velocity(1.0, 3).simulate([1.0, 1.0], 5, np.random.default_rng(0)).shape == (5, 3)


@pytest.mark.slow
def test_intervals_cover_what_they_claim():
    """200 series of 300 steps: 95 % intervals of both variances cover between 90 and 99 % of the time."""
    model, truth = S.local_level(), np.array([1.0, 0.3])
    rng, inside = np.random.default_rng(10), np.zeros(2)
    for _ in range(200):
        fit = model.fit(model.simulate(truth, 300, rng))
        low, high = fit.conf_int().T
        inside += (low <= truth) & (truth <= high)
    assert ((inside >= 180) & (inside <= 199)).all(), inside


def test_errors_say_what_to_do():
    with pytest.raises(ModelError, match="period must be a whole number"):
        S.seasonal(1)
    with pytest.raises(ShapeError, match="do not add up"):
        S.constant_velocity(1.0, 2) + S.local_level()
    with pytest.raises(ShapeError, match="give regressors for the future too"):
        (S.regression(STEP) + S.noise()).forecast([1.0], np.zeros(30), 1)
    with pytest.raises(ShapeError, match="give those of the future"):
        S.matern(0.5, TIMES).forecast([1.0, 1.0, 1.0], np.zeros(30), 1)
    with pytest.raises(ShapeError, match="noise, level"):
        S.local_level().state_space([1.0], 5)
    with pytest.raises(ModelError, match="orders"):
        S.arma(0, 0)
    with pytest.raises(ModelError, match="smoothness"):
        S.matern(1.0, TIMES)
    with pytest.raises(ShapeError, match="increasing"):
        S.matern(0.5, [0.0, 0.0])
    with pytest.raises(SingularError, match="too few measurements"):
        (S.local_trend() + S.seasonal(12)).fit(np.arange(5.0))
    with pytest.raises(ModelError, match="steps must be"):
        S.local_level().forecast([1.0, 1.0], np.zeros(3), 0)


def test_a_column_is_one_series():
    """The rows of a table are steps; a column is a series, with pandas and without."""
    flow = nile().flow
    table = pd.Series(flow, index=pd.RangeIndex(1871, 1971), name="flow").to_frame()
    expected = S.local_level().fit(flow).params
    for y in (table, flow[:, None], flow[None, :, None]):
        assert_allclose(S.local_level().fit(y).params, expected, rtol=1e-8)
    ahead = S.local_level().forecast(expected, table, 2)
    assert list(ahead.mean.index) == [1971, 1972]
    two = pd.DataFrame({"a": flow, "b": flow[::-1]})
    assert_allclose(S.local_level().fit(two).params, S.local_level().fit(two.to_numpy().T).params, rtol=1e-8)


def test_faults_are_named_where_they_are():
    level, y = S.local_level(), [1.0, 3.0, 2.0]
    for confidence in (95, 0.0, 1.0, np.nan):
        with pytest.raises(ModelError, match="confidence"):
            level.forecast([1.0, 1.0], y, 1, confidence=confidence)
    with pytest.raises(ModelError, match="alpha"):
        level.fit(nile().flow).conf_int(5)
    for theta in ([-1.0, 1.0], [np.nan, 1.0]):
        with pytest.raises(ModelError, match=r"noise is (-1|nan), but"):
            level.forecast(theta, y, 1)
    with pytest.raises(ModelError, match="infinite entries"):
        level.fit([1.0, 2.0, np.inf, 3.0])
    for ask in (lambda: S.regression(STEP).fit(STEP), lambda: S.regression(STEP).likelihood(STEP)):
        with pytest.raises(ModelError, match=r"add kf\.series\.noise"):
            ask()
    with pytest.raises(ModelError, match="nothing to fit"):
        level.fit(np.zeros((0, 30)))
    value, slope = level.likelihood(np.zeros((0, 30)))([1.0, 1.0])
    assert (value, slope.tolist()) == (0, [0.0, 0.0])
    with pytest.raises(ModelError, match="steps must be"):
        level.simulate([1.0, 1.0], 0, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        (pd.Index(list("abc")), [3, 4]),
        (pd.Index([1, 2, 3], dtype="Int64"), [4, 5]),
        (pd.Index([0.5, 1.0, 1.5]), [2.0, 2.5]),
        (pd.Index(["a", 2, None], dtype=object), [3, 4]),
    ],
)
def test_any_index_is_continued(index, expected):
    ahead = S.local_level().forecast([1.0, 1.0], pd.Series([1.0, 2.0, 3.0], index=index), 2)
    assert list(ahead.mean.index) == expected


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_a_constant_series_has_no_maximum(value):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = S.local_level().fit(np.full(30, value))
        assert "no maximum" in str(found)
    assert not found.converged
    assert "level goes to its bound" in found.message


def test_a_cycle_that_hardly_dies_away():
    """The damping goes to 1, where there is no stationary cycle; its slope keeps away from there, silently."""
    k = np.arange(200)
    y = np.sin(2 * np.pi * k / 20) + 0.1 * np.random.default_rng(0).normal(size=200)
    model = S.cycle() + S.noise()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert model.fit(y).converged
    llf, theta = model.likelihood(y), np.array([0.01, 1e-5, 20.0, 1 - 2e-7])
    h = 2e-9
    there, back = (llf(theta + np.array([0, 0, 0, s * h]))[0] for s in (1, -1))
    assert_allclose(llf(theta)[1][3], (there - back) / (2 * h), rtol=1e-4)
    with pytest.raises(ModelError, match=r"cycle\.damping is 1"):
        model.state_space([1.0, 1.0, 5.0, 1.0], 3)


@pytest.mark.parametrize("name", MODELS)
def test_models_and_fits_can_be_pickled(name):
    model, theta = MODELS[name]
    y = model.simulate(theta, 30, np.random.default_rng(1))
    again = pickle.loads(pickle.dumps(model))
    assert again.names == model.names
    assert again.likelihood(y)(theta)[0] == model.likelihood(y)(theta)[0]
    assert_allclose(again.start(y), model.start(y), rtol=0)
    if name in ("level", "cycle"):
        found = model.fit(y, max_iterations=5)
        back = pickle.loads(pickle.dumps(found))
        assert (back.params.tolist(), back.llf) == (found.params.tolist(), found.llf)
        assert np.array_equal(back.forecast(2).mean, found.forecast(2).mean)
        assert str(back) == str(found)


def test_more_rows_than_columns_are_asked_about():
    """Columns side by side, as a DataFrame has them, were taken as many short series without a word."""
    for shape in ((60, 2), (60, 8)):
        y, (S_, N) = np.cumsum(np.random.default_rng(4).normal(size=shape), axis=0), shape
        said = rf"of shape \({S_}, {N}\), is {S_} series of {N} steps .* y\.T if it holds {N} series of {S_} steps"
        for use in (S.local_level().fit, S.local_level().likelihood, (S.local_trend() + S.seasonal(4)).fit):
            with pytest.raises(ShapeError, match=said + r", and y\[\.\.\., None\]"):
                use(y)
        assert S.local_level().fit(y.T).n_flat == N and S.local_level().fit(y[..., None]).n_flat == S_
        assert S.local_level().fit(pd.DataFrame(y)).llf == S.local_level().fit(y.T).llf
    assert S.local_level().fit(y[:2]).n_flat == 2 and S.local_level().fit(y[:, :1]).n_flat == 1


def test_several_series_are_not_forecast_at_once():
    y = np.cumsum(np.random.default_rng(5).normal(size=(2, 30)), axis=1)
    for given, each in ((y, r"y\[i\]"), (pd.DataFrame(y.T), r"y\[column\]")):
        fit = S.local_level().fit(given)
        with pytest.raises(
            ShapeError, match=rf"y holds 2 series, .* fit\.model\.forecast\(fit\.params, {each}, steps\)"
        ):
            fit.forecast(3)
        with pytest.raises(ShapeError, match="y holds 2 series"):
            fit.components()
        assert fit.model.forecast(fit.params, given[0], 3).mean.shape == (3,)


def test_the_second_maximum_of_a_trend_is_looked_for():
    """Passengers in levels: a wandering slope (-580.90) beats a wandering level (-582.96), where others end."""
    y, model = airline().passengers.astype(float), S.local_trend() + S.seasonal(12)
    fit = model.fit(y)
    assert fit.converged and fit.llf == pytest.approx(-580.9042, abs=1e-4)
    assert fit.llf == pytest.approx(model.fit(y, starts=3).llf, rel=1e-8) and fit.n_evaluations < 80
    assert dict(zip(fit.names, fit.at_bound)) == {"noise": True, "level": True, "trend": False, "seasonal": False}
    peer = sm.tsa.UnobservedComponents(y, "lltrend", seasonal=12, use_exact_diffuse=True)
    assert peer.loglike(fit.params) == pytest.approx(fit.llf, rel=1e-8)
    first = model.fit(y, theta0=model.start(y))  # a start that is given is the only one
    assert first.llf == pytest.approx(-582.9602, abs=1e-4)
    few = model.fit(np.log(y))  # where no look suggests another, there is no second search
    assert few.n_evaluations < 30 and few.at_bound[2]


def test_what_a_mask_hides_is_missing():
    y = nile().flow.astype(float)
    hidden = np.arange(100) % 7 == 3
    masked = np.ma.masked_array(np.where(hidden, 1e9, y), mask=hidden)
    fit = S.local_level().fit(masked)
    assert_allclose(fit.params, S.local_level().fit(np.where(hidden, np.nan, y)).params, rtol=1e-12)
    assert fit.n_observed == 86 and fit.forecast(2).mean.max() < 2000


def test_series_of_different_lengths_and_equal_times_get_a_cure():
    with pytest.raises(
        ShapeError, match=r"y holds series of different lengths, 2 and 3; fill the shorter ones up with NaN"
    ):
        kf.series.local_level().fit([[1.0, 2.0, 3.0], [1.0, 2.0]])
    with pytest.raises(ShapeError, match="T holds series of different lengths, 2 and 5"):
        kf.fit(lambda t: None, [1.0], [np.zeros(2), np.zeros(5)])
    with pytest.raises(ShapeError, match="1 follows 1 at place 2: sort times and series together, and take the mean"):
        kf.series.matern(1.5, [0.0, 1.0, 1.0, 2.0])


def test_what_a_fit_has_is_listed():
    """For completion at the prompt; and coefficients_of has a name that can be reached."""
    fit = kf.series.local_level().fit(np.array([1.0, 2.0, 1.5, 3.0, 2.0, 2.5]))
    assert {"params", "llf", "stderr", "summary", "forecast", "components"} <= set(dir(fit))
    assert all(hasattr(fit, name) for name in dir(fit))
    np.testing.assert_allclose(kf.series.coefficients_of([0.5, -0.2]), [0.6, -0.2], rtol=1e-14)


def test_a_likelihood_keeps_no_covariance_of_every_step():
    """With 120 seasons over ten years those would be 280 MB."""
    import tracemalloc

    model, y = S.local_level() + S.seasonal(120), np.random.default_rng(0).normal(size=1200)
    ask = model.likelihood(y)
    ask([1.0, 0.5, 0.1])  # compiled by now
    tracemalloc.start()
    try:
        ask([0.9, 0.5, 0.1])
        assert tracemalloc.get_traced_memory()[1] < 20e6
    finally:
        tracemalloc.stop()


AHEAD = {
    "quick": S.local_level() + S.seasonal(12),
    "by the engine": S.local_trend(smooth=True) + S.ar(1),
    "two outputs": S.constant_velocity(1.0, dimensions=2),
}


@pytest.mark.parametrize("model", AHEAD.values(), ids=AHEAD)
def test_a_forecast_is_what_the_smoother_says_of_the_future(model):
    """But the smoother takes far longer, and keeps a covariance of every step."""
    rng = np.random.default_rng(0)
    y = rng.normal(size=(40, 2) if model.outputs == 2 else 40).cumsum(axis=0)
    y[[3, 17]] = np.nan
    theta = 0.3 * np.ones(len(model.names))
    found = model.forecast(theta, y, 7)
    longer = np.concatenate([y.ravel(), np.full(7 * model.outputs, np.nan)])
    ss = model.state_space(theta, 47)
    smooth = kf.bryson_frazier(ss, kf.kalman_filter(ss, longer))
    for i, k in enumerate(range(40, 47)):
        H = ss.H[k]
        assert_allclose(np.atleast_1d(found.mean[i]), H @ smooth.x[k], rtol=1e-11, atol=1e-12)
        variance = np.diag(H @ smooth.S[k] @ H.T) + np.diag(ss.R[k])
        assert_allclose(np.atleast_1d(found.std[i]) ** 2, variance, rtol=1e-11)


def test_a_forecast_keeps_no_covariance_of_every_step():
    """With 100 seasons over ten times as many steps those would be 90 MB each."""
    import tracemalloc

    model, y = S.local_level() + S.seasonal(100), np.random.default_rng(0).normal(size=1000)
    model.forecast([1.0, 0.5, 0.1], y, 10)  # compiled by now
    tracemalloc.start()
    try:
        model.forecast([0.9, 0.5, 0.1], y, 10)
        assert tracemalloc.get_traced_memory()[1] < 20e6
    finally:
        tracemalloc.stop()
