"""Euler's step of a robot, compiled: matrices of a robot's size, one a step of its motion."""

from kfdyn.estimation.recursions.linalg.matrices import Block, add_congruence
from kfdyn.sweeps import local, loop, sweep, to_int

LARGEST = 1.7e308


@sweep(tags=0)
def euler_jacobians(a_q, a_v, a_in, F, B, h, n, p, rows):
    """F = [[1 + h² a_q, h (1 + h a_v)], [h a_q, 1 + h a_v]] and B = [[h² a_in], [h a_in]] of every row.

    ``a_q``, ``a_v`` are (rows, n, n) and ``a_in`` (rows, n, p), all flat; F (rows, 2n, 2n) and B (rows, 2n, p). Where
    coordinates do not add, the upper rows are not yet those of ⊕.
    """
    for r in loop(rows):
        slopes = (a_q.part(r * n * n), a_v.part(r * n * n), a_in.part(r * n * p))
        _jacobians(*slopes, F.part(r * 4 * n * n), B.part(r * 2 * n * p), h, n, p)


@sweep(tags=0)
def euler_predicted(x, a, a_q, a_v, a_in, P, Q, x_next, P_next, work, h, n, p):
    """Predict x = (q, v) and F P F* + B Q B* where coordinates add; return 1 if x is finite, else 0.

    ``work`` is for 4n(3n + p) numbers.
    """
    size = local(0.0)
    for i in loop(n):
        v = x[n + i] + h * a[i]
        x_next[n + i] = v
        x_next[i] = x[i] + h * v
        size += abs(x_next[i])
    F, B, free = work.part(0), work.part(4 * n * n), work.part(4 * n * n + 2 * n * p)
    _jacobians(a_q, a_v, a_in, F, B, h, n, p)
    out = Block(P_next, 0, 2 * n, 2 * n)
    out.clear()
    add_congruence(out, Block(F, 0, 2 * n, 2 * n), Block(P, 0, 2 * n, 2 * n), free)
    add_congruence(out, Block(B, 0, 2 * n, p), Block(Q, 0, p, p), free)
    return to_int(size < LARGEST)


@sweep(tags=0)
def spread_states(x, u, offsets, q, v, tau, n, size):
    """q, v and τ (size, n) of the sigma points (size, 3n) about x = (q, v) and u where coordinates add."""
    for s in loop(size):
        at = offsets.part(s * 3 * n)
        for i in loop(n):
            q[s * n + i] = x[i] + at[i]
            v[s * n + i] = x[n + i] + at[n + i]
            tau[s * n + i] = u[i] + at[2 * n + i]


@sweep(tags=0)
def euler_states(q, v, a, h, points, n, size):
    """States (size, 2n) after a step where coordinates add."""
    for s in loop(size):
        out = points.part(s * 2 * n)
        for i in loop(n):
            after = v[s * n + i] + h * a[s * n + i]
            out[n + i] = after
            out[i] = q[s * n + i] + h * after


def _jacobians(slope_q, slope_v, pushed, F, B, h, n, p):
    """Those of one row."""
    lower, lower_B = F.part(2 * n * n), B.part(n * p)
    for i in loop(n):
        for j in loop(n):
            low = h * slope_q[i * n + j]
            lower[i * 2 * n + j] = low
            F[i * 2 * n + j] = h * low
            low = h * slope_v[i * n + j]
            lower[i * 2 * n + n + j] = low
            F[i * 2 * n + n + j] = h * low
        lower[i * 2 * n + n + i] = lower[i * 2 * n + n + i] + 1.0
        F[i * 2 * n + i] = F[i * 2 * n + i] + 1.0
        F[i * 2 * n + n + i] = F[i * 2 * n + n + i] + h
        for j in loop(p):
            low = h * pushed[i * p + j]
            lower_B[i * p + j] = low
            B[i * p + j] = h * low
