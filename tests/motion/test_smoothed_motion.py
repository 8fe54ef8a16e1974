"""Smoothed motions against dense least squares by Pinocchio and SciPy, linear algebra, and their own statistics."""

import copy
import pickle

import numpy as np
import pytest
from scipy.optimize import least_squares
from scipy.stats import binom, chi2

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


@pytest.mark.parametrize("model", ["puma560", "free_flyer"])
def test_mode_and_covariances_are_those_of_a_dense_least_squares(model):
    """All unknowns at once, single shooting through Pinocchio's dynamics; free hinges included, priors on manifolds."""
    import pinocchio as pin

    system = getattr(kf.models, model)()
    pinned = pin.buildModelFromXML(kf.save_urdf(system))
    pinned.armature = np.array(kf.to_pinocchio(system, pinned, system.neutral(), system.armature).v)
    pinned.gravity.linear = np.array(system.gravity)
    data = pinned.createData()
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
    E = kf.to_pinocchio(system, pinned, np.tile(guess, (nv, 1)), np.eye(nv)).v.T
    start = kf.to_pinocchio(system, pinned, guess).q
    joint = pinned.getJointId(system.hinge_names[-1])
    L = np.linalg.inv(np.linalg.cholesky(P0))
    base = kf.to_pinocchio(system, pinned, post.q[0]).q

    def shoot(z):
        at, rate, out = pin.integrate(pinned, base, E @ z[:nv]), E @ (post.v[0] + z[nv : 2 * nv]), []
        out.append(L @ np.concatenate([E.T @ pin.difference(pinned, start, at), E.T @ rate]))
        forces = z[2 * nv :].reshape(N - 1, nv)
        out.append((forces / np.sqrt(W)).ravel())
        for k in range(N):
            pin.forwardKinematics(pinned, data, at, rate)
            place = data.oMi[joint]
            target = kf.to_pinocchio(system, pinned, y[k, : system.nq]).q if k != 2 else None
            if target is not None:
                out.append(E.T @ pin.difference(pinned, at, target) / 0.1)
            own = y[k, moves.seen.points_of[1]]
            seen = pin.SE3(pin.Quaternion(own[3:]).matrix(), own[:3])
            gap = pin.log6(place.actInv(seen)).vector
            out.append(np.concatenate([gap[3:], gap[:3]]) / np.sqrt(2e-2))
            out.append((y[k, moves.seen.points_of[2]] - E.T @ rate) / np.sqrt(0.1))
            out.append((y[k, moves.seen.points_of[3]] - data.v[joint].angular) / np.sqrt(0.05))
            if k < N - 1:
                a = pin.aba(pinned, data, at, rate, E @ (tau[k] + forces[k]))
                rate = rate + dt * a
                at = pin.integrate(pinned, at, dt * rate)
        return np.concatenate(out)

    def central(z):
        steps = 1e-4 * np.eye(z.size)
        return np.stack([(shoot(z + d) - shoot(z - d)) / 2e-4 for d in steps], axis=1)

    z0 = np.concatenate([np.zeros(2 * nv), post.force.ravel()])
    found = least_squares(shoot, z0, jac=central, xtol=1e-15, ftol=1e-15, gtol=1e-13)
    assert np.abs(found.x - z0).max() < 2e-7 * (1 + np.abs(z0).max())  # differences of 1e-4 leave 1e-8 of slopes
    J = central(z0)
    cov = np.linalg.inv(J.T @ J)
    np.testing.assert_allclose(post.cov[0], cov[: 2 * nv, : 2 * nv], rtol=0, atol=1e-6 * np.abs(post.cov[0]).max())
    np.testing.assert_allclose(post.force_cov[2], cov[4 * nv : 5 * nv, 4 * nv : 5 * nv], rtol=0, atol=1e-5)


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


def test_two_hundred_motions_are_covered_as_often_as_they_say():
    """Drawn from the model itself: squared errors of the state are χ², and 95 % bands hold 95 %."""
    arm, rng, runs, N, dt = kf.models.double_pendulum(), np.random.default_rng(11), 200, 25, 0.02
    W, P0 = np.array([0.5, 0.2]), np.array([1e-3, 1e-3, 1e-2, 1e-2])
    sensors = [S.JointPosition(1e-5, bias=0.0, name="encoders"), S.Accelerometer("lower", 0.05)]
    moves = kf.MotionModel(arm, dt, sensors, force_noise=W, biases={"encoders": (1e-4, 1e-8)})
    q0 = np.array([0.4, -0.8])
    x = np.concatenate([np.tile(q0, (runs, 1)), np.zeros((runs, 2)), np.zeros((runs, 2))], axis=1)
    x[:, :4] += rng.normal(size=(runs, 4)) * np.sqrt(P0)
    x[:, 4:] += rng.normal(size=(runs, 2)) * 1e-2
    truth, seen = [x], []
    tau = rng.normal(size=(N, 2))
    spread = np.sqrt(np.concatenate([W, [1e-8, 1e-8]]))
    for k in range(N):
        w = rng.normal(size=(runs, 4)) * spread
        u, ks = np.tile(tau[k], (runs, 1)), np.full(runs, k)
        seen.append(moves.read(x, w, u, ks) + rng.normal(size=(runs, 5)) * np.sqrt(np.diag(moves.R)))
        if k < N - 1:
            x = moves.advance(x, w, u, ks)
            truth.append(x)
    truth, seen = np.stack(truth, axis=1), np.stack(seen, axis=1)
    post = kf.iterated_kalman_smoother(moves, [seen[..., :2], seen[..., 2:]], tau=tau, prior=(q0, np.zeros(2), P0))
    assert np.all(post.converged)
    nees = post.nees(truth)
    sizes = nees[:, N // 2]
    assert chi2.ppf(0.001, 6 * runs) < sizes.sum() < chi2.ppf(0.999, 6 * runs)
    error = np.abs(post.error(truth)[:, N // 2]) < 1.96 * post.std()[:, N // 2]
    low, high = binom.ppf([0.001 / 12, 1 - 0.001 / 12], runs, 0.95)
    assert ((error.sum(axis=0) >= low) & (error.sum(axis=0) <= high)).all(), error.mean(axis=0)


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


def test_what_cannot_be_is_named():
    arm = kf.models.puma560()
    make = {"force_noise": np.ones(6)}
    with pytest.raises(ModelError, match="time does not run backwards"):
        kf.MotionModel(arm, -0.01, [S.JointPosition(1.0)], **make)
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
