"""Robust readings against dense iterated reweighting, and against the loss itself."""

import numpy as np
import pytest
from dense_mode import differences
from scipy.optimize import minimize

import kfdyn as kf
from kfdyn.errors import ModelError, ShapeError

N = 15


def case(seed=0, groups=None):
    rng = np.random.default_rng(seed)
    R = np.array([[0.1, 0.03, 0.0], [0.03, 0.2, 0.0], [0.0, 0.0, 0.3]])

    def step(x, k):
        return x + 0.1 * np.stack([x[:, 1], -np.sin(x[:, 0])], axis=1)

    def observe(x, k):
        return np.stack([x[:, 0], np.sin(x[:, 1]), x[:, 0] * x[:, 1]], axis=1)

    x, y = np.array([[0.5, 0.2]]), []
    for k in range(N):
        y.append(observe(x, k)[0] + rng.multivariate_normal(np.zeros(3), R))
        x = step(x, k) + rng.normal(size=(1, 2)) * 0.1
    y = np.array(y)
    y[4, :2] += 9.0
    y[9, 2] -= 12.0
    y[6], y[11, 0] = np.nan, np.nan
    model = kf.NonlinearModel(step, observe, 0.01 * np.eye(2), R, [0.4, 0.1], 0.3 * np.eye(2), reading_groups=groups)
    return model, y, step, observe, R


def squares(y, h, R, groups):
    """s² and the number of outputs of every group of every reading that is there."""
    out = []
    for k in range(N):
        for g in sorted(set(groups)):
            at = [i for i in range(3) if groups[i] == g and not np.isnan(y[k, i])]
            if at:
                e = y[k, at] - h[k, at]
                out.append((k, g, e @ np.linalg.solve(R[np.ix_(at, at)], e), len(at)))
    return out


LOSSES = {
    "huber": (kf.Huber(1.5), lambda s2, m: 0.5 * s2 if s2 <= 2.25 else 1.5 * np.sqrt(s2) - 1.125),
    "student": (kf.StudentT(3.0), lambda s2, m: 0.5 * (3 + m) * np.log1p(s2 / 3)),
}


@pytest.mark.parametrize("groups", [(0, 0, 0), ("a", "a", "b")])
@pytest.mark.parametrize("name", LOSSES)
def test_the_mode_is_a_minimum_of_the_robust_loss(name, groups):
    robust, loss = LOSSES[name]
    model, y, step, observe, R = case(groups=groups)
    post = kf.iterated_kalman_smoother(model, y, robust=robust, iterations=200)
    assert post.converged

    def cost(theta):
        x = theta.reshape(N, 2)
        w = x[1:] - step(x[:-1], None)
        prior = np.sum((x[0] - [0.4, 0.1]) ** 2) / 0.3 + np.sum(w**2) / 0.01
        return 0.5 * prior + sum(loss(s2, m) for _, _, s2, m in squares(y, observe(x, None), R, groups))

    theta = post.x.ravel()
    np.testing.assert_allclose(post.cost[-1], cost(theta), rtol=1e-11)
    slope = differences(lambda t: np.array([cost(t)]), theta, 1e-4)
    # Against the curvature of the prior, 100 a step: 1e-6 is a distance of 1e-8.
    np.testing.assert_allclose(slope, 0, atol=1e-6)
    found = minimize(cost, theta, method="BFGS", options={"maxiter": 50})
    assert found.fun > cost(theta) - 1e-9


def test_weights_and_covariances_are_those_of_the_reweighted_model():
    """Dense iterated reweighting: solve, reweight, until nothing moves."""
    groups = ("a", "a", "b")
    robust, _ = LOSSES["huber"]
    model, y, step, observe, R = case(groups=groups)
    post = kf.iterated_kalman_smoother(model, y, robust=robust, iterations=200)
    theta, weights = np.tile([0.4, 0.1], N), {}

    def residuals(t, weights):
        x = t.reshape(N, 2)
        parts = [(x[0] - [0.4, 0.1]) / np.sqrt(0.3), ((x[1:] - step(x[:-1], None)) / 0.1).ravel()]
        h = observe(x, None)
        for k in range(N):
            for g in ("a", "b"):
                at = [i for i in range(3) if groups[i] == g and not np.isnan(y[k, i])]
                if at:
                    L = np.linalg.cholesky(R[np.ix_(at, at)])
                    parts.append(np.sqrt(weights.get((k, g), 1.0)) * np.linalg.solve(L, y[k, at] - h[k, at]))
        return np.concatenate(parts)

    for _ in range(150):
        h = observe(theta.reshape(N, 2), None)
        weights = {(k, g): min(1.0, 1.5 / np.sqrt(s2)) for k, g, s2, _ in squares(y, h, R, groups)}
        J = differences(lambda t, w=weights: residuals(t, w), theta)
        move = np.linalg.lstsq(J, residuals(theta, weights), rcond=None)[0]
        theta = theta - move
        if np.abs(move).max() < 1e-11:
            break
    np.testing.assert_allclose(post.x.ravel(), theta, atol=1e-8)
    cov = np.linalg.inv(J.T @ J)
    for k in (0, 4, 14):
        np.testing.assert_allclose(post.cov[k], cov[2 * k : 2 * k + 2, 2 * k : 2 * k + 2], atol=1e-8)
    for (k, g), weight in weights.items():
        np.testing.assert_allclose(post.weights[k, "ab".index(g)], weight, atol=1e-7)
    assert post.weights[4, 0] < 0.2 and post.weights[9, 1] < 0.2 and (post.weights[6] == 1.0).all()


def test_a_robust_loss_is_hardly_moved_by_one_wild_reading():
    model, y, *_ = case()
    clean = y.copy()
    clean[4], clean[9] = np.nan, np.nan
    truth = kf.iterated_kalman_smoother(model, clean).x
    plain = np.abs(kf.iterated_kalman_smoother(model, y).x - truth).max()
    for robust in ("huber", "student"):
        assert np.abs(kf.iterated_kalman_smoother(model, y, robust=robust).x - truth).max() < 0.4 * plain


def test_bad_robust_arguments():
    model, y, *_ = case()
    for bad in ("tukey", 3.0):
        with pytest.raises(ModelError, match="robust must be Huber"):
            kf.iterated_kalman_smoother(model, y, robust=bad)
    with pytest.raises(ModelError, match="c must be positive"):
        kf.Huber(0.0)
    for loss in (kf.Huber, kf.StudentT):
        for no_number in ("a", None, [1.0, 2.0], np.nan):
            with pytest.raises(ModelError, match=r"(c|nu) must be positive, got"):
                loss(no_number)
    with pytest.raises(ModelError, match="nu must be positive"):
        kf.StudentT(-1.0)
    split, y, *_ = case(groups=(0, 1, 1))
    with pytest.raises(ModelError, match="correlates readings of different groups"):
        kf.iterated_kalman_smoother(split, y, robust="huber")
    wrong, y, *_ = case(groups=(0, 1))
    with pytest.raises(ShapeError, match="reading_groups must label each of the 3 outputs"):
        kf.iterated_kalman_smoother(wrong, y, robust="huber")
