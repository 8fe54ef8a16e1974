"""The measurement update of one node: G, P⁺ and the factor of D, by block or output by output."""

import kfdyn._kernels.compiler  # isort: skip  # noqa: F401

from numba import types

from kfdyn.estimation._kernels.emit import down, emitted, loop, when
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
from kfdyn.estimation._kernels.values import IN_ORDER, absolute, choice, local, matrix, real, root, vector

_EPS = 2.220446049250313e-16


@emitted(types.none)
def innovations(P, H, R, D, U):
    """U = P H* (n, m) and D = H P H* + R, symmetric by construction."""
    m, n = H.shape
    for i in loop(n):
        for a in loop(m):
            s = local(0.0)
            for j in loop(n):
                s += P[i, j] * H[a, j]
            U[i, a] = s
    for a in loop(m):
        for b in loop(a + 1):
            s = local(R[a, b])
            for i in loop(n):
                s += H[a, i] * U[i, b]
            D[a, b] = s
            D[b, a] = s


@emitted(types.float64, IN_ORDER)
def update_scalar(tag, P, h, r, g, room, before, P_plus):
    """One scalar measurement: fills g and P⁺ and returns d, or 0 where d is no more than rounding.

    B = P − u u*/d loses what is small against P when r ≪ d. Then one step of refinement with the residual
    δ = B h* − r g, which is zero in exact arithmetic, brings it back (the Joseph form's virtue at the price of a
    rank-two correction): P⁺ = B − δ g* − g δ* + (hδ) g g*. P⁺ may be P itself.
    """
    n = P.shape[0]
    u = vector(room, 0, n)
    combine(tag, u, h, P)
    d, scale = r + dot(tag, h, u), local(r)
    for i in loop(n):
        before[i] = P[i, i]
        scale += h[i] * h[i] * before[i]
    positive = d > bound(n) * scale
    with when(positive):
        add_scaled(tag, g, None, 1.0 / d, u)
        subtract_outer(tag, P_plus, P, u, g, True)
        with when(~(r > 0.01 * d)):
            combine(tag, u, h, P_plus)
            add_scaled(tag, u, u, -r, g)
            add_scaled(tag, u, u, -0.5 * dot(tag, h, u), g)  # δ − κ g / 2: the correction is then u g* + g u*
            subtract_pair(tag, P_plus, u, g)
            with when(r == 0.0):
                flush(before, P_plus)
    return choice(positive, d, 0.0)


@emitted(types.intp, IN_ORDER)
def update_univariate(tag, P, H, R, seen, L, G, before, scratch, P_plus):
    """Process the outputs one by one, scalar divisions only; −1, or the output that failed.

    R is decorrelated first, R = N r N* with N unit lower triangular and r diagonal; the rows h_a of N⁻¹H are then
    independent scalar measurements. Their gains g_a and variances δ_a are the parts of the block
    quantities (PART 9, 10): L = N L̄ δ^½ with L̄_ba = h_b g_a, and G L = [g_1 … g_m] δ^½.
    """
    m, n = H.shape
    N, h = matrix(scratch, 0, m, m), matrix(scratch, m * m, m, n)
    u, g = vector(scratch, m * (m + n)), vector(scratch, m * (m + n) + n + m, n)
    for i in loop(n):
        for j in loop(n):
            P_plus[i, j] = P[i, j]
    for a in loop(m):  # N r N* = R, r kept on the diagonal of N
        for i in loop(n):
            h[a, i] = H[a, i]
            G[i, a] = 0.0
        for b in loop(a + 1):
            L[b, a] = 0.0
            L[a, b] = choice(a == b, 1.0, 0.0)
            N[a, b] = 0.0
            with when(seen[a] & seen[b]):
                s = local(R[a, b])
                for c in loop(b):
                    s -= N[a, c] * N[b, c] * N[c, c]
                with when(a == b):
                    N[a, a] = choice(s > bound(m) * R[a, a], s, 0.0)
                with when((a != b) & (N[b, b] > 0.0)):
                    N[a, b] = s / N[b, b]
                    for i in loop(n):
                        h[a, i] -= N[a, b] * h[b, i]
    failed = local(-1)
    for a in loop(m, until=failed):
        with when(seen[a]):
            d = update_scalar(tag, P_plus, vector(h, a * n, n), N[a, a], g, u, before, P_plus)
            with when(~(d > 0.0)):
                failed.set(a)
            deviation = root(d)
            for i in loop(n):
                G[i, a] = g[i] * deviation
            L[a, a] = deviation
            for b in loop(m, a + 1):
                with when(seen[b]):
                    s = local(0.0)
                    for i in loop(n):
                        s += h[b, i] * g[i]
                    L[b, a] = s * deviation
    for a in down(m):  # L ← N L, from the last row: row a needs the earlier ones as they were
        for b in loop(a):
            for c in loop(b + 1):
                L[a, c] += N[a, b] * L[b, c]
    finish_gain(G, L, u, seen)
    return failed


