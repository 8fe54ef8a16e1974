"""Smoothed motions against dense least squares by Pinocchio and SciPy, linear algebra, and their own statistics."""

import copy
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from differences import richardson
from scipy.optimize import least_squares

import kfdyn as kf
from kfdyn.errors import KfdynError, ModelError, ShapeError

S = kf.sensors


def simulated(system, dt, N, rng, q0, W, spread=0.5):
    """A motion under known torques and random forces, by the step of simulate."""
    nv = system.nv
    tau = spread * rng.normal(size=(N - 1, nv))
    w = rng.normal(size=(N - 1, nv)) * np.sqrt(W)
    q, v = [q0], [np.zeros(nv)]
    for k in range(N - 1):
        run = kf.simulate(system, q[-1], v[-1], [0.0, dt], tau[k] + w[k], method="euler")
        q.append(run.q[-1])
        v.append(run.v[-1])
    return np.array(q), np.array(v), tau, w


def tree_of_balls():
    """A body afloat that carries a ball joint, a hinge and another ball joint."""
    return kf.models.random_tree(4, seed=5, hinges=["free", "ball", "revolute", "ball"], branching=0.3)


@pytest.mark.parametrize("make", [kf.models.puma560, tree_of_balls])
def test_mode_and_covariances_are_those_of_a_dense_least_squares(make, monkeypatch):
    """All unknowns at once, single shooting through Pinocchio's dynamics; priors and readings on manifolds, too."""
    pin = pytest.importorskip("pinocchio")
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "external"))
    from pinocchio_models import pinocchio_model

    system = make()
    peer = pinocchio_model(system)
    pinned, data = peer.model, peer.data
    rng, dt, N, nv = np.random.default_rng(3), 0.05, 6, system.nv
    W, q0 = np.full(nv, 4.0), system.random_configuration(rng)
    q, v, tau, _ = simulated(system, dt, N, rng, q0, W)
    frame = system.body_names[-1]
    sensors = [S.JointPosition(1e-2), S.Pose(frame, 2e-2), S.JointVelocity(0.1), S.Gyroscope(frame, 0.05)]
    moves = kf.MotionModel(system, dt, sensors, force_noise=W)
    x = np.concatenate([q, v], axis=1)
    points = moves.seen.points
    clean = moves.read(x, np.zeros((N, nv)), None, np.arange(N))
    y = points.plus(clean, rng.normal(size=(N, points.tangent_size)) * np.sqrt(np.diag(moves.R)))
    y[2, moves.seen.points_of[0]] = np.nan
    readings = [y[:, own] for own in moves.seen.points_of]
    guess = kf.integrate(system, q0, 0.3 * rng.normal(size=nv))
    factor = rng.normal(size=(2 * nv, 2 * nv))
    P0 = 0.02 * factor @ factor.T + 0.05 * np.eye(2 * nv)
    post = kf.iterated_kalman_smoother(moves, readings, tau=tau, prior=(guess, np.zeros(nv), P0), tolerance=1e-11)
    assert post.converged, post.message

    # The same problem by other means: x0 in the tangent at our mode, forces as they are.
    E = np.zeros((nv, nv))
    E[peer.v_index, range(nv)] = 1.0
    start, base, own_frame = peer.q(guess), peer.q(post.q[0]), peer.frame[frame]
    L = np.linalg.inv(np.linalg.cholesky(P0))

    def shoot(z):
        at, rate, out = pin.integrate(pinned, base, E @ z[:nv]), E @ (post.v[0] + z[nv : 2 * nv]), []
        out.append(L @ np.concatenate([E.T @ pin.difference(pinned, start, at), E.T @ rate]))
        forces = z[2 * nv :].reshape(N - 1, nv)
        out.append((forces / np.sqrt(W)).ravel())
        for k in range(N):
            pin.forwardKinematics(pinned, data, at, rate)
            place = pin.updateFramePlacement(pinned, data, own_frame)
            if k != 2:
                out.append(E.T @ pin.difference(pinned, at, peer.q(y[k, : system.nq])) / 0.1)
            own = y[k, moves.seen.points_of[1]]
            seen = pin.SE3(pin.Quaternion(own[3:]).matrix(), own[:3])
            gap = pin.log6(place.actInv(seen)).vector
            out.append(np.concatenate([gap[3:], gap[:3]]) / np.sqrt(2e-2))
            out.append((y[k, moves.seen.points_of[2]] - E.T @ rate) / np.sqrt(0.1))
            turning = pin.getFrameVelocity(pinned, data, own_frame).angular
            out.append((y[k, moves.seen.points_of[3]] - turning) / np.sqrt(0.05))
            if k < N - 1:
                a = pin.aba(pinned, data, at, rate, E @ (tau[k] + forces[k]))
                rate = rate + dt * a
                at = pin.integrate(pinned, at, dt * rate)
        return np.concatenate(out)

    def slopes(z):
        return richardson(lambda d: shoot(z + d), z.size, 1e-3)

    z0 = np.concatenate([np.zeros(2 * nv), post.force.ravel()])
    found = least_squares(shoot, z0, jac=slopes, xtol=1e-15, ftol=1e-15, gtol=1e-13)
    assert np.abs(found.x - z0).max() < 1e-8 * (1 + np.abs(z0).max())
    J = slopes(z0)
    cov = np.linalg.inv(J.T @ J)
    np.testing.assert_allclose(post.cov[0], cov[: 2 * nv, : 2 * nv], rtol=0, atol=1e-8 * np.abs(post.cov[0]).max())
    own = slice(4 * nv, 5 * nv)
    np.testing.assert_allclose(post.force_cov[2], cov[own, own], rtol=0, atol=1e-8 * np.abs(post.force_cov[2]).max())


