"""Parameters of a motion: regressors against Pinocchio, gradients against differences, estimates against the truth."""

import warnings
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

import kfdyn as kf
from kfdyn.errors import ModelError, ShapeError
from kfdyn.motion import inertial_parameters
from kfdyn.motion.identification.held import Held
from kfdyn.motion.identification.linear import Log, Motion
from kfdyn.motion.identification.parameters.by_name import Parameters
from kfdyn.motion.identification.parameters.log_cholesky import LogCholesky
from kfdyn.motion.identification.results.result import Identified
from kfdyn.motion.identification.search import Found, Search
from kfdyn.motion.identification.start import Start
from kfdyn.spatial import spatial_inertia

S = kf.sensors
ABOUT_Y = kf.Hinge.revolute([0, 1, 0])


def two_rods(masses=(1.2, 0.8), damping=(0.05, 0.02)):
    """A double pendulum of bodies with all ten numbers; inertias scale with their masses."""
    upper = spatial_inertia(masses[0], [0.02, 0.01, -0.5], masses[0] / 1.2 * np.diag([0.05, 0.06, 0.03]))
    lower = spatial_inertia(masses[1], [0.0, 0.03, -0.4], masses[1] / 0.8 * np.diag([0.04, 0.05, 0.02]))
    below = {"parent": "upper", "position": [0, 0, -1], "hinge_name": "elbow"}
    return kf.System(
        [
            kf.Body("upper", upper, ABOUT_Y, hinge_name="shoulder", damping=damping[0]),
            kf.Body("lower", lower, ABOUT_Y, damping=damping[1], **below),
        ],
        name="two rods",
    )


def moves_of(system, force_noise=0.04, **options):
    sensors = [S.JointPosition(1e-6, name="encoders"), S.Gyroscope(system.body_names[-1], 1e-4, name="gyro")]
    options = {"damping": True} | options
    return kf.MotionModel(system, 0.01, sensors, force_noise=np.full(system.nv, force_noise), **options)


def drawn(model, N, rng, tau, x0):
    """A log of the model itself."""
    w = rng.normal(size=(N, model.p)) @ np.linalg.cholesky(model.Q).T
    x = [np.asarray(x0, float)]
    for k in range(N - 1):
        x.append(model.advance(x[-1][None], w[k : k + 1], tau[k : k + 1], np.array([k]))[0])
    y = model.read(np.array(x), w, tau, np.arange(N))
    y = model.seen.points.plus(y, rng.normal(size=(N, len(model.R))) @ np.linalg.cholesky(model.R).T)
    return [y[:, own] for own in model.seen.points_of]


def driven(N):
    t = 0.01 * np.arange(N)
    return np.stack([6 * np.sin(3 * t), 3 * np.cos(5 * t)], axis=1)


# --- the torque regressor


@pytest.mark.parametrize("make", [kf.models.puma560, kf.models.free_flyer, lambda: kf.models.random_tree(8, seed=3)])
def test_regressor_times_parameters_is_inverse_dynamics(make):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        system = make()
    rng = np.random.default_rng(0)
    q = np.stack([system.random_configuration(rng) for _ in range(4)]).reshape(2, 2, -1)
    v, a = rng.normal(size=(2, 2, 2, system.nv))
    Y = kf.torque_regressor(system, q, v, a)
    assert Y.shape == (2, 2, system.nv, 10 * system.n_bodies)
    expected = kf.inverse_dynamics(system, q, v, a)
    found = Y @ inertial_parameters(system).ravel() + system.armature * a
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11 * np.abs(expected).max())
    np.testing.assert_allclose(kf.torque_regressor(system, q[1, 0], v[1, 0], a[1, 0]), Y[1, 0], rtol=0, atol=1e-13)


@pytest.mark.parametrize("name", ["puma560", "free_flyer"])
def test_regressor_is_that_of_pinocchio(name, monkeypatch):
    pin = pytest.importorskip("pinocchio")
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "external"))
    from pinocchio_models import pinocchio_model

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        system = getattr(kf.models, name)()
    rng, theirs = np.random.default_rng(1), pinocchio_model(system)
    q, v, a = system.random_configuration(rng), rng.normal(size=system.nv), rng.normal(size=system.nv)
    expected = pin.computeJointTorqueRegressor(theirs.model, theirs.data, theirs.q(q), theirs.v(v), theirs.v(a))
    Y = kf.torque_regressor(system, q, v, a)
    np.testing.assert_allclose(Y, expected[theirs.v_index], rtol=0, atol=1e-10 * np.abs(expected).max())


