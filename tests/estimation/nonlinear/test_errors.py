"""Bad input: an error that names the culprit and the cure."""

import numpy as np
import pytest

import kfdyn as kf
from kfdyn.errors import ModelError, ShapeError, SingularError, UnobservableError


def plain(**more):
    arguments = {
        "step": lambda x, k: np.stack([x[:, 0] + 0.1 * x[:, 1], x[:, 1]], axis=1),
        "observe": lambda x, k: x[:, :1],
        "Q": 0.01 * np.eye(2), "R": 0.1, "x0": [0.0, 0.0], "P0": np.eye(2),
    }  # fmt: skip
    return kf.NonlinearModel(**(arguments | more))


y = np.zeros((6, 1))
ALL = (kf.extended_kalman_filter, kf.unscented_kalman_filter, kf.iterated_kalman_smoother)


@pytest.mark.parametrize(
    ("more", "error", "text"),
    [
        ({"step": 3}, ModelError, "step must be a function"),
        ({"step": lambda x: x}, ModelError, "must be x, w, u, k in this order"),
        ({"step": lambda x, t, k: x}, ModelError, "must be x, w, u, k in this order"),
        ({"Q": np.eye(3)}, ShapeError, "Q is of size 3, but the tangent of x has size 2; give noise_input"),
        ({"Q": [[1.0, 2.0], [0.0, 1.0]]}, ModelError, "Q is not symmetric"),
        ({"Q": [[1.0, 2.0], [2.0, 1.0]]}, ModelError, "Q is not positive semi-definite"),
        ({"Q": [np.nan, 1.0]}, ModelError, "Q has entries that are not finite"),
        ({"Q": np.zeros((2, 3))}, ShapeError, "Q must be a matrix"),
        ({"R": [[[1.0]], [[-1.0]]]}, ModelError, r"R\[1\] is not positive semi-definite"),
        ({"P0": np.eye(3)}, ShapeError, "P0 has shape"),
        ({"P0": [-1.0, 1.0]}, ModelError, "P0 is not positive semi-definite"),
        ({"x0": [np.nan, 0.0]}, ModelError, "x0 must be finite"),
        ({"x0": "here"}, ShapeError, "x0 must be an array of real numbers"),
        ({"noise_input": "all"}, ShapeError, "noise_input must be an array of real numbers"),
        ({"x0": np.zeros((2, 2))}, ShapeError, "x0 must be one state"),
        ({"noise_input": np.eye(3)}, ShapeError, "noise_input must be finite, of shape"),
        ({"step": lambda x, w, k: x, "noise_input": np.eye(2)}, ModelError, "noise_input is given, but step takes w"),
        ({"state_names": ["a"]}, ShapeError, "state_names has 1 names for 2"),
    ],
)
def test_models(more, error, text):
    with pytest.raises(error, match=text):
        plain(**more)


@pytest.mark.parametrize("estimate", ALL)
def test_one_number_is_the_variance_of_each_entry(estimate):
    B = np.array([[1.0, 0.5, 0.0], [0.0, 1.0, 2.0]])
    for more in ({}, {"noise_input": B}):
        size = 3 if more else 2
        short = plain(Q=0.3, P0=2.0, **more)
        np.testing.assert_array_equal(short.Q, 0.3 * np.eye(size))
        np.testing.assert_array_equal(short.prior.P0, 2.0 * np.eye(2))
        whole = plain(Q=0.3 * np.eye(size), P0=2.0 * np.eye(2), **more)
        np.testing.assert_array_equal(estimate(short, y).cov, estimate(whole, y).cov)
        np.testing.assert_array_equal(estimate(whole, y, prior=([0.0, 0.0], 2.0)).cov, estimate(whole, y).cov)


@pytest.mark.parametrize("estimate", ALL)
@pytest.mark.parametrize(
    ("more", "call", "error", "text"),
    [
        ({}, {"y": np.zeros((6, 2))}, ShapeError, "y has 2 columns, but observe returns 1"),
        ({}, {"y": np.full((6, 1), np.inf)}, ModelError, "is infinite; mark a missing reading by NaN"),
        ({}, {"y": np.zeros((2, 2, 2, 1))}, ShapeError, "y must be"),
        ({}, {"y": []}, ShapeError, "y has no steps"),
        ({}, {"y": np.zeros((0, 1))}, ShapeError, "y has no steps"),
        ({"R": np.eye(2)}, {}, ShapeError, "a reading has 1 outputs, but R is of size 2"),
        ({"R": np.ones((4, 1, 1))}, {}, ShapeError, "R has 4 matrices, but y needs 6"),
        ({"Q": np.tile(np.eye(2), (3, 1, 1))}, {}, ShapeError, "Q has 3 matrices, but y needs 5 or 6"),
        ({}, {"u": np.zeros((6, 1))}, ModelError, "neither step nor observe takes an argument u"),
        ({"step": lambda x, u, k: x}, {}, ModelError, "give u="),
        ({"step": lambda x, u, k: x}, {"u": np.zeros((4, 1))}, ShapeError, "u must have 6 rows, or 5"),
        ({"step": lambda x, u, k: x}, {"u": np.full((6, 1), np.nan)}, ModelError, "a known input cannot be missing"),
        ({}, {"tau": 1}, TypeError, "unexpected arguments: tau"),
        ({}, {"prior": np.zeros(2)}, ModelError, "prior must be a pair"),
        ({}, {"prior": (np.zeros(3), np.eye(2))}, ShapeError, "x0 of the prior has shape"),
        ({"step": lambda x, k: x[0]}, {}, ShapeError, r"write x\[:, 0\], not x\[0\]"),
        ({"observe": lambda x, k: x[:, 0]}, {}, ShapeError, "observe was given"),
        ({"step": lambda x, k: x / 0.0 * np.nan}, {}, ModelError, "step returned .* at step 0 from x = "),
    ],
)
def test_calls(estimate, more, call, error, text):
    call = {"y": y} | call
    with np.errstate(all="ignore"), pytest.raises(error, match=text):
        estimate(plain(**more), call.pop("y"), **call)


