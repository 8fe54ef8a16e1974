"""Fits against closed forms, statsmodels and differences; bounds, flat directions, many series and many parameters."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import kfdyn as kf
from kfdyn.errors import ModelError, ShapeError
from kfdyn.estimation.datasets import nile
from kfdyn.estimation.fitting.objective import Objective
from kfdyn.estimation.fitting.transformed_objective import Problem, Transform

ONE = np.ones((1, 1))
POSITIVE = (0, None)


def level(N, P0=1e7):
    ss = kf.StateSpace.chain(ONE, ONE, ONE, ONE, x0=[0.0], P0=P0 * ONE, steps=N)

    def build(theta):
        Q = np.full((N, 1, 1), theta[1])
        Q[0] = P0
        return ss.replace(Q=Q, R=np.full((N, 1, 1), theta[0]))

    return build


def ragged(theta):
    """A forest of unequal sizes in which every kind of block depends on three parameters."""
    a, b, c = theta
    phi = [np.array([[a], [0.3]]), np.array([[b, 0.2], [0.1, c]]), None, None]
    H = [np.array([[1.0]]), np.array([[1.0, b]]), np.eye(2), np.array([[a]])]
    Q = [a * ONE, np.diag([1.0, b]), c * np.eye(2), ONE]
    R = [ONE, b * ONE, np.array([[1.0, 0.1 * a], [0.1 * a, 2.0]]), c * ONE]
    return kf.StateSpace([1, 2, -1, -1], phi, H, Q, R, xi=a * np.arange(6.0), eta=b * np.ones(6))


RAGGED_T = np.array([0.3, -1.0, 2.0, np.nan, 0.7])


@pytest.mark.parametrize("bounds", [None, [POSITIVE] * 3, [(0, 4), (None, 5), POSITIVE]])
def test_gradient_is_that_of_the_likelihood(bounds):
    transform = Transform(bounds, 3)
    problem = Problem(Objective(ragged, RAGGED_T), transform)
    z, h = transform.free(np.array([0.8, 1.3, 0.6])), 1e-5
    value, gradient, _ = problem(z)
    assert value == pytest.approx(kf.kalman_filter(ragged(transform.theta(z)), RAGGED_T).llf, rel=1e-14)
    for i, axis in enumerate(np.eye(3)):
        slope = (problem(z + h * axis)[0] - problem(z - h * axis)[0]) / (2 * h)
        assert gradient[i] == pytest.approx(slope, rel=1e-7)


def test_a_derivative_that_is_given_is_used():
    def derivative(theta):
        calls.append(theta)
        first = np.zeros((20, 1, 1))
        rest = np.ones((20, 1, 1))
        rest[0] = 0
        return [{"R": np.ones((20, 1, 1)), "Q": first}, {"Q": list(rest)}]

    calls = []
    y = np.random.default_rng(0).normal(size=20).cumsum()
    one = kf.fit(level(20), [1.0, 1.0], y, bounds=[POSITIVE] * 2)
    other = kf.fit(level(20), [1.0, 1.0], y, bounds=[POSITIVE] * 2, derivative=derivative)
    assert calls
    assert_allclose(other.params, one.params, rtol=1e-6)
    with pytest.raises(ShapeError, match="1 entries for 2"):
        kf.fit(level(20), [1.0, 1.0], y, derivative=lambda theta: [{}])
    with pytest.raises(ShapeError, match="3 numbers for R, which has 20"):
        kf.fit(level(20), [1.0, 1.0], y, derivative=lambda theta: [{"R": np.ones(3)}, {}])
    with pytest.raises(ModelError, match="'q', which is none of"):
        kf.fit(level(20), [1.0, 1.0], y, derivative=lambda theta: [{"q": np.ones(3)}, {}])


def test_nile_as_durbin_and_koopman_have_it():
    """Their book reports 15099 and 1469.1 (2012, section 2.10.3)."""
    fit = kf.fit(level(100, P0=1e10), [1e4, 1e3], nile().flow, bounds=[POSITIVE] * 2, names=["noise", "level"])
    assert fit.converged and fit.names == ("noise", "level")
    assert_allclose(fit.params, [15098.5, 1469.2], rtol=1e-4)
    text = fit.summary()
    for word in ("noise", "level", "std err", "AIC", "converged", "whiteness"):
        assert word in text
    assert fit.diagnostics().fine
    low, high = fit.conf_int().T
    assert ((low > 0) & (low < fit.params) & (fit.params < high)).all()
    assert fit.unidentified == ()


def test_closed_form_of_independent_normals():
    """Mean and variance: standard errors σ/√n and σ²√(2/n), from the observed information."""
    y = np.random.default_rng(1).normal(3.0, 2.0, size=50)

    def build(theta):
        Q = np.full((50, 1, 1), theta[1])
        return kf.StateSpace([-1] * 50, [None] * 50, np.ones((50, 1, 1)), Q, xi=np.full(50, theta[0]))

    fit = kf.fit(build, [0.0, 1.0], y, bounds=[None, POSITIVE])
    assert_allclose(fit.params, [y.mean(), y.var()], rtol=1e-8)
    assert_allclose(fit.stderr, [np.sqrt(y.var() / 50), y.var() * np.sqrt(2 / 50)], rtol=1e-6)
    llf = -25 * (np.log(2 * np.pi * y.var()) + 1)
    assert fit.llf == pytest.approx(llf, rel=1e-12)
    assert fit.aic == pytest.approx(4 - 2 * llf) and fit.bic == pytest.approx(2 * np.log(50) - 2 * llf)
    assert_allclose(fit.cov_params[0, 1], 0, atol=1e-6)


def test_a_variance_that_is_best_zero_is_put_there():
    y = np.tile([1.0, -1.0], 20)  # falls back at every step: the level does not move
    fit = kf.fit(level(40), [1.0, 1.0], y, bounds=[POSITIVE] * 2)
    assert fit.converged
    assert fit.at_bound.tolist() == [False, True] and fit.params[1] == 0.0
    assert np.isnan(fit.stderr[1]) and np.isfinite(fit.stderr[0])
    assert "at its bound" in fit.summary()


def test_directions_without_information_are_named():
    def build(theta):
        return level(40)([theta[0], theta[1] * theta[2]])

    y = np.random.default_rng(2).normal(size=40).cumsum() + np.random.default_rng(3).normal(size=40)
    fit = kf.fit(build, [1.0, 1.0, 0.5], y, bounds=[POSITIVE] * 3, names=["noise", "a", "b"])
    (direction,) = fit.unidentified
    assert "a" in direction and "b" in direction and "noise" not in direction
    assert np.isnan(fit.stderr[1:]).all() and np.isfinite(fit.stderr[0])
    assert direction in fit.summary()


def test_series_that_lack_different_measurements_are_grouped():
    rng = np.random.default_rng(4)
    y = rng.normal(size=(6, 30)).cumsum(axis=1)
    y[rng.random(y.shape) < 0.2] = np.nan
    theta = np.array([0.5, 0.8])
    objective = Objective(level(30), y)
    each = [kf.kalman_filter(level(30)(theta), row).llf for row in y]
    assert objective.value(theta) == pytest.approx(sum(each), rel=1e-12)
    assert objective.n_series == 6 and objective.n_observed == int((~np.isnan(y)).sum())
    fit = kf.fit(level(30), [1.0, 1.0], y, bounds=[POSITIVE] * 2)
    assert fit.converged and fit.llf > sum(each)


def test_many_parameters_at_once_are_each_alone():
    thetas = np.random.default_rng(5).uniform(0.3, 1.5, size=(7, 3))
    found = kf.likelihood(ragged, thetas, RAGGED_T)
    for theta, llf, slope in zip(thetas, found.llf, found.score):
        assert llf == pytest.approx(kf.kalman_filter(ragged(theta), RAGGED_T).llf, rel=1e-12)
        problem = Problem(Objective(ragged, RAGGED_T), Transform(None, 3))
        assert_allclose(slope, problem(theta)[1], rtol=1e-7)
    several = kf.likelihood(ragged, thetas, np.stack([RAGGED_T, 2 * RAGGED_T]), gradient=False)
    twice = [kf.kalman_filter(ragged(theta), 2 * RAGGED_T).llf for theta in thetas]
    assert several.score is None
    assert_allclose(several.llf, found.llf + twice, rtol=1e-12)


def test_several_starts_keep_the_best():
    """A likelihood with two maxima: y = θ² has both signs, a third term prefers one of them."""

    def build(theta):
        xi = np.array([theta[0] ** 2, 0.1 * theta[0]])
        return kf.StateSpace([-1, -1], [None] * 2, np.ones((2, 1, 1)), 0.01 * np.ones((2, 1, 1)), xi=xi)

    one = kf.fit(build, [-3.0], [4.0, 0.4])
    many = kf.fit(build, [-3.0], [4.0, 0.4], starts=8, rng=np.random.default_rng(0))
    assert one.params[0] < 0 < many.params[0] and many.llf > one.llf


def test_trees_that_branch_outward():
    """A star of independent tips with a known root: the rate is the mean square."""
    y = np.random.default_rng(6).normal(size=12)
    none = np.zeros((0, 1))

    def build(theta):
        return kf.OutwardTree(
            [12] * 12 + [-1], [ONE] * 13, [theta[0] * ONE] * 13, [ONE] * 12 + [none], root_mean=[0.0], root_cov=0 * ONE
        )

    fit = kf.fit(build, [1.0], y, bounds=[POSITIVE])
    assert_allclose(fit.params, [(y**2).mean()], rtol=1e-7)
    assert_allclose(fit.stderr, [(y**2).mean() * np.sqrt(2 / 12)], rtol=1e-5)
    assert "converged" in fit.summary()


def test_errors_say_what_to_do():
    y = np.zeros(5)
    with pytest.raises(ModelError, match="noise starts at -1, which is not strictly between"):
        kf.fit(level(5), [-1.0, 1.0], y, bounds=[POSITIVE] * 2, names=["noise", "level"])
    with pytest.raises(ModelError, match="must return a StateSpace"):
        kf.fit(lambda theta: 3, [1.0], y)
    with pytest.raises(ShapeError, match="1 names were given for 2"):
        kf.fit(level(5), [1.0, 1.0], y, names=["one"])
    with pytest.raises(ShapeError, match="3 bounds were given for 2"):
        kf.fit(level(5), [1.0, 1.0], y, bounds=[None] * 3)
    with pytest.raises(ModelError, match="low must be less"):
        kf.fit(level(5), [1.0, 1.0], y, bounds=[(1, 0), None])
    with pytest.raises(ModelError, match="Q of node 1 is not positive semi-definite"):
        kf.fit(level(5), [1.0, -1.0], y)
    with pytest.raises(ShapeError, match="T has shape"):
        kf.fit(level(5), [1.0, 1.0], np.zeros(4))
    with pytest.raises(ShapeError, match="same tree and sizes"):
        kf.likelihood(lambda theta: level(int(theta[0]))([1.0, 1.0]), [[3.0], [4.0]], y)


@pytest.mark.parametrize("bounds", [None, (0, None), (None, 2.0), (-1.0, 2.0)])
def test_transforms_go_there_and_back(bounds):
    transform = Transform([bounds], 1)
    for x in (0.1, 1.0, 1.9):
        z = transform.free(np.array([x]))
        assert transform.theta(z)[0] == pytest.approx(x, rel=1e-14)
        slope = (transform.theta(z + 1e-6) - transform.theta(z - 1e-6)) / 2e-6
        assert_allclose(transform.slope(z), slope, rtol=1e-8)


def test_many_parameters_with_flat_priors():
    """Each copy has its own flat states: the likelihood and score of each alone, in a forest with gaps."""
    ss = kf.StateSpace(
        [1, 2, -1, 4, -1], np.ones((5, 1, 1)), np.ones((5, 1, 1)), np.ones((5, 1, 1)), np.ones((5, 1, 1)),
        flat={0: True, 3: True},
    )  # fmt: skip
    T = np.array([[1.0, 3, 2, 5, 4], [1.0, np.nan, 2, 1, 0]])

    def build(theta):
        return ss.replace(R=np.full((5, 1, 1), theta[0]))

    thetas = [[1.0], [2.0], [0.3]]
    found = kf.likelihood(build, thetas, T)
    for theta, llf, slope in zip(thetas, *found):
        alone = [kf.score(build(theta), row) for row in T]
        assert_allclose(llf, sum(g.llf for g in alone), rtol=1e-12)
        assert_allclose(slope, [sum(g.R.flat.sum() for g in alone)], rtol=1e-9)
    walk = kf.StateSpace.chain(ONE, ONE, ONE, ONE, steps=5)
    proper = kf.StateSpace.chain(ONE, ONE, ONE, ONE, [0.0], ONE, steps=5)
    with pytest.raises(ModelError, match="flat priors at the same states"):
        kf.likelihood(lambda theta: walk if theta[0] > 1 else proper, [[1.0], [2.0]], T[0])


SMALL = kf.StateSpace.chain(ONE, ONE, 1e-8 * ONE, 1e-8 * ONE, [0.0], 1e-8 * ONE, steps=5)


@pytest.mark.parametrize(
    ("theta", "noise", "slope"),
    [
        (1e-5, lambda t: 1e-13 / t, lambda t: -1e-13 / t**2),
        (1e-8, lambda t: t, lambda t: 1.0),
        (0.0, lambda t: t, lambda t: 1.0),  # a model on one side only
        (1e-12, lambda t: 1e-8 + t, lambda t: 1.0),  # far less than what it is added to
        (1e6, lambda t: 1e-14 * t, lambda t: 1e-14),
    ],
)
def test_differences_fit_the_size_of_a_parameter(theta, noise, slope):
    T = 1e-4 * np.random.default_rng(0).normal(size=5)
    each = np.ones((5, 1, 1))

    def build(theta):
        return SMALL.replace(R=noise(theta[0]) * each)

    exact = kf.likelihood(build, [[theta]], T, derivative=lambda theta: [{"R": slope(theta[0]) * each}]).score[0]
    assert_allclose(kf.likelihood(build, [[theta]], T).score[0], exact, rtol=1e-9)
    x = np.array([theta])
    assert_allclose(Problem(Objective(build, T), Transform(None, 1))(x)[1], exact, rtol=1e-9)


def test_one_node_and_no_series():
    one = np.ones((1, 1, 1))
    single = kf.StateSpace([-1], [None], one, one, one)
    found = kf.likelihood(lambda theta: single.replace(Q=theta[0] * one), [[1.0], [2.0]], [3.0])
    assert_allclose(found.llf, -0.5 * (9 / np.array([2.0, 3.0]) + np.log(2 * np.pi * np.array([2.0, 3.0]))))
    assert_allclose(found.score[:, 0], 0.5 * (9 / np.array([4.0, 9.0]) - 1 / np.array([2.0, 3.0])))
    build = level(5)
    empty = kf.likelihood(build, [[1.0, 1.0]], np.zeros((0, 5)))
    assert empty.llf[0] == 0.0
    assert not empty.score.any()
    for T in (np.zeros((0, 5)), np.full(5, np.nan)):
        with pytest.raises(ModelError, match="nothing to fit"):
            kf.fit(build, [1.0, 1.0], T)


def test_a_small_variance_without_bounds():
    """Differences keep to the size of the parameter, also those of the observed information."""
    N = 200
    ss = kf.StateSpace.chain(ONE, ONE, 1e-8 * ONE, ONE, [0.0], 1e-8 * ONE, steps=N)
    T = 1e-4 * (np.random.default_rng(0).normal(size=N).cumsum() + np.random.default_rng(1).normal(size=N))

    def build(theta):
        return ss.replace(R=np.full((N, 1, 1), theta[0]))

    free, bounded = (kf.fit(build, [1e-8], T, bounds=bounds) for bounds in (None, [POSITIVE]))
    assert_allclose(free.params, bounded.params, rtol=1e-5)
    assert_allclose(free.stderr, bounded.stderr, rtol=1e-4)


@pytest.mark.parametrize("flat", [False, True])
def test_residuals_and_score_are_those_of_every_series_in_its_place(flat):
    """Series that lack different measurements, and one that lacks all, in two axes: each as if it were alone."""
    rng = np.random.default_rng(8)
    T = np.cumsum(rng.normal(size=(2, 3, 20)), axis=-1)
    T[0, 1, 4:7] = T[1, 0, :5] = T[1, 2, 4:7] = T[1, 1] = np.nan
    ss = kf.StateSpace.chain(ONE, ONE, ONE, ONE, steps=20, **({} if flat else {"x0": [0.0], "P0": ONE}))

    def build(theta):
        return ss.replace(R=np.full((20, 1, 1), theta[0]))

    some = np.array([[True, True, True], [True, False, True]])
    fit = kf.fit(build, [1.0], T[some], bounds=[POSITIVE])
    assert fit.residuals.shape == (5, 20) and fit.score.R.flat.shape == (5, 20)
    for y, e, g in zip(T[some], fit.residuals, fit.score.R.flat):
        filt = kf.kalman_filter(fit.model, y)
        D, known = filt.D.flat, ~np.isnan(y)
        if flat:
            known &= filt.D_inf.flat == 0.0
        assert_allclose(e, np.where(known, filt.eps / np.sqrt(D), np.nan), rtol=1e-12)
        assert_allclose(g, kf.score(fit.model, y).R.flat, rtol=1e-12, atol=1e-14)
    assert "of the innovations of the first series" in fit.summary()
    whole = kf.fit(build, [1.0], T, bounds=[POSITIVE])
    assert whole.residuals.shape == T.shape and np.isnan(whole.residuals[1, 1]).all()
    assert_allclose(whole.residuals[some], fit.residuals, rtol=1e-6)
    assert_allclose(whole.score.R.flat[1, 2], kf.score(whole.model, T[1, 2]).R.flat, rtol=1e-12, atol=1e-14)
    assert_allclose(whole.score.llf.sum(), whole.llf, rtol=1e-12)
    for name in ("phi", "H", "Q", "R"):  # no measurement has the likelihood 1, whatever the model
        assert not getattr(whole.score, name).flat[1, 1].any()
    assert whole.score.llf[1, 1] == 0.0 and not whole.score.xi[1, 1].any() and not whole.score.eta[1, 1].any()
    series = kf.series.local_level().fit(T)
    assert series.n_flat == 5  # one level for each series that there is
    assert np.isnan(series.residuals[1, 1]).all() and np.isfinite(series.residuals[0, 2, 1:]).all()


@pytest.mark.parametrize("missing", [(), (3, 10, 11)])
def test_a_row_for_each_step_is_the_stacked_series(missing):
    """(N, m) was one series for the filter, but N of them for what a fit counts, and NaN in it broke the fit."""
    y = np.random.default_rng(0).normal(size=(50, 2)).cumsum(axis=0)
    y.reshape(-1)[list(missing)] = np.nan

    def build(theta):
        return kf.StateSpace.chain(np.eye(2), np.eye(2), theta[1] * np.eye(2), theta[0] * np.eye(2), steps=50)

    one, rows, two = (kf.fit(build, [1.0, 1.0], T, bounds=[POSITIVE] * 2) for T in (y.ravel(), y, np.stack([y, y])))
    assert (rows.n_flat, rows.n_observed, two.n_flat) == (2, 100 - len(missing), 4)
    assert (rows.aic, rows.bic) == (one.aic, one.bic) and two.llf == pytest.approx(2 * one.llf, rel=1e-12)
    assert_allclose(rows.residuals, one.residuals, rtol=0, atol=0)
    assert rows.diagnostics() == one.diagnostics()
    found, want = (kf.likelihood(build, [[1.0, 0.5], [2.0, 1.0]], T) for T in (y, y.ravel()))
    assert_allclose(found.llf, want.llf, rtol=0)
    assert_allclose(found.score, want.score, rtol=0)
    for figure in (kf.viz.plot_fit(rows), kf.viz.plot_fit(one)):
        assert len(figure.axes) == 8
    with pytest.raises(ShapeError, match="stack the 100 outputs"):
        kf.fit(build, [1.0, 1.0], y[:-1])
