"""The scatter of the co-state covariances: Λ⁺, Λ and S from the roots to the leaves (THEORY (5))."""

import kfdyn._kernels.compiler  # isort: skip  # noqa: F401

from numba import njit, types

from kfdyn._kernels.sizes import SWEEP
from kfdyn.estimation._kernels.emit import both, down, either, emitted, loop, size
from kfdyn.estimation._kernels.linalg import (
    add_scaled,
    combine,
    solve_lower,
    solve_lower_transposed,
    subtract_congruence,
    subtract_outer,
    transposed_congruence,
)
from kfdyn.estimation._kernels.model import Model
from kfdyn.estimation._kernels.rts import cancelled
from kfdyn.estimation._kernels.values import choice, count, local, matrix, vector


@njit(**SWEEP)
def costate_covariances(sizes, single, vectorial, model, seen, L, G, P_plus, Lambda, S, room):
    """Fill Λ and the smoothed error covariance S for every node; returns how many S have lost digits (see rts).

    ::

        Λ⁺(k) = φ* Λ(p) φ,   Λ(k) = τ̄* Λ⁺ τ̄ + H* D⁻¹ H,   S(k) = P⁺ − P⁺ Λ⁺ P⁺

    S None leaves that out. ``single`` None leaves scalar outputs on their own out of the compiled code, ``vectorial``
    None vector outputs. ``model`` is the address of a model, ``room`` is for :func:`room` numbers. Cost per node:
    7n³ + O(n²m) flops, 3n³ without S.
    """
    return _scatter(sizes, single, vectorial, model, seen, L, G, P_plus, Lambda, S, room)


def room(n, m):
    """Numbers that the scatter needs room for, with at most n states and m outputs to a node."""
    return 2 * n * n + 2 * n * m + 2 * n + m


@emitted(types.intp)
def _scatter(sizes, single, vectorial, address, seen, L, G, P_plus, Lambda, S, room):
    model = Model(address)
    state, output, most = model.state, model.output, model.most
    half, scratch = vector(room, most * most), vector(room, 2 * most * most)
    lost = local(0)
    for step in down(model.nodes):
        k = model.order[step]
        n = size(sizes.n, state[k + 1] - state[k])
        m = size(sizes.m, output[k + 1] - output[k])
        above, Lambda_k = matrix(room, 0, n, n), matrix(Lambda, model.Q_at[k], n, n)
        P_plus_k = matrix(P_plus, model.Q_at[k], n, n)
        S_k = None if S is None else matrix(S, model.Q_at[k], n, n)
        p = model.parent[k]
        with either(p >= 0) as (inner, root):
            with inner:
                r = size(sizes.n, state[p + 1] - state[p])
                phi, Lambda_p = matrix(model.phi, model.phi_at[k], r, n), matrix(Lambda, model.Q_at[p], r, r)
                transposed_congruence(sizes.n, above, phi, Lambda_p, half)
                if S is not None:
                    subtract_congruence(sizes.n, S_k, P_plus_k, above, half)
                    lost += count(cancelled(P_plus_k, S_k))
            with root:
                for i in loop(n):
                    for j in loop(n):
                        above[i, j] = 0.0
                        if S is not None:
                            S_k[i, j] = P_plus_k[i, j]
        H_k, G_k = matrix(model.H, model.H_at[k], m, n), matrix(G, model.H_at[k], n, m)
        L_k, seen_k = matrix(L, model.R_at[k], m, m), vector(seen, output[k])
        if single is None:
            measured(Lambda_k, above, H_k, G_k, L_k, seen_k, scratch)
        else:
            with either(both(m == 1, lambda own: own[0], seen_k)) as (alone, together):
                with alone:
                    h, g = vector(H_k, 0, n), vector(G_k, 0, n)
                    u, v = vector(scratch, 0, n), vector(scratch, n, n)
                    measured_scalar(sizes.n, Lambda_k, above, h, g, 1.0 / (L_k[0, 0] * L_k[0, 0]), u, v)
                with together:
                    if vectorial is not None:
                        measured(Lambda_k, above, H_k, G_k, L_k, seen_k, scratch)
                    else:  # a scalar output that is missing, or none
                        for i in loop(n):
                            for j in loop(n):
                                Lambda_k[i, j] = above[i, j]
    return lost


@emitted(types.none)
def measured_scalar(tag, Lambda, Lambda_plus, h, g, precision, u, v):
    """Λ = τ̄*Λ⁺τ̄ + h* h/d for one output, the projections applied one after the other as in :func:`measured`."""
    combine(tag, u, g, Lambda_plus)
    subtract_outer(tag, Lambda, Lambda_plus, u, h, None)  # A = Λ⁺ τ̄
    combine(tag, v, g, Lambda)
    add_scaled(tag, v, v, -precision, h)  # v = g* A − h / d
    subtract_outer(tag, Lambda, Lambda, h, v, True)  # Λ = A − h* v


@emitted(types.none)
def measured(Lambda, Lambda_plus, H, G, L, seen, room):
    """Λ = τ̄*Λ⁺τ̄ + H*D⁻¹H, the projections applied one after the other so that the second cleans up the first."""
    n, m = G.shape
    U, V, row = matrix(room, 0, n, m), matrix(room, n * m, m, n), vector(room, 2 * n * m, m)
    for i in loop(n):  # U = Λ⁺ G
        for a in loop(m):
            s = local(0.0)
            for j in loop(n):
                s += Lambda_plus[i, j] * G[j, a]
            U[i, a] = s
    for i in loop(n):  # A = Λ⁺ τ̄
        for j in loop(n):
            s = local(Lambda_plus[i, j])
            for a in loop(m):
                s -= U[i, a] * H[a, j]
            Lambda[i, j] = s
    for j in loop(n):  # V = G* A − D⁻¹ H
        for a in loop(m):
            row[a] = choice(seen[a], H[a, j], 0.0)
        solve_lower(L, row)
        solve_lower_transposed(L, row)
        for a in loop(m):
            s = local(choice(seen[a], -row[a], 0.0))
            for i in loop(n):
                s += G[i, a] * Lambda[i, j]
            V[a, j] = s
    for i in loop(n):  # Λ = A − H* V
        for j in loop(i + 1):
            s = local(Lambda[i, j])
            for a in loop(m):
                s -= choice(seen[a], H[a, i], 0.0) * V[a, j]
            Lambda[i, j] = s
            Lambda[j, i] = s
