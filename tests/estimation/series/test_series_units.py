"""Series and regressors in any unit: the likelihood beside kalman_filter's, and beside least squares."""

import mpmath as mp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import kfdyn as kf
from kfdyn.errors import SingularError
from kfdyn.estimation.datasets import nile
from kfdyn.estimation.series.build import Builder
from kfdyn.estimation.series.constant_model_likelihood import QuickSeries
from kfdyn.estimation.series.diffuse_scale import responses

S = kf.series
UNITS = [1e-12, 1e-6, 1.0, 1e5, 5e7, 1e12]
RNG = np.random.default_rng(0)
YEARS = np.arange(1900.0, 2000.0)
LINE = 5 + 0.01 * (YEARS - 1950) + RNG.normal(size=100)
RANDOM = RNG.normal(size=100)
PATH = np.cumsum(np.cumsum(0.3 * RNG.normal(size=80))) + RNG.normal(size=80)
MODELS = {
    "level": (S.local_level(), [1.0, 0.1]),
    "trend": (S.local_trend(), [1.0, 0.1, 0.1]),
    "smooth": (S.local_trend(smooth=True), [1.0, 0.1]),
    "velocity": (S.constant_velocity(0.7), [1.0, 0.1]),
    "acceleration": (S.constant_acceleration(0.01), [1.0, 3e4]),
    "velocity and season": (S.constant_velocity(0.7) + S.seasonal(2), [1.0, 0.1, 0.01]),
    "no noise": (S.constant_velocity(0.7) + S.seasonal(4), [0.0, 0.1, 0.0]),
    "drifting": (
        S.regression(np.stack([RANDOM[:80], 1e9 * YEARS[:80]], 1), drifting=True) + S.noise(),
        [1, 0.1, 1e-20],
    ),
    "cycle": (S.cycle((3, 20)) + S.local_level(), [1.0, 0.3, 7.0, 0.9, 0.2]),
    "ar": (S.ar(2) + S.local_trend(), [1.0, 0.3, 0.5, -0.2, 0.1, 0.1]),
}


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("name", MODELS)
def test_the_likelihood_is_that_of_the_filter_in_any_unit(name, unit, monkeypatch):
    """The engine's filter has widths of its own, found from the model; it is not asked where the quick way fails."""
    model, theta = MODELS[name]
    theta = np.array(theta, dtype=float) * [unit**2 if bound == (0.0, None) else 1.0 for bound in model.bounds]
    build, y = Builder(model, 80), PATH * unit
    expected, slope = build.evaluate_by_filter(theta, y)
    assert expected == kf.kalman_filter(model.state_space(theta, 80), y).llf
    monkeypatch.delattr(Builder, "evaluate_by_filter")
    llf, gradient = build.evaluate(theta, y)
    assert llf == pytest.approx(expected, rel=1e-10)
    assert build.value(theta, y) == llf
    size = np.maximum(theta, unit**2)
    assert_allclose(gradient * size, slope * size, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("unit", UNITS)
def test_an_estimate_changes_with_the_unit_and_nothing_else(unit):
    fit = S.constant_velocity(0.7).fit(PATH * unit)
    here = S.constant_velocity(0.7).fit(PATH)
    assert fit.converged
    assert_allclose(fit.params / unit**2, here.params, rtol=1e-6)
    assert fit.llf + 78 * np.log(unit) == pytest.approx(here.llf, rel=1e-9)
    flow = S.local_level().fit(nile().flow * unit)
    assert_allclose(flow.params / unit**2, [15098.5, 1469.2], rtol=1e-4)


REGRESSORS = {
    "line": [1 + 0 * YEARS, YEARS],
    "parabola": [1 + 0 * YEARS, YEARS, YEARS**2],
    "cubic": [1 + 0 * YEARS, YEARS, YEARS**2, YEARS**3],
    "line, large": [1 + 0 * YEARS, 1e6 * YEARS],
    "large": [1 + 0 * YEARS, 1e9 * RANDOM],
    "small": [1 + 0 * YEARS, 1e-9 * RANDOM],
    "dollars": [1 + 0 * YEARS, 1e13 + 1e11 * RANDOM],
    "alone": [1e9 * RANDOM],
    "largest": [1e12 * RANDOM, 1e-12 * RANDOM**2],
}


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("name", REGRESSORS)
def test_noise_about_regressors_is_that_of_least_squares(name, unit):
    """The best variance is RSS/(N − d), from singular values of normalised columns: the slope is 0 there.

    The columns of the cubic differ from each other by 1e-6 of their size: log det is noise of 1e-10, of which a search
    may make 1e-6 in the variance.
    """
    X = np.stack(REGRESSORS[name], axis=1)
    scaled, y = X / np.linalg.norm(X, axis=0), LINE * unit
    rest = LINE - scaled @ np.linalg.lstsq(scaled, LINE, rcond=None)[0]
    exact = rest @ rest / (100 - X.shape[1]) * unit**2
    model = S.regression(X) + S.noise()
    fit = model.fit(y)
    assert fit.converged and fit.params[0] == pytest.approx(exact, rel=1e-5 if name == "cubic" else 1e-8)
    _, slope = model.likelihood(y)([exact])
    assert abs(slope[0] * exact) < 0.5e-8 * (100 - X.shape[1])  # the curvature times 1e-8


def test_the_filter_is_asked_where_the_quick_way_has_no_answer(monkeypatch):
    model, theta, y = S.local_trend(), [1.0, 0.1, 0.1], PATH
    both = model.likelihood(y)
    expected = both(theta)

    def fail(*args):
        raise SingularError("step 0: its innovation variance is 0; give the series some noise", 0)

    monkeypatch.setattr(QuickSeries, "evaluate", fail)
    llf, slope = both(theta)
    assert llf == pytest.approx(expected[0], rel=1e-12)
    assert_allclose(slope, expected[1], rtol=1e-9)
    assert model.likelihood(y, gradient=False)(theta) == llf
    with pytest.raises(SingularError, match="give the series some noise"):
        both([0.0, 0.0, 0.0])


@pytest.mark.parametrize(
    ("model", "y", "goes"),
    [
        (S.local_trend(), np.arange(30.0), "trend"),
        (S.constant_acceleration(), np.arange(30.0) ** 2, "jerk"),
        (S.local_level() + S.seasonal(4), np.tile([1.0, 2.0, 3.0, 4.0], 10), "seasonal"),
        (S.regression(np.arange(20.0)) + S.noise(), 2 * np.arange(20.0), "noise"),
    ],
)
def test_exact_data_have_no_maximum_instead_of_no_noise(model, y, goes):
    """Variances go to 0, and the widths of flat states with them."""
    fit = model.fit(y)
    assert not fit.converged and goes in fit.message


@pytest.mark.parametrize("name", MODELS)
def test_what_outputs_see_of_states_and_noise(name):
    """Powers of F and covariances, step by step."""
    model, _ = MODELS[name]
    for part in (part for part in model.parts if part.linear):
        piece = part.matrices(np.ones(len(part.names)), 7)
        slopes = np.array([part.matrices(axis, 7).Q for axis in np.eye(len(part.names))])
        x, V = responses(piece.F, piece.H, slopes, 7)
        F, power, covs = piece.F, np.eye(len(piece.flat)), np.zeros_like(slopes)
        for k, H in enumerate(np.broadcast_to(piece.H, (7, *piece.H.shape[-2:]))):
            assert_allclose(x[k], (H @ power)[0], rtol=1e-12)
            assert_allclose(V[:, k], (H @ covs @ H.T)[:, 0, 0], rtol=1e-12)
            power, covs = F @ power, F @ covs @ F.T + slopes


@pytest.mark.parametrize("model", [S.local_level(), S.local_trend(), S.local_level() + S.ar(1)], ids=repr)
@pytest.mark.parametrize("level", [1e6, 1e9, 1e12])
def test_a_level_far_from_zero_is_no_matter(model, level):
    """A flat level may be anywhere: with y − level, which is exact, all is the same.

    What is subtracted of 1e12 has 64 bits, an error of 1e-7 of the noise; that is the same for every θ.
    """
    if np.finfo(np.longdouble).nmant < 63:
        pytest.skip("no numbers longer than a double on this machine")
    far = np.cumsum(np.random.default_rng(5).normal(size=80)) + level
    near, theta = far - level, np.ones(len(model.names)) * 0.7
    for (value, slope), (llf, gradient) in zip(
        [model.likelihood(far)(theta * (1 + i * 1e-13)) for i in range(5)], [model.likelihood(near)(theta)] * 5
    ):
        assert value == pytest.approx(llf, rel=1e-9)
        assert_allclose(slope, gradient, rtol=1e-7, atol=1e-7)
    assert_allclose(model.fit(far).params, model.fit(near).params, rtol=1e-4, atol=1e-8)


def test_a_cubic_of_1e12_leaves_the_noise_about_it():
    """The best variance is RSS/(N − d) of the series as it was rounded, by the normal equations with 60 digits."""
    t = np.linspace(0.0, 1e4, 200)
    X = np.stack([t**0, t, t**2, t**3], axis=1)
    y = X @ [0.3, -1.2, 0.7, 0.9] + np.random.default_rng(0).normal(size=200)
    with mp.workdps(60):
        A, b = mp.matrix(X.tolist()), mp.matrix(y.tolist())
        rest = b - A * ((A.T * A) ** -1 * (A.T * b))
        exact = float((rest.T * rest)[0]) / 196
    fit = (S.regression(X) + S.noise()).fit(y)
    assert np.abs(y).max() > 5e11 and fit.converged and fit.n_evaluations < 20
    assert fit.params[0] == pytest.approx(exact, rel=1e-6)
    both = (S.local_level() + S.regression(X[:, 1:]) + S.ar(1)).likelihood(y)
    assert np.ptp([both([1.0, 0.5, 1.0, 0.5 + 1e-13 * i])[0] for i in range(9)]) < 1e-8
