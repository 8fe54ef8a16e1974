"""Values that are rounding: how large that is found out on the way, slopes lead on, and the search ends and says so."""

import itertools
import re

import numpy as np
import pytest
from numpy.testing import assert_allclose

import kfdyn as kf
from kfdyn.estimation.fitting.bfgs import FOUND, ROUNDED, STUCK, Descent, Point, line_search
from kfdyn.estimation.fitting.search import Search

ONE = np.ones((1, 1))
Y = np.random.default_rng(0).normal(0.9, 1.0, size=50)


class Counted:
    """A function with a noise of its values, the same at the same place, and a count of its calls."""

    def __init__(self, value, gradient, noise, of_slopes=0.0):
        self.value, self.gradient, self.noise, self.of_slopes, self.calls = value, gradient, noise, of_slopes, 0

    def __call__(self, x):
        self.calls += 1
        rng = np.random.default_rng(np.frombuffer(np.asarray(x).tobytes(), dtype=np.uint32))
        shake, tilt = rng.uniform(-1.0, 1.0), rng.uniform(-1.0, 1.0, size=x.size)
        return self.value(x) + self.noise * shake, self.gradient(x) + self.of_slopes * tilt

    def point(self, x):
        return Point(x, *self(x))


H = np.array([[2.0, 0.6, 0.0], [0.6, 1.0, -0.2], [0.0, -0.2, 0.3]])
BEST = np.array([0.3, -1.0, 2.0])


def bowl(noise, of_slopes=0.0):
    """0.5 (x − best)*H(x − best) + 3."""
    return Counted(lambda x: 0.5 * (x - BEST) @ H @ (x - BEST) + 3.0, lambda x: H @ (x - BEST), noise, of_slopes)


@pytest.mark.parametrize("noise", [1e-10, 1e-8, 3e-7])
def test_the_noise_is_found_in_a_few_looks(noise):
    """Where a step promises a thousandth of the noise: it took thirty looks, and ended where it began."""
    calls, found, direction = 0, [], np.array([1.0, 0.0, 0.0])
    for off in np.linspace(1.0, 3.0, 20):
        function = bowl(noise)
        at = function.point(BEST - off * np.sqrt(1e-3 * noise) * direction)
        slope = float(direction @ at.gradient)
        step = line_search(function, at, slope, direction, -0.4 * slope, 1.0)
        assert step.there is not None and abs(direction @ step.there.gradient) < abs(slope)
        calls += function.calls - 1
        found.append(step.noise)
    assert calls < 20 * 5
    assert 0.3 * noise < max(found) < 5.0 * noise


@pytest.mark.parametrize("noise", [0.0, 1e-10, 1e-8, 3e-7])
@pytest.mark.parametrize("start", range(8))
def test_slopes_lead_on_where_values_are_noise(noise, start):
    function = bowl(noise)
    x = np.random.default_rng(start).normal(size=3)
    descent = Descent(function.point(x), np.full(3, np.inf), np.ones(3))
    assert descent.run(function, 1e-10, 200, lambda at: False) == FOUND
    assert_allclose(descent.at.x, BEST, atol=1e-9)
    assert function.calls < 60
    assert descent.noise <= 10.0 * noise


def test_where_slopes_are_noise_too_the_search_ends():
    """What is left to gain is less than the noise then; that is known, if not in every case."""
    ends, calls = [], []
    for noise, start in itertools.product([1e-9, 1e-8, 3e-7], range(16)):
        function = bowl(noise, of_slopes=0.1 * np.sqrt(noise))
        x = np.random.default_rng(start).normal(size=3)
        descent = Descent(function.point(x), np.full(3, np.inf), np.ones(3))
        ends.append(descent.run(function, 1e-10, 200, lambda at: False))
        calls.append(function.calls)
        assert function.value(descent.at.x) - 3.0 < 3.0 * noise
    assert set(ends) <= {ROUNDED, STUCK} and ends.count(ROUNDED) >= 40
    assert np.mean(calls) < 70  # 90 as long as slopes need not fall, 120 as long as no noise was known


@pytest.mark.parametrize("height", [2.0, 1e3, 1e16])
@pytest.mark.parametrize("place", [0.4, 0.05, 1e-3, 1e-6])
def test_a_cliff_is_no_noise(height, place):
    """Values jump up at a place, slopes do not tell: the step ends before it."""
    function = Counted(lambda x: float(-x[0] + height * (x[0] > place)), lambda x: -np.ones(1), 0.0)
    step = line_search(function, function.point(np.zeros(1)), -1.0, np.ones(1), 1.0, 1.0)
    assert step.noise == 0.0
    assert step.there is not None and 0.0 < step.there.x[0] <= place


class Noisy:
    """A mean and a variance, with a noise of the log-likelihood and none of its slopes."""

    def __init__(self, noise):
        self.noise = noise

    def __call__(self, theta):
        return kf.StateSpace([-1] * 50, [None] * 50, [ONE] * 50, [theta[1] * ONE] * 50, xi=np.full(50, theta[0]))

    def evaluate(self, theta, T):
        g = kf.score(self(theta), T)
        rng = np.random.default_rng(np.frombuffer(theta.tobytes(), dtype=np.uint32))
        return float(g.llf) + self.noise * rng.uniform(-1.0, 1.0), np.array([g.xi.sum(), np.sum(g.Q.flat)])


@pytest.mark.parametrize("noise", [1e-9, 1e-7, 1e-5])
@pytest.mark.parametrize("start", [[-1.9, 1e-3], [0.0, 1.0], [3.0, 50.0]])
def test_a_fit_is_as_good_as_its_slopes(noise, start):
    exact, fit = (kf.fit(Noisy(n), start, Y, bounds=[None, (0, None)]) for n in (0.0, noise))
    assert fit.converged, fit.message
    assert_allclose(fit.params, [Y.mean(), Y.var()], rtol=1e-6)
    assert fit.n_evaluations <= exact.n_evaluations + 30


class Shaken(Noisy):
    """The same with a noise of the slopes."""

    def evaluate(self, theta, T):
        llf, slope = super().evaluate(theta, T)
        rng = np.random.default_rng(np.frombuffer(theta.tobytes(), dtype=np.uint32)[::-1])
        return llf, slope + 1e-3 * rng.uniform(-1.0, 1.0, size=2)


def test_a_fit_says_how_far_it_is_known():
    fit = kf.fit(Shaken(1e-6), [0.0, 1.0], Y, bounds=[None, (0, None)])
    assert fit.converged and fit.n_evaluations < 200
    assert re.search(r"a step would gain less than its rounding, which is about \de-0[56]", fit.message)
    assert_allclose(fit.params, [Y.mean(), Y.var()], rtol=1e-3)


def test_where_rounding_is_too_large_nothing_has_converged(monkeypatch):
    run = Search.run
    monkeypatch.setattr(Search, "run", lambda self: run(self)._replace(noise=0.1))
    fit = kf.fit(Noisy(0.0), [0.0, 1.0], Y, bounds=[None, (0, None)])
    assert not fit.converged
    assert "has a rounding of about 1e-01, more than a step would gain" in fit.message
