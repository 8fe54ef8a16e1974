"""The measurement update of one node: G, P⁺ and the factor of D, by block or output by output."""

import numpy as np
from numba import njit

from kfdyn.estimation._kernels.linalg import (
    add_scaled,
    cholesky,
    combine,
    dot,
    solve_lower,
    solve_lower_transposed,
    subtract_outer,
    subtract_pair,
)
from kfdyn.estimation._kernels.sizes import ORDERED, PART, matrix, vector

_EPS = 2.220446049250313e-16


@njit(**PART)
def innovations(P, H, R, D, U):
    """U = P H* (n, m) and D = H P H* + R, symmetric by construction."""
    m, n = H.shape
    for i in range(n):
        for a in range(m):
            s = 0.0
            for j in range(n):
                s += P[i, j] * H[a, j]
            U[i, a] = s
    for a in range(m):
        for b in range(a + 1):
            s = R[a, b]
            for i in range(n):
                s += H[a, i] * U[i, b]
            D[a, b] = s
            D[b, a] = s


@njit(**ORDERED)
def update_scalar(tag, P, h, r, g, room, before, P_plus):
    """One scalar measurement: fills g and P⁺ and returns d, or 0 where d is no more than rounding.

    B = P − u u*/d loses what is small against P when r ≪ d. Then one step of refinement with the residual
    δ = B h* − r g, which is zero in exact arithmetic, brings it back (the Joseph form's virtue at the price of a
    rank-two correction): P⁺ = B − δ g* − g δ* + (hδ) g g*. P⁺ may be P itself.
    """
    n = P.shape[0]
    u = vector(room, 0, n)
    combine(tag, u, h, P)
    d, scale = r + dot(tag, h, u), r
    for i in range(n):
        before[i] = P[i, i]
        scale += h[i] * h[i] * before[i]
    if not d > 4 * n * _EPS * scale:
        return 0.0
    add_scaled(tag, g, None, 1.0 / d, u)
    subtract_outer(tag, P_plus, P, u, g, True)
    if r > 0.01 * d:
        return d
    combine(tag, u, h, P_plus)
    add_scaled(tag, u, u, -r, g)
    add_scaled(tag, u, u, -0.5 * dot(tag, h, u), g)  # δ − κ g / 2, so that the correction is u g* + g u*
    subtract_pair(tag, P_plus, u, g)
    if r == 0.0:
        flush(before, P_plus)
    return d


@njit(**ORDERED)
def update_univariate(tag, P, H, R, seen, L, G, before, scratch, P_plus):
    """Process the outputs one by one, scalar divisions only; −1, or the output that failed.

    R is decorrelated first, R = N r N* with N unit lower triangular and r diagonal; the rows h_a of N⁻¹H are then
    independent scalar measurements. Their gains g_a and variances δ_a are the parts of the block
    quantities (PART 9, 10): L = N L̄ δ^½ with L̄_ba = h_b g_a, and G L = [g_1 … g_m] δ^½.
    """
    m, n = H.shape
    N, h = matrix(scratch, 0, m, m), matrix(scratch, m * m, m, n)
    u, g = vector(scratch, m * (m + n), n + m), vector(scratch, m * (m + n) + n + m, n)
    for i in range(n):
        for j in range(n):
            P_plus[i, j] = P[i, j]
    for a in range(m):  # N r N* = R, r kept on the diagonal of N
        for i in range(n):
            h[a, i] = H[a, i]
            G[i, a] = 0.0
        for b in range(a + 1):
            L[b, a] = 0.0
            L[a, b] = 1.0 if a == b else 0.0
            N[a, b] = 0.0
            if seen[a] and seen[b]:
                s = R[a, b]
                for c in range(b):
                    s -= N[a, c] * N[b, c] * N[c, c]
                if a == b:
                    N[a, a] = s if s > 4 * m * _EPS * R[a, a] else 0.0
                elif N[b, b] > 0.0:
                    N[a, b] = s / N[b, b]
                    for i in range(n):
                        h[a, i] -= N[a, b] * h[b, i]
    for a in range(m):
        if not seen[a]:
            continue
        d = update_scalar(tag, P_plus, h[a], N[a, a], g, u, before, P_plus)
        if not d > 0.0:
            return a
        root = np.sqrt(d)
        for i in range(n):
            G[i, a] = g[i] * root
        L[a, a] = root
        for b in range(a + 1, m):
            if seen[b]:
                s = 0.0
                for i in range(n):
                    s += h[b, i] * g[i]
                L[b, a] = s * root
    for back in range(m):  # L ← N L, from the last row: row a needs the earlier ones as they were
        a = m - 1 - back
        for b in range(a):
            for c in range(b + 1):
                L[a, c] += N[a, b] * L[b, c]
    finish_gain(G, L, u, seen)
    return -1


