"""Linear models: everything must be what the engine says."""

import numpy as np
import pytest

import kfdyn as kf
from kfdyn.estimation import consistency

N, n, m, p = 40, 3, 2, 2


def close(found, expected, tol):
    """Equal relative to the largest entry: exact readings make some entries small by cancellation."""
    np.testing.assert_allclose(found, expected, rtol=0, atol=tol * max(1.0, np.abs(expected).max()))


def random_chain(seed, singular=False):
    rng = np.random.default_rng(seed)
    F = 0.95 * np.linalg.qr(rng.normal(size=(N - 1, n, n)))[0]  # stable, so that rounding does not grow
    H = rng.normal(size=(N, m, n))
    B = rng.normal(size=(N - 1, n, p))
    A = rng.normal(size=(N - 1, p, p))
    Q = A @ A.transpose(0, 2, 1)
    if singular:
        Q = Q * np.outer([1, 0], [1, 0])
    C = rng.normal(size=(N, m, m))
    R = C @ C.transpose(0, 2, 1) + 0.1 * np.eye(m)
    if singular:
        R = R * np.outer([0, 1], [0, 1])
    u = rng.normal(size=(N - 1, n))
    P0 = np.diag([1.0, 2.0, 0.0 if singular else 3.0])
    x0 = rng.normal(size=n)
    Qx = B @ Q @ B.transpose(0, 2, 1)
    ss = kf.StateSpace.chain(F, H, 0.5 * (Qx + Qx.transpose(0, 2, 1)), R, x0, P0, inputs=u)
    y = kf.draw(ss, rng).T.reshape(N, m)  # of the model itself: nothing else fits exact readings
    y[3], y[7, 0], y[11, 1] = np.nan, np.nan, np.nan
    return F, H, B, Q, R, u, x0, P0, y


def engine(F, H, B, Q, R, u, x0, P0, y, steps=None):
    k = steps or len(y)
    Qx = (B @ Q @ B.transpose(0, 2, 1))[: k - 1]
    ss = kf.StateSpace.chain(F[: k - 1], H[:k], 0.5 * (Qx + Qx.transpose(0, 2, 1)), R[:k], x0, P0, inputs=u[: k - 1])
    filt = kf.kalman_filter(ss, y[:k].ravel())
    return filt, kf.bryson_frazier(filt)


def models(F, H, B, Q, R, u, x0, P0, y):
    """The same model in all the ways that noise may enter, with and without Jacobians."""

    def step(x, u, k):
        return np.einsum("kij,kj->ki", F[k], x) + u

    def noisy(x, w, u, k):
        return step(x, u, k) + np.einsum("kij,kj->ki", B[k], w)

    def observe(x, k):
        return np.einsum("kij,kj->ki", H[k], x)

    def sees_noise(x, w, k):
        return observe(x, k) + 0.0 * w[:, :1]

    given = {"step_jacobian": lambda x, u, k: F[k], "observe_jacobian": lambda x, k: H[k]}
    full = np.concatenate([Q, Q[-1:]])
    return {
        "through noise_input": kf.NonlinearModel(step, observe, Q, R, x0, P0, noise_input=B),
        "given Jacobians": kf.NonlinearModel(step, observe, Q, R, x0, P0, noise_input=B, **given),
        "differences": kf.NonlinearModel(step, observe, Q, R, x0, P0, noise_input=B, jacobians="central differences"),
        "inside step": kf.NonlinearModel(noisy, observe, Q, R, x0, P0),
        "carried": kf.NonlinearModel(noisy, sees_noise, full, R, x0, P0),
    }


KINDS = ["through noise_input", "given Jacobians", "differences", "inside step", "carried"]


