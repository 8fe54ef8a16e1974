"""Limits: the conditions of Karush, Kuhn and Tucker as residuals, and linear programs as judges of what is feasible."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

import kfdyn as kf
from kfdyn.errors import ModelError, ShapeError

seeds = st.integers(0, 10**6)
CART = np.array([[1.0, 0.1], [0.0, 1.0]]), np.array([[0.005], [0.1]])


def limited_problem(seed):
    """A chain or a tree whose free plan breaks its limits."""
    rng = np.random.default_rng(seed)
    K, n, m = int(rng.integers(3, 40)), int(rng.integers(1, 5)), int(rng.integers(1, 4))
    parent = np.array([-1] + [int(rng.integers(0, k)) if seed % 2 else k - 1 for k in range(1, K)])
    A = np.eye(n) + 0.3 * rng.normal(size=(K, n, n))
    A /= max(1.0, 1.05 * max(np.abs(np.linalg.eigvals(a)).max() for a in A))
    B = rng.normal(size=(K, n, m))
    of_x, of_u = rng.normal(size=(K, n, max(1, n - 1))), rng.normal(size=(K, m, m))
    Q, R = of_x @ of_x.transpose(0, 2, 1), of_u @ of_u.transpose(0, 2, 1) + 0.05 * np.eye(m)
    given_ = (A, B, Q, R, 3 * rng.normal(size=n), parent, None, rng.normal(size=(K, n)), rng.normal(size=(K, m)))
    free = kf.lqr(*given_)
    limits = {"u_limits": (-0.3 * np.abs(free.u).max(), 0.3 * np.abs(free.u).max())}
    if seed % 3 == 1:
        C = rng.normal(size=(1, m))
        limits["u_rows"] = (C, 0.4 * np.abs(free.u @ C.T).max(axis=0))
    if seed % 3 == 2:
        high, x = limits["u_limits"][1], np.zeros((K, n))
        for k in range(K):  # a plan that keeps the other limits, so that some plan keeps all
            x[k] = A[k] @ (given_[4] if k == 0 else x[parent[k]]) + B[k] @ np.clip(free.u[k], -0.9 * high, 0.9 * high)
        limits["x_limits"] = (-np.inf, x.max(axis=0) + 0.1)
    return given_, limits


@given(seeds)
def test_karush_kuhn_tucker(seed):
    (A, B, Q, R, x0, parent, _, q, r), limits = problem, _ = limited_problem(seed)
    plan = kf.lqr(*problem, **limits)
    assert plan.converged, plan.message
    x, u, pressed = plan.x, plan.u, plan.limit_multipliers
    p, slope = np.einsum("kij,kj->ki", Q, x) + q, np.einsum("kij,kj->ki", R, u) + r
    gaps = []
    for name, part, slopes in (("x", x, p), ("u", u, slope)):
        if f"{name}_limits" in limits:
            (low, high), (below, above) = limits[f"{name}_limits"], pressed[f"{name}_limits"]
            slopes += above - below
            gaps += [(above, high - part), (below, part - low)]
        if f"{name}_rows" in limits:
            C, d = limits[f"{name}_rows"]
            slopes += pressed[f"{name}_rows"] @ C
            gaps.append((pressed[f"{name}_rows"], d - part @ C.T))
    for k in range(len(parent) - 1, 0, -1):
        p[parent[k]] += A[k].T @ p[k]
    slope += np.einsum("kij,ki->kj", B, p)
    before = np.where(parent[:, None] < 0, x0, x[parent])
    size = 1 + np.abs(x).max() + np.abs(u).max()
    assert np.abs(slope).max() < 1e-9 * (1 + np.abs(p).max())  # stationary
    assert np.abs(x - np.einsum("kij,kj->ki", A, before) - np.einsum("kij,kj->ki", B, u)).max() < 1e-12 * size
    for multiplier, gap in gaps:
        assert multiplier.min() >= 0 and gap.min() > -1e-10 * size
        assert np.abs(np.where(multiplier > 0, gap, 0.0)).max() < 1e-10 * size  # what presses is at its limit


@given(seeds)
def test_infeasible_problems_are_refused_and_feasible_ones_solved(seed):
    """A linear program finds the least violation of all limits."""
    rng = np.random.default_rng(seed)
    K, n, m = int(rng.integers(2, 12)), int(rng.integers(1, 4)), int(rng.integers(1, 3))
    A, B, x0 = np.eye(n) + 0.3 * rng.normal(size=(n, n)), rng.normal(size=(n, m)), rng.normal(size=n)
    Q, R = np.eye(n) * 10.0 ** rng.integers(-3, 3), np.eye(m) * 10.0 ** rng.integers(-3, 3)
    most_u, most_x = 10.0 ** rng.uniform(-2, 1), 10.0 ** rng.uniform(-0.7, 1)
    reach, drift, rows, free = np.zeros((n, K * m)), x0, [], []
    for k in range(K):
        drift, reach = A @ drift, A @ reach
        reach[:, k * m : (k + 1) * m] += B
        rows.append(reach.copy())
        free.append(drift)
    G, o = np.vstack(rows), np.concatenate(free)
    one = np.ones((len(G), 1))
    judge = linprog(
        np.eye(1, K * m + 1, K * m)[0],
        np.block([[G, -one], [-G, -one]]),
        np.concatenate([most_x - o, most_x + o]),
        bounds=[(-most_u, most_u)] * (K * m) + [(None, None)],
    )
    violation = judge.fun / max(most_x, np.abs(o).max())
    if abs(violation) < 1e-4:
        return  # neither clearly feasible nor clearly not
    limits = {"u_limits": (-most_u, most_u), "x_limits": (-most_x, most_x)}
    if violation > 0:
        with pytest.raises(ModelError, match=r"no plan keeps all limits: .* at step"):
            kf.lqr(A, B, Q, R, x0, steps=K, **limits)
    else:
        plan = kf.lqr(A, B, Q, R, x0, steps=K, **limits)
        assert (
            plan.converged
            and np.abs(plan.u).max() <= most_u * (1 + 1e-9)
            and np.abs(plan.x).max() <= most_x * (1 + 1e-9)
        )


def test_least_force_to_a_goal_saturates_and_lands():
    A, B = CART
    plan = kf.lqr(
        A, B, np.zeros((2, 2)), 1.0, [0.0, 0.0], steps=20, goals=[(-1, None, [1.0, 0.0])], u_limits=(-1.05, 1.05)
    )
    assert plan.converged and np.abs(plan.u).max() == 1.05
    np.testing.assert_allclose(plan.x[-1], [1.0, 0.0], rtol=0, atol=1e-13)
    with pytest.raises(ModelError, match=r"no plan keeps all limits: u\[0\]"):
        kf.lqr(A, B, np.zeros((2, 2)), 1.0, [0.0, 0.0], steps=20, goals=[(-1, None, [1.0, 0.0])], u_limits=(-0.9, 0.9))


def test_limits_on_what_goals_decide():
    """By Euler's explicit rule x(N − 2) follows from the last state; its limit has no inside, and is only looked at."""
    A, B = np.array([[1.0, 0.1], [0.0, 1.0]]), np.array([[0.0], [0.1]])
    task, goals = (A, B, np.zeros((2, 2)), 1.0, [1.0, -2.0]), [(-1, None, [0.5, 0.0])]
    exact, wide = (kf.lqr(*task, steps=10, goals=goals, x_limits=([0.5 - hair, -9.0], 9.0)) for hair in (0.0, 1e-7))
    assert exact.converged and exact.iterations and exact.x[:, 0].min() >= 0.5 - 1e-13
    np.testing.assert_allclose(exact.x[-2:, 0], 0.5, rtol=0, atol=1e-13)
    np.testing.assert_allclose(exact.u, wide.u, rtol=0, atol=1e-4)
    with pytest.raises(ModelError, match=r"no plan keeps all limits: x\[0\] ≥ 0.6 at step [89]"):
        kf.lqr(*task, steps=10, goals=goals, x_limits=([0.6, -9.0], 9.0))


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_units_do_not_matter(unit):
    A, B = CART
    Q, R = np.diag([100.0, 1.0]) * unit**2, np.array([[1e-3]]) * unit**2
    plan = kf.lqr(A, B, Q, R, np.array([5.0, 0.0]) * unit, steps=60, u_limits=(-0.7 * unit, 0.7 * unit))
    one = kf.lqr(A, B, Q / unit**2, R / unit**2, [5.0, 0.0], steps=60, u_limits=(-0.7, 0.7))
    assert plan.converged
    np.testing.assert_allclose(plan.u / unit, one.u, rtol=0, atol=1e-10)


