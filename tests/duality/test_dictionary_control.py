"""The dictionary's column of control: each row executed, against dense algebra that knows no filter."""

import numpy as np
import pytest
from scipy.linalg import block_diag

import kfdyn as kf
from kfdyn.duality import DICTIONARY
from kfdyn.estimation import Covariances
from kfdyn.textbook.scan import element, scan

PARENT = np.array([-1, 0, 1, 1, 2, 3, 3])  # two branchings
N, n, m = len(PARENT), 3, 2
RNG = np.random.default_rng(7)


def weight(size):
    factor = RNG.normal(size=(size, size))
    return factor @ factor.T


A, B = 0.7 * RNG.normal(size=(N, n, n)), RNG.normal(size=(N, n, m))
Q, R = np.stack([weight(n) for _ in range(N)]), np.stack([weight(m) + 0.2 * np.eye(m) for _ in range(N)])
c, q, r, X0 = RNG.normal(size=(N, n)), RNG.normal(size=(N, n)), RNG.normal(size=(N, m)), RNG.normal(size=n)
PLAN = kf.lqr(A, B, Q, R, X0, PARENT, c=c, q=q, r=r)
SS = PLAN.ss
FILT = kf.kalman_filter(SS, *(PLAN.problem.inputs[i] for i in (2, 0, 1)))
SMOOTH = kf.bryson_frazier(SS, FILT)


class Dense:
    """The cost below node k (−1: below the start) as a quadratic ½y*Wy + w*y of y = (x(k), the controls below)."""

    def __init__(self, k, parent=PARENT, A=A, B=B, Q=Q, R=R, c=c, q=q, r=r):
        below = [k]
        for j in range(len(parent)):
            if parent[j] in below and j != k:
                below.append(j)
        self.nodes = below[1:]
        sizes = [A[j].shape[1] for j in range(len(A))]
        wide = [B[j].shape[1] for j in self.nodes]
        start = Q[k].shape[0] if k >= 0 else sizes[0]
        at = start + np.concatenate([[0], np.cumsum(wide)]).astype(int)
        size = at[-1]
        self.x, self.u = slice(0, start), slice(start, size)
        self.map, self.offset = {k: np.eye(start, size)}, {k: np.zeros(start)}
        self.own = {}
        self.W, self.w = np.zeros((size, size)), np.zeros(size)
        if k >= 0:
            self.W[self.x, self.x] += Q[k]
            self.w[self.x] += q[k]
        for i, j in enumerate(self.nodes):
            E = np.eye(size)[at[i] : at[i + 1]]
            self.own[j] = slice(at[i] - start, at[i + 1] - start)
            M = A[j] @ self.map[parent[j]] + B[j] @ E
            o = A[j] @ self.offset[parent[j]] + c[j]
            self.map[j], self.offset[j] = M, o
            self.W += M.T @ Q[j] @ M + E.T @ R[j] @ E
            self.w += M.T @ (Q[j] @ o + q[j]) + E.T @ r[j]

    def law(self, x):
        """The best controls below as a function of x."""
        return -np.linalg.solve(self.W[self.u, self.u], self.W[self.u, self.x] @ x + self.w[self.u])

    @property
    def hessian(self):
        """That of the value function."""
        cross = self.W[self.x, self.u]
        return self.W[self.x, self.x] - cross @ np.linalg.solve(self.W[self.u, self.u], cross.T)

    @property
    def gradient(self):
        """That of the value function at x = 0."""
        return self.w[self.x] - self.W[self.x, self.u] @ np.linalg.solve(self.W[self.u, self.u], self.w[self.u])


WHOLE = Dense(-1)
H = WHOLE.W[WHOLE.u, WHOLE.u]
SLOPE = WHOLE.W[WHOLE.u, WHOLE.x] @ X0 + WHOLE.w[WHOLE.u]  # of the cost in u at u = 0
BEST = WHOLE.law(X0)
ORDER = np.concatenate([np.arange(m * j, m * j + m) for j in WHOLE.nodes])  # of Dense's controls, among stacked ones


def stacked(u):
    out = np.empty(N * m)
    out[ORDER] = u
    return out


def rows_of(j):
    """Rows of the map from stacked controls to x(j)."""
    out = np.empty((n, N * m))
    out[:, ORDER] = WHOLE.map[j][:, WHOLE.u]
    return out


HESSIAN = np.empty((N * m, N * m))
HESSIAN[np.ix_(ORDER, ORDER)] = H


def near(got, wanted, rel=1e-10):
    got, wanted = np.asarray(got), np.asarray(wanted)
    assert got.shape == wanted.shape
    assert np.abs(got - wanted).max() <= rel * max(1.0, np.abs(wanted).max())