def test_slides_are_a_linear_model():
    """A cart on a slide: the engine's smoother on the chain that one writes by hand."""
    cart = kf.System([kf.Body("cart", np.diag([0, 0, 0, 2.0, 2.0, 2.0]), kf.Hinge.prismatic([1, 0, 0]))])
    rng, dt, N = np.random.default_rng(0), 0.1, 30
    tau, y = rng.normal(size=(N - 1, 1)), rng.normal(size=(N, 1))
    y[7] = np.nan
    moves = kf.MotionModel(cart, dt, [S.JointPosition(0.04)], force_noise=[3.0])
    post = kf.iterated_kalman_smoother(moves, [y], tau=tau, prior=([0.1], [0.2], [0.5, 0.7]))
    F, B = np.array([[1.0, dt], [0.0, 1.0]]), np.array([[dt**2 / 2.0], [dt / 2.0]])
    ss = kf.StateSpace.chain(
        F, np.array([[1.0, 0.0]]), 3.0 * B @ B.T, [[0.04]], [0.1, 0.2], np.diag([0.5, 0.7]), inputs=tau @ B.T, steps=N
    )
    smooth = kf.bryson_frazier(ss, kf.kalman_filter(ss, y.ravel()))
    np.testing.assert_allclose(post.x, smooth.x.stacked(), rtol=0, atol=1e-12)
    np.testing.assert_allclose(post.cov, smooth.S.stacked(), rtol=0, atol=1e-12)
    assert post.llf == pytest.approx(kf.kalman_filter(ss, y.ravel()).llf, rel=1e-11)
    filt = kf.extended_kalman_filter(moves, [y], tau=tau, prior=([0.1], [0.2], [0.5, 0.7]))
    np.testing.assert_allclose(filt.q[:, 0], [z[0] for z in kf.kalman_filter(ss, y.ravel()).z_plus], rtol=0, atol=1e-12)
    points = kf.unscented_kalman_filter(moves, [y], tau=tau, prior=([0.1], [0.2], [0.5, 0.7]))
    np.testing.assert_allclose(points.x, filt.x, rtol=0, atol=1e-9)


