"""The mode and its covariances against a dense least squares over all unknowns."""

import numpy as np
import pytest
from dense_mode import between, differences, minimise, right_jacobian, shooting, turn

import kfdyn as kf
from kfdyn.estimation.nonlinear.trajectory import Trajectory

N, dt = 12, 0.1


def acceleration(x, w, u):
    """A pendulum with a nonlinear damper and noise that depends on its angle."""
    drag = 0.3 * x[..., 1] * np.cosh(0.3 * x[..., 1])
    return -9.81 * np.sin(x[..., 0]) - drag + u[..., 0] + w[..., 0] * (1 + 0.2 * x[..., 0] ** 2)


def step(x, w, u, k):
    v = x[..., 1] + dt * acceleration(x, w, u)
    return np.stack([x[..., 0] + dt * v, v], axis=-1)


def see_angle(x, k):
    return np.stack([np.sin(x[..., 0]), np.cos(0.5 * x[..., 0]) * x[..., 1]], axis=-1)


def see_acceleration(x, w, u, k):
    return np.stack([np.sin(x[..., 0]), acceleration(x, w, u)], axis=-1)


def pendulum(seen, seed=0):
    """Model, readings and inputs of a simulated run, some readings missing in whole or in part."""
    rng = np.random.default_rng(seed)
    u = np.sin(np.arange(N))[:, None]
    Q, R = np.array([[0.5]]), np.array([[0.02, 0.01], [0.01, 0.3]])
    x, y = np.array([0.8, 0.3]), []
    for k in range(N):
        w = rng.normal(size=1) * np.sqrt(0.5)
        h = see_acceleration(x, w, u[k], k) if seen == "acceleration" else see_angle(x, k)
        y.append(h + np.linalg.cholesky(R) @ rng.normal(size=2))
        x = step(x, w, u[k], k)
    y = np.array(y)
    y[3], y[5, 0], y[8, 1] = np.nan, np.nan, np.nan
    observe = see_acceleration if seen == "acceleration" else see_angle
    return kf.NonlinearModel(step, observe, Q, R, [0.5, 0.0], [0.3, 0.3]), y, u


def dense(seen, y, u):
    noises = N if seen == "acceleration" else N - 1
    R = np.array([[0.02, 0.01], [0.01, 0.3]])

    def observe(x, w, k):
        return see_acceleration(x, w, u[k], k) if seen == "acceleration" else see_angle(x, k)

    roots = (np.eye(2) / np.sqrt(0.3), np.eye(1) / np.sqrt(0.5), lambda k: R)
    roll, residuals = shooting(
        lambda x, w, k: step(x, w, u[k], k), observe, y, np.array([0.5, 0.0]), roots, 2, 1, noises
    )
    theta, J = minimise(residuals, np.concatenate([[0.5, 0.0], np.zeros(noises)]))
    cov = np.linalg.inv(J.T @ J)
    return roll, residuals, theta, cov, noises


@pytest.mark.parametrize("start", ["extended", "unscented", "prior"])
@pytest.mark.parametrize("seen", ["angle", "acceleration"])
def test_mode_covariances_and_noise(seen, start):
    model, y, u = pendulum(seen)
    post = kf.iterated_kalman_smoother(model, y, u, start=start)
    assert post.converged
    roll, residuals, theta, cov, noises = dense(seen, y, u)
    states, readings = roll(theta)
    np.testing.assert_allclose(post.x, states, atol=1e-9)
    np.testing.assert_allclose(post.noise, theta[2:].reshape(noises, 1), atol=1e-9)
    np.testing.assert_allclose(post.readings, readings, atol=1e-9)
    np.testing.assert_allclose(post.cost[-1], 0.5 * np.sum(residuals(theta) ** 2), rtol=1e-11)
    for k in (0, 4, N - 1):
        J = differences(lambda t, k=k: roll(t)[0][k], theta)
        np.testing.assert_allclose(post.cov[k], J @ cov @ J.T, atol=1e-9)
    for k in (0, noises - 1):
        np.testing.assert_allclose(post.noise_cov[k], cov[2 + k : 3 + k, 2 + k : 3 + k], atol=1e-9)