# --- parameters


def test_log_cholesky_is_onto_itself_and_always_has_positive_mass():
    ten = inertial_parameters(two_rods())[1]
    own = LogCholesky(ten, "lower")
    np.testing.assert_allclose(own.ten(own.start), ten, rtol=0, atol=1e-15)
    for z in np.random.default_rng(2).normal(size=(50, 10)):
        np.testing.assert_allclose(own.free(own.ten(z)), z, rtol=0, atol=1e-9)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            kf.System([kf.Body("any", _six(own.ten(z)), ABOUT_Y)])  # warns of the triangle inequality, and refuses


def _six(ten):
    from kfdyn.motion.regressor import inertia_of

    return inertia_of(ten)


def held_at(models, logs, names, dz=0.03):
    """The likelihood about smoothed motions of logs (readings, tau), beside the first values."""
    parameters = Parameters(models, names)
    z = parameters.start + dz
    held = Held(parameters, [], [])
    for base, model, (readings, tau) in zip(models, parameters.models(z), logs):
        post = kf.iterated_kalman_smoother(model, readings, tau=tau, covariances=False)
        held.logs.append(Log(base, readings, tau, None))
        held.motions.append(Motion(post.x[None], post.noise[None]))
    return held, z


def richardsons(held, z, h=0.02):
    def along(e):
        table = [(held.llf(z + s * e) - held.llf(z - s * e)) / (2 * s) for s in h / 2.0 ** np.arange(5)]
        for order in range(1, 5):
            table = [(4**order * b - a) / (4**order - 1) for a, b in pairwise(table)]
        return table[0]

    return np.array([along(e) for e in np.eye(z.size)])


@pytest.mark.parametrize("method", ["euler", "implicit", pytest.param("rk4", marks=pytest.mark.slow)])
@pytest.mark.parametrize("felt", [False, True])
def test_gradient_is_that_of_the_likelihood_with_the_motion_held(method, felt):
    """Against Richardson's differences; friction, springs, a drifting bias, a factor and a gap among the readings.

    Four stages have no closed form: the changes of their linearised model are central differences themselves.
    """
    rng, N = np.random.default_rng(5), 40
    sensors = [S.JointPosition(1e-6, name="encoders"), S.Gyroscope("lower", 1e-4, name="gyro")]
    names = [
        "*/damping", "upper/mass", "lower/inertia", "*/armature", "*/friction", "*/stiffness", "gravity", "force_noise",
        "*/cov", "gyro/scale", "encoders/bias",
    ]  # fmt: skip
    if felt:
        sensors.append(S.Accelerometer("lower", 0.02, name="head"))
        names += ["head/bias", "head/scale"]
    moves = kf.MotionModel(
        two_rods(masses=(1.0, 1.0)), 0.01, sensors, force_noise=[0.04, 0.09], damping=True, method=method,
        biases={"gyro": (1e-4, 1e-8)}, friction=[0.1, 0.2], friction_speed=0.3, stiffness=[1.0, 2.0],
        scales={"gyro": 1.1},
    )  # fmt: skip
    tau = driven(N)
    truth = kf.MotionModel(two_rods(), 0.01, sensors, [0.04, 0.09], damping=True)
    readings = drawn(truth, N, rng, tau, [0.3, -0.2, 0, 0])
    readings[1][7] = np.nan
    held, z = held_at([moves], [(readings, tau)], names)
    expected = richardsons(held, z)
    near = {"rtol": 1e-6, "atol": 1e-9} if method == "rk4" else {"rtol": 1e-8, "atol": 1e-11}
    np.testing.assert_allclose(held.gradient(z), expected, rtol=near["rtol"], atol=near["atol"] * abs(expected).max())