def test_a_payload_is_a_wrench_that_nobody_ordered():
    """A weight of 20 N hangs at the tip: the walking wrench finds it, and its deviation says how well."""
    arm, rng, dt, N = kf.models.puma560(), np.random.default_rng(1), 0.01, 120
    q0 = np.array([0.2, -0.4, 0.5, 0.1, 0.3, 0.0])
    weight = np.array([0, 0, 0, 0, 0, -20.0])
    q, v = q0[None], np.zeros((1, 6))
    stepper = kf.MotionModel(arm, dt, [], np.ones(6), wrenches={"link_6": (1.0, 1.0)}).stepper
    held = kf.inverse_dynamics(arm, q0, np.zeros(6), np.zeros(6))
    path = [(q, v)]
    for _ in range(N - 1):
        q, v = stepper.step(q, v, held[None], weight[None])
        path.append((q, v))
    y = np.concatenate([q for q, _ in path]) + 1e-4 * rng.normal(size=(N, 6))
    moves = kf.MotionModel(
        arm, dt, [S.JointPosition(1e-8)], 1e-2 * np.ones(6), wrenches={"link_6": ([1e-4] * 3 + [1e4] * 3, 1e-6)}
    )
    post = kf.iterated_kalman_smoother(moves, [y], tau=np.tile(held, (N - 1, 1)), prior=(q0, np.zeros(6), [1e-6] * 12))
    assert post.converged
    gap = post.wrenches["link_6"][-1][3:] - weight[3:]
    assert np.abs(gap).max() < 1.0 and (np.abs(gap) < 4 * post.std("link_6")[-1][3:]).all()


def test_a_model_and_its_answer_can_be_sent_to_another_process():
    arm = kf.models.double_pendulum()
    for sensors in ([S.JointPosition(1e-4)], [S.JointPosition(1e-4), S.Accelerometer("lower", 0.1)]):
        moves = kf.MotionModel(arm, 0.01, sensors, force_noise=np.ones(2))
        y = [np.zeros((6, sensor.size(arm))) for sensor in sensors]
        prior = (np.zeros(2), np.zeros(2), 0.1)
        want = kf.iterated_kalman_smoother(moves, y, prior=prior)
        for again in (copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))):
            assert np.array_equal(kf.iterated_kalman_smoother(again(moves), y, prior=prior).x, want.x)
        means = kf.iterated_kalman_smoother(moves, y, prior=prior, covariances=False)
        assert pickle.loads(pickle.dumps(means)).llf == pytest.approx(want.llf, rel=1e-12)


def series_elastic(bodies):
    """An arm in whose joints a spring is between motor and link."""
    drive = kf.FlexibleJoint(stiffness=80.0, damping=0.2, rotor_inertia=1e-4, ratio=50.0)
    return kf.System([part for body in bodies for part in drive.split(body)]), drive


