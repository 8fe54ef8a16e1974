"""Linear-quadratic control against dense KKT systems, Pontryagin's conditions and its own feedback law."""

import dense_qp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kfdyn as kf
from kfdyn.errors import KfdynError, ModelError, ShapeError, SingularError

seeds = st.integers(0, 10**6)
CART = np.array([[1.0, 0.1], [0.0, 1.0]]), np.array([[0.005], [0.1]])


def flat(blocks):
    return np.concatenate([np.asarray(block) for block in blocks])


def some_goals(seed, given_problem):
    rng, A = np.random.default_rng(seed), given_problem["A"]
    places = rng.choice(len(A), 2, replace=False)
    return [(int(k), rng.normal(size=(1, len(A[k]))), rng.normal(size=1)) for k in places]


@given(seeds, st.booleans(), st.booleans())
def test_plan_is_that_of_a_dense_quadratic_program(seed, cross, aimed):
    problem = dense_qp.random_problem(seed, cross)
    goals = some_goals(seed, problem) if aimed else []
    plan = kf.lqr(**problem, goals=goals)
    x, u, cost, _ = dense_qp.solve(**problem, goals=goals)
    scale = max(np.abs(x).max(), np.abs(u).max(), 1.0)
    assert np.abs(flat(plan.x) - x).max() < 1e-10 * scale
    assert np.abs(plan.u_stacked - u).max() < 1e-10 * scale
    assert abs(plan.cost - cost) < 1e-10 * max(abs(cost), scale**2)
    for k, matrix, value in goals:
        assert np.abs(matrix @ plan.x[k] - value).max() < 1e-11 * scale


@given(seeds, st.booleans())
def test_feedback_from_another_state_is_the_plan_from_there(seed, aimed):
    problem = dense_qp.random_problem(seed, cross=not aimed)
    goals = some_goals(seed, problem)[:1] if aimed else []
    plan = kf.lqr(**problem, goals=goals)
    start = np.random.default_rng(seed).normal(size=3)
    other = kf.lqr(**{**problem, "x0": start}, goals=goals)
    scale = max(np.abs(other.u_stacked).max(), np.abs(plan.u_stacked).max())
    assert np.abs(other.u[0] - plan.feedback(0, start)).max() < 1e-10 * scale
    for k, p in enumerate(problem["parent"]):  # and along the other plan, step by step
        if p >= 0 and not aimed:
            assert np.abs(other.u[k] - plan.feedback(k, other.x[p])).max() < 1e-9 * scale


def test_gains_lead_to_exact_goals_as_long_as_controls_are_left():
    A, B = CART
    plan = kf.lqr(A, B, np.eye(2), [[1.0]], [0.0, 0.0], steps=20, goals=[(-1, None, [1.0, 0.0])])
    x = np.array([0.3, -0.2])  # not where the plan starts
    for k in range(20):
        x = A @ x + B @ plan.feedback(k, x)
    np.testing.assert_allclose(x, [1.0, 0.0], rtol=0, atol=1e-10)


@given(seeds)
def test_pontryagin(seed):
    """R86:6-CTRL."""
    problem = dense_qp.random_problem(seed, cross=True)
    plan, parent = kf.lqr(**problem), problem["parent"]
    at, un = np.cumsum([0, *map(len, problem["A"])]), np.cumsum([0, *(b.shape[1] for b in problem["B"])])
    scale = max(np.abs(flat(plan.costate)).max(), np.abs(plan.u_stacked).max())
    for k in range(len(parent)):
        children = np.flatnonzero(parent == k)
        p = problem["Q"][k] @ plan.x[k] + problem["q"][at[k] : at[k + 1]]
        for j in children:
            p = p + problem["A"][j].T @ plan.costate[j] + problem["N"][j].T @ plan.u[j]
        before = problem["x0"] if parent[k] < 0 else plan.x[parent[k]]
        slope = problem["R"][k] @ plan.u[k] + problem["r"][un[k] : un[k + 1]] + problem["B"][k].T @ plan.costate[k]
        slope = slope + problem["N"][k] @ before
        assert np.abs(p - plan.costate[k]).max() < 1e-10 * scale * max(1, np.abs(problem["Q"][k]).max())
        assert np.abs(slope).max() < 1e-10 * scale * max(1, np.abs(problem["R"][k]).max())