def test_llf_is_laplaces_approximation():
    model, y, u = pendulum("angle")
    post = kf.iterated_kalman_smoother(model, y, u)
    _, residuals, theta, cov, noises = dense("angle", y, u)
    seen = ~np.isnan(y)
    R = np.array([[0.02, 0.01], [0.01, 0.3]])
    logdet_R = sum(np.linalg.slogdet(R[np.ix_(s, s)])[1] for s in seen if s.any())
    prior = 2 * np.log(0.3) + noises * np.log(0.5)
    expected = -0.5 * (
        np.sum(residuals(theta) ** 2) + seen.sum() * np.log(2 * np.pi) + logdet_R + prior - np.linalg.slogdet(cov)[1]
    )
    np.testing.assert_allclose(post.llf, expected, rtol=1e-9)


def test_costate_is_the_gradient_by_a_shift_of_the_state():
    """λ(k+1) is the derivative of the log-posterior by what is added to x(k+1), everything else at its best."""
    model, y, u = pendulum("angle")
    post = kf.iterated_kalman_smoother(model, y, u)

    def cost(shift, at):
        moved = kf.NonlinearModel(
            lambda x, w, u, k: step(x, w, u, k) + np.outer(k == at - 1, shift), see_angle, model.Q, model.R,
            [0.5, 0.0], [0.3, 0.3],
        )  # fmt: skip
        return kf.iterated_kalman_smoother(moved, y, u, tolerance=1e-11).cost[-1]

    for at in (1, 6):
        for i in range(2):
            e = 1e-4 * np.eye(2)[i]
            slope = -(cost(e, at) - cost(-e, at)) / 2e-4
            np.testing.assert_allclose(post.costate[at, i], slope, atol=1e-6)


@pytest.mark.parametrize("search", ["line", "damped"])
def test_far_starts_find_the_same_mode(search):
    model, y, u = pendulum("angle")
    best = kf.iterated_kalman_smoother(model, y, u)
    rng = np.random.default_rng(5)
    for _ in range(5):
        start = best.x + rng.normal(size=(N, 2)) * 2
        post = kf.iterated_kalman_smoother(model, y, u, start=start, search=search)
        if post.cost[-1] < best.cost[-1] * 1.5:  # sin q has more than one mode
            np.testing.assert_allclose(post.x, best.x, atol=1e-7)
            assert post.converged


def test_a_search_converges_where_plain_steps_do_not():
    """A reading far out on an arctangent: whole steps of Gauss–Newton overshoot for ever."""
    model = kf.NonlinearModel(lambda x, k: x, lambda x, k: 10 * np.arctan(5 * x), 1e-4, 0.01, [0.0], [100.0])
    y, start = np.zeros((4, 1)), np.full((4, 1), 3.0)
    plain = kf.iterated_kalman_smoother(model, y, start=start, search=None)
    assert not plain.converged and "not converged" in plain.message and plain.iterations == 100
    for search in ("line", "damped"):
        post = kf.iterated_kalman_smoother(model, y, start=start, search=search)
        assert post.converged, post.message
        np.testing.assert_allclose(post.x, 0, atol=1e-9)
        assert (np.diff(post.cost) <= 1e-9).all() or search == "line"


