"""Derivatives of frames, of integrate and difference, of steps and of sensors, against differences."""

import warnings

import numpy as np
import pytest
from differences import richardson, richardson_rows
from hypothesis import given, settings
from hypothesis import strategies as st
from long_double import LongTree

import kfdyn as kf
from kfdyn.errors import ModelError, ShapeError
from kfdyn.motion.step import METHODS, Stepper
from kfdyn.multibody.frame_derivatives import force_derivatives
from kfdyn.multibody.tangents import Points

seeds = st.integers(0, 10**6)
few = settings(max_examples=12)
S = kf.sensors


def robot(seed):
    """A random tree of every hinge but the custom one, or a floating one, or one with gears."""
    if seed % 5 == 0:
        return kf.models.free_flyer()
    if seed % 5 == 1:
        arm = kf.models.puma560()
        names = arm.hinge_names
        return arm.with_couplings([kf.Coupling(names[1:3], [[1.0], [-0.5]], [0.0, 0.1])])
    tree = kf.models.random_tree(7, seed)
    while any(body.hinge.kind == "custom" for body in tree.bodies):
        seed += 1
        tree = kf.models.random_tree(7, seed)
    return tree


def state(system, seed):
    rng = np.random.default_rng(seed)
    return (system.random_configuration(rng), *rng.normal(size=(3, system.nv)))


@few
@given(seeds)
def test_frames(seed):
    system = robot(seed)
    q, v, a, _ = state(system, seed)
    frame = system.open_tree.body_names[seed % system.n_bodies]
    V, A = kf.frame_velocity_derivatives(system, q, v, frame), kf.frame_acceleration_derivatives(system, q, v, a, frame)
    n, scale = system.nv, 1 + np.abs(A.dA_dq).max() + np.abs(A.dA_dv).max()

    def moved(d):
        return kf.integrate(system, q, d)

    near = {"rtol": 0, "atol": 3e-9 * scale}  # of differences
    np.testing.assert_allclose(V.dV_dq, richardson(lambda d: kf.frame_velocity(system, moved(d), v, frame), n), **near)
    np.testing.assert_allclose(
        A.dA_dq, richardson(lambda d: kf.frame_acceleration(system, moved(d), v, a, frame), n), **near
    )
    np.testing.assert_allclose(
        A.dA_dv, richardson(lambda d: kf.frame_acceleration(system, q, v + d, a, frame), n), **near
    )
    J = kf.jacobian(system, q, frame)
    assert np.array_equal(A.dA_da, J) or np.allclose(A.dA_da, J, rtol=0, atol=1e-14 * scale)
    np.testing.assert_allclose(V.dV_dv, A.dA_da, rtol=0, atol=1e-14 * scale)
    f = np.random.default_rng(seed).normal(size=6)
    torque, turned = force_derivatives(system, q[None], f[None], frame)
    np.testing.assert_allclose(torque[0], f @ J, rtol=0, atol=1e-13 * scale)
    np.testing.assert_allclose(turned[0], richardson(lambda d: f @ kf.jacobian(system, moved(d), frame), n), **near)


@pytest.mark.parametrize("model", ["puma560", "stanford_arm"])
def test_frames_are_pinocchios(model):
    """Pinocchio's derivatives of the velocity and acceleration of a frame, in its tangent: [linear; angular] bases."""
    import pinocchio as pin

    system = getattr(kf.models, model)()
    pinned = pin.buildModelFromXML(kf.save_urdf(system))
    q, v, a, _ = state(system, 4)
    frame = system.body_names[-1]
    there = kf.to_pinocchio(system, pinned, q, v, a)
    data = pinned.createData()
    pin.computeForwardKinematicsDerivatives(pinned, data, there.q, there.v, there.a)
    joint = pinned.getJointId(system.hinge_names[-1])
    v_q, a_q, a_v, a_a = pin.getPointClassicAccelerationDerivatives(
        pinned, data, joint, pin.SE3.Identity(), pin.LOCAL_WORLD_ALIGNED
    )
    ours = kf.frame_acceleration_derivatives(system, q, v, a, frame)
    velocity = kf.frame_velocity_derivatives(system, q, v, frame)
    # columns: v of kfdyn in Pinocchio's coordinates
    E = kf.to_pinocchio(system, pinned, np.tile(q, (system.nv, 1)), np.eye(system.nv)).v.T
    for mine, theirs in ((velocity.dV_dq, v_q), (ours.dA_dq, a_q), (ours.dA_dv, a_v), (ours.dA_da, a_a)):
        np.testing.assert_allclose(mine[3:], theirs @ E, rtol=0, atol=1e-10 * (1 + np.abs(theirs).max()))