def test_gradient_of_a_floating_base_that_is_pushed():
    """A free flyer with a ball hinge's worth of turns: Jacobians of Exp move with the accelerations; a wrench walks."""
    system = kf.models.free_flyer()
    rng, N = np.random.default_rng(2), 25
    first, last = system.body_names[0], system.body_names[-1]
    sensors = [
        S.Pose(first, 1e-4, name="camera"), S.JointPosition(1e-6, hinges=system.hinge_names[1:], name="encoders"),
        S.Imu(first, 1e-2, name="imu"),
    ]  # fmt: skip
    moves = kf.MotionModel(
        system, 0.02, sensors, force_noise=np.full(system.nv, 0.3), wrenches={last: (1.0, 1e-3)},
        prior=(system.neutral(), rng.normal(size=system.nv), 1.0),
    )  # fmt: skip
    tau = rng.normal(size=(N, system.nv))
    x0 = np.concatenate([system.neutral(), moves.prior.x0[system.nq : system.nq + system.nv], np.zeros(6)])
    readings = drawn(moves, N, rng, tau, x0)
    names = [f"{first}/inertia", f"{last}/com", "force_noise", "gravity", "imu/scale", "camera/cov"]
    held, z = held_at([moves], [(readings, tau)], names)
    expected = richardsons(held, z)
    np.testing.assert_allclose(held.gradient(z), expected, rtol=1e-7, atol=1e-9 * np.abs(expected).max())


def test_gradient_of_two_logs_with_rates_and_sensors_of_their_own():
    system, rng = two_rods(masses=(1.0, 1.0)), np.random.default_rng(6)
    encoders, gyro = S.JointPosition(1e-6, name="encoders"), S.Gyroscope("lower", 1e-4, name="gyro")
    models, logs = [], []
    for dt, sensors, N in ((0.01, [encoders], 40), (0.02, [gyro, encoders], 30)):
        model = kf.MotionModel(system, dt, sensors, force_noise=[0.04 * 0.01 / dt] * 2, damping=True)
        tau = driven(N)
        models.append(model)
        logs.append((drawn(model, N, rng, tau, [0.3, -0.2, 0, 0]), tau))
    held, z = held_at(models, logs, ["lower/inertia", "*/damping", "force_noise", "encoders/cov", "gyro/cov"])
    expected = richardsons(held, z)
    np.testing.assert_allclose(held.gradient(z), expected, rtol=1e-8, atol=1e-11 * np.abs(expected).max())
    W = [model.Q[0, 0] for model in held.parameters.models(z)]
    assert W[0] == pytest.approx(2 * W[1], rel=1e-12)  # one density


# --- estimates


def test_linear_model_is_fitted_as_kf_fit_does():
    """A cart on a slide: mass, damper and both noise levels from the engine's own fit of the chain."""
    slide = kf.Hinge.prismatic([1, 0, 0])
    cart = kf.System([kf.Body("cart", np.diag([0, 0, 0, 2.0, 2.0, 2.0]), slide, damping=0.5)])
    rng, dt, N = np.random.default_rng(0), 0.1, 120
    tau = 3 * np.sin(0.3 * np.arange(N))[:, None]
    prior = ([0.0], [0.0], [0.5, 0.7])
    moves = kf.MotionModel(cart, dt, [S.JointPosition(0.01, name="ruler")], [0.3], damping=True, prior=prior)
    y = drawn(moves, N, rng, tau, [0.1, 0.2])[0]
    found = kf.identify(moves, [y], tau[:-1], ["cart/mass", "cart/damping", "force_noise", "ruler/cov"])

    def build(theta):
        m, d, W, R = theta
        F = np.array([[1.0, dt * (1 - dt * d / m)], [0.0, 1 - dt * d / m]])
        B = np.array([[dt**2 / m], [dt / m]])
        return kf.StateSpace.chain(
            F, np.array([[1.0, 0.0]]), W * B @ B.T, [[R]], [0.0, 0.0], np.diag([0.5, 0.7]), inputs=tau[:-1] @ B.T,
            steps=N,
        )  # fmt: skip

    fit = kf.fit(build, [2.0, 0.5, 0.3, 0.01], y.ravel(), bounds=[(0, None)] * 4)
    assert found.converged, found.message
    assert (np.abs(found.params - fit.params) < 2e-4 * fit.stderr).all()  # the search ends at 5e-5 standard errors
    np.testing.assert_allclose(found.stderr, fit.stderr, rtol=1e-3)  # informations by differences
    assert found.llf == pytest.approx(fit.llf, abs=1e-7)