@pytest.mark.parametrize("singular", [False, True], ids=["regular", "R = 0, singular Q and P0"])
@pytest.mark.parametrize("kind", KINDS)
def test_filters_and_smoother_are_the_engine_on_linear_models(kind, singular):
    case = random_chain(1, singular)
    model, y, u = models(*case)[kind], case[-1], case[5]
    filt, smooth = engine(*case)
    # Exact readings lose digits in any order of operations: D is nearly singular, and S = P⁺ − P⁺Λ⁺P⁺ cancels.
    rounding = 1e-10 if singular else 1e-12
    # Central differences of a linear function are right to the rounding of a step of 6e-6.
    tol = 1e-7 if kind == "differences" else rounding
    for found in (kf.extended_kalman_filter(model, y, u), kf.unscented_kalman_filter(model, y, u)):
        exact = rounding if found.kind == "unscented" else tol
        close(found.x, filt.filtered_state.stacked(), exact)
        close(found.cov, filt.P_plus.stacked(), exact)
        close(found.x_predicted, filt.z.stacked(), exact)
        close(found.cov_predicted, filt.P.stacked(), exact)
        close(found.eps, filt.eps, exact)
        close(found.nu, filt.nu, exact)
        close(found.llf, filt.llf, exact)
    post = kf.iterated_kalman_smoother(model, y, u)
    assert post.converged is True
    assert post.message.startswith("converged in")
    close(post.x, smooth.x.stacked(), tol)
    close(post.cov, smooth.S.stacked(), tol)
    close(post.costate, smooth.costate.stacked(), tol)
    close(post.llf, filt.llf, tol)


@pytest.mark.parametrize("kind", ["through noise_input", "inside step", "carried"])
def test_noise_is_what_moves_the_smoothed_state(kind):
    case = random_chain(2)
    F, _, B, Q, _, u, _, _, y = case
    post = kf.iterated_kalman_smoother(models(*case)[kind], y, u)
    moved = np.einsum("kij,kj->ki", F, post.x[:-1]) + u + np.einsum("kij,kj->ki", B, post.noise[: N - 1])
    np.testing.assert_allclose(moved, post.x[1:], atol=1e-11)
    Lambda = engine(*case)[1].Lambda.stacked()[1:]
    BQ = B @ Q
    expected = Q - BQ.transpose(0, 2, 1) @ Lambda @ BQ
    np.testing.assert_allclose(post.noise_cov[: N - 1], expected, atol=1e-11)


def test_batches_are_their_series():
    case = random_chain(3)
    model, y, u = models(*case)["through noise_input"], case[-1], case[5]
    other = np.where(np.isnan(y), 0.3, 2 * y)
    other[5] = np.nan  # another pattern
    for estimate in (kf.extended_kalman_filter, kf.unscented_kalman_filter, kf.iterated_kalman_smoother):
        both = estimate(model, np.stack([y, other]), np.stack([u, -u]))
        for i, (one, inputs) in enumerate(((y, u), (other, -u))):
            alone = estimate(model, one, inputs)
            np.testing.assert_allclose(both.x[i], alone.x, rtol=1e-12, atol=1e-12)
            np.testing.assert_allclose(both.cov[i], alone.cov, rtol=1e-12, atol=1e-12)
            np.testing.assert_allclose(both.llf[i], alone.llf, rtol=1e-12)


@pytest.mark.parametrize("kind", ["through noise_input", "carried"])
@pytest.mark.parametrize("which", ["extended", "unscented"])
def test_online_with_a_lag_is_filter_and_smoother_of_what_came_so_far(kind, which):
    case = random_chain(4)
    model, y, u = models(*case)[kind], case[-1], case[5]
    inputs = np.concatenate([u, np.zeros((1, n))])
    live = kf.OnlineFilter(model, lag=6, kind=which)
    for k in range(N):
        returned = live.step(None if k == 3 else y[k], inputs[k])
        filt, smooth = engine(*case, steps=k + 1)
        np.testing.assert_allclose(returned, filt.z_plus[k], atol=1e-11)
        np.testing.assert_allclose(live.cov, filt.P_plus[k], atol=1e-11)
        np.testing.assert_allclose(live.llf, filt.llf, rtol=1e-11)
        post = live.smooth()
        assert len(post.x) == min(k + 1, 7)
        np.testing.assert_allclose(post.x, smooth.x.stacked()[-7:], atol=1e-11)
        np.testing.assert_allclose(post.cov, smooth.S.stacked()[-7:], atol=1e-11)
    assert live.k == N - 1 and live.oldest == N - 7


