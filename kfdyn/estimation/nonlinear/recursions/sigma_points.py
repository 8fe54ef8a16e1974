"""Sigma points and their moments, compiled."""

from kfdyn.estimation.recursions.linalg.matrices import Block
from kfdyn.estimation.recursions.linalg.triangular import cholesky
from kfdyn.sweeps import if_, local, loop, sweep, where


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
