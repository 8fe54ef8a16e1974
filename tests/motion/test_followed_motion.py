"""A motion followed online: the compiled halves for one robot against the general ones, and what it may be given."""

import numpy as np
import pytest

import kfdyn as kf
from kfdyn.errors import ModelError, ShapeError, UnobservableError
from kfdyn.estimation.nonlinear.extended import Extended
from kfdyn.estimation.nonlinear.model import NonlinearModel
from kfdyn.estimation.nonlinear.unscented import SigmaPoints, Unscented
from kfdyn.motion import one_motion

S = kf.sensors


def readings(model, N, seed=0):
    """Readings of a motion under random torques, some missing."""
    rng = np.random.default_rng(seed)
    nv = model.system.nv
    x = np.concatenate([model.system.random_configuration(rng), np.zeros(nv)])[None]
    start, tau, y = x[0], rng.normal(size=(N, nv)), []
    for k in range(N):
        clean = model.read(x, np.zeros((1, model.p)), tau[k : k + 1], np.array([k]))
        y.append(model.readings.plus(clean, 1e-2 * rng.normal(size=(1, model.R.shape[0])))[0])
        x = model.advance(x, 0.3 * rng.normal(size=(1, model.p)), tau[k : k + 1], np.array([k]))
    y = np.array(y)
    y[2, 0], y[4] = np.nan, np.nan
    return start, tau, y


@pytest.mark.parametrize("kind", ["extended", "unscented"])
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"method": "implicit", "damping": 0.3},
        {"damping": 0.2, "stiffness": 3.0},
        {"gravity": [0, 0, 0]},
        {"friction": 0.2},
    ],
)
def test_the_short_way_is_the_long_way(kind, more, monkeypatch):
    arm = kf.models.puma560()
    sensors = [S.JointVelocity(1e-3, hinges="joint_3", bias=0.25), S.JointPosition(1e-4)]
    model = kf.MotionModel(arm, 0.01, sensors, force_noise=np.linspace(0.1, 0.3, 6), **more)
    start, tau, y = readings(model, 12)
    prior = (start[:6], start[6:], np.linspace(1e-3, 1e-2, 12))
    halves = model.filter_halves(kind)
    assert isinstance(halves, one_motion.OneExtended if kind == "extended" else one_motion.OneUnscented)
    filtered = kf.extended_kalman_filter if kind == "extended" else kf.unscented_kalman_filter
    short = filtered(model, y, tau=tau, prior=prior)
    batch = filtered(model, np.stack([y, y]), tau=tau, prior=prior)
    monkeypatch.setattr(
        kf.MotionModel,
        "filter_halves",
        lambda self, kind, points=None: Extended() if kind == "extended" else Unscented(SigmaPoints()),
    )
    long = filtered(model, y, tau=tau, prior=prior)
    for name in ("x", "cov", "x_predicted", "cov_predicted", "eps", "nu", "D", "llf"):
        a, b = getattr(short, name), getattr(long, name)
        np.testing.assert_allclose(a, b, atol=1e-11 * np.abs(b).max(), err_msg=name)
        np.testing.assert_allclose(getattr(batch, name)[1], b, atol=1e-11 * np.abs(b).max(), err_msg=name)


@pytest.mark.parametrize("kind", ["extended", "unscented"])
def test_what_the_short_way_does_not_serve_goes_the_long_way(kind):
    floating = kf.models.free_flyer()
    arm = kf.models.puma560()
    for model in (
        kf.MotionModel(floating, 0.01, [S.JointPosition(1e-4)], np.ones(floating.nv)),
        kf.MotionModel(arm, 0.01, [S.Position("link_6", 1e-4)], np.ones(6)),
        kf.MotionModel(arm, 0.01, [S.JointPosition(1e-4)], np.ones(6), method="rk4"),
        kf.MotionModel(arm, 0.01, [S.JointPosition(1e-4)], np.ones(6), biases={0: (1.0, 0.0)}),
        kf.MotionModel(arm, 0.01, [S.JointPosition(1e-4)], np.ones((9, 6)) [..., None] * np.eye(6)),
    ):  # fmt: skip
        assert type(model.filter_halves(kind)) in (Extended, Unscented)
        assert isinstance(model, NonlinearModel)