@few
@given(seeds)
def test_integrate_and_difference(seed):
    system = robot(seed)
    rng, n = np.random.default_rng(seed), system.nv
    q, d = system.random_configuration(rng), 0.7 * rng.normal(size=system.nv)
    q2 = kf.integrate(system, q, d)
    of, gap = kf.integrate_derivatives(system, q, d), kf.difference_derivatives(system, q, q2)

    def moved(x, e):
        return kf.integrate(system, x, e)

    scale = 1 + np.abs(of.first).max() + np.abs(gap.first).max()
    for mine, f in (
        (of.first, lambda e: kf.difference(system, q2, moved(moved(q, e), d))),
        (of.second, lambda e: kf.difference(system, q2, moved(q, d + e))),
        (gap.first, lambda e: kf.difference(system, moved(q, e), q2)),
        (gap.second, lambda e: kf.difference(system, q, moved(q2, e))),
    ):
        np.testing.assert_allclose(mine, richardson(f, n, 1e-3), rtol=0, atol=1e-8 * scale)
    points = Points.of(system)
    np.testing.assert_allclose(points.plus(q[None], d[None])[0], q2, rtol=0, atol=1e-13 * scale)
    np.testing.assert_allclose(
        points.minus(q2[None], q[None])[0], kf.difference(system, q, q2), rtol=0, atol=1e-12 * scale
    )


@few
@given(seeds, st.sampled_from(METHODS), st.booleans())
def test_steps(seed, method, pushed):
    system = robot(seed)
    q, v, _, tau = state(system, seed)
    n = system.nv
    plain = not Points.of(system).blocks and system.is_tree
    rng = np.random.default_rng(seed)
    drive = {"damping": rng.uniform(0, 1, n), "stiffness": rng.uniform(0, 3, n)} if plain else {}
    if system.is_tree:
        drive |= {"friction": rng.uniform(0, 1, n), "friction_speed": 0.5}
    frames = (system.open_tree.body_names[-1],) if pushed else ()
    stepper = Stepper(system, 0.02, method, wrenches=frames, **drive)
    wrench = rng.normal(size=(1, 6)) if pushed else None
    q1, v1, F, B = stepper.linear_step(q[None], v[None], tau[None], wrench)

    def after(d):
        start = stepper.points.plus(q[None], d[None, :n])
        force = None if wrench is None else wrench + d[None, 3 * n :]
        there = stepper.step(start, v[None] + d[n : 2 * n], tau[None] + d[2 * n : 3 * n], force)
        return np.concatenate([stepper.points.minus(there[0], q1)[0], (there[1] - v1)[0]])

    J = richardson(after, 3 * n + 6 * pushed)
    scale = np.abs(J).max()
    np.testing.assert_allclose(F[0], J[:, : 2 * n], rtol=0, atol=1e-8 * scale)
    np.testing.assert_allclose(B[0], J[:, 2 * n :], rtol=0, atol=1e-8 * scale)
    if not pushed:  # it is the step of simulate
        run = kf.simulate(system, q, v, [0.0, 0.02], tau, method=method, **drive)
        np.testing.assert_allclose(run.q[-1], q1[0], rtol=0, atol=1e-13 * (1 + np.abs(q1).max()))
        np.testing.assert_allclose(run.v[-1], v1[0], rtol=0, atol=1e-12 * (1 + np.abs(v1).max()))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seed", [0, 1, 2])  # afloat, geared, all hinges