@emitted(types.intp, IN_ORDER)
def update_block(P, H, R, seen, D, L, G, before, scratch, P_plus):
    """All outputs at once by the Cholesky factor of D; −1, or the output that failed.

    U = P H* arrives in the scratch. W = U L⁻*, B = P − W W*, G = W L⁻¹, then the refinement of
    :func:`update_scalar` with Δ = B H* − G R: P⁺ = B − Δ G* − G Δ* + G (HΔ) G*.
    """
    m, n = H.shape
    U, V = matrix(scratch, 0, n, m), matrix(scratch, n * m, m, m)
    row = vector(scratch, n * m + m * m, m)
    failed = local(-1)
    for a in loop(m, until=failed):
        with when(seen[a]):
            scale = local(R[a, a])
            for i in loop(n):
                scale += H[a, i] * H[a, i] * P[i, i]
            with when(~(D[a, a] > bound(n) * scale)):
                failed.set(a)
    with when(failed < 0):
        failed.set(cholesky(D, L, seen, bound(n + m)))
    with when(failed < 0):
        _gain_and_covariance(P, H, R, seen, L, G, before, U, V, row, P_plus)
    return failed


def _gain_and_covariance(P, H, R, seen, L, G, before, U, V, row, P_plus):
    """G and P⁺ once L is known."""
    m, n = H.shape
    for i in loop(n):
        for a in loop(m):
            row[a] = choice(seen[a], U[i, a], 0.0)
        solve_lower(L, row)
        for a in loop(m):
            G[i, a] = row[a]
    for i in loop(n):
        for j in loop(i + 1):
            s = local(P[i, j])
            for a in loop(m):
                s -= G[i, a] * G[j, a]
            P_plus[i, j] = s
            P_plus[j, i] = s
    finish_gain(G, L, row, seen)
    noise = local(0.0)
    for i in loop(n):  # U ← Δ
        for a in loop(m):
            s = local(0.0)
            with when(seen[a]):
                for j in loop(n):
                    s += P_plus[i, j] * H[a, j]
                for b in loop(m):
                    s -= G[i, b] * R[b, a]
            U[i, a] = s
    for a in loop(m):  # V ← HΔ
        for b in loop(m):
            s = local(0.0)
            with when(seen[a] & seen[b]):
                for i in loop(n):
                    s += H[a, i] * U[i, b]
                noise += absolute(R[a, b])
            V[a, b] = s
    for i in loop(n):  # U ← Δ − G (HΔ)* / 2
        for a in loop(m):
            for b in loop(m):
                U[i, a] -= 0.25 * G[i, b] * (V[a, b] + V[b, a])
    for i in loop(n):
        for j in loop(i + 1):
            s = local(P_plus[i, j])
            for a in loop(m):
                s -= U[i, a] * G[j, a] + G[i, a] * U[j, a]
            P_plus[i, j] = s
            P_plus[j, i] = s
    with when((noise == 0.0) & (m > 0)):
        for i in loop(n):
            before[i] = P[i, i]
        flush(before, P_plus)


def bound(n):
    """What a sum of n squares may lose by rounding: 4 n ε."""
    return 4 * _EPS * real(n)


def finish_gain(G, L, row, seen):
    """G ← G L⁻¹ row by row, with zero columns where nothing was seen."""
    n, m = G.shape
    for i in loop(n):
        for a in loop(m):
            row[a] = G[i, a]
        solve_lower_transposed(L, row)
        for a in loop(m):
            G[i, a] = choice(seen[a], row[a], 0.0)


def flush(before, P_plus):
    """Zero the rows of P⁺ that an exact measurement has left at rounding level, covariances included.

    A perfectly known state must read as known: its leftover of order εP would pass for a variance at the next
    node and let a singular model through. A small variance alone is no sign of that: after H = [1, δ] the first state
    has variance δ² and the covariance −δ, which is far above rounding.
    """
    n = P_plus.shape[0]
    for i in loop(n):
        limit = bound(n) * root(before[i])
        lost = local(0)
        for j in loop(n):
            with when(~(absolute(P_plus[i, j]) <= limit * root(before[j]))):
                lost.set(1)
        with when(lost == 0):
            for j in loop(n):
                P_plus[i, j] = 0.0
                P_plus[j, i] = 0.0
