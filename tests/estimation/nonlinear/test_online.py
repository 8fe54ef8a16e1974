"""One reading at a time: the filter of the whole series, late and missing readings, saving."""

import pickle

import numpy as np
import pytest

import kfdyn as kf
from kfdyn.errors import ModelError, ShapeError

N = 30


def model(**more):
    def step(x, u, k):
        v = x[:, 1] - 0.1 * 9.81 * np.sin(x[:, 0]) + 0.1 * u[:, 0]
        return np.stack([x[:, 0] + 0.1 * v, v], axis=1)

    def observe(x, k):
        return np.stack([np.sin(x[:, 0]), x[:, 1]], axis=1)

    return kf.NonlinearModel(step, observe, [1e-4, 1e-2], [0.05, 0.1], [0.4, 0.0], [0.3, 0.3], **more)


def series():
    rng = np.random.default_rng(0)
    y, u = rng.normal(size=(N, 2)) * 0.4, np.sin(np.arange(N))[:, None]
    y[5], y[9, 0] = np.nan, np.nan
    return y, u


@pytest.mark.parametrize("kind", ["extended", "unscented"])
def test_steps_are_the_filter_of_the_series(kind):
    y, u = series()
    whole = {"extended": kf.extended_kalman_filter, "unscented": kf.unscented_kalman_filter}[kind](model(), y, u)
    live = kf.OnlineFilter(model(), kind=kind)
    np.testing.assert_array_equal(live.x, [0.4, 0.0])
    assert live.k == -1
    for k in range(N):
        returned = live.step(None if k == 5 else y[k], u[k])
        np.testing.assert_array_equal(returned, whole.x[k])
        np.testing.assert_array_equal(live.x, whole.x[k])
        np.testing.assert_array_equal(live.cov, whole.cov[k])
        np.testing.assert_allclose(live.std, whole.std()[k])
        np.testing.assert_allclose(live.nis, whole.nis[k], atol=1e-15)
    np.testing.assert_allclose(live.llf, whole.llf, rtol=1e-13)


def test_a_late_reading_is_as_if_it_had_been_there():
    y, u = series()
    late = y.copy()
    late[20], late[22, 1] = np.nan, np.nan
    live = kf.OnlineFilter(model(), lag=6)
    for k in range(24):
        live.step(late[k], u[k])
    live.late([y[22, 0], y[22, 1]], 22)
    x = live.late(y[20], 20)
    whole = kf.extended_kalman_filter(model(), y[:24], u[:24])
    np.testing.assert_array_equal(x, whole.x[-1])
    np.testing.assert_allclose(live.llf, whole.llf, rtol=1e-13)
    assert live.k == 23 and live.oldest == 17
    live.step(y[24], u[24])
    np.testing.assert_array_equal(live.x, kf.extended_kalman_filter(model(), y[:25], u[:25]).x[-1])


def test_part_of_a_reading_may_be_late():
    y, u = series()
    live = kf.OnlineFilter(model(), lag=3)
    for k in range(8):
        live.step([y[k, 0], np.nan] if k == 6 else y[k], u[k])
    live.late([np.nan, y[6, 1]], 6)
    np.testing.assert_array_equal(live.x, kf.extended_kalman_filter(model(), y[:8], u[:8]).x[-1])


def test_the_window_never_grows():
    y, u = series()
    live = kf.OnlineFilter(model(), lag=4)
    for k in range(N):
        live.step(y[k], u[k])
        assert len(live._window) == min(k + 1, 5) and len(live.save()["y"]) <= 5
        assert live.smooth().x.shape == (min(k + 1, 5), 2)


def test_smoothing_the_window_is_nearly_smoothing_all():
    """Nonlinear: the past enters by the filter's prediction, so equal only as far as that is right."""
    y, u = series()
    live = kf.OnlineFilter(model(), lag=12)
    for k in range(N):
        live.step(y[k], u[k])
    post, whole = live.smooth(tolerance=1e-10), kf.iterated_kalman_smoother(model(), y, u)
    assert post.converged
    assert np.abs(post.x[-1] - whole.x[-1]).max() < 0.1 * whole.std()[-1].min()
    assert np.abs(post.x[0] - whole.x[-13]).max() < 0.5 * whole.std()[-13].min()
    robust = live.smooth(robust="huber", covariances=False)
    assert robust.cov is None and robust.weights.shape == (13, 1)


@pytest.mark.parametrize("lag", [0, 5])
@pytest.mark.parametrize("at", [0, 1, 12])
def test_saved_and_restored_bit_by_bit(lag, at):
    y, u = series()
    live = kf.OnlineFilter(model(), lag=lag)
    for k in range(at):
        live.step(y[k], u[k])
    saved = pickle.loads(pickle.dumps(live.save()))
    other = kf.OnlineFilter.restore(model(), saved)
    assert other.k == live.k and other.lag == lag and other.oldest == live.oldest
    for k in range(at, N):
        np.testing.assert_array_equal(live.step(y[k], u[k]), other.step(y[k], u[k]))
    np.testing.assert_array_equal(live.cov, other.cov)
    assert live.llf == other.llf