def before(k, x=None):
    """The state of the step before k."""
    x = PLAN.x if x is None else x
    return X0 if PARENT[k] < 0 else x[PARENT[k]]


def the_step():
    assert list(SS.tree.parent) == list(PARENT)
    place = {int(k): i for i, k in enumerate(SS.tree.order)}
    assert all(place[k] < place[p] for k, p in enumerate(PARENT) if p >= 0)


def the_slope_for_any_controls():
    u = RNG.normal(size=(N, m))
    x, price = np.zeros((N, n)), np.zeros((N, n))
    for k in range(N):
        x[k] = A[k] @ before(k, x) + B[k] @ u[k] + c[k]
    for k in reversed(range(N)):  # the engine's equation of the state, driven by w = Qx + ξ
        price[k] = sum((SS.phi[j] @ price[j] for j in range(N) if PARENT[j] == k), Q[k] @ x[k] + q[k])
        dense = Dense(k)
        y = np.concatenate([x[k], *(u[j] for j in dense.nodes)])
        near(price[k], (dense.W @ y + dense.w)[dense.x])


def the_inputs():
    T, xi, eta = (PLAN.problem.inputs[i] for i in (2, 0, 1))
    near(T.reshape(N, m), -r)
    near(xi.reshape(N, n), q)
    near(eta.reshape(N, n) - c, np.concatenate([[A[0] @ X0], np.zeros((N - 1, n))]))


def the_blocks():
    for k in range(N):
        near(SS.H[k], B[k].T)
        near(SS.Q[k], Q[k])
        near(SS.R[k], R[k])
        if PARENT[k] >= 0:
            near(SS.phi[k], A[k].T)


def the_value_function():
    for k in range(N):
        near(FILT.P[k], Dense(k).hessian)
        near(PLAN.value_hessian[k], Dense(k).hessian)
        near(FILT.z[k], Dense(k).gradient)


def the_value_before_the_control():
    for k in range(N):
        P = Dense(k).hessian
        both = np.block([[P, P @ B[k]], [B[k].T @ P, R[k] + B[k].T @ P @ B[k]]])
        near(FILT.P_plus[k], np.linalg.inv(np.linalg.inv(both)[:n, :n]))


def the_cost_without_controls():
    blocks = Covariances(FILT.covariances).x.diagonal
    for k in range(N):
        dense = Dense(k)
        near(blocks[k], dense.W[dense.x, dense.x])


def the_curvature_and_slope_in_a_control():
    for k in range(N):
        dense = Dense(k)
        near(FILT.D[k], R[k] + B[k].T @ dense.hessian @ B[k])
        near(FILT.eps[m * k : m * k + m], -(r[k] + B[k].T @ dense.gradient))


def the_feedback_law():
    for k in range(N):
        dense, x = Dense(PARENT[k]), RNG.normal(size=n)
        wanted = dense.law(x)[dense.own[k]]
        near(FILT.nu[m * k : m * k + m] - FILT.G[k].T @ (A[k] @ x + c[k]), wanted)
        near(PLAN.gains[k], -FILT.G[k].T @ A[k])
        near(PLAN.feedback(k, x), wanted)


def the_trajectory():
    y = np.concatenate([X0, BEST])
    for k in range(N):
        near(SMOOTH.costate[k], WHOLE.map[k] @ y + WHOLE.offset[k])
        near(PLAN.x[k], SMOOTH.costate[k])
        near(SMOOTH.x[k], Dense(k).hessian @ PLAN.x[k] + Dense(k).gradient)  # Pontryagin: the slope of the value
        near(PLAN.costate[k], SMOOTH.x[k])


def the_controls():
    near(SMOOTH.a, stacked(BEST))
    near(PLAN.u.ravel(), stacked(BEST))


def the_condensed_hessian():
    some = RNG.normal(size=N * m)
    near(PLAN.hessian.matvec(some), HESSIAN @ some)
    near(PLAN.hessian.logdet(), np.linalg.slogdet(HESSIAN)[1])


def the_density_of_plans():
    cov = np.linalg.inv(HESSIAN)
    for k in range(N):
        near(PLAN.hessian.inverse_blocks()[k], cov[m * k : m * k + m, m * k : m * k + m])
        near(SMOOTH.Lambda[k], rows_of(k) @ cov @ rows_of(k).T)