def test_a_mass_and_a_damper_are_found_and_saved(tmp_path):
    rng, N = np.random.default_rng(1), 250
    tau = driven(N)
    readings = drawn(moves_of(two_rods()), N, rng, tau, [0.3, -0.2, 0, 0])
    guess = two_rods(masses=(1.2, 0.5), damping=(0.0, 0.02))
    found = kf.identify(moves_of(guess), readings, tau[:-1], ["shoulder/damping", "lower/mass"])
    assert found.converged, found.message
    assert found.names == ("shoulder/damping", "lower/mass")
    error = (found.params - [0.05, 0.8]) / found.stderr
    assert (np.abs(error) < 3).all() and (found.stderr < [0.01, 0.005]).all()
    assert found.system.bodies[1].inertia[3, 3] == pytest.approx(found.params[1], rel=1e-14)
    assert found.system.damping[0] == pytest.approx(found.params[0], rel=1e-14)
    again = kf.load(kf.save_urdf(found.system))
    assert again.mass == pytest.approx(found.system.mass, rel=1e-12)
    assert "lower/mass" in found.summary() and not found.unidentified


def test_logs_together_have_the_sum_of_their_likelihoods():
    """Two logs in one call: gradient and likelihood are sums, and both logs tell more than one."""
    N, names = 60, ["lower/mass", "force_noise"]
    tau, model = driven(N), moves_of(two_rods(), prior=([0.3, -0.2], [0.0, 0.0], 0.01))
    logs = [drawn(model, N, np.random.default_rng(seed), tau, [0.3, -0.2, 0, 0]) for seed in (7, 8)]
    both = [np.stack(pair) for pair in zip(*logs)]

    def at_start(readings):
        parameters = Parameters([model], names)
        log = Log(model, readings, tau[:-1], None)
        post = kf.iterated_kalman_smoother(model, readings, tau=tau[:-1], covariances=False)
        x, w = (part if log.batched else part[None] for part in (post.x, post.noise))
        held = Held(parameters, [log], [Motion(x, w)])
        return held.llf(parameters.start), held.gradient(parameters.start)

    alone, together = [at_start(log) for log in logs], at_start(both)
    assert together[0] == pytest.approx(alone[0][0] + alone[1][0], rel=1e-9)
    np.testing.assert_allclose(together[1], alone[0][1] + alone[1][1], rtol=1e-6, atol=1e-5)
    found, *each = (kf.identify(model, log, tau[:-1], names[:1]) for log in (both, *logs))  # noise levels known
    assert found.converged
    assert all(found.stderr[0] < one.stderr[0] for one in each)
    assert np.abs(found.params[0] - 0.8) < 3.5 * found.stderr[0]


def test_wrist_of_an_arm():
    """Mass of the PUMA's last link, and a damper of its wrist."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        arm = kf.models.puma560()
    last, hinge = arm.body_names[-1], arm.hinge_names[-2]
    rng, N = np.random.default_rng(4), 150
    t = 0.01 * np.arange(N)
    swing = 3 * np.sin(np.outer(t, 3 + np.arange(6)))
    q0 = np.array([0.1, -0.5, 0.4, 0.2, 0.6, -0.3])
    tau = kf.gravity_torques(arm, q0) + swing * [5, 5, 3, 0.3, 0.3, 0.1]
    true_damping = np.array([0, 0, 0, 0, 0.3, 0.0])
    readings = drawn(moves_of(arm, 1e-3, damping=true_damping), N, rng, tau, np.concatenate([q0, np.zeros(6)]))
    truth = arm.bodies[-1].inertia[3, 3]
    light = Parameters([moves_of(arm)], [f"{last}/mass"])
    start = light.models(np.log([0.5 * truth]))[0].system
    found = kf.identify(moves_of(start, 1e-3, damping=False), readings, tau[:-1], [f"{last}/mass", f"{hinge}/damping"])
    assert found.converged, found.message
    error = (found.params - [truth, 0.3]) / found.stderr
    assert (np.abs(error) < 3).all(), found.summary()
    assert (found.stderr < [0.5 * truth / 3, 0.1]).all()  # the log did tell them from the first values


def test_what_the_log_cannot_tell_is_named():
    """In a plane only I_yy and the first moments in it act, and mass of the outer body counts with the inner one's."""
    rng, N = np.random.default_rng(3), 80
    tau = driven(N)
    readings = drawn(moves_of(two_rods()), N, rng, tau, [0.3, -0.2, 0, 0])
    found = kf.identify(moves_of(two_rods()), readings, tau[:-1], ["*/inertia"])
    assert found.converged, found.message
    told = set(found.unidentified)
    assert len(told) == 14  # of 20; base parameters: h_x, h_z, I_yy of both, mass of the outer with the inner's
    assert {"+1 lower/h_y", "+1 lower/I_xx", "+1 upper/m", "+1 upper/I_zz"} <= told
    (mixed,) = (text for text in told if "lower/m" in text)
    assert "upper/h_z" in mixed and "upper/I_yy" in mixed
    known = [name for name, error in zip(found.names, found.stderr) if np.isfinite(error)]
    assert known == ["upper/h_x", "lower/h_x", "lower/h_z", "lower/I_yy"]
    J = inertial_parameters(found.system)
    z = (J - inertial_parameters(two_rods())).ravel()[[1, 11, 13, 16]]
    assert (np.abs(z) < 3.5 * found.stderr[np.isfinite(found.stderr)]).all()


