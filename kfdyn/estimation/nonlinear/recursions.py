"""The two halves of a filter's step, compiled: their matrices are so small that NumPy's calls would cost most."""

from kfdyn.estimation.recursions.linalg.matrices import Block, Turned, add_congruence, multiply
from kfdyn.estimation.recursions.linalg.triangular import cholesky, solve_lower, solve_lower_transposed
from kfdyn.sweeps import if_, local, log, loop, sweep, where

#: A pivot below that part of an innovation's variance is rounding.
REGULAR = 1e-13

LOG_2PI = 1.8378770664093453


@sweep(tags=0)
def linearly_corrected(P, H, R, R_step, C, D, T, seen, found, P_plus, L, work, n, m, rows):
    """C = P H* and D = H P H* + R of every belief, which are filled, and the update by them, as :func:`corrected`.

    ``R_step`` is 0 where all beliefs share R.
    """
    failed = local(-1)
    for b in loop(rows, until=failed):
        P_b, H_b, C_b = Block(P, b * n * n, n, n), Block(H, b * m * n, m, n), Block(C, b * n * m, n, m)
        multiply(C_b, P_b, Turned(H_b))
        multiply(Block(D, b * m * m, m, m), H_b, C_b, base=Block(R, b * R_step, m, m), symmetric=True)
        _correct(b, failed, P, C, D, T, seen, found, P_plus, L, work, n, m)
    return failed


@sweep(tags=0)
def corrected(P, C, D, T, seen, found, P_plus, L, work, n, m, rows):
    """Update every belief; returns b m + i where output i of belief b has no variance, else −1.

    ``found`` has d (n), ε, ν (m), the quadratic form ε*D⁻¹ε and the log-likelihood of every belief, one after the
    other; L is the factor of D on what is seen. ``work`` is for n m numbers.
    """
    failed = local(-1)
    for b in loop(rows, until=failed):
        _correct(b, failed, P, C, D, T, seen, found, P_plus, L, work, n, m)
    return failed


def _correct(b, failed, P, C, D, T, seen, found, P_plus, L, work, n, m):
    """The update of one belief."""
    each = n + 2 * m + 2
    D_b, L_b = Block(D, b * m * m, m, m), Block(L, b * m * m, m, m)
    C_b, W = Block(C, b * n * m, n, m), Block(work, 0, n, m)
    there, T_b = seen.part(b * m), T.part(b * m)
    out = found.part(b * each)
    eps, nu = Block(out.part(n), 0, 1, m), Block(out.part(n + m), 0, 1, m)
    bad = cholesky(D_b, L_b, there, REGULAR)
    for _ in if_(bad >= 0):
        failed.set(b * m + bad)
    for _ in if_(bad < 0):
        for i in loop(n):
            for a in loop(m):
                W[i, a] = where(there[a], C_b[i, a], 0.0)
            solve_lower(L_b, W.line(i))
        for a in loop(m):
            eps[0, a] = where(there[a], T_b[a], 0.0)
            nu[0, a] = eps[0, a]
        solve_lower(L_b, nu.line(0))
        square, volume = local(0.0), local(0.0)
        for a in loop(m):
            square += nu[0, a] * nu[0, a]
            volume += where(there[a], LOG_2PI + 2.0 * log(L_b[a, a]), 0.0)
        out[n + 2 * m] = square
        out[n + 2 * m + 1] = -0.5 * (square + volume)
        for i in loop(n):
            d = local(0.0)
            for a in loop(m):
                d += W[i, a] * nu[0, a]
            out[i] = d
        solve_lower_transposed(L_b, nu.line(0))
        P_b = Block(P, b * n * n, n, n)
        multiply(Block(P_plus, b * n * n, n, n), W, Turned(W), base=P_b, sign=-1.0, symmetric=True)


@sweep(tags=0)
def predicted(F, P, B, Q, Q_step, out, work, n, p, rows):
    """F P F* + B Q B* of every belief; ``work`` is for 2n(n + p) numbers."""
    for b in loop(rows):
        P_next = Block(out, b * n * n, n, n)
        P_next.clear()
        add_congruence(P_next, Block(F, b * n * n, n, n), Block(P, b * n * n, n, n), work)
        add_congruence(P_next, Block(B, b * n * p, n, p), Block(Q, b * Q_step, p, p), work)


@sweep(tags=0)
def spread(P, gamma, offsets, L, d, rows):
    """Tangents 0, γL_i, −γL_i of the sigma points of every belief, (rows, 2d + 1, d), with L L* = P.

    Returns the first belief whose covariance has no such root, else −1. ``L`` is for d² numbers.
    """
    failed = local(-1)
    for b in loop(rows, until=failed):
        P_b, L_b, out = Block(P, b * d * d, d, d), Block(L, 0, d, d), offsets.part(b * (2 * d + 1) * d)
        for _ in if_(cholesky(P_b, L_b, None, 0.0) >= 0):
            failed.set(b)
        for j in loop(d):
            out[j] = 0.0
        for i in loop(d):
            for j in loop(d):
                root = where(j <= i, gamma * L_b[i, j], 0.0)
                out[(1 + j) * d + i] = root
                out[(1 + d + j) * d + i] = 0.0 - root
    return failed


@sweep(tags=0)
def moments(points, mean_weights, cov_weights, base, base_step, mean, away, cov, size, n, rows):
    """Weighted mean of ``size`` points (rows, size, n), their deviations from it, and base + Σ W δδ*.

    ``base_step`` is 0 where all rows share one base. Sums are about the first point, as weights may be large.
    """
    for b in loop(rows):
        given, out, middle = points.part(b * size * n), away.part(b * size * n), mean.part(b * n)
        for i in loop(n):
            total = local(0.0)
            for s in loop(size):
                total += mean_weights[s] * (given[s * n + i] - given[i])
            middle[i] = given[i] + total
            for s in loop(size):
                out[s * n + i] = (given[s * n + i] - given[i]) - total
        C = Block(cov, b * n * n, n, n)
        C.copy(Block(base, b * base_step, n, n))
        for s in loop(size):
            for i in loop(n):
                c = cov_weights[s] * out[s * n + i]
                for j in loop(i + 1):
                    C[i, j] = C[i, j] + c * out[s * n + j]
        for i in loop(n):
            for j in loop(i):
                C[j, i] = C[i, j]