def the_draws():
    """20,000 draws, whitened by the dense Hessian: each sample variance within 6 of its deviations."""
    draws = PLAN.sample(np.random.default_rng(1), 20_000).reshape(20_000, -1) - stacked(BEST)
    white = draws @ np.linalg.cholesky(HESSIAN)
    S = white.T @ white / len(white)
    assert np.abs((S - np.eye(N * m)) / np.sqrt((1 + np.eye(N * m)) / len(white))).max() < 6


def the_failed_actuator():
    broken = r.copy()
    broken[3, 1] = np.nan
    kept = np.delete(np.arange(N * m), 3 * m + 1)
    slope = stacked(SLOPE)
    wanted = np.zeros(N * m)
    wanted[kept] = -np.linalg.solve(HESSIAN[np.ix_(kept, kept)], slope[kept])
    near(kf.lqr(A, B, Q, R, X0, PARENT, c=c, q=q, r=broken).u.ravel(), wanted)


def the_common_command():
    X = np.array([[1.0], [-2.0]])
    tied = kf.lqr(A, B @ X, Q, X.T @ R @ X, X0, PARENT, c=c, q=q, r=r @ X)
    every = block_diag(*[X] * N)
    near(tied.u.ravel(), -np.linalg.solve(every.T @ HESSIAN @ every, every.T @ stacked(SLOPE)))


def the_goal():
    k, C, g = 4, RNG.normal(size=(2, n)), RNG.normal(size=2)
    J, miss = C @ rows_of(k), C @ PLAN.x[k] - g
    push = np.linalg.solve(HESSIAN, J.T)
    exact = kf.lqr(A, B, Q, R, X0, PARENT, c=c, q=q, r=r, goals=[(k, C, g)])
    near(exact.u.ravel(), stacked(BEST) - push @ np.linalg.solve(J @ push, miss))
    near(C @ exact.x[k], g)
    noise = np.diag([0.3, 0.7])
    soft_Q, soft_q = Q.copy(), q.copy()
    soft_Q[k] += C.T @ np.linalg.solve(noise, C)
    soft_q[k] -= C.T @ np.linalg.solve(noise, g)
    soft = kf.lqr(A, B, soft_Q, R, X0, PARENT, c=c, q=soft_q, r=r)
    near(soft.u.ravel(), stacked(BEST) - push @ np.linalg.solve(J @ push + noise, miss))


def the_penalty():
    k, K, mu = 5, RNG.normal(size=(1, n)), 1e-3
    heavier = Q.copy()
    heavier[k] += K.T @ K / mu
    dense = Dense(-1, Q=heavier)
    near(kf.lqr(A, B, heavier, R, X0, PARENT, c=c, q=q, r=r).u.ravel(), stacked(dense.law(X0)))
    near(dense.W[dense.u, dense.u] - H, (K @ WHOLE.map[k][:, WHOLE.u]).T @ (K @ WHOLE.map[k][:, WHOLE.u]) / mu)


def deadbeat():
    every = RNG.normal(size=(N, n, n))
    plans = [kf.lqr(A, every, Q + np.eye(n), np.zeros((n, n)), start, PARENT, q=q) for start in (X0, -3 * X0)]
    near(plans[0].x[:, :], plans[1].x, 1e-9)  # whatever was before is forgotten
    near(np.array([plans[0].solved.filt.P_plus[k] for k in range(N)]), np.zeros((N, n, n)))


def one_by_one():
    steps, diagonal = 5, np.array([0.7, 1.9])
    both = kf.lqr(A[:steps], B[:steps], Q[:steps], np.diag(diagonal), X0)
    split_A = [part for k in range(steps) for part in (A[k], np.eye(n))]
    split_B = [B[k][:, i : i + 1] for k in range(steps) for i in range(2)]
    split_Q = [part for k in range(steps) for part in (np.zeros((n, n)), Q[k])]
    single = kf.lqr(split_A, split_B, split_Q, [diagonal[i : i + 1, None] for _ in range(steps) for i in range(2)], X0)
    near(single.u.ravel(), both.u.ravel())
    near(single.x[1::2], both.x)


def the_least_cost():
    plan = kf.lqr(A, B, Q, R, np.zeros(n), PARENT, r=r)
    least = -0.5 * r.ravel() @ np.linalg.solve(HESSIAN, r.ravel())
    near(plan.cost, least)
    llf = kf.kalman_filter(plan.ss, -r.ravel()).llf
    near(llf, least - 0.5 * np.linalg.slogdet(HESSIAN)[1] - 0.5 * N * m * np.log(2 * np.pi))


def the_square():
    u = RNG.normal(size=N * m)
    white = PLAN.hessian.whiten(HESSIAN @ u)
    near(0.5 * white @ white, 0.5 * u @ HESSIAN @ u)