@given(seeds, st.booleans())
def test_value_is_the_cost_of_the_rest(seed, cross):
    """The cost to go at the first state, from its Hessian, slope and constant, and the first control's own cost."""
    problem = dense_qp.random_problem(seed, cross)
    plan = kf.lqr(**problem)
    m = problem["B"][0].shape[1]
    u, R, r = plan.u[0], problem["R"][0], problem["r"][:m]
    own = 0.5 * u @ R @ u + r @ u
    if cross:
        own += u @ problem["N"][0] @ problem["x0"]
    assert abs(plan.value(0, plan.x[0]) + own - plan.cost) < 1e-10 * max(
        1.0, abs(plan.cost), abs(plan.value_constant[0])
    )


@given(seeds)
def test_hessian_is_the_condensed_one(seed):
    problem = dense_qp.random_problem(seed)
    plan = kf.lqr(**problem)
    *_, H = dense_qp.solve(**problem)
    b = np.random.default_rng(seed).normal(size=len(H))
    np.testing.assert_allclose(plan.hessian.solve(b), np.linalg.solve(H, b), rtol=1e-9, atol=1e-10 * np.abs(b).max())
    assert plan.hessian.logdet() == pytest.approx(np.linalg.slogdet(H)[1], rel=1e-11, abs=1e-10)
    np.testing.assert_allclose(plan.hessian.matvec(b), H @ b, rtol=0, atol=1e-12 * np.abs(H).max() * np.abs(b).sum())


def test_draws_have_the_inverse_hessian_as_covariance_with_cross_terms_too():
    """Uses whitening by the dense Hessian: 20,000 draws, each sample variance within 6 of its deviations."""
    problem = dense_qp.random_problem(3, cross=True, nodes=5)
    plan = kf.lqr(**problem)
    *_, H = dense_qp.solve(**problem)
    draws = flat_rows(plan.sample(np.random.default_rng(0), 20_000)) - plan.u_stacked
    white = draws @ np.linalg.cholesky(H)
    S = white.T @ white / len(white)
    deviation = np.sqrt((1 + np.eye(len(H))) / len(white))
    assert np.abs((S - np.eye(len(H))) / deviation).max() < 6


def flat_rows(blocks):
    return (
        blocks.flat
        if hasattr(blocks, "flat") and not isinstance(blocks, np.ndarray)
        else blocks.reshape(len(blocks), -1)
    )


def test_a_failed_actuator_is_a_locked_hinge():
    rng = np.random.default_rng(1)
    A, B, Q, R = rng.normal(size=(6, 3, 3)) / 2, rng.normal(size=(6, 3, 2)), np.eye(3), np.eye(2)
    r = np.zeros((6, 2))
    r[2, 0] = np.nan
    plan = kf.lqr(A, B, Q, R, np.ones(3), r=r)
    without = B.copy()
    without[2, :, 0] = 0.0  # a control that does nothing but cost
    other = kf.lqr(A, without, Q, R, np.ones(3))
    np.testing.assert_allclose(plan.x, other.x, rtol=0, atol=1e-13)
    np.testing.assert_allclose(plan.u, other.u, rtol=0, atol=1e-13)
    assert plan.u[2, 0] == 0.0


def test_shapes_batches_and_one_matrix_for_all_steps():
    A, B = CART
    plan = kf.lqr(A, B, np.eye(2), 0.1, [[1.0, 0.0], [0.0, 2.0], [-1.0, 1.0]], steps=7)
    assert plan.x.shape == plan.costate.shape == (3, 7, 2) and plan.u.shape == (3, 7, 1)
    assert plan.gains.shape == (7, 1, 2) and plan.value_hessian.shape == (7, 2, 2) and plan.cost.shape == (3,)
    for i, start in enumerate(([1.0, 0.0], [0.0, 2.0], [-1.0, 1.0])):
        one = kf.lqr(np.stack([A] * 7), B, np.eye(2), [[0.1]], start)
        assert np.array_equal(plan.x[i], one.x) and np.array_equal(plan.u[i], one.u)
        assert one.cost == pytest.approx(plan.cost[i], rel=1e-14)
    x = np.concatenate([[[1.0, 0.0]], plan.x[0][:-1]])
    np.testing.assert_allclose(plan.x[0], x @ A.T + plan.u[0] @ B.T, rtol=0, atol=1e-14)
    assert "7 steps" in repr(plan)