def test_online_is_the_filter_of_the_series_and_keeps_what_it_was_given():
    arm = kf.models.puma560()
    model = kf.MotionModel(arm, 0.01, [S.JointPosition(1e-4), S.JointVelocity(1e-2)], np.full(6, 0.1))
    start, tau, y = readings(model, 10)
    prior = (start[:6], start[6:], 1e-2)
    live, same = (kf.OnlineFilter(model, prior=prior, lag=4) for _ in range(2))
    buffer, torque = np.empty(12), np.empty(6)
    for k in range(10):
        buffer[:], torque[:] = y[k], tau[k]
        live.step(buffer, torque)  # the caller's memory is used again
        own = [None if np.isnan(part).all() else part for part in (y[k, :6], y[k, 6:])]
        same.step(own, tau[k])
    whole = kf.extended_kalman_filter(model, y, tau=tau, prior=prior)
    np.testing.assert_allclose(live.x, whole.x[-1], atol=1e-13)
    np.testing.assert_allclose(live.cov, whole.cov[-1], atol=1e-15)
    np.testing.assert_allclose(live.llf, whole.llf, rtol=1e-12)
    np.testing.assert_allclose(live.smooth().x, same.smooth().x, atol=1e-13)
    np.testing.assert_allclose(live.smooth().x[-1], live.x, atol=1e-6)


def test_without_torques_a_motion_coasts_online_as_in_a_series():
    ball = kf.models.pendulum()
    model = kf.MotionModel(ball, 0.01, [S.JointPosition(1e-4)], [0.1])
    live = kf.OnlineFilter(model, prior=([0.3], [0.0], 1e-2))
    y = 0.3 * np.cos(0.03 * np.arange(6))[:, None]
    for row in y:
        live.step(row)
    whole = kf.extended_kalman_filter(model, [y], prior=([0.3], [0.0], 1e-2))
    np.testing.assert_allclose(live.x, whole.x[-1], atol=1e-14)


def test_bad_input_is_named():
    arm = kf.models.puma560()
    model = kf.MotionModel(arm, 0.01, [S.JointPosition(1e-4), S.JointVelocity(1e-2)], np.full(6, 0.1))
    live = kf.OnlineFilter(model, prior=(np.zeros(6), np.zeros(6), 1e-2))
    for y, tau, text in (
        (np.zeros(5), np.zeros(6), r"a reading must have shape \(12,\)"),
        ([np.zeros(6)], np.zeros(6), "1 readings at step 0 for 2 sensors"),
        ([np.zeros(6), np.zeros(5)], np.zeros(6), r"JointVelocity\(\): its reading at step 0 must be \(6,\)"),
        (None, np.zeros(5), r"tau of step 0 must be \(6,\)"),
        (None, np.full(6, np.nan), "tau of step 0 must be a finite row; it has NaN"),
        ({"q": np.zeros(6)}, np.zeros(6), "must be a list in the order of the sensors"),
    ):
        with pytest.raises(ShapeError, match=text):
            live.step(y, tau)
    with pytest.raises(ModelError, match="the reading of step 0 is infinite"):
        live.step(np.full(12, np.inf), np.zeros(6))
    assert live.k == -1


@pytest.mark.parametrize("kind", ["extended", "unscented"])
def test_a_motion_that_flies_off_says_so(kind):
    arm = kf.models.puma560()
    model = kf.MotionModel(arm, 0.1, [S.JointPosition(1e-4)], np.full(6, 0.1))
    live = kf.OnlineFilter(model, prior=(np.zeros(6), np.full(6, 50.0), 1e-2), kind=kind)

    def fly_off():
        for _ in range(200):
            live.step(None, np.full(6, 1e3))

    with pytest.raises(ModelError, match="diverged"):
        fly_off()