def test_a_start_from_a_neighbour_saves_steps_and_ends_in_the_same_plan():
    A, B = CART
    given_ = (A, B, np.diag([100.0, 1.0]), [[1e-3]])
    first = kf.lqr(*given_, [5.0, 0.0], steps=200, u_limits=(-0.2, 0.2))
    cold = kf.lqr(*given_, [5.0, 0.01], steps=200, u_limits=(-0.2, 0.2))
    warm = kf.lqr(*given_, [5.0, 0.01], steps=200, u_limits=(-0.2, 0.2), start=first)
    assert warm.converged and warm.iterations < cold.iterations
    np.testing.assert_allclose(warm.u, cold.u, rtol=0, atol=1e-11)


def test_limits_that_do_not_press_change_nothing():
    A, B = CART
    free = kf.lqr(A, B, np.eye(2), 1.0, [1.0, 0.0], steps=9)
    wide = kf.lqr(A, B, np.eye(2), 1.0, [1.0, 0.0], steps=9, u_limits=(-1e3, 1e3), x_limits=(None, np.inf))
    assert np.array_equal(free.u, wide.u) and wide.iterations == 0


def test_degenerate_limits():
    """Both sides at once, limits said twice, and a start on the limit."""
    A, B = CART
    fixed = kf.lqr(A, B, np.eye(2), 1.0, [1.0, 0.0], steps=9, u_limits=(0.5, 0.5))
    assert fixed.converged and (fixed.u == 0.5).all()
    twice = kf.lqr(
        A, B, np.diag([100.0, 1]), 1e-3, [5.0, 0.0], steps=50, u_limits=(-1, 1), u_rows=([[1.0], [-1.0]], [1, 1])
    )
    once = kf.lqr(A, B, np.diag([100.0, 1]), 1e-3, [5.0, 0.0], steps=50, u_limits=(-1, 1))
    np.testing.assert_allclose(twice.u, once.u, rtol=0, atol=1e-10)
    assert (kf.lqr(A, B, np.eye(2), 1.0, [0.0, 0.0], steps=9, u_limits=(0, 1)).u == 0).all()


def test_what_limits_are_not_for_is_said():
    A, B = CART
    with pytest.raises(ShapeError, match="one problem at a time"):
        kf.lqr(A, B, np.eye(2), 1.0, np.zeros((3, 2)), steps=5, u_limits=(-1, 1))
    with pytest.raises(ModelError, match="the lower limit is above the upper one"):
        kf.lqr(A, B, np.eye(2), 1.0, np.zeros(2), steps=5, u_limits=(1, -1))
    with pytest.raises(ShapeError, match=r"the upper x_limits have shape \(3,\)"):
        kf.lqr(A, B, np.eye(2), 1.0, np.zeros(2), steps=5, x_limits=(-1, np.ones(3)))