@pytest.mark.parametrize("estimate", ALL[:2])
def test_a_filter_that_diverges_says_so(estimate):
    model = kf.NonlinearModel(lambda x, k: np.exp(x**2), lambda x, k: x, 1.0, 1.0, 2.0, 1.0)
    with np.errstate(all="ignore"), pytest.raises(ModelError, match=r"the estimate has diverged|has diverged before"):
        estimate(model, np.full(9, np.nan))


@pytest.mark.parametrize("estimate", ALL)
def test_exact_readings_that_repeat_one_another(estimate):
    twice = plain(observe=lambda x, k: np.concatenate([x[:, :1], 2 * x[:, :1]], axis=1), R=np.zeros(2))
    with pytest.raises(SingularError):
        estimate(twice, np.zeros((3, 2)))
    with pytest.raises(SingularError, match=r"outputs \[0, 1\] of the reading at step 0 determine one another"):
        kf.extended_kalman_filter(twice, np.zeros((3, 2)))
    known = plain(R=0.0, Q=np.zeros((2, 2)), P0=np.zeros((2, 2)))
    with pytest.raises(SingularError, match="output 0 of the reading at step 0 is already known exactly"):
        kf.extended_kalman_filter(known, y)
    with pytest.raises(SingularError, match="step 0"):
        kf.iterated_kalman_smoother(known, y)


@pytest.mark.parametrize("estimate", [*ALL, kf.OnlineFilter])
def test_what_is_no_model_is_named(estimate):
    with pytest.raises(ModelError, match=r"model must be a kf.NonlinearModel or a kf.MotionModel, got System"):
        estimate(kf.models.pendulum(), y)


def test_directions_that_no_reading_tells_are_named():
    still = plain(
        step=lambda x, k: x, observe=lambda x, k: x[:, :1] + 2 * x[:, 1:], P0=None, state_names=["height", "bias"]
    )
    with pytest.raises(UnobservableError, match=r"height.*bias.*add a reading that depends on it") as error:
        kf.iterated_kalman_smoother(still, y)
    assert error.value.unseen == (("height", "bias"),)
    blind = plain(observe=lambda x, k: x[:, 1:], P0=[np.inf, 1.0], state_names=["place", "speed"])
    with pytest.raises(UnobservableError, match="the readings never tell place of x"):
        kf.iterated_kalman_smoother(blind, y)
    with pytest.raises(ModelError, match="the prior is flat in place, and a filter has nowhere to linearise"):
        kf.extended_kalman_filter(blind, y)


def test_smoother_arguments():
    for more, text in (
        ({"search": "newton"}, "search must be"),
        ({"start": "ekf"}, "start must be 'extended'"),
        ({"start": np.zeros((3, 2))}, "start must be finite states"),
        ({"iterations": -1}, "iterations must be"),
        ({"tolerance": 0.0}, "tolerance must be"),
    ):
        with pytest.raises(ModelError, match=text):
            kf.iterated_kalman_smoother(plain(), y, **more)


def test_iterations_that_end_early_say_so():
    model = kf.NonlinearModel(lambda x, k: np.sin(3 * x), lambda x, k: x**3, 0.5, 0.01, 0.5, 1.0)
    series = np.random.default_rng(0).normal(size=20)
    short = kf.iterated_kalman_smoother(model, series, iterations=1)
    assert short.converged is False and short.iterations == 1
    assert "stopped after 1 step;" in short.message and "raise iterations" in short.message
    both = kf.iterated_kalman_smoother(model, np.stack([series, np.sin(series)])[..., None], iterations=1)
    assert both.converged.shape == (2,) and "in 2 of 2 series" in both.message


def test_covariances_may_be_left_out():
    post = kf.iterated_kalman_smoother(plain(), y, covariances=False)
    assert post.cov is None and post.noise_cov is None
    with pytest.raises(ShapeError, match="covariances=True"):
        post.std()
    with pytest.raises(ShapeError, match="the truth has shape"):
        post.error(np.zeros(3))


def test_one_step_is_an_update():
    for estimate in ALL:
        found = estimate(plain(), [[0.5]])
        np.testing.assert_allclose(found.x, [[0.5 / 1.1, 0.0]], atol=1e-15)
        np.testing.assert_allclose(found.cov, [np.diag([0.1 / 1.1, 1.0])], atol=1e-15)