def test_joints_that_give_way_are_two_hinges_and_a_spring():
    """The plant is a system that bends; motors are read, and how far the springs give way is found with its bands."""
    links = kf.models.uniform_chain(2, length=0.5).bodies
    arm, drive = series_elastic(links)
    giving = [replace(body, hinge=replace(body.hinge, flexible=drive)) for body in links]
    plant = kf.FlexibleSystem(giving)
    assert plant.dof_names == arm.hinge_names
    rng, dt, N = np.random.default_rng(4), 0.002, 300
    tau = np.zeros((N - 1, 4))
    tau[:, 0::2] = 2.0 * np.sin(20.0 * dt * np.arange(N - 1))[:, None] * [1.0, 0.5]
    push = rng.normal(size=(N - 1, 4)) * [0.3, 0.05, 0.2, 0.05]
    q0 = np.array([0.3, 0.02, -0.2, 0.01])

    def ordered(t, q, v):
        return (tau + push)[min(round(t / dt), N - 2)]

    run = kf.simulate(plant, q0, np.zeros(4), dt * np.arange(N), ordered, method="euler")
    motors = [name for name in arm.hinge_names if "/" not in name]
    moves = kf.MotionModel(
        arm, dt, [S.JointPosition(1e-8, hinges=motors)], np.square([0.3, 0.05, 0.2, 0.05]), stiffness=True, damping=True
    )
    x = np.concatenate([run.q, run.v], axis=1)
    ahead = moves.advance(x[:-1], push, tau, np.arange(N - 1))
    np.testing.assert_allclose(ahead, x[1:], rtol=0, atol=1e-11 * np.abs(x).max())
    seen = run.q[:, 0::2] + 1e-4 * rng.normal(size=(N, 2))
    post = kf.iterated_kalman_smoother(moves, [seen], tau=tau, prior=(q0, np.zeros(4), np.full(8, 1e-4)))
    assert post.converged and (np.abs(post.q - run.q) < 1.96 * post.std("q")).mean() > 0.8
    assert np.abs(post.q - run.q)[:, 1::2].max() < 0.3 * np.abs(run.q[:, 1::2]).max()
    with pytest.raises(ModelError, match=r"is two hinges of a rigid System by FlexibleJoint.split"):
        kf.MotionModel(plant, dt, [], 1.0)


def test_what_cannot_be_is_named():
    arm = kf.models.puma560()
    make = {"force_noise": np.ones(6)}
    for dt in (-0.01, 0.0, np.nan, [0.0, 0.01], "0.01"):
        with pytest.raises(ModelError, match="time does not run backwards"):
            kf.MotionModel(arm, dt, [S.JointPosition(1.0)], **make)
    with pytest.raises(ModelError, match="sensors must be a list"):
        kf.MotionModel(arm, 0.01, None, **make)
    with pytest.raises(
        ShapeError, match=r"JointPosition\(\) reads 6 numbers; its cov must be a number, \(6,\) or \(6, 6\)"
    ):
        kf.MotionModel(arm, 0.01, [S.JointPosition(np.ones(5))], **make)
    with pytest.raises(ModelError, match="no body or frame 'hand'"):
        kf.MotionModel(arm, 0.01, [S.Position("hand", 1.0)], **make)
    with pytest.raises(ModelError, match=r"ExternalForce\('link_6'\) has no place in a motion"):
        kf.MotionModel(arm, 0.01, [S.ExternalForce("link_6", 1.0)], **make)
    with pytest.raises(ModelError, match="which estimate_dynamics is given"):
        kf.estimate_dynamics(arm, np.zeros(6), None, [S.JointPosition(1.0)], [np.zeros(6)])
    moves = kf.MotionModel(arm, 0.01, [S.JointPosition(1.0), S.Position("link_6", 1.0)], **make)
    with pytest.raises(ShapeError, match=r"Position\('link_6'\): its readings must be \(N, 3\), got shape \(9, 2\)"):
        kf.iterated_kalman_smoother(moves, [np.zeros((9, 6)), np.zeros((9, 2))])
    with pytest.raises(ShapeError, match="all have one row a step"):
        kf.iterated_kalman_smoother(moves, [np.zeros((9, 6)), np.zeros((8, 3))])
    with pytest.raises(ShapeError, match="1 readings for 2 sensors"):
        kf.iterated_kalman_smoother(moves, [np.zeros((9, 6))])
    with pytest.raises(KfdynError, match=r"u has shape .* must have 9 rows, or 8"):
        kf.iterated_kalman_smoother(moves, [np.zeros((9, 6)), None], tau=np.zeros((5, 6)))
    with pytest.raises(ModelError, match=r"prior must be \(q0, v0, P0\)"):
        kf.MotionModel(arm, 0.01, [S.JointPosition(1.0)], prior=np.zeros(6), **make)
    looped = kf.models.double_pendulum().with_loops([kf.Loop("lower", None, rows=(3,))])
    with pytest.raises(ModelError, match="has 1 loop"):
        kf.MotionModel(looped, 0.01, [], force_noise=np.ones(2))
