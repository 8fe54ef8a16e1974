"""The Riccati gather: P, D, G, P⁺ from the leaves to the roots (THEORY (2))."""

from typing import NamedTuple

import numpy as np
from numba import njit

from kfdyn.estimation._kernels.linalg import (
    add_congruence,
    cholesky,
    solve_lower,
    solve_lower_transposed,
)
from kfdyn.estimation._kernels.sizes import OPTIONS, ORDERED, size

_EPS = 2.220446049250313e-16


class Scratch(NamedTuple):
    """Room for the intermediate arrays of one node."""

    u: np.ndarray
    g: np.ndarray
    before: np.ndarray
    U: np.ndarray
    H: np.ndarray
    N: np.ndarray


@njit(**OPTIONS)
def riccati(tag, model, seen, univariate, P, P_plus, D, L, G):
    """Fill P, P⁺, D, its Cholesky factor L, and G for every node; returns (node, output) that failed or (−1, −1).

    ::

        P(k)  = Σ_j φ(k,j) P⁺(j) φ*(k,j) + Q(k)
        D = H P H* + R,   G = P H* D⁻¹,   P⁺ = P − G D G*

    P arrives as a copy of Q and each node adds itself to its parent. Cost per node: 3n³ + O(n²m) flops.
    """
    state, output = model.state, model.output
    n_max, m_max = 0, 0
    for k in range(model.parent.size):
        n_max = max(n_max, state[k + 1] - state[k])
        m_max = max(m_max, output[k + 1] - output[k])
    scratch = Scratch(
        np.empty(max(n_max, m_max)),
        np.empty(n_max),
        np.empty(n_max),
        np.empty(n_max * m_max),
        np.empty(n_max * m_max),
        np.empty(m_max * m_max),
    )
    for k in model.order:
        n = size(tag, state[k + 1] - state[k])
        m = output[k + 1] - output[k]
        P_k = P[model.Q_at[k] : model.Q_at[k] + n * n]
        P_plus_k = P_plus[model.Q_at[k] : model.Q_at[k] + n * n]
        H_k = model.H[model.H_at[k] : model.H_at[k] + m * n]
        R_k = model.R[model.R_at[k] : model.R_at[k] + m * m]
        G_k = G[model.H_at[k] : model.H_at[k] + m * n]
        D_k = D[model.R_at[k] : model.R_at[k] + m * m]
        L_k = L[model.R_at[k] : model.R_at[k] + m * m]
        seen_k = seen[output[k] : output[k] + m]

        if m == 1 and seen_k[0]:
            d = update_scalar(P_k, H_k, R_k[0], G_k, scratch.u, scratch.before, P_plus_k, n)
            if not d > 0.0:
                return k, 0
            D_k[0] = d
            L_k[0] = np.sqrt(d)
        else:
            innovations(P_k, H_k, R_k, D_k, scratch.U, n, m)
            if univariate:
                at = update_univariate(P_k, H_k, R_k, seen_k, L_k, G_k, scratch, P_plus_k, n, m)
            else:
                at = update_block(P_k, H_k, R_k, seen_k, D_k, L_k, G_k, scratch, P_plus_k, n, m)
            if at >= 0:
                return k, at

        p = model.parent[k]
        if p >= 0:
            r = size(tag, state[p + 1] - state[p])
            phi = model.phi[model.phi_at[k] : model.phi_at[k] + r * n]
            add_congruence(P[model.Q_at[p] : model.Q_at[p] + r * r], phi, P_plus_k, scratch.u, r, n)
    return -1, -1


@njit(**OPTIONS)
def innovations(P, H, R, D, U, n, m):
    """U = P H* (n, m) and D = H P H* + R, symmetric by construction."""
    for i in range(n):
        for a in range(m):
            s = 0.0
            for j in range(n):
                s += P[i * n + j] * H[a * n + j]
            U[i * m + a] = s
    for a in range(m):
        for b in range(a + 1):
            s = R[a * m + b]
            for i in range(n):
                s += H[a * n + i] * U[i * m + b]
            D[a * m + b] = s
            D[b * m + a] = s