def test_many_rows_are_blocks_that_fit_the_cache(seed, method):
    system, rows = robot(seed), 150
    rng = np.random.default_rng(seed)
    q = np.array([system.random_configuration(rng) for _ in range(rows)])
    v, tau = rng.normal(size=(2, rows, system.nv))
    wrench, stepper = rng.normal(size=(rows, 6)), Stepper(system, 0.02, method, wrenches=(system.body_names[-1],))
    some = (slice(i, i + 7) for i in range(0, rows, 7))
    parts = list(zip(*(stepper.linear_step(q[own], v[own], tau[own], wrench[own]) for own in some)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kfdyn.motion.step._CACHE", 1)
        found = stepper.linear_step(q, v, tau, wrench)
    for mine, theirs in zip(found, parts):
        theirs = np.concatenate(theirs)
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-12 * np.abs(theirs).max())


@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="long doubles are doubles here")
@pytest.mark.parametrize(
    "kind",
    ["revolute", "prismatic", "helical", "cylindrical", "universal", "gimbal", "planar", "ball", "free"],
)
def test_steps_in_long_double(kind):
    """Against differences of steps that Newton's and Euler's equations give in extended precision."""
    system = kf.models.random_tree(3, seed=3, hinges=[kind, "revolute", kind], branching=0.5)
    rng = np.random.default_rng(1)
    q, (v, tau) = system.random_configuration(rng), rng.normal(size=(2, system.nv))
    of, J = kf.step_derivatives(system, q, v, tau, 0.02), LongTree(system).jacobian(q, v, tau, 0.02)
    np.testing.assert_allclose(np.hstack([of.F, of.B]), J, rtol=0, atol=1e-12 * np.abs(J).max())


def test_step_derivatives_broadcast_and_match_the_formula():
    arm = kf.models.puma560()
    rng = np.random.default_rng(0)
    q, v, tau, dt = *rng.normal(size=(2, 3, 1, 6)), rng.normal(size=(4, 6)), 0.01
    of = kf.step_derivatives(arm, q, v, tau, dt)
    assert of.F.shape == (3, 4, 12, 12) and of.B.shape == (3, 4, 12, 6) and of.q.shape == of.v.shape == (3, 4, 6)
    a_q, a_v, a_tau = kf.forward_dynamics_derivatives(arm, q, v, tau)
    np.testing.assert_allclose(of.F[..., :6, :6], np.eye(6) + dt**2 * a_q, rtol=0, atol=1e-14)
    np.testing.assert_allclose(of.F[..., :6, 6:], dt * (np.eye(6) + dt * a_v), rtol=0, atol=1e-14)
    np.testing.assert_allclose(of.B[..., 6:, :], dt * a_tau, rtol=0, atol=1e-14)
    with pytest.raises(ModelError, match="time does not run backwards"):
        kf.step_derivatives(arm, q, v, tau, -0.01)
    with pytest.raises(ModelError, match="method must be one of 'euler', 'implicit', 'rk4'"):
        kf.step_derivatives(arm, q, v, tau, 0.01, method="leapfrog")
    with pytest.raises(ShapeError, match="damping must be True, or 6 numbers"):
        kf.step_derivatives(arm, q, v, tau, 0.01, damping=[1.0, 2.0])


def every_sensor(frame):
    return [
        S.JointPosition(1.0), S.JointVelocity(1.0), S.Position(frame, 1.0), S.Velocity(frame, 1.0), S.Pose(frame, 1.0),
        S.Orientation(frame, 1.0), S.Gyroscope(frame, 1.0), S.CenterOfMass(1.0), S.Contact(frame, 1.0),
        S.Accelerometer(frame, 1.0), S.Imu(frame, 1.0), S.AngularAcceleration(frame, 1.0), S.JointAcceleration(1.0),
        S.JointTorque(1.0),
    ]  # fmt: skip


