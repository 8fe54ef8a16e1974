"""Sigma points against filterpy, against exact moments, and on manifolds."""

import numpy as np
import pytest
from dense_mode import between, right_jacobian, turn
from filterpy.kalman import MerweScaledSigmaPoints, UnscentedKalmanFilter

import kfdyn as kf
from kfdyn.errors import ModelError, ShapeError, SingularError

dt = 0.1


def step(x, k):
    v = x[:, 1] - dt * 9.81 * np.sin(x[:, 0]) + 0.01 * x[:, 2] * x[:, 1]
    return np.stack([x[:, 0] + dt * v, v, 0.9 * x[:, 2] + 0.1 * np.cos(x[:, 0])], axis=1)


def observe(x, k):
    return np.stack([np.sin(x[:, 0]), x[:, 1] * x[:, 2]], axis=1)


Q, R = np.diag([1e-3, 0.02, 0.01]) + 1e-3, np.array([[0.05, 0.01], [0.01, 0.2]])
x0, P0 = np.array([0.3, 0.1, 1.0]), np.diag([0.2, 0.4, 0.1]) + 0.02


@pytest.mark.parametrize("weights", [(1.0, 0.0, 1.0), (0.5, 2.0, 0.0), (1e-1, 2.0, 0.5), (1.0, 0.0, 0.0)])
def test_the_same_as_filterpy_on_additive_models(weights):
    rng = np.random.default_rng(0)
    y = rng.normal(size=(60, 2))
    model = kf.NonlinearModel(step, observe, Q, R, x0, P0)
    found = kf.unscented_kalman_filter(model, y, points=kf.SigmaPoints(*weights))
    peer = UnscentedKalmanFilter(
        3, 2, dt, lambda x: observe(x[None], 0)[0], lambda x, dt: step(x[None], 0)[0],
        MerweScaledSigmaPoints(3, *weights),
    )  # fmt: skip
    peer.x, peer.P, peer.Q, peer.R = x0.copy(), P0.copy(), Q, R
    peer.sigmas_f = peer.points_fn.sigma_points(peer.x, peer.P)  # the first reading comes before any prediction
    llf = 0.0
    for k in range(60):
        if k:
            peer.predict()
            np.testing.assert_allclose(found.x_predicted[k], peer.x, rtol=1e-9, atol=1e-10)
            np.testing.assert_allclose(found.cov_predicted[k], peer.P, rtol=1e-9, atol=1e-10)
        peer.update(y[k])
        llf += peer.log_likelihood
        np.testing.assert_allclose(found.x[k], peer.x, rtol=1e-9, atol=1e-10)
        np.testing.assert_allclose(found.cov[k], peer.P, rtol=1e-9, atol=1e-10)
        np.testing.assert_allclose(found.D[k], peer.S, rtol=1e-9, atol=1e-10)
        np.testing.assert_allclose(found.innovations[k], peer.y, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(found.llf, llf, rtol=1e-9)


def test_moments_of_a_quadratic_are_exact():
    """x ~ N(1, 1/4): the mean of x² is 5/4; with α² (n + κ) = 3 the fourth moment, so the variance too, is right."""
    model = kf.NonlinearModel(lambda x, k: x**2, lambda x, k: x, 0.0, 1.0, [1.0], [0.25])
    found = kf.unscented_kalman_filter(model, [[np.nan], [np.nan]], points=kf.SigmaPoints(1.0, 0.0, 2.0))
    np.testing.assert_allclose(found.x_predicted[1], 1.25, rtol=1e-14)
    np.testing.assert_allclose(found.cov_predicted[1], 4 * 1 * 0.25 + 2 * 0.25**2, rtol=1e-13)


def test_noise_inside_step_is_spread_over():
    """step(x, w) = w²: with x and w in the points, the mean is the variance of w."""
    model = kf.NonlinearModel(lambda x, w, k: w**2, lambda x, k: x, 0.7, 1.0, [0.0], [0.0])
    found = kf.unscented_kalman_filter(model, [[np.nan], [np.nan]])
    np.testing.assert_allclose(found.x_predicted[1], 0.7, rtol=1e-14)


def test_a_reading_that_sees_the_noise_tells_of_it():
    """y = w exactly: after the reading w is known, and the next state is too."""
    model = kf.NonlinearModel(lambda x, w, k: x + w, lambda x, w, k: w, 1.0, 0.0, [0.0], [0.0])
    for estimate in (kf.extended_kalman_filter, kf.unscented_kalman_filter):
        found = estimate(model, [[0.5], [-0.2], [np.nan]])
        np.testing.assert_allclose(found.x.ravel(), [0.0, 0.5, 0.3], atol=1e-14)
        np.testing.assert_allclose(found.cov, 0, atol=1e-14)


def test_singular_covariances_have_sigma_points():
    model = kf.NonlinearModel(step, observe, np.diag([0.0, 0.1, 0.0]), R, x0, np.diag([0.2, 0.0, 0.0]))
    y = np.random.default_rng(1).normal(size=(20, 2))
    found = kf.unscented_kalman_filter(model, y)
    assert np.isfinite(found.cov).all()
    assert (np.linalg.eigvalsh(found.cov) > -1e-12).all()


def rotation_model(Q=0.01, R=0.1, P0=0.2):
    return kf.NonlinearModel(
        lambda x, k: turn(x, np.tile([0.3, -0.2, 0.1], (len(x), 1))), lambda x, k: x,
        Q * np.eye(3), R * np.eye(3), [0.0, 0.0, 0.0, 1.0], P0 * np.eye(3),
        plus=turn, minus=between, plus_jacobian=right_jacobian,
        reading_plus=turn, reading_minus=between, reading_jacobian=right_jacobian,
    )  # fmt: skip


def test_the_mean_of_rotations_has_no_mean_tangent():
    from kfdyn.estimation.nonlinear.manifold import Manifold
    from kfdyn.estimation.nonlinear.unscented import mean_of

    rng = np.random.default_rng(2)
    points = turn(np.tile([0.0, 0.0, 0.0, 1.0], (7, 1)), rng.normal(size=(7, 3)) * 0.8)
    weights = np.full(7, 1 / 7)
    mean, d = mean_of(points[None], weights, Manifold(turn, between))
    np.testing.assert_allclose(weights @ d[0], 0, atol=1e-12)
    # SciPy's mean minimises another distance; for symmetric points both are the centre.
    pair = turn(np.tile([0.1, 0.2, 0.3, np.sqrt(0.86)], (3, 1)), np.array([[0.0, 0, 0], [0.4, 1, 0], [-0.4, -1, 0]]))
    mean, _ = mean_of(pair[None], np.full(3, 1 / 3), Manifold(turn, between))
    np.testing.assert_allclose(between(mean, pair[:1]), 0, atol=1e-12)


def test_filters_of_rotations_agree_where_noise_is_small_and_do_not_depend_on_the_frame():
    """Both filters turned by a fixed rotation give turned estimates; for small noise they are one filter."""
    rng = np.random.default_rng(3)
    for scale, tol in ((1e-4, 1e-6), (1.0, None)):
        model = rotation_model(0.01 * scale, 0.1 * scale, 0.2 * scale)
        x, y = np.array([[0.0, 0.0, 0.0, 1.0]]), []
        for _ in range(15):
            y.append(turn(x[0], rng.normal(size=3) * np.sqrt(0.1 * scale)))
            x = turn(turn(x, np.array([[0.3, -0.2, 0.1]])), rng.normal(size=(1, 3)) * np.sqrt(0.01 * scale))
        y = np.array(y)
        y[4] = np.nan

        def safe(q, p):
            out = np.full((len(q), 3), np.nan)
            known = ~np.isnan(q).any(axis=1)
            out[known] = between(q[known], p[known])
            return out

        model.readings._minus = safe
        extended, unscented = kf.extended_kalman_filter(model, y), kf.unscented_kalman_filter(model, y)
        if tol:
            np.testing.assert_allclose(between(extended.x, unscented.x), 0, atol=tol)
        frame = np.array([0.5, -0.5, 0.5, 0.5])
        from scipy.spatial.transform import Rotation

        def left(q, frame=frame):
            return (Rotation.from_quat(frame) * Rotation.from_quat(q)).as_quat()

        turned = np.full_like(y, np.nan)
        known = ~np.isnan(y).any(axis=1)
        turned[known] = left(y[known])
        for estimate, found in ((kf.extended_kalman_filter, extended), (kf.unscented_kalman_filter, unscented)):
            other = estimate(model, turned, prior=(left(np.array([0.0, 0, 0, 1.0])), model.prior.P0))
            np.testing.assert_allclose(between(other.x, left(found.x)), 0, atol=1e-10)
            np.testing.assert_allclose(other.cov, found.cov, atol=1e-10)


def test_weights_that_make_a_covariance_indefinite_are_refused():
    with pytest.raises(ModelError, match=r"α²\(d \+ κ\) > 0"):
        kf.SigmaPoints(kappa=-3.0).weights(3)
    with pytest.raises(ShapeError, match="alpha, beta and kappa of sigma points must be an array of real numbers"):
        kf.SigmaPoints("wide")
    model = kf.NonlinearModel(lambda x, k: x**2, lambda x, k: x, 1.0, 1.0, 0.0, 1.0)
    for estimate in (
        lambda: kf.unscented_kalman_filter(model, [1.0], points=3),
        lambda: kf.OnlineFilter(model, kind="unscented", points=3),
    ):
        with pytest.raises(ModelError, match=r"points must be kf.SigmaPoints\(alpha, beta, kappa\), got int"):
            estimate()
    model = kf.NonlinearModel(lambda x, k: x**2, lambda x, k: x[:, :1], 1e-6 * np.eye(4), 1.0, np.zeros(4), np.eye(4))
    with pytest.raises(ModelError, match="indefinite"):
        kf.unscented_kalman_filter(model, np.zeros((5, 1)), points=kf.SigmaPoints(1.0, -4.0, -3.0))


POINTS = [None, kf.SigmaPoints(0.1, 2.0, 0.5), kf.SigmaPoints(1.0, 0.0, 0.0), "extended"]
WAYS = ["default", "negative weight", "cubature", "extended"]


def filtered(model, y, points):
    """By sigma points, or by the extended filter."""
    if points == "extended":
        return kf.extended_kalman_filter(model, y)
    return kf.unscented_kalman_filter(model, y, points=points)


@pytest.mark.parametrize("points", POINTS, ids=WAYS)
@pytest.mark.parametrize("n", [1, 2, 3])
def test_what_is_read_exactly_is_known_exactly(n, points):
    """Every state is read with R = 0: the mean is the reading and the covariance 0, so the next prediction's is Q."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        A, F = rng.normal(size=(n, n)), rng.normal(size=(n, n))
        P0, y = (A @ A.T + 0.1 * np.eye(n)) * 10.0 ** rng.integers(-8, 9), rng.normal(size=(4, n))
        model = kf.NonlinearModel(lambda x, k, F=F: x @ F.T, lambda x, k: x, np.eye(n), np.zeros(n), np.zeros(n), P0)
        found = filtered(model, y, points)
        live = kf.OnlineFilter(model, kind="extended" if points == "extended" else "unscented")
        for row in y:
            live.step(row)
        np.testing.assert_allclose(found.x, y, atol=1e-9)
        assert (found.cov == 0.0).all() and (live.cov == 0.0).all()
        np.testing.assert_allclose(found.cov_predicted[1:], np.tile(np.eye(n), (3, 1, 1)), rtol=0, atol=1e-15)
        still = kf.NonlinearModel(lambda x, k: x, lambda x, k: x, np.zeros((n, n)), np.zeros(n), np.zeros(n), P0)
        with pytest.raises(SingularError, match="output 0 of the reading at step 1 is already known exactly"):
            filtered(still, y, points)


@pytest.mark.parametrize("points", POINTS, ids=WAYS)
def test_exact_readings_and_singular_noise_of_linear_models_are_the_dense_gaussian(points):
    """All states and readings as one normal vector; noise enters one direction, one output is exact, one is not."""
    N, n = 6, 3
    for seed in range(40):
        rng = np.random.default_rng(seed)
        F, A, b = 0.9 * np.linalg.qr(rng.normal(size=(n, n)))[0], rng.normal(size=(n, n)), rng.normal(size=(n, 1))
        H, R = rng.normal(size=(2, n)), np.diag([0.0, 0.3])
        P0 = A @ A.T * 10.0 ** rng.integers(-3, 4)
        model = kf.NonlinearModel(
            lambda x, k, F=F: x @ F.T, lambda x, k, H=H: x @ H.T, 1.0, R, np.zeros(n), P0, noise_input=b
        )
        states = np.zeros((N * n, n + N - 1))  # x(0..N-1) from x(0) and w(0..N-2)
        states[:n, :n] = np.eye(n)
        for k in range(N - 1):
            states[(k + 1) * n : (k + 2) * n] = F @ states[k * n : (k + 1) * n]
            states[(k + 1) * n : (k + 2) * n, n + k] += b[:, 0]
        prior = np.eye(n + N - 1)
        prior[:n, :n] = P0
        noise = np.kron(np.eye(N), R)
        S, C = states @ prior @ states.T, np.kron(np.eye(N), H)
        y = C @ states @ rng.multivariate_normal(np.zeros(len(prior)), prior) + np.sqrt(noise) @ rng.normal(size=2 * N)
        found = filtered(model, y.reshape(N, 2), points)
        for k in range(N):
            here, seen = S[k * n : (k + 1) * n], C[: 2 * (k + 1)]
            K = np.linalg.solve(seen @ S @ seen.T + noise[: len(seen), : len(seen)], seen @ here.T).T
            scale = np.abs(P0).max() + 1.0
            np.testing.assert_allclose(found.x[k], K @ y[: len(seen)], atol=1e-9 * np.sqrt(scale))
            left = here[:, k * n : (k + 1) * n] - K @ seen @ here.T
            np.testing.assert_allclose(found.cov[k], left, atol=1e-9 * scale)


@pytest.mark.parametrize("kind", ["extended", "unscented"])
def test_the_short_way_of_a_motion_takes_exact_readings(kind):
    pendulum, z = kf.models.double_pendulum(), np.zeros(2)
    sensors = [kf.sensors.JointPosition(0.0), kf.sensors.JointVelocity(1e-4)]
    model = kf.MotionModel(pendulum, 0.01, sensors, 0.1)
    for P0 in np.geomspace(1e-6, 1e6, 40) * 0.7:
        live = kf.OnlineFilter(model, (z, z, np.full(4, P0)), kind=kind)
        for k in range(5):
            live.step(np.array([0.1, 0.2, 0.01, 0.02]) * k, z)
            np.testing.assert_allclose(live.x[:2], [0.1 * k, 0.2 * k], atol=1e-14)
            assert (np.diag(live.cov)[:2] <= 1e-26).all() and (np.linalg.eigvalsh(live.cov) >= -1e-20).all()
