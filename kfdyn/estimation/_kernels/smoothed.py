"""The scatter of the co-state covariances: Λ⁺, Λ and S from the roots to the leaves (THEORY (5))."""

import numpy as np
from numba import njit

from kfdyn.estimation._kernels.linalg import solve_lower, solve_lower_transposed, transposed_congruence
from kfdyn.estimation._kernels.sizes import OPTIONS, size


@njit(**OPTIONS)
def costate_covariances(tag, model, seen, L, G, P_plus, Lambda, S):
    """Fill Λ and the smoothed error covariance S for every node.

    ::

        Λ⁺(k) = φ* Λ(p) φ,   Λ(k) = τ̄* Λ⁺ τ̄ + H* D⁻¹ H,   S(k) = P⁺ − P⁺ Λ⁺ P⁺

    Cost per node: 6n³ + O(n²m) flops.
    """
    state, output = model.state, model.output
    n_max, m_max = 1, 1
    for k in range(model.parent.size):
        n_max = max(n_max, state[k + 1] - state[k])
        m_max = max(m_max, output[k + 1] - output[k])
    row = np.empty(max(n_max, m_max))
    above = np.empty(n_max * n_max)
    U = np.empty(n_max * m_max)
    V = np.empty(n_max * m_max)
    for step in range(model.order.size - 1, -1, -1):
        k = model.order[step]
        n = size(tag, state[k + 1] - state[k])
        m = output[k + 1] - output[k]
        Lambda_k = Lambda[model.Q_at[k] : model.Q_at[k] + n * n]
        P_plus_k = P_plus[model.Q_at[k] : model.Q_at[k] + n * n]
        S_k = S[model.Q_at[k] : model.Q_at[k] + n * n]
        p = model.parent[k]
        if p >= 0:
            r = size(tag, state[p + 1] - state[p])
            phi = model.phi[model.phi_at[k] : model.phi_at[k] + r * n]
            transposed_congruence(above, phi, Lambda[model.Q_at[p] : model.Q_at[p] + r * r], row, r, n)
            shrink(S_k, P_plus_k, above, row, n)
        else:
            for i in range(n * n):
                above[i] = 0.0
                S_k[i] = P_plus_k[i]
        if m == 0:
            for i in range(n * n):
                Lambda_k[i] = above[i]
            continue
        H_k = model.H[model.H_at[k] : model.H_at[k] + m * n]
        G_k = G[model.H_at[k] : model.H_at[k] + m * n]
        L_k = L[model.R_at[k] : model.R_at[k] + m * m]
        measured(Lambda_k, above, H_k, G_k, L_k, seen[output[k] : output[k] + m], U, V, row, n, m)


@njit(**OPTIONS)
def shrink(S, P_plus, Lambda_plus, row, n):
    """S = P⁺ − P⁺ Λ⁺ P⁺, exactly symmetric."""
    for i in range(n):
        for j in range(n):
            s = 0.0
            for l in range(n):
                s += P_plus[i * n + l] * Lambda_plus[j * n + l]
            row[j] = s
        for j in range(i + 1):
            s = P_plus[i * n + j]
            for l in range(n):
                s -= row[l] * P_plus[j * n + l]
            S[i * n + j] = s
            S[j * n + i] = s


@njit(**OPTIONS)
def measured(Lambda, Lambda_plus, H, G, L, seen, U, V, row, n, m):
    """Λ = τ̄*Λ⁺τ̄ + H*D⁻¹H, the projections applied one after the other so that the second cleans up the first."""
    for i in range(n):  # U = Λ⁺ G
        for a in range(m):
            s = 0.0
            for j in range(n):
                s += Lambda_plus[i * n + j] * G[j * m + a]
            U[i * m + a] = s
    for i in range(n):  # A = Λ⁺ τ̄
        for j in range(n):
            s = Lambda_plus[i * n + j]
            for a in range(m):
                s -= U[i * m + a] * H[a * n + j]
            Lambda[i * n + j] = s
    for j in range(n):  # V = G* A − D⁻¹ H
        for a in range(m):
            row[a] = H[a * n + j] if seen[a] else 0.0
        solve_lower(L, row, m)
        solve_lower_transposed(L, row, m)
        for a in range(m):
            s = -row[a] if seen[a] else 0.0
            for i in range(n):
                s += G[i * m + a] * Lambda[i * n + j]
            V[a * n + j] = s
    for i in range(n):  # Λ = A − H* V
        for j in range(i + 1):
            s = Lambda[i * n + j]
            for a in range(m):
                if seen[a]:
                    s -= H[a * n + i] * V[a * n + j]
            Lambda[i * n + j] = s
            Lambda[j * n + i] = s
