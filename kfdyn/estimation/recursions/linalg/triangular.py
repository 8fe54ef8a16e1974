"""Lower triangular factors of covariances (Cholesky), of one block or of several in lanes; and solutions."""

import math

from kfdyn.estimation.recursions.linalg.lanes import zero
from kfdyn.estimation.recursions.linalg.ragged import Ragged
from kfdyn.sweeps.control_flow import down, if_, loop, size
from kfdyn.sweeps.functions import sqrt
from kfdyn.sweeps.jit import sweep
from kfdyn.sweeps.memory import Column, passes
from kfdyn.sweeps.trace_context import IN_ORDER, arithmetic
from kfdyn.sweeps.values import lane, not_, to_int, where
from kfdyn.sweeps.variables import local

#: A pivot of elimination below that part of its variance may be rounding of 0.
REGULAR = 1e-13


@sweep(tags=2)
def cholesky_roots(lanes, tag, blocks: Ragged, roots, doubtful, work):
    """Fill lower triangular factors of covariances; mark and count blocks with a pivot that may be rounding.

    ``tag`` is the size that all blocks share, or None; then there is one lane. ``work`` is for n² numbers with so many
    lanes. A pivot of 0 with nothing below it is an exact root of zeros.
    """
    marked = local(0)
    for first, apart in passes(lanes, 0, blocks.rows.size):
        n, at = size(tag, blocks.rows[first]), blocks.at[first]
        given, out = (Column(flat.part(0), at, apart * n * n, lanes) for flat in (blocks.flat, roots))
        L, bad = work.lanes(lanes), local(zero(lanes))
        for i in loop(n):
            for j in loop(i + 1):
                L[i * n + j] = given[i * n + j]
            for j in loop(n, i + 1):
                L[i * n + j] = zero(lanes)
        for j in loop(n):
            s, whole = local(L[j * n + j]), L[j * n + j]
            for l in loop(j):
                s -= L[j * n + l] * L[j * n + l]
            good = s > REGULAR * whole
            bad.set(where(not_(good) & ((s != 0.0) | (whole != 0.0)), 1.0, bad))
            one_over = 1.0 / sqrt(where(good, s, 1.0))
            L[j * n + j] = where(good, s * one_over, zero(lanes))
            for i in loop(n, j + 1):
                t = local(L[i * n + j])
                for l in loop(j):
                    t -= L[i * n + l] * L[j * n + l]
                bad.set(where(not_(good) & (t != 0.0), 1.0, bad))
                L[i * n + j] = where(good, t * one_over, zero(lanes))
        out.copy(L, n * n)
        for l in range(lanes):
            some = lane(bad, l) != 0.0
            doubtful[first + l * apart] = some
            marked += to_int(some)
    return marked


@arithmetic(IN_ORDER)
def cholesky(D, L, seen, tol):
    """Lower L with L L* = D on the seen rows, the identity on the others; −1, or the first pivot that fails.

    A pivot that is a rounding error of its diagonal entry means two outputs of the node say the same. ``seen`` None
    stands for all. In lanes it goes on to the end, and a pivot that fails is not a number.
    """
    failed = local(-1)
    for i in loop(D.shape[0], until=failed):
        for j in loop(i):
            s = local(D[i, j])
            for l in loop(j):
                s -= L[i, l] * L[j, l]
            L[j, i] = 0.0
            L[i, j] = s / L[j, j] if seen is None else where(seen[i] & seen[j], s / L[j, j], 0.0)
        s = local(D[i, i])
        for l in loop(i):
            s -= L[i, l] * L[i, l]
        low = not_(s > tol * D[i, i])
        if D.count > 1:
            s.set(where(low, math.nan, s))
        else:
            for _ in if_(low if seen is None else low & seen[i]):
                failed.set(i)
                s.set(1.0)
        L[i, i] = sqrt(s) if seen is None else where(seen[i], sqrt(where(seen[i], s, 1.0)), 1.0)
    return failed


@arithmetic(IN_ORDER)
def solve_lower(L, x):
    """x ← L⁻¹ x in place."""
    for i in loop(L.shape[0]):
        s = local(x[i])
        for j in loop(i):
            s -= L[i, j] * x[j]
        x[i] = s / L[i, i]


@arithmetic(IN_ORDER)
def solve_lower_transposed(L, x):
    """x ← L⁻* x in place."""
    m = L.shape[0]
    for i in down(m):
        s = local(x[i])
        for j in loop(m, i + 1):
            s -= L[j, i] * x[j]
        x[i] = s / L[i, i]