def the_square_root():
    root = kf.kalman_filter(SS, FILT.T, method="square_root")
    for k in range(N):
        near(root.P[k], Dense(k).hessian)


def the_scan():
    """Steps of a chain from the last to the first, in about log₂ N rounds."""
    steps = 6
    plan = kf.lqr(A[:steps], B[:steps], Q[:steps], R[:steps], np.zeros(n), q=q[:steps], r=r[:steps])
    back = list(reversed(range(steps)))
    maps = [np.zeros((n, 0)), *(A[k + 1].T for k in back[1:])]
    found = scan([element(F, B[k].T, Q[k], R[k], q[k], -r[k]) for F, k in zip(maps, back)])
    for k, one in zip(back, found):
        near(one.C, plan.solved.filt.P_plus[k])
        near(one.b, plan.solved.filt.z_plus[k])


def the_branch():
    """Two chains that share their first controls, tied by hand, are one tree of scenarios."""
    tree, chain = np.array([-1, 0, 1, 1]), [[0, 1, 2], [0, 1, 3]]
    half = np.array([0.5, 0.5, 1.0, 1.0])
    dense = [
        Dense(-1, np.arange(-1, 2), A[own], B[own], *(half[own, None, None] * W[own] for W in (Q, R)), c[own],
              *(half[own, None] * w[own] for w in (q, r)))
        for own in chain
    ]  # fmt: skip
    tie = [np.zeros((3 * m, 4 * m)) for _ in chain]
    for T, own in zip(tie, chain):
        for i, k in enumerate(own):
            T[m * i : m * i + m, m * k : m * k + m] = np.eye(m)
    hessian = sum(T.T @ d.W[d.u, d.u] @ T for T, d in zip(tie, dense))
    slope = sum(T.T @ (d.W[d.u, d.x] @ X0 + d.w[d.u]) for T, d in zip(tie, dense))
    plan = kf.lqr(A[:4], B[:4], Q[:4], R[:4], X0, tree, c=c[:4], q=q[:4], r=r[:4])
    near(plan.u.ravel(), -np.linalg.solve(hessian, slope))


CHECKS = {
    "step; the filter runs back in time": the_step,
    "slope of the cost in x(k), any controls": the_slope_for_any_controls,
    "dynamics A*": the_blocks,
    "weight of the state": the_blocks,
    "linear weight q of the state": the_inputs,
    "input map B*": the_blocks,
    "linear weight of the control, −r": the_inputs,
    "weight of the control": the_blocks,
    "Hessian of the value function, in x(k)": the_value_function,
    "the same before u(k) acts, in Ax(p) + c": the_value_before_the_control,
    "Hessian of the cost to go without controls": the_cost_without_controls,
    "Q_uu: curvature of the cost to go in u(k)": the_curvature_and_slope_in_a_control,
    "feedback gain −G*A": the_feedback_law,
    "−Q_u where Ax(p) + c = 0": the_curvature_and_slope_in_a_control,
    "feedforward: u = ν − G*(Ax(p) + c)": the_feedback_law,
    "trajectory of states x(k)": the_trajectory,
    "drift c; Ax₀ enters at the root": the_inputs,
    "costate of Pontryagin": the_trajectory,
    "gradient of the value function at x(k) = 0": the_value_function,
    "optimal control u(k)": the_controls,
    "condensed Hessian of the plan, in u alone": the_condensed_hessian,
    "covariance of controls, exp(−cost) as a density": the_density_of_plans,
    "covariance of states under that density": the_density_of_plans,
    "failed actuator": the_failed_actuator,
    "one command for several actuators": the_common_command,
    "exact goal or way point; R > 0 if it may be missed": the_goal,
    "penalty ½‖Kx‖²/μ on a state": the_penalty,
    "a free control for each state: deadbeat": deadbeat,
    "controls of one step chosen one by one": one_by_one,
    "least cost −½ r*𝓜⁻¹r, less ½ log det 𝓜": the_least_cost,
    "controls in which the cost is ½‖·‖²": the_square,
    "square-root Riccati recursion of the regulator": the_square_root,
    "O(log N)-depth regulator": the_scan,
    "draws of plans about the best one": the_draws,
    "branch: what may come, a tree of scenarios": the_branch,
}


def test_every_row_has_a_check():
    assert [entry.control for entry in DICTIONARY] == list(CHECKS)


@pytest.mark.parametrize("check", dict.fromkeys(CHECKS.values()), ids=lambda check: check.__name__)
def test_row_is_what_it_says(check):
    check()