@njit(**ORDERED)
def update_scalar(P, h, r, g, u, before, P_plus, n):
    """One scalar measurement: fills g and P⁺ and returns d, or 0 where d is no more than rounding.

    B = P − u u*/d loses what is small against P when r ≪ hPh*. One step of refinement with the
    residual δ = B h* − r g, which is zero in exact arithmetic, brings it back (the Joseph form's virtue at
    the price of a rank-two correction): P⁺ = B − δ g* − g δ* + (hδ) g g*. P⁺ may be P itself.
    """
    d, scale = r, r
    for i in range(n):
        s = 0.0
        for j in range(n):
            s += P[i * n + j] * h[j]
        u[i] = s
        d += h[i] * s
        before[i] = P[i * n + i]
        scale += h[i] * h[i] * before[i]
    if not d > 4 * n * _EPS * scale:
        return 0.0
    inverse = 1.0 / d
    for i in range(n):
        g[i] = u[i] * inverse
    for i in range(n):
        for j in range(n):
            P_plus[i * n + j] = P[i * n + j] - 0.5 * (u[i] * g[j] + g[i] * u[j])
    kappa = 0.0
    for i in range(n):
        s = -r * g[i]
        for j in range(n):
            s += P_plus[i * n + j] * h[j]
        u[i] = s
        kappa += h[i] * s
    for i in range(n):  # u ← δ − κ g / 2, so that the correction is u g* + g u*
        u[i] -= 0.5 * kappa * g[i]
    for i in range(n):
        for j in range(n):
            P_plus[i * n + j] -= u[i] * g[j] + g[i] * u[j]
    if r == 0.0:
        flush(before, P_plus, n)
    return d


@njit(**ORDERED)
def update_univariate(P, H, R, seen, L, G, scratch, P_plus, n, m):
    """Process the outputs one by one, scalar divisions only; −1, or the output that failed.

    R is decorrelated first, R = N r N* with N unit lower triangular and r diagonal; the rows h_a of N⁻¹H are then
    independent scalar measurements. Their gains g_a and variances δ_a are the parts of the block
    quantities (PART 9, 10): L = N L̄ δ^½ with L̄_ba = h_b g_a, and G L = [g_1 … g_m] δ^½.
    """
    u, g, before = scratch.u, scratch.g, scratch.before
    N, h = scratch.N, scratch.H
    for i in range(n * n):
        P_plus[i] = P[i]
    for a in range(m):  # N r N* = R, r on the diagonal of N
        for i in range(n):
            h[a * n + i] = H[a * n + i]
            G[i * m + a] = 0.0
        for b in range(a + 1):
            L[b * m + a] = 0.0
            L[a * m + b] = 1.0 if a == b else 0.0
            N[a * m + b] = 0.0
            if seen[a] and seen[b]:
                s = R[a * m + b]
                for c in range(b):
                    s -= N[a * m + c] * N[b * m + c] * N[c * m + c]
                if a == b:
                    N[a * m + a] = s if s > 4 * m * _EPS * R[a * m + a] else 0.0
                elif N[b * m + b] > 0.0:
                    N[a * m + b] = s / N[b * m + b]
                    for i in range(n):
                        h[a * n + i] -= N[a * m + b] * h[b * n + i]
    for a in range(m):
        if not seen[a]:
            continue
        d = update_scalar(P_plus, h[a * n : a * n + n], N[a * m + a], g, u, before, P_plus, n)
        if not d > 0.0:
            return a
        root = np.sqrt(d)
        for i in range(n):
            G[i * m + a] = g[i] * root
        L[a * m + a] = root
        for b in range(a + 1, m):
            if seen[b]:
                s = 0.0
                for i in range(n):
                    s += h[b * n + i] * g[i]
                L[b * m + a] = s * root
    for a in range(m - 1, -1, -1):  # L ← N L, rows from the last: row a needs the earlier ones as they were
        for b in range(a):
            for c in range(b + 1):
                L[a * m + c] += N[a * m + b] * L[b * m + c]
    finish_gain(G, L, u, seen, n, m)
    return -1