def test_the_stationary_gain_is_that_of_the_riccati_equation():
    from scipy.linalg import solve_discrete_are

    A, B = CART
    Q, R = np.diag([2.0, 1.0]), np.array([[0.3]])
    plan = kf.lqr(A, B, Q, R, [1.0, 0.0], steps=400)
    P = solve_discrete_are(A, B, Q, R)
    np.testing.assert_allclose(plan.value_hessian[0], P, rtol=1e-10)
    np.testing.assert_allclose(plan.gains[0], -np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A), rtol=1e-10)


@pytest.mark.parametrize(
    "goals", [[(3, None, [1.0, 1.0]), (3, [[1.0, 0.0]], [1.0])], [(2, [[2.0, 0.0], [1.0, 0.0]], [2.0, 1.0])]]
)
def test_goals_that_repeat_each_other_are_met_once(goals):
    plan = kf.lqr(*CART, np.eye(2), 1.0, [0.0, 0.0], steps=5, goals=goals)
    for k, matrix, value in goals:
        np.testing.assert_allclose((np.eye(2) if matrix is None else matrix) @ plan.x[k], value, rtol=0, atol=1e-12)


def test_what_cannot_be_is_named():
    A, B = CART
    with pytest.raises(ModelError, match=r"goals\[0\], row 0, at node 3 .* contradicts goals\[1\], row 0 at node 3;"):
        kf.lqr(A, B, np.eye(2), 1.0, [0.0, 0.0], steps=5, goals=[(3, None, [1.0, 1.0]), (3, [[1.0, 0.0]], [2.0])])
    with pytest.raises(ModelError, match=r"goals\[0\], row 0, at node 1 .*no control moves it"):
        kf.lqr(A, [[0.0], [0.0]], np.eye(2), 1.0, [1.0, 0.0], steps=5, goals=[(1, [[1.0, 0.0]], [3.0])])
    with pytest.raises(SingularError, match="a control of node 4 has no weight"):
        kf.lqr(A, B, np.zeros((2, 2)), 0.0, [0.0, 0.0], steps=5)
    with pytest.raises(ModelError, match="Q of node 0 is not positive semi-definite"):
        kf.lqr(A, B, -np.eye(2), 1.0, [0.0, 0.0], steps=5)
    with pytest.raises(ModelError, match="R of node 0 is not positive definite, as the cross term"):
        kf.lqr(A, B, np.eye(2), 0.0, [0.0, 0.0], N=np.ones((1, 2)), steps=5)
    with pytest.raises(ShapeError, match="give steps="):
        kf.lqr(A, B, np.eye(2), 1.0, [0.0, 0.0])
    with pytest.raises(ShapeError, match="parent has 2 entries, one for each step, but steps is 3"):
        kf.lqr(A, B, np.eye(2), 1.0, [0.0, 0.0], parent=[-1, 0], steps=3)
    with pytest.raises(ShapeError, match="parent has no entries, so there is no step"):
        kf.lqr(A, B, np.eye(2), 1.0, [0.0, 0.0], parent=[])
    with pytest.raises(ShapeError, match="B has 4 entries and A has 5"):
        kf.lqr(np.stack([A] * 5), np.stack([B] * 4), np.eye(2), 1.0, [0.0, 0.0])
    with pytest.raises(ShapeError, match="A of node 0 has 2 columns, but the state of x0"):
        kf.lqr(A, B, np.eye(2), 1.0, [0.0, 0.0, 0.0], steps=5)
    with pytest.raises(ShapeError, match=r"goals\[0\] is at step 9"):
        kf.lqr(A, B, np.eye(2), 1.0, [0.0, 0.0], steps=5, goals=[(9, None, [0.0, 0.0])])
    with pytest.raises(ModelError, match="x0 has an entry that is not finite"):
        kf.lqr(A, B, np.eye(2), 1.0, [np.nan, 0.0], steps=5)
    for bad in (
        {"q": np.zeros(3)},
        {"c": "x"},
        {"N": np.ones((2, 2))},
        {"goals": [1]},
        {"x_rows": 3},
        {"u_limits": 1.0},
    ):
        with pytest.raises(KfdynError):
            kf.lqr(A, B, np.eye(2), 1.0, [0.0, 0.0], steps=5, **bad)