def test_exact_readings_are_met_and_the_rest_is_the_dense_optimum():
    """R = 0 and a singular Q: equality constraints, against a dense solution by elimination."""
    steps = 8

    def move(x, k):
        return np.stack([x[:, 0] + dt * x[:, 1], x[:, 1] - dt * np.sin(x[:, 0])], axis=1)

    model = kf.NonlinearModel(
        move, lambda x, k: x[:, :1] + 0.1 * x[:, :1] ** 3, 1.0, 0.0, [0.3, 0.0], np.eye(2), noise_input=[[0.0], [1.0]]
    )
    y = np.full((steps, 1), np.nan)
    y[0], y[4], y[7] = 0.4, 0.9, -0.3
    post = kf.iterated_kalman_smoother(model, y)
    assert post.converged
    seen = ~np.isnan(y)
    np.testing.assert_allclose(post.readings[seen], y[seen], atol=1e-12)

    def roll(theta):
        x, states = theta[None, :2], []
        for k in range(steps):
            states.append(x[0])
            if k < steps - 1:
                x = move(x, k) + np.array([[0.0, theta[2 + k]]])
        return np.array(states)

    def constraint(theta):
        q = roll(theta)[:, 0]
        return (q + 0.1 * q**3)[seen[:, 0]] - y[seen]

    theta = np.concatenate([post.x[0], post.noise[:, 0]])
    np.testing.assert_allclose(roll(theta), post.x, atol=1e-11)
    A = differences(constraint, theta)
    gradient = np.concatenate([theta[:2] - [0.3, 0.0], theta[2:]])
    multipliers = np.linalg.lstsq(A.T, -gradient, rcond=None)[0]
    np.testing.assert_allclose(gradient + A.T @ multipliers, 0, atol=1e-9)
    null = np.linalg.svd(A)[2][len(A) :].T  # what the constraints leave free
    J = differences(lambda t: roll(t)[5], theta) @ null
    np.testing.assert_allclose(post.cov[5], J @ J.T, atol=1e-9)


# --- a rotation: quaternions of four numbers, tangents of three


def rotating(with_jacobian):
    def plus(x, d):
        return np.concatenate([turn(x[:, :4], d[:, :3]), x[:, 4:] + d[:, 3:]], axis=1)

    def minus(x2, x1):
        return np.concatenate([between(x2[:, :4], x1[:, :4]), x2[:, 4:] - x1[:, 4:]], axis=1)

    def jacobian(d):
        J = np.tile(np.eye(6), (len(d), 1, 1))
        J[:, :3, :3] = right_jacobian(d[:, :3])
        return J

    def move(x, k):
        v = x[:, 4:]
        spin = v + dt * np.cross(v, v * np.array([1.0, 2.0, 3.0]))
        return np.concatenate([turn(x[:, :4], dt * v), spin], axis=1)

    def reading_minus(y, h):
        out = np.full((len(y), 3), np.nan)
        known = ~np.isnan(y).any(axis=1)
        if known.any():
            out[known] = between(y[known], h[known])
        return out

    Q = np.diag([0.02, 0.05, 0.01, 0.2, 0.1, 0.3])
    R = np.diag([0.3, 0.1, 0.2])
    P0 = np.diag([0.5, 0.8, 0.3, 1.0, 1.0, 1.0])
    x0 = np.array([0.0, 0.0, 0.0, 1.0, 0.5, -0.4, 0.3])
    maps = {"plus": plus, "minus": minus, "reading_plus": turn, "reading_minus": reading_minus}
    if with_jacobian:
        maps |= {"plus_jacobian": jacobian, "reading_jacobian": right_jacobian}
    model = kf.NonlinearModel(move, lambda x, k: x[:, :4], Q, R, x0, P0, **maps)
    rng = np.random.default_rng(3)
    x, y = plus(x0[None], rng.multivariate_normal(np.zeros(6), P0)[None]), []
    for _ in range(6):
        y.append(turn(x[0, :4], rng.multivariate_normal(np.zeros(3), R)))
        x = plus(move(x, 0), rng.multivariate_normal(np.zeros(6), Q)[None])
    y = np.array(y)
    y[2] = np.nan
    return model, y, (plus, minus, move, Q, R, P0, x0)


@pytest.mark.parametrize("with_jacobian", [True, False], ids=["given Jacobians", "differences"])
def test_rotations_settle_at_the_dense_mode(with_jacobian):
    """Large residuals, so that either Jacobian of ⊕ forgotten would show."""
    model, y, (plus, minus, move, Q, R, P0, x0) = rotating(with_jacobian)
    post = kf.iterated_kalman_smoother(model, y)
    assert post.converged and post.x.shape == (6, 7) and post.cov.shape == (6, 6, 6)
    base = post.x
    roots = [np.linalg.inv(np.linalg.cholesky(C)) for C in (P0, Q, R)]

    def residuals(theta):
        x = plus(base, theta.reshape(6, 6))
        parts = [roots[0] @ minus(x[:1], x0[None])[0], (minus(x[1:], move(x[:-1], 0)) @ roots[1].T).ravel()]
        parts += [roots[2] @ between(y[k], x[k, :4]) for k in range(6) if k != 2]
        return np.concatenate(parts)

    theta, J = minimise(residuals, np.zeros(36))
    assert np.abs(minus(post.x[[0]], x0[None])).max() > 0.1  # the prior's residual is not small
    np.testing.assert_allclose(theta, 0, atol=1e-8)
    cov = np.linalg.inv(J.T @ J).reshape(6, 6, 6, 6)
    for k in range(6):
        np.testing.assert_allclose(post.cov[k], cov[k, :, k], atol=1e-8)
    np.testing.assert_allclose(post.error(post.x), 0, atol=1e-12)