def test_at_the_edge_of_positive_mass_errors_know_no_edge():
    """The best inertia is a plate's, whose logarithm of a thickness tells nothing; what is known stays known."""

    def gimbal(hand):
        link = spatial_inertia(0.3, [0.05, 0.02, 0.0], 1e-3 * np.eye(3))
        hinges = zip(["yaw", "pitch", "roll"], [None, "yaw", "pitch"], np.eye(3)[[2, 1, 0]], [link, link, hand])
        out = ([0, 0, 0], [0, 0, 0], [0.3, 0, 0])
        return kf.System([
            kf.Body(name, six, kf.Hinge.revolute(axis), parent=of, position=p, damping=0.05)
            for (name, of, axis, six), p in zip(hinges, out)
        ])  # fmt: skip

    N = 150
    t = 0.01 * np.arange(N)
    tau = np.stack([2 * np.sin(3 * t), 2 * np.cos(4 * t) - 1, 0.3 * np.sin(7 * t)], axis=1)
    thin = gimbal(spatial_inertia(1.0, [0.1, 0.03, 0.02], np.diag([0.004, 0.004, 0.0078])))
    guess = moves_of(gimbal(spatial_inertia(0.6, [0.05, 0.0, 0.0], 0.004 * np.eye(3))))
    names, truth = ["roll/inertia", "*/damping"], [*inertial_parameters(thin)[2], 0.05, 0.05, 0.05]
    for seed in (1, 8):  # a hundred steps of logarithms do not end, of the first log
        readings = drawn(moves_of(thin), N, np.random.default_rng(seed), tau, np.zeros(6))
        found = kf.identify(guess, readings, tau[:-1], names)
        assert found.converged and "roll/inertia is at the edge of positive mass" in found.message
        known = np.isfinite(found.stderr)
        assert known.sum() == 9 and len(found.unidentified) == 1  # a mass on the last axis counts with the arm's
        assert (np.abs(found.params - truth)[known] < 3.0 * found.stderr[known]).all()

    inside, log = Parameters([moves_of(thin)], names), Log(moves_of(thin), readings, tau[:-1], None)
    search = Search(inside, [log], 1, 1.0)  # the expected errors at the truth, which is inside, by logarithms
    place = search.place(inside.start, found._found.place.motions)
    seen, none = search._seen(place), np.zeros(inside.start.size, bool)
    there = Identified.of(inside, [log], Found(place, search._expected(place), seen, none, 0, True, ""))
    np.testing.assert_allclose(found.stderr, there.stderr, rtol=0.3)


@pytest.mark.slow
def test_inertia_friction_noise_and_biases_at_once():
    """Nineteen numbers from a first guess that is far off; six of them the plane does not show."""
    rng, N = np.random.default_rng(1), 200
    tau = driven(N)
    readings = drawn(moves_of(two_rods()), N, rng, tau, [0.3, -0.2, 0, 0])
    guess = moves_of(two_rods(masses=(1.2, 0.6), damping=(0.0, 0.02)))
    names = ["*/damping", "lower/inertia", "encoders/cov", "gyro/cov", "gyro/bias", "force_noise"]
    found = kf.identify(guess, readings, tau[:-1], names)
    assert found.converged, found.message
    truth = [0.05, 0.02, *inertial_parameters(two_rods())[1], 1e-6, 1e-4, 0, 0, 0, 0.04, 0.04]
    known = np.isfinite(found.stderr)
    assert known.sum() == 13 and len(found.unidentified) == 6
    assert (np.abs(found.params - truth)[known] < 3.5 * found.stderr[known]).all(), found.summary()