def test_a_jump_is_seen_at_once():
    y, u = series()
    live = kf.OnlineFilter(model())
    for k in range(10):
        live.step(y[k], u[k])
    live.step(y[10] + 5, u[10])
    assert live.nis > 50


def test_bad_input_is_named():
    y, u = series()
    for lag in (-1, 1.5):
        with pytest.raises(ModelError, match="lag must be a whole number"):
            kf.OnlineFilter(model(), lag=lag)
    with pytest.raises(ModelError, match="kind must be"):
        kf.OnlineFilter(model(), kind="particle")
    live = kf.OnlineFilter(model(), lag=2)
    with pytest.raises(ModelError, match="no reading yet"):
        _ = live.nis
    with pytest.raises(ModelError, match="nothing to smooth yet"):
        live.smooth()
    with pytest.raises(ModelError, match="give u for step 0"):
        live.step(y[0])
    with pytest.raises(ShapeError, match=r"a reading must have shape \(2,\)"):
        live.step([1.0, 2.0, 3.0], u[0])
    for no_reading in ({"e": y[0]}, ["a", "b"]):
        with pytest.raises(ShapeError, match="the reading of step 0 must be an array of real numbers"):
            live.step(no_reading, u[0])
    with pytest.raises(ShapeError, match="u of step 0 must be an array of real numbers"):
        live.step(y[0], "full")
    with pytest.raises(ModelError, match="step 0 is infinite"):
        live.step([np.inf, 0.0], u[0])
    with pytest.raises(ShapeError, match="u of step 0 must be a finite row"):
        live.step(y[0], [np.nan])
    for k in range(6):
        live.step(y[k], u[k])
    with pytest.raises(ModelError, match=r"holds steps 3 to 5; use a larger lag \(now 2\)"):
        live.late(y[2], 2)
    with pytest.raises(ModelError, match=r"holds steps 3 to 5; use step\(\)"):  # a clock that runs ahead
        live.late(y[2], 6)
    with pytest.raises(ModelError, match="a late reading is of a step, a whole number, got 'four'"):
        live.late(y[4], "four")
    with pytest.raises(TypeError, match="unexpected options"):
        live.smooth(start="prior")
    saved = live.save()
    with pytest.raises(ModelError, match=r"what save\(\) returned has 'P', and this has not"):
        kf.OnlineFilter.restore(model(), {"x": saved["x"]})
    with pytest.raises(ShapeError, match="a filter of another model was saved"):
        kf.OnlineFilter.restore(model(), saved | {"x": np.zeros(5)})
    before = live.x
    with pytest.raises(ShapeError):
        live.step([1.0], u[6])
    np.testing.assert_array_equal(live.x, before)
    assert live.k == 5
    no_inputs = kf.OnlineFilter(kf.NonlinearModel(lambda x, k: x, lambda x, k: x, 1.0, 1.0, 0.0, 1.0))
    with pytest.raises(ModelError, match="neither step nor observe takes"):
        no_inputs.step(1.0, 2.0)
    with pytest.raises(ModelError, match="the prior is flat in x"):
        kf.OnlineFilter(model(), prior=([0.0, 0.0], None))


def test_an_input_may_be_decided_after_the_reading():
    """As in a control loop: the same as given with the reading that it acts from."""
    arm, rng = kf.models.double_pendulum(), np.random.default_rng(5)
    moves = kf.MotionModel(arm, 0.01, [kf.sensors.JointPosition(1e-4)], force_noise=[0.1, 0.1])
    y, tau = 0.1 * rng.normal(size=(6, 2)), rng.normal(size=(6, 2))
    prior = (np.zeros(2), np.zeros(2), np.full(4, 0.1))
    together, after = kf.OnlineFilter(moves, prior=prior), kf.OnlineFilter(moves, prior=prior)
    with pytest.raises(ModelError, match="no reading has been taken yet"):
        after.act(tau[0])
    for k in range(6):
        together.step([y[k]], tau[k])
        after.step([y[k]])
        after.act(tau[k])
        np.testing.assert_array_equal(after.x, together.x)
    feels = kf.OnlineFilter(
        kf.MotionModel(arm, 0.01, [kf.sensors.JointTorque(1.0)], force_noise=[0.1, 0.1]), prior=prior
    )
    feels.step([y[0]], tau[0])
    with pytest.raises(ModelError, match="the readings of this model see the input"):
        feels.act(tau[0])
