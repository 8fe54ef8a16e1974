"""The estimate of lost digits beside 60 of them, and the warning: where it is due, and nowhere else."""

import warnings
from pathlib import Path

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kfdyn as kf
from kfdyn.errors import LostDigitsWarning, SingularError
from kfdyn.estimation.inference.riccati import riccati
from kfdyn.estimation.precision.cancellation import lost_digits

STEPS = 12
TREND = np.array([[1.0, 1.0], [0.0, 1.0]]), np.array([[1.0, 0.0]])
THREE = np.array([[1.0, 1.0, 0.5], [0.0, 1.0, 1.0], [0.0, 0.0, 1.0]]), np.array([[1.0, 0.0, 0.0]])
MIXED = np.diag([0.9, 0.5]), np.array([[1.0, 1.0]])


def model(F, H, prior, R=1.0, q=0.01):
    n = len(F)
    return kf.StateSpace.chain(F, H, q * np.eye(n), [[R]], np.zeros(n), prior * np.eye(n), steps=STEPS)


def exact(F, H, prior, y, R=1.0, q=0.01):
    """Filtered states and their deviations, the textbook's recursion with 60 digits."""
    with mp.workdps(60):
        F, H, n = mp.matrix(F.tolist()), mp.matrix(H.tolist()), len(F)
        x, P, out = mp.zeros(n, 1), prior * mp.eye(n), []
        for k, t in enumerate(y):
            if k:
                x, P = F * x, F * P * F.T + q * mp.eye(n)
            u = P * H.T
            d = (H * u)[0] + R
            x, P = x + u * ((t - (H * x)[0]) / d), P - u * u.T / d
            out.append([[float(x[i]) for i in range(n)], [float(mp.sqrt(P[i, i])) for i in range(n)]])
    return np.array(out).swapaxes(0, 1)


@pytest.mark.parametrize(("F", "H"), [TREND, THREE, MIXED], ids=["trend", "three", "mixed"])
@pytest.mark.parametrize("prior", [1e4, 1e7, 1e10, 1e13])
def test_the_estimate_follows_the_error(F, H, prior):
    y = 100 + 10 * np.random.default_rng(1).normal(size=STEPS)
    ss = model(F, H, prior)
    found = riccati(ss)
    _, sigma = exact(F, H, prior, y)
    error = max(np.abs(found.P_plus[k].diagonal() / sigma[k] ** 2 - 1).max() for k in range(STEPS))
    estimate = lost_digits(found, above=0.0).error
    assert 0.02 * estimate < error < 100 * estimate


def regression(seed, n, R, N=9):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(N, n))
    return rows, rows @ rng.normal(size=n, scale=100.0) + np.sqrt(R) * rng.normal(size=N)


def exact_regression(rows, y, prior, R):
    """Mean and deviations of the coefficients, by the normal equations with 60 digits."""
    with mp.workdps(60):
        X, n = mp.matrix(rows.tolist()), rows.shape[1]
        cov = (X.T * X / R + mp.eye(n) / prior) ** -1
        mean = cov * (X.T * mp.matrix(y.tolist())) / R
        return [float(m) for m in mean], [float(mp.sqrt(cov[i, i])) for i in range(n)]


def test_a_vague_prior_is_told_with_its_number_and_a_cure_that_works():
    """Three constants, P0 = 1e12, nine measurements of them: x̂ is off by more than σ, and no longer in silence."""
    rows, y = regression(3, 3, 1e-6)
    mean, sigma = exact_regression(rows, y, 1e12, 1e-6)
    still, zero = np.eye(3), np.zeros((3, 3))
    with pytest.warns(LostDigitsWarning, match=r"loses about 1\d of its 16 digits at node 2.*flat prior.*square_root"):
        filt = kf.kalman_filter(kf.StateSpace.chain(still, rows[:, None], zero, [[1e-6]], np.zeros(3), 1e12 * still), y)
    assert np.abs((filt.filtered_state[8] - mean) / sigma).max() > 1.0
    root = kf.kalman_filter(filt.ss, y, method="square_root")  # warnings are errors
    assert np.abs((root.filtered_state[8] - mean) / sigma).max() < 1e-3
    flat = kf.kalman_filter(kf.StateSpace.chain(still, rows[:, None], zero, [[1e-6]]), y)
    assert np.abs((flat.filtered_state[8] - mean) / sigma).max() < 1e-3


def test_a_variance_that_was_lost_altogether_is_not_said_to_be_zero():
    rows, y = regression(0, 3, 1e-6)
    ss = kf.StateSpace.chain(np.eye(3), rows[:, None], np.zeros((3, 3)), [[1e-6]], np.zeros(3), 1e12 * np.eye(3))
    with pytest.raises(SingularError, match=r"is positive, but so small.*square_root.*flat"):
        kf.kalman_filter(ss, y)


@pytest.mark.parametrize("R", [1.0, 1e-2])
def test_several_outputs_of_one_node(R):
    rows, y = regression(1, 2, R)
    mean, sigma = exact_regression(rows, y, 1e12, R)
    ss = kf.StateSpace([-1], [None], [rows], [1e12 * np.eye(2)], [R * np.eye(len(y))])
    with pytest.warns(LostDigitsWarning, match="node 0"):
        filt = kf.kalman_filter(ss, y)
    off, estimate = np.abs((filt.filtered_state[0] - mean) / sigma).max(), riccati(ss).loss.error
    assert 0.01 * estimate < off < 100 * estimate


def test_every_call_tells():
    """The second call is as wrong as the first; whether a warning is shown again, Python's own filters decide."""
    F, H = TREND
    ss = model(F, H, 1e14)
    for shown, times in (("always", 3), ("default", 1)):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter(shown)
            for _ in range(3):
                kf.kalman_filter(ss, np.zeros(STEPS))
        assert [w.category for w in said] == [LostDigitsWarning] * times
        assert {w.filename for w in said} == {__file__} and len({str(w.message) for w in said}) == 1