@njit(**ORDERED)
def update_block(P, H, R, seen, D, L, G, scratch, P_plus, n, m):
    """All outputs at once by the Cholesky factor of D; −1 or the output that failed.

    W = U L⁻*, B = P − W W*, G = W L⁻¹, then the refinement of :func:`update_scalar` with
    Δ = B H* − G R: P⁺ = B − Δ G* − G Δ* + G (HΔ) G*.
    """
    U, V, row = scratch.U, scratch.N, scratch.u
    for a in range(m):
        if seen[a]:
            scale = R[a * m + a]
            for i in range(n):
                scale += H[a * n + i] * H[a * n + i] * P[i * n + i]
            if not D[a * m + a] > 4 * n * _EPS * scale:
                return a
    at = cholesky(D, L, seen, m, 4 * (n + m) * _EPS)
    if at >= 0:
        return at
    for i in range(n):
        for a in range(m):
            row[a] = U[i * m + a] if seen[a] else 0.0
        solve_lower(L, row, m)
        for a in range(m):
            G[i * m + a] = row[a]
    for i in range(n):
        for j in range(i + 1):
            s = P[i * n + j]
            for a in range(m):
                s -= G[i * m + a] * G[j * m + a]
            P_plus[i * n + j] = s
            P_plus[j * n + i] = s
    finish_gain(G, L, row, seen, n, m)
    noise = 0.0
    for i in range(n):  # U ← Δ
        for a in range(m):
            s = 0.0
            if seen[a]:
                for j in range(n):
                    s += P_plus[i * n + j] * H[a * n + j]
                for b in range(m):
                    s -= G[i * m + b] * R[b * m + a]
            U[i * m + a] = s
    for a in range(m):  # V ← HΔ
        for b in range(m):
            s = 0.0
            if seen[a] and seen[b]:
                for i in range(n):
                    s += H[a * n + i] * U[i * m + b]
                noise += abs(R[a * m + b])
            V[a * m + b] = s
    for i in range(n):  # U ← Δ − G (HΔ)* / 2
        for a in range(m):
            for b in range(m):
                U[i * m + a] -= 0.25 * G[i * m + b] * (V[a * m + b] + V[b * m + a])
    for i in range(n):
        for j in range(i + 1):
            s = P_plus[i * n + j]
            for a in range(m):
                s -= U[i * m + a] * G[j * m + a] + G[i * m + a] * U[j * m + a]
            P_plus[i * n + j] = s
            P_plus[j * n + i] = s
    if noise == 0.0 and m > 0:
        for i in range(n):
            scratch.before[i] = P[i * n + i]
        flush(scratch.before, P_plus, n)
    return -1


@njit(**OPTIONS)
def finish_gain(G, L, row, seen, n, m):
    """G ← G L⁻¹ row by row, with zero columns where nothing was seen."""
    for i in range(n):
        for a in range(m):
            row[a] = G[i * m + a]
        solve_lower_transposed(L, row, m)
        for a in range(m):
            G[i * m + a] = row[a] if seen[a] else 0.0


@njit(**OPTIONS)
def flush(before, P_plus, n):
    """Zero the rows of P⁺ whose variance an exact measurement has left at rounding level.

    A perfectly known state must read as known: its leftover of order εP would pass for a variance at the next
    node and let a singular model through.
    """
    for i in range(n):
        if P_plus[i * n + i] <= 4 * n * _EPS * before[i]:
            for j in range(n):
                P_plus[i * n + j] = 0.0
                P_plus[j * n + i] = 0.0
