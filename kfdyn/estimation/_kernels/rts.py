"""The smoothed covariance in Rauch–Tung–Striebel form, for nodes where the Bryson–Frazier form cancels."""

import kfdyn._kernels.compiler  # isort: skip  # noqa: F401

import numpy as np
from numba import njit, types

from kfdyn._kernels.sizes import PART, SWEEP, matrix, vector
from kfdyn.estimation._kernels.emit import emitted, loop
from kfdyn.estimation._kernels.linalg import add_congruence, cholesky, solve_lower, solve_lower_transposed
from kfdyn.estimation._kernels.values import choice, local

_EPS = 2.220446049250313e-16
_CANCELLED = 0.01  # of P⁺: a smaller S is a difference that has lost two digits or more


@njit(**SWEEP)
def restore_cancelled(model, P, P_plus, S):
    """Recompute the S of the nodes where it has lost digits, parents before children."""
    for step in range(model.order.size):
        k = model.order[model.order.size - 1 - step]
        n = model.state[k + 1] - model.state[k]
        own = matrix(P_plus, model.Q_at[k], n, n)
        if model.parent[k] >= 0 and cancelled(own, matrix(S, model.Q_at[k], n, n)):
            smooth_by_parent(model, k, P, P_plus, S)


@emitted(types.boolean)
def cancelled(P_plus, S):
    """Whether some variance of S is so small a remainder of P⁺ that P⁺ − P⁺Λ⁺P⁺ has lost digits."""
    lost = local(0)
    for i in loop(P_plus.shape[0]):
        lost.set(choice(S[i, i] < _CANCELLED * P_plus[i, i], 1, lost))
    return lost != 0


@njit(**PART)
def smooth_by_parent(model, k, P, P_plus, S):
    """S(k) from S(p), without the difference of large numbers in P⁺ − P⁺Λ⁺P⁺.

    ::

        J = P⁺ φ* P(p)⁻¹,   W = Q(p) + Σ_siblings φ P⁺ φ*
        S(k) = (1 − Jφ) P⁺ (1 − Jφ)* + J (W + S(p)) J*

    A sum of two positive semi-definite terms: it keeps its digits under a diffuse prior. Needs P(p) invertible;
    where it is not, or so nearly not that J W J* loses as much, S(k) stays as it is. A child is
    cancelled only if its share φP⁺φ* is nearly all of P(p) in some direction, so a parent of r states has at most r
    such children and the sums over siblings stay O(children).
    """
    p = model.parent[k]
    state = model.state
    n, r = state[k + 1] - state[k], state[p + 1] - state[p]
    phi = matrix(model.phi, model.phi_at[k], r, n)
    P_p, own = matrix(P, model.Q_at[p], r, r), matrix(P_plus, model.Q_at[k], n, n)
    L = np.empty((r, r))
    if cholesky(P_p, L, None, 4 * r * _EPS) >= 0:
        return
    row = np.empty(max(n, r))
    J, E = np.empty((n, r)), np.empty((n, n))
    for i in range(n):
        for a in range(r):
            s = 0.0
            for j in range(n):
                s += own[i, j] * phi[a, j]
            J[i, a] = s
        solve_lower(L, J[i])
        solve_lower_transposed(L, J[i])
        for j in range(n):
            s = 1.0 if i == j else 0.0
            for a in range(r):
                s -= J[i, a] * phi[a, j]
            E[i, j] = s
    Q_p, S_p = matrix(model.Q, model.Q_at[p], r, r), matrix(S, model.Q_at[p], r, r)
    W = np.empty((r, r))
    for a in range(r):
        for b in range(r):
            W[a, b] = Q_p[a, b] + S_p[a, b]
    for at in range(model.child_start[p], model.child_start[p + 1]):
        j = model.children[at]
        if j != k:
            c = state[j + 1] - state[j]
            step, theirs = matrix(model.phi, model.phi_at[j], r, c), matrix(P_plus, model.Q_at[j], c, c)
            add_congruence(None, W, step, theirs, np.empty(c), None)
    if rounds_off(J, W, own):
        return
    flat = vector(S, model.Q_at[k], n * n)
    for i in range(n * n):
        flat[i] = 0.0
    S_k = matrix(S, model.Q_at[k], n, n)
    add_congruence(None, S_k, E, own, row, None)
    add_congruence(None, S_k, J, W, row, None)


@njit(**PART)
def rounds_off(J, W, P_plus):
    """Whether J W J* rounds off more than two digits of P⁺: |J||W||J|* > 100 P⁺ somewhere.

    Two nearly parallel null directions, of Q(p) and of φP⁺φ*, make P(p) regular by a rounding error and J huge.
    """
    for i in range(J.shape[0]):
        terms = 0.0
        for a in range(J.shape[1]):
            for b in range(J.shape[1]):
                terms += abs(J[i, a]) * abs(W[a, b]) * abs(J[i, b])
        if _CANCELLED * terms > P_plus[i, i]:
            return True
    return False