def test_what_was_found_is_kept(monkeypatch):
    from kfdyn.estimation.precision import cancellation as module

    looked = []
    monkeypatch.setattr(module, "lost_digits", lambda cov, look=lost_digits: looked.append(cov) or look(cov))
    ss = model(*TREND, 1e14)
    for _ in range(3):
        with pytest.warns(LostDigitsWarning):
            filt = kf.kalman_filter(ss, np.zeros(STEPS))
    assert looked == [filt.covariances]
    kf.innovations_factor(ss)  # what the package itself asks is not told, before or after
    kf.kalman_filter(ss, np.zeros(STEPS), method="square_root")


@pytest.mark.parametrize("prior", [1.0, 1e6, 1e9])
def test_silent_where_digits_are_left(prior):
    for F, H in (TREND, THREE, MIXED):
        kf.kalman_filter(model(F, H, prior), np.zeros(STEPS))  # warnings are errors


def test_silent_where_the_vague_state_is_measured_itself():
    """One state, as vague as one likes: nothing is lost, and nothing is said."""
    one = np.ones((1, 1))
    for prior in (1e7, 1e12, 1e300):
        ss = kf.StateSpace.chain(one, one, 1469.1 * one, 15099.0 * one, [0.0], prior * one, steps=30)
        kf.kalman_filter(ss, np.ones(30))


@settings(max_examples=20)
@given(st.integers(0, 10**6))
def test_silent_on_robots(seed):
    """Exact measurements, rotors from none to large, masses without extent: zero variances are the rule there."""
    rng = np.random.default_rng(seed)
    system = kf.models.random_tree(int(rng.integers(1, 20)), seed)
    kf.dynamics_filter(system, system.random_configuration(rng), *rng.normal(size=(2, system.nv)))
    kf.dynamics_filter(kf.models.double_pendulum(), rng.normal(size=2), None, np.zeros(2))
    kf.dynamics_filter(kf.models.pendulum(armature=1e-12), [0.3], None, [0.0])


def test_large_variances_do_not_overflow():
    one = np.ones((1, 1))
    ss = kf.StateSpace.chain(one, one, 1e300 * one, 1e300 * one, [0.0], 1e300 * one, steps=3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert lost_digits(kf.riccati(ss)).node == -1


def lacking(y, *where):
    """The series, and once more without some of it."""
    return np.stack([y, np.where(np.isin(np.arange(len(y)), where), np.nan, y)])


ALL_THAT_FILTER = {
    "score": lambda ss, y: kf.score(ss, y),
    "score of a batch": lambda ss, y: kf.score(ss, lacking(y)),
    "score of patterns": lambda ss, y: kf.score(ss, lacking(y, 3, 4)),
    "smooth_batch": lambda ss, y: kf.smooth_batch(ss, lacking(y, 3, 4)),
}


@pytest.mark.parametrize("name", ALL_THAT_FILTER)
def test_whatever_filters_tells_once_and_of_the_right_node(name):
    """Node 7 is the first after a leap of the slope that is 1e16 times as wide as all others; a block begins before."""
    F, H = TREND
    Q = np.stack([0.01 * np.eye(2)] * (STEPS - 1))
    Q[5] *= 1e16
    ss, y = kf.StateSpace.chain(F, H, Q, [[1.0]], np.zeros(2), np.eye(2), steps=STEPS), np.arange(float(STEPS))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        ALL_THAT_FILTER[name](ss, y)
    assert [w.category for w in said] == [LostDigitsWarning] and said[0].filename == __file__
    assert "at node 7," in str(said[0].message)
    for prior in (1.0, 1e9):
        ALL_THAT_FILTER[name](model(F, H, prior), y)  # warnings are errors


def test_of_roots_the_score_keeps_what_it_does_not_tell_of():
    """By Q, R and ξ as good as the flat limit; by φ and H it is not, and tells."""
    F, H = TREND
    y = 100 + np.random.default_rng(1).normal(size=STEPS)
    flat = kf.score(kf.StateSpace.chain(F, H, 0.01 * np.eye(2), [[1.0]], steps=STEPS), y)
    with pytest.warns(LostDigitsWarning, match=r"^score\.phi and score\.H lose about 15 of their 16 digits at node 1"):
        found = kf.score(model(F, H, 1e15), y, method="square_root")
    for got, want in ((found.R.flat, flat.R.flat), (found.Q.flat[4:], flat.Q.flat[4:]), (found.xi, flat.xi)):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9)
    assert np.abs(found.phi.flat - flat.phi.flat).max() > 1e-5 * np.abs(flat.phi.flat).max()


@pytest.mark.parametrize("file", ["{}_study.py", "{}-study/study.py", "elsewhere/study.py"])
def test_a_script_is_warned_whatever_the_name_of_its_file(file):
    """It may begin with the path of the package: who calls is told by the names of modules."""
    rows, y = regression(3, 3, 1e-6)
    ss = kf.StateSpace.chain(np.eye(3), rows[:, None], np.zeros((3, 3)), [[1e-6]], np.zeros(3), 1e12 * np.eye(3))
    script = compile("kf.kalman_filter(ss, y)", file.format(Path(kf.__file__).parent), "exec")
    with pytest.warns(LostDigitsWarning):
        exec(script, {"__name__": "__main__", "kf": kf, "ss": ss, "y": y})
    with warnings.catch_warnings():  # the package itself, as a fit does
        warnings.simplefilter("error")
        exec(script, {"__name__": "kfdyn.estimation.fitting.fit", "kf": kf, "ss": ss, "y": y})