@pytest.mark.slow
def test_intervals_cover_as_often_as_they_say():
    """Fifty logs: 95 % intervals of a mass, a damper and the noise within the binomial range."""
    runs, N, hits, errors = 50, 120, [], []
    tau = driven(N)
    for seed in range(runs):
        readings = drawn(moves_of(two_rods()), N, np.random.default_rng(100 + seed), tau, [0.3, -0.2, 0, 0])
        names = ["shoulder/damping", "elbow/damping", "lower/mass"]
        found = kf.identify(moves_of(two_rods()), readings, tau[:-1], names)
        assert found.converged, found.message
        free = ~found.at_bound
        error = np.where(free, (found.params - [0.05, 0.02, 0.8]) / np.where(free, found.stderr, 1.0), -2.0)
        errors.append(error)
        hits.append(np.abs(error) < 1.96)
    low, high = binom.ppf([0.001 / 6, 1 - 0.001 / 6], runs, 0.95)
    counts = np.sum(hits, axis=0)
    assert ((counts >= low) & (counts <= high)).all(), counts
    assert (np.abs(np.mean(errors, axis=0)) < 0.2 + 3 / np.sqrt(runs)).all()


def test_a_profile_is_the_likelihood_with_one_number_held():
    """Against fits with the number fixed by its bounds; and an ellipse reaches as far as its standard errors say."""
    rng, tau = np.random.default_rng(1), driven(120)
    readings = drawn(moves_of(two_rods()), 120, rng, tau, [0.3, -0.2, 0, 0])
    names, values = ["lower/mass", "*/damping"], [0.78, 0.82]
    found = kf.identify(moves_of(two_rods()), readings, tau[:-1], names)
    profile = found.profile("lower/mass", values)
    for value, llf in zip(values, profile):
        held = kf.identify(moves_of(two_rods()), readings, tau[:-1], names, bounds={"lower/mass": (value, value)})
        assert llf == pytest.approx(held.llf, abs=1e-4) and llf < found.llf
    with pytest.raises(ModelError, match="cannot be -1"):
        found.profile("lower/mass", [-1.0])
    ellipsoid = found.ellipsoid(["lower/mass", "shoulder/damping"], alpha=0.05)
    reach = np.sqrt((ellipsoid.axes**2).sum(axis=1))
    np.testing.assert_allclose(reach, np.sqrt(5.991464547) * found.stderr[[0, 1]], rtol=1e-8)
    with pytest.raises(ShapeError, match="names must be a list"):
        found.ellipsoid("lower/mass")
    shorter = kf.identify(moves_of(two_rods()), [y[:60] for y in readings], tau[:59], names[:1])
    with pytest.raises(ModelError, match="different logs"):
        found.likelihood_ratio(shorter)


@pytest.mark.parametrize("start", [{"mass": 0.5}, [0.5]])
def test_numbers_of_a_function_are_those_by_name(start):
    """``build(theta)`` finds what the same number by its name does, with its standard error."""
    rng, tau = np.random.default_rng(1), driven(120)
    readings = drawn(moves_of(two_rods()), 120, rng, tau, [0.3, -0.2, 0, 0])
    found = kf.identify(lambda theta: moves_of(two_rods(masses=(1.2, theta[0]))), readings, tau[:-1], start)
    named = kf.identify(moves_of(two_rods(masses=(1.2, 0.5))), readings, tau[:-1], ["lower/mass"])
    assert found.converged and found.names == (("mass",) if isinstance(start, dict) else ("theta[0]",))
    assert abs(found.params[0] - named.params[0]) < 1e-3 * named.stderr[0]
    assert found.stderr[0] == pytest.approx(named.stderr[0], rel=1e-3)
    assert found.llf == pytest.approx(named.llf, abs=1e-6)


def test_the_search_begins_where_random_forces_have_no_say():
    """Torques regressed on accelerations that random forces moved make every mass light; instruments do not."""
    rng, N = np.random.default_rng(0), 2000
    tau, noisy = driven(N), moves_of(two_rods(), force_noise=4.0)
    readings = drawn(noisy, N, rng, tau, [0.3, -0.2, 0, 0])
    model = moves_of(two_rods(masses=(1.2, 0.5)), force_noise=4.0)
    parameters = Parameters([model], ["lower/mass"])
    start = Start([model], [Log(model, readings, tau[:-1], None)]).regressed(parameters)
    assert parameters.natural(start)[0] == pytest.approx(0.8, abs=0.04)


# --- what is refused


