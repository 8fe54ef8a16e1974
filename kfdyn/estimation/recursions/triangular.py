"""Lower triangular roots of covariances, by elimination: of one block, or of several side by side in lanes."""

from kfdyn.estimation.recursions.lanes import zero
from kfdyn.sweeps.call import sweep
from kfdyn.sweeps.control import loop, size
from kfdyn.sweeps.functions import root
from kfdyn.sweeps.memory import Column, passes
from kfdyn.sweeps.values import choice, count, lane, local, no

#: A pivot of elimination below that part of its variance may be rounding of 0.
REGULAR = 1e-13


@sweep(tags=2)
def cholesky_roots(lanes, tag, at, sizes, blocks, roots, doubtful, work):
    """Fill lower triangular roots of covariances; marks blocks with a pivot that may be rounding, and counts them.

    ``tag`` is the size that all blocks share, or None; then there is one lane. ``work`` is for n² numbers with so many
    lanes. A pivot of 0 with nothing below it is an exact root of zeros.
    """
    marked = local(0)
    for first, apart in passes(lanes, 0, sizes.size):
        n = size(tag, sizes[first])
        given, out = (Column(memory.part(0), at[first], apart * n * n, lanes) for memory in (blocks, roots))
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
            bad.set(choice(no(good) & ((s != 0.0) | (whole != 0.0)), 1.0, bad))
            one_over = 1.0 / root(choice(good, s, 1.0))
            L[j * n + j] = choice(good, s * one_over, zero(lanes))
            for i in loop(n, j + 1):
                t = local(L[i * n + j])
                for l in loop(j):
                    t -= L[i * n + l] * L[j * n + l]
                bad.set(choice(no(good) & (t != 0.0), 1.0, bad))
                L[i * n + j] = choice(good, t * one_over, zero(lanes))
        out.copy(L, n * n)
        for l in range(lanes):
            some = lane(bad, l) != 0.0
            doubtful[first + l * apart] = some
            marked += count(some)
    return marked