@pytest.mark.parametrize("search", ["line", "damped"])
def test_a_state_that_is_read_exactly_has_a_unit_of_its_own(search):
    """Its variance is rounding, and a step measured by that would never be short enough."""
    rng = np.random.default_rng(4)
    model = kf.NonlinearModel(
        lambda x, k: np.tanh(x),
        lambda x, k: np.stack([np.sin(x[:, 0]), x[:, 0] ** 2], axis=1),
        0.01,
        [0.0, 0.1],
        0.2,
        1.0,
    )
    y = np.stack([np.sin(0.3 + 0.02 * rng.normal(size=30)), 0.1 * np.ones(30)], axis=1)
    post = kf.iterated_kalman_smoother(model, y, search=search)
    assert post.converged, post.message
    np.testing.assert_allclose(np.sin(post.x[:, 0]), y[:, 0], atol=1e-12)


def test_the_square_root_form_serves_where_the_prior_is_vague():
    model = kf.NonlinearModel(
        lambda x, k: np.stack([x[:, 0] + 0.1 * x[:, 1], x[:, 1] - 0.1 * np.sin(x[:, 0])], axis=1),
        lambda x, k: x[:, :1], np.diag([0.0, 1e-4]), 1e-6, [0.0, 0.0], 1e9 * np.eye(2),
    )  # fmt: skip
    y = np.sin(0.1 * np.arange(40))
    vague = kf.iterated_kalman_smoother(model, y, method="square_root", start="prior")
    flat = kf.iterated_kalman_smoother(model, y, prior=([0.0, 0.0], None))
    assert vague.converged and flat.converged
    np.testing.assert_allclose(vague.x, flat.x, atol=1e-8)
    np.testing.assert_allclose(vague.cov, flat.cov, rtol=1e-6, atol=1e-14)


def test_iterations_do_not_pile_up_covariances():
    """A model's cache refers back to it, so only the collector of cycles would free each iteration's."""
    import gc

    model, y, u = pendulum("angle")
    kind = type(kf.iterated_kalman_smoother(model, y, u).filt.covariances)

    def alive():
        return sum(type(thing) is kind for thing in gc.get_objects())

    gc.collect()
    before = alive()
    gc.disable()
    try:
        post = kf.iterated_kalman_smoother(model, y, u)
        assert post.iterations > 3
        assert alive() - before <= 2  # one of them is the result's
    finally:
        gc.enable()


def test_a_start_that_leads_far_off_is_held():
    """Carried along, the prior's mean of these models explodes; the mode is found all the same."""
    y = 0.1 * np.ones((40, 1))
    growing = kf.NonlinearModel(lambda x, k: x + x**3 * 4.0, lambda x, k: x, 1.0, 1e-4, 2.0, 4.0)
    post = kf.iterated_kalman_smoother(growing, y, start="prior")
    assert post.converged
    np.testing.assert_allclose(post.x, y, atol=0.01)
    arm = kf.models.puma560()
    moves = kf.MotionModel(arm, 0.02, [kf.sensors.JointPosition(1e-4)], 1e4)
    fast = moves.check_prior((np.zeros(6), np.full(6, 60.0), 1.0))
    y, known = np.zeros((1, 80, 6)), np.zeros((1, 80, 6))
    carried = Trajectory(moves, y, known, fast, None, "block").start("prior")
    assert np.abs(carried).max() < 1e7