def test_flat_priors_whole_and_in_part():
    F, H, B, Q, R, u, x0, _, y = random_chain(5)
    Qx = B @ Q @ B.transpose(0, 2, 1)
    for P0, flat in ((None, True), (np.diag([np.inf, 2.0, np.inf]), [True, False, True])):
        finite = np.zeros((n, n)) if P0 is None else np.diag([0.0, 2.0, 0.0])
        ss = kf.StateSpace(
            kf.Tree.chain(N), np.concatenate([F, np.zeros((1, n, n))]), H,
            np.concatenate([finite[None], 0.5 * (Qx + Qx.transpose(0, 2, 1))]), R, flat={0: flat},
            xi=np.concatenate([x0 * (0 if P0 is None else np.array([0, 1, 0])), u.ravel()]),
        )  # fmt: skip
        filt = kf.kalman_filter(ss, y.ravel())
        smooth = kf.bryson_frazier(filt)
        post = kf.iterated_kalman_smoother(models(F, H, B, Q, R, u, x0, P0, y)["inside step"], y, u)
        np.testing.assert_allclose(post.x, smooth.x.stacked(), atol=1e-10)
        np.testing.assert_allclose(post.cov, smooth.S.stacked(), atol=1e-10)
        np.testing.assert_allclose(post.llf, filt.llf, rtol=1e-10)


def test_results_feed_the_consistency_tests():
    case = random_chain(6)
    model, y, u = models(*case)["through noise_input"], case[-1], case[5]
    filt, _ = engine(*case)
    verdict = consistency.nis(filt)
    found = kf.extended_kalman_filter(model, y, u)
    for result in (found, kf.iterated_kalman_smoother(model, y, u).filt):
        told = consistency.nis(result)
        assert told.dof == verdict.dof
        np.testing.assert_allclose(told.statistic, verdict.statistic, rtol=1e-10)
    np.testing.assert_allclose(found.nis.sum(), verdict.statistic, rtol=1e-11)
    white = found.standardized_innovations
    np.testing.assert_allclose(np.nansum(white**2), verdict.statistic, rtol=1e-11)
    parent = [*range(1, N), -1]
    assert consistency.tree_portmanteau(white, parent, [m] * N, lags=2).dof == 2 * m * m
    truth = found.x + 0.1
    np.testing.assert_allclose(found.error(truth), 0.1)
    np.testing.assert_allclose(
        found.nees(truth)[4], consistency.nees(found.error(truth)[4], found.cov[4]).statistic, rtol=1e-9
    )


def test_draws_have_the_posterior_covariance():
    case = random_chain(7)
    model, y, u = models(*case)["inside step"], case[-1], case[5]
    post = kf.iterated_kalman_smoother(model, y, u)
    draws = post.draw(np.random.default_rng(0), 4000)
    assert draws.shape == (4000, N, n)
    assert post.draw(np.random.default_rng(0)).shape == (N, n)
    p_values = [
        consistency.covariance_test(draws[:, k] - post.x[k], post.cov[k], mean_known=True).p_value for k in (0, 9, 39)
    ]
    assert consistency.holm(p_values).min() > 0.001


@pytest.mark.parametrize("carried", [False, True])
def test_covariances_between_steps_are_those_of_the_joint_posterior(carried):
    rng = np.random.default_rng(4)
    N, n = 6, 2
    F, C, P0 = rng.normal(size=(n, n)), rng.normal(size=(1, n)), np.diag([2.0, 0.5])
    Q, sees = np.diag([0.3, 0.1]), 0.7 * np.ones((1, n)) if carried else np.zeros((1, n))
    observe = (lambda x, w, k: x @ C.T + w @ sees.T) if carried else (lambda x, k: x @ C.T)
    model = kf.NonlinearModel(lambda x, w, k: x @ F.T + w, observe, Q, 0.2, np.zeros(n), P0)
    y = rng.normal(size=(N, 1))
    y[2] = np.nan
    post = kf.iterated_kalman_smoother(model, y)
    # all x as a matrix times (x0, w0, ..., w(N-1)), and all readings likewise
    states = np.zeros((N * n, (N + 1) * n))
    states[:n, :n] = np.eye(n)
    for k in range(N - 1):
        states[(k + 1) * n : (k + 2) * n] = F @ states[k * n : (k + 1) * n]
        states[(k + 1) * n : (k + 2) * n, (k + 1) * n : (k + 2) * n] += np.eye(n)
    H = np.kron(np.eye(N), C) @ states
    H[:, n:] += np.kron(np.eye(N), sees)
    H = H[~np.isnan(y[:, 0])]
    prior = np.kron(np.eye(N + 1), Q)
    prior[:n, :n] = P0
    joint = prior - prior @ H.T @ np.linalg.solve(H @ prior @ H.T + 0.2 * np.eye(len(H)), H @ prior)
    whole = states @ joint @ states.T
    for k in range(N - 1):
        here, after = slice(k * n, (k + 1) * n), slice((k + 1) * n, (k + 2) * n)
        np.testing.assert_allclose(post.lagged_cov[k], whole[after, here], atol=1e-12)
