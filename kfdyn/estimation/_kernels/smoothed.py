"""The scatter of the co-state covariances: Λ⁺, Λ and S from the roots to the leaves (THEORY (5))."""

import numpy as np
from numba import njit

from kfdyn.estimation._kernels.linalg import (
    add_scaled,
    combine,
    largest,
    solve_lower,
    solve_lower_transposed,
    subtract_congruence,
    subtract_outer,
    transposed_congruence,
)
from kfdyn.estimation._kernels.rts import cancelled
from kfdyn.estimation._kernels.sizes import PART, SWEEP, matrix, size, vector


@njit(**SWEEP)
def costate_covariances(sizes, single, vectorial, model, seen, L, G, P_plus, Lambda, S):
    """Fill Λ and the smoothed error covariance S for every node; returns how many S have lost digits (see rts).

    ::

        Λ⁺(k) = φ* Λ(p) φ,   Λ(k) = τ̄* Λ⁺ τ̄ + H* D⁻¹ H,   S(k) = P⁺ − P⁺ Λ⁺ P⁺

    ``single`` None leaves scalar outputs on their own out of the compiled code, ``vectorial`` None vector outputs.
    Cost per node: 7n³ + O(n²m) flops.
    """
    state, output = model.state, model.output
    n_max, m_max = largest(state), largest(output)
    row, sum_ = np.empty(max(n_max, m_max)), np.empty(max(n_max, m_max))
    above_flat, half = np.empty(n_max * n_max), np.empty(n_max * n_max)
    U, V = np.empty(n_max * m_max), np.empty(n_max * m_max)
    lost = 0
    for step in range(model.order.size):
        k = model.order[model.order.size - 1 - step]
        n = size(sizes.n, state[k + 1] - state[k])
        m = size(sizes.m, output[k + 1] - output[k])
        above = matrix(above_flat, 0, n, n)
        Lambda_k = matrix(Lambda, model.Q_at[k], n, n)
        P_plus_k, S_k = matrix(P_plus, model.Q_at[k], n, n), matrix(S, model.Q_at[k], n, n)
        p = model.parent[k]
        if p >= 0:
            r = size(sizes.n, state[p + 1] - state[p])
            phi = matrix(model.phi, model.phi_at[k], r, n)
            Lambda_p = matrix(Lambda, model.Q_at[p], r, r)
            transposed_congruence(sizes.n, above, phi, Lambda_p, half)
            subtract_congruence(sizes.n, S_k, P_plus_k, above, half)
            lost += cancelled(P_plus_k, S_k)
        else:
            for i in range(n):
                for j in range(n):
                    above[i, j] = 0.0
                    S_k[i, j] = P_plus_k[i, j]
        if single is not None and m == 1 and seen[output[k]]:
            h, g = vector(model.H, model.H_at[k], n), vector(G, model.H_at[k], n)
            u, v = vector(row, 0, n), vector(sum_, 0, n)
            measured_scalar(sizes.n, Lambda_k, above, h, g, 1.0 / L[model.R_at[k]] ** 2, u, v)
            continue
        if vectorial is not None and m > 0:
            H_k, G_k = matrix(model.H, model.H_at[k], m, n), matrix(G, model.H_at[k], n, m)
            L_k = matrix(L, model.R_at[k], m, m)
            seen_k = vector(seen, output[k], m)
            measured(Lambda_k, above, H_k, G_k, L_k, seen_k, matrix(U, 0, n, m), matrix(V, 0, m, n), row)
            continue
        for i in range(n):
            for j in range(n):
                Lambda_k[i, j] = above[i, j]
    return lost


@njit(**PART)
def measured_scalar(tag, Lambda, Lambda_plus, h, g, precision, u, v):
    """Λ = τ̄*Λ⁺τ̄ + h* h/d for one output, the projections applied one after the other as in :func:`measured`."""
    combine(tag, u, g, Lambda_plus)
    subtract_outer(tag, Lambda, Lambda_plus, u, h, None)  # A = Λ⁺ τ̄
    combine(tag, v, g, Lambda)
    add_scaled(tag, v, v, -precision, h)  # v = g* A − h / d
    subtract_outer(tag, Lambda, Lambda, h, v, True)  # Λ = A − h* v


@njit(**PART)
def measured(Lambda, Lambda_plus, H, G, L, seen, U, V, row):
    """Λ = τ̄*Λ⁺τ̄ + H*D⁻¹H, the projections applied one after the other so that the second cleans up the first."""
    n, m = G.shape
    for i in range(n):  # U = Λ⁺ G
        for a in range(m):
            s = 0.0
            for j in range(n):
                s += Lambda_plus[i, j] * G[j, a]
            U[i, a] = s
    for i in range(n):  # A = Λ⁺ τ̄
        for j in range(n):
            s = Lambda_plus[i, j]
            for a in range(m):
                s -= U[i, a] * H[a, j]
            Lambda[i, j] = s
    for j in range(n):  # V = G* A − D⁻¹ H
        for a in range(m):
            row[a] = H[a, j] if seen[a] else 0.0
        solve_lower(L, row)
        solve_lower_transposed(L, row)
        for a in range(m):
            s = -row[a] if seen[a] else 0.0
            for i in range(n):
                s += G[i, a] * Lambda[i, j]
            V[a, j] = s
    for i in range(n):  # Λ = A − H* V
        for j in range(i + 1):
            s = Lambda[i, j]
            for a in range(m):
                if seen[a]:
                    s -= H[a, i] * V[a, j]
            Lambda[i, j] = s
            Lambda[j, i] = s