def test_bad_input_is_named():
    tau = driven(20)
    moves = moves_of(two_rods())
    readings = drawn(moves, 20, np.random.default_rng(0), tau, [0.3, -0.2, 0, 0])
    for names, said in (
        (["lower/wieght"], "names no parameter"), ([], "parameters is empty"),
        (["lower/mass", "lower/inertia"], "set the same numbers"),
    ):  # fmt: skip
        with pytest.raises(ModelError, match=said):
            kf.identify(moves, readings, tau[:-1], names)
    with pytest.raises(ShapeError, match="must be a list"):
        kf.identify(moves, readings, tau[:-1], "lower/mass")
    with pytest.raises(ShapeError, match="tau must be"):
        kf.identify(moves, readings, tau[:-1, :1], ["lower/mass"])
    with pytest.raises(ModelError, match=r"takes a kf\.MotionModel"):
        kf.identify(two_rods(), readings, tau[:-1], ["lower/mass"])
    with pytest.raises(ModelError, match="several logs in one array need a prior"):
        kf.identify(moves, [np.stack([y, y]) for y in readings], tau[:-1], ["lower/mass"])
    for options, said in (
        ({"bounds": {"lower/mass": (1.0, 0.5)}}, "leave nothing between"),
        ({"bounds": {"lower/mass": (-2.0, -1.0)}}, "leave nothing that it may be"),
        ({"bounds": {"lower/mass": (np.nan, 1.0)}}, "leave nothing between"),
        ({"bounds": [(0.0, 1.0)]}, "must be a mapping"),
        ({"priors": {"lower/mass": (0.5, -0.1)}}, "positive deviations"),
        ({"priors": {"lower/weight": (0.5, 0.1)}}, "which is not fitted"), ({"fixed": ["lower/mass"]}, "is empty"),
    ):  # fmt: skip
        with pytest.raises((ModelError, ShapeError), match=said):
            kf.identify(moves, readings, tau[:-1], ["lower/mass"], **options)
    with pytest.raises(ShapeError, match="must be a list of names, got None"):
        kf.identify(moves, readings, tau[:-1], None)
    with pytest.raises(ModelError, match="one row has no step"):
        kf.identify(moves, [y[:1] for y in readings], tau[:0], ["lower/mass"])
    with pytest.raises(ModelError, match="has no readings"):
        kf.identify(moves, [np.nan * y for y in readings], tau[:-1], ["lower/mass"])
    with pytest.raises(ModelError, match="tolerance must be positive"):
        kf.identify(moves, readings, tau[:-1], ["lower/mass"], tolerance=0.0)
    exact = kf.MotionModel(two_rods(), 0.01, [S.JointPosition(0.0, name="exact")], force_noise=[1.0, 1.0])
    with pytest.raises(ModelError, match="is 0 in the model"):
        kf.identify(exact, readings[:1], tau[:-1], ["exact/cov"])


def test_inertias_that_no_positive_mass_has_are_named_before_they_are_fitted():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        arm = kf.models.puma560()
    with pytest.raises(ModelError, match=r"'link_3': principal moments .* no positive mass"):
        Parameters([moves_of(arm)], ["link_3/inertia"])
    with pytest.raises(ModelError, match=r"'lower': principal moments .* a plane, a line or a point"):
        Parameters([moves_of(kf.models.double_pendulum())], ["lower/inertia"])


@pytest.mark.parametrize("rows", [2, 8])
def test_logs_of_a_few_rows_are_searched_from_motions_nearby(rows):
    """Noise where motions should be: Gauss–Newton's whole steps diverge; a smoother with a line search goes on."""
    pendulum = kf.models.double_pendulum()
    y = 0.3 + 0.01 * np.random.default_rng(0).normal(size=(rows, 2))
    model = kf.MotionModel(pendulum, 0.01, [kf.sensors.JointPosition(1e-8)], 0.0025, damping=[0.1, 0.1])
    found = kf.identify(model, [y], np.zeros((rows - 1, 2)), ["*/damping", "force_noise"])
    assert np.isfinite(found.params).all() and found.message


def test_sensors_of_one_name_are_refused():
    twins = [kf.sensors.JointPosition(1e-8, name="a"), kf.sensors.JointVelocity(1e-6, name="a")]
    model = kf.MotionModel(kf.models.double_pendulum(), 0.01, twins, 0.0025)
    with pytest.raises(ModelError, match=r"two sensors are called 'a'.*name="):
        kf.identify(model, [np.zeros((3, 2))] * 2, np.zeros((2, 2)), ["a/cov"])