def test_results_speak_of_the_robot():
    """Accelerations with deviations, positions of the hand, innovations and residuals of each sensor, figures, film."""
    import matplotlib as mpl

    mpl.use("Agg")
    arm = kf.models.double_pendulum()
    sensors = [S.JointPosition(1e-4), S.Gyroscope("lower", 1e-3)]
    model = kf.MotionModel(arm, 0.01, sensors, force_noise=0.1)
    _, tau, y = readings(model, 40)
    prior = (np.zeros(2), np.zeros(2), 4.0)
    split = [y[:, own] for own in model.seen.points_of]
    filt = kf.extended_kalman_filter(model, split, tau=tau, prior=prior)
    post = kf.iterated_kalman_smoother(model, split, tau=tau, prior=prior)
    assert filt.innovation("Gyroscope('lower')").shape == post.residual(1).shape == (40, 3)
    np.testing.assert_allclose(post.residual(0), y[:, :2] - post.reading(0), atol=1e-13)
    draws = post.draw(np.random.default_rng(1), 4000)
    spread = (np.diff(draws[..., 2:], axis=1) / 0.01).std(axis=0)
    np.testing.assert_allclose(post.std("a"), spread, rtol=0.08)  # 1/√8000 each, of 78
    hands = kf.frame_pose(arm, draws[:, 20, :2], "lower").position
    np.testing.assert_allclose(post.position_cov("lower")[20], np.cov(hands.T), atol=0.1 * np.cov(hands.T).max())
    assert len(post.plot().axes) == 6 and len(filt.plot("elbow").axes) == 2
    film = kf.viz.animate(post, fps=10, ellipse="lower", plane="xz")
    assert len(list(film.new_frame_seq())) == 4
    kf.viz.animate(filt, fps=5, ellipse="lower", plane=None)
    with pytest.raises(ModelError, match="known exactly"):
        kf.viz.animate(kf.simulate(arm, [0.1, 0.2], [0.0, 0.0], [0.0, 0.1]), ellipse="lower")


@pytest.mark.parametrize(
    ("sensors", "cure"),
    [
        ([S.Gyroscope("link_6", 1e-4)], r"q\[joint_1\].*JointPosition\(..., hinges='joint_1'\)"),
        ([S.JointVelocity(1e-4)], r"JointPosition"),
    ],
)
def test_what_no_reading_tells_is_named_with_a_sensor_that_would(sensors, cure):
    model = kf.MotionModel(kf.models.puma560(), 0.01, sensors, force_noise=0.1)
    with pytest.raises(UnobservableError, match=cure):
        kf.iterated_kalman_smoother(model, [np.zeros((20, model.seen.points.size))])


def test_a_filter_is_restored_only_into_a_model_of_its_sensors():
    arm, z = kf.models.double_pendulum(), np.zeros(2)
    both = kf.MotionModel(arm, 0.01, [S.JointPosition(1e-6), S.JointVelocity(1e-4)], 0.1)
    live = kf.OnlineFilter(both, prior=(z, z, np.full(4, 0.01)), lag=5)
    live.step([z, z], z)
    other = kf.MotionModel(arm, 0.01, [S.JointPosition(1.0)], 1.0)
    with pytest.raises(ShapeError, match=r"readings have shape \(4,\), and this model's have \(2,\)"):
        kf.OnlineFilter.restore(other, live.save())
    with pytest.raises(ShapeError, match=r"tau of step 0 must be \(2,\), got shape \(3,\)"):
        kf.OnlineFilter.restore(both, live.save() | {"u": np.zeros((1, 3))})
    with pytest.raises(ModelError, match=r"saved must be the dict that save\(\) returned, got NoneType"):
        kf.OnlineFilter.restore(both, None)


def test_readings_of_series_are_a_list_of_arrays():
    arm, prior = kf.models.double_pendulum(), (np.zeros(2), np.zeros(2), 1e-2)
    model = kf.MotionModel(arm, 0.01, [S.JointPosition(1e-6)], 0.1)
    for y, text in (
        (
            {"JointPosition()": np.zeros((3, 2))},
            r"a list in the order of the sensors \(JointPosition\(\)\), not a dict",
        ),
        ([[["a", "b"]]], r"JointPosition\(\): its readings must be an array of real numbers"),
    ):
        with pytest.raises(ShapeError, match=text):
            kf.extended_kalman_filter(model, y, prior=prior)
    with pytest.raises(ShapeError, match="tau must be an array of real numbers"):
        kf.extended_kalman_filter(model, [np.zeros((3, 2))], tau="fast", prior=prior)
    for other, text in ((([0.0, 0.0], "fast", 1.0), "v0"), (([0.0, 0.0], [0.0, 0.0], "wide"), "P0")):
        with pytest.raises(ShapeError, match=f"{text} of the prior must be an array of real numbers"):
            kf.OnlineFilter(model, prior=other)
    with pytest.raises(ModelError, match="the model has no sensors"):
        kf.extended_kalman_filter(kf.MotionModel(arm, 0.01, [], 0.1), [], prior=prior)