@few
@given(seeds)
def test_sensors_in_time(seed):
    """Jacobians of every sensor in the state, in the disturbance and in a wrench."""
    system = robot(seed)
    q, v, w, tau = state(system, seed)
    frame = system.open_tree.body_names[-1]
    sensors = every_sensor(frame)
    if system.is_tree:
        middle = system.body_names[len(system.body_names) // 2]
        sensors += [S.ForceTorque(middle, 1.0), S.ForceTorque(frame, 1.0, direction="parent_to_child")]
    model = kf.MotionModel(
        system, 0.01, sensors, force_noise=np.ones(system.nv),
        biases={"JointVelocity()": (1.0, 1e-3)}, wrenches={frame: (1.0, 0.1)},
    )  # fmt: skip
    rng = np.random.default_rng(seed)
    x = np.concatenate([q, v, rng.normal(size=model.n - 2 * system.nv)])[None]
    w = np.concatenate([w, np.zeros(model.p - system.nv)])[None]
    h, H, H_w = model.linear_read(x, w, tau[None], np.zeros(1, int))
    points = model.seen.points

    def tiled(rows):
        return np.tile(x, (rows, 1)), np.tile(w, (rows, 1)), np.tile(tau, (rows, 1)), np.zeros(rows, int)

    def of_x(d):
        base, noise, force, k = tiled(len(d))
        return points.minus(model.read(model.states.plus(base, d), noise, force, k), np.tile(h, (len(d), 1)))

    def of_w(d):
        base, noise, force, k = tiled(len(d))
        return points.minus(model.read(base, noise + d, force, k), np.tile(h, (len(d), 1)))

    scale = 1 + np.abs(H).max()
    np.testing.assert_allclose(H[0], richardson_rows(of_x, model.n), rtol=0, atol=1e-8 * scale)
    np.testing.assert_allclose(H_w[0], richardson_rows(of_w, model.p), rtol=0, atol=1e-8 * scale)
    f, F, B = model.linear_step(x, w, tau[None], np.zeros(1, int))
    np.testing.assert_allclose(f, model.advance(x, w, tau[None], np.zeros(1, int)), rtol=0, atol=1e-13 * scale)

    def after(d, e):
        base, noise, force, k = tiled(len(d))
        there = model.advance(model.states.plus(base, d), noise + e, force, k)
        return model.states.minus(there, np.tile(f, (len(d), 1)))

    size = 1 + np.abs(F).max()
    F_near = richardson_rows(lambda d: after(d, np.zeros(model.p)), model.n)
    B_near = richardson_rows(lambda e: after(np.zeros((len(e), model.n)), e), model.p)
    np.testing.assert_allclose(F[0], F_near, rtol=0, atol=1e-8 * size)
    np.testing.assert_allclose(B[0], B_near, rtol=0, atol=1e-8 * size)


def test_an_accelerometer_in_time_reads_what_it_reads_at_one_instant():
    """The same sensors in estimate_dynamics, with q and v known and exact torques."""
    arm = kf.models.puma560()
    q, v, _, tau = state(arm, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of link_3's inertia, as published
        turn = kf.spatial.rotation_from_rpy([0.4, 0.2, -0.5])
        arm = kf.System(arm.bodies, frames={"flange": kf.Frame("link_5", turn, [0.1, 0.2, -0.3])})
    for sensor in (
        S.Accelerometer("link_6", 1e-4), S.Imu("link_6", 1e-4), S.JointAcceleration(1e-4), S.ForceTorque("link_4", 1.0),
        S.ForceTorque("joint_5", 1.0, frame="flange", direction="parent_to_child"),
    ):  # fmt: skip
        model = kf.MotionModel(arm, 0.01, [sensor], force_noise=np.ones(6))
        estimate = kf.estimate_dynamics(
            arm, q, v, [S.JointTorque(0.0), sensor], [tau, np.full(6, np.nan)[: model.seen.points.size]]
        )
        x = np.concatenate([q, v])[None]
        read = model.read(x, np.zeros((1, 6)), tau[None], np.zeros(1, int))[0]
        np.testing.assert_allclose(read, estimate.predicted[1], rtol=0, atol=1e-10 * np.abs(read).max())