@njit(**ORDERED)
def update_block(P, H, R, seen, D, L, G, before, scratch, P_plus):
    """All outputs at once by the Cholesky factor of D; −1, or the output that failed.

    U = P H* arrives in the scratch. W = U L⁻*, B = P − W W*, G = W L⁻¹, then the refinement of
    :func:`update_scalar` with Δ = B H* − G R: P⁺ = B − Δ G* − G Δ* + G (HΔ) G*.
    """
    m, n = H.shape
    U, V = matrix(scratch, 0, n, m), matrix(scratch, n * m, m, m)
    row = vector(scratch, n * m + m * m, m)
    for a in range(m):
        if seen[a]:
            scale = R[a, a]
            for i in range(n):
                scale += H[a, i] * H[a, i] * P[i, i]
            if not D[a, a] > 4 * n * _EPS * scale:
                return a
    failed = cholesky(D, L, seen, 4 * (n + m) * _EPS)
    if failed >= 0:
        return failed
    for i in range(n):
        for a in range(m):
            row[a] = U[i, a] if seen[a] else 0.0
        solve_lower(L, row)
        for a in range(m):
            G[i, a] = row[a]
    for i in range(n):
        for j in range(i + 1):
            s = P[i, j]
            for a in range(m):
                s -= G[i, a] * G[j, a]
            P_plus[i, j] = s
            P_plus[j, i] = s
    finish_gain(G, L, row, seen)
    noise = 0.0
    for i in range(n):  # U ← Δ
        for a in range(m):
            s = 0.0
            if seen[a]:
                for j in range(n):
                    s += P_plus[i, j] * H[a, j]
                for b in range(m):
                    s -= G[i, b] * R[b, a]
            U[i, a] = s
    for a in range(m):  # V ← HΔ
        for b in range(m):
            s = 0.0
            if seen[a] and seen[b]:
                for i in range(n):
                    s += H[a, i] * U[i, b]
                noise += abs(R[a, b])
            V[a, b] = s
    for i in range(n):  # U ← Δ − G (HΔ)* / 2
        for a in range(m):
            for b in range(m):
                U[i, a] -= 0.25 * G[i, b] * (V[a, b] + V[b, a])
    for i in range(n):
        for j in range(i + 1):
            s = P_plus[i, j]
            for a in range(m):
                s -= U[i, a] * G[j, a] + G[i, a] * U[j, a]
            P_plus[i, j] = s
            P_plus[j, i] = s
    if noise == 0.0 and m > 0:
        for i in range(n):
            before[i] = P[i, i]
        flush(before, P_plus)
    return -1


@njit(**ORDERED)
def finish_gain(G, L, row, seen):
    """G ← G L⁻¹ row by row, with zero columns where nothing was seen."""
    n, m = G.shape
    for i in range(n):
        for a in range(m):
            row[a] = G[i, a]
        solve_lower_transposed(L, row)
        for a in range(m):
            G[i, a] = row[a] if seen[a] else 0.0


@njit(**ORDERED)
def flush(before, P_plus):
    """Zero the rows of P⁺ that an exact measurement has left at rounding level, covariances included.

    A perfectly known state must read as known: its leftover of order εP would pass for a variance at the next
    node and let a singular model through. A small variance alone is no sign of that: after H = [1, δ] the first state
    has variance δ² and the covariance −δ, which is far above rounding.
    """
    n = P_plus.shape[0]
    for i in range(n):
        limit = 4 * n * _EPS * np.sqrt(before[i])
        known = True
        for j in range(n):
            if not abs(P_plus[i, j]) <= limit * np.sqrt(before[j]):
                known = False
        if known:
            for j in range(n):
                P_plus[i, j] = 0.0
                P_plus[j, i] = 0.0
