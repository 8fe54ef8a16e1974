"""Blocks that are covariances beyond doubt, told by elimination."""

from kfdyn.estimation.recursions.linalg import tiles
from kfdyn.sweeps import Column, all_lanes, broadcast, if_, if_else, local, loop, now, passes, size, sweep, where

#: Rows from which a factor by tiles is the quicker one.
LEAST_TILED = 24
#: Of a variance: what the product of a matrix and its transpose may be off by, and a thousandth of what is tolerated.
_ROUNDING = 1e-13


@sweep
def clearly_positive(flat, sizes, part, work):
    """1 where every block is symmetric to the last bit with pivots above that part of their variance, else 0.

    The blocks lie one after the other; a block of zeros passes. ``work`` holds the largest. n³/3 flops a block.
    """
    doubtful, start = local(-1), local(0)
    for k in loop(sizes.size, until=doubtful):
        n = sizes[k]
        block, left = flat.matrix(start, n, n), work.matrix(0, n, n)
        start.set(start + n * n)
        wrong, most = local(0), local(0.0)
        for i in loop(n):
            for j in loop(i + 1):
                left[i, j] = block[i, j]
                left[j, i] = block[i, j]
                wrong.set(where(block[i, j] == block[j, i], wrong, 1))
                most.set(where(block[i, j] == 0.0, most, 1.0))
        for tiled in if_else(n >= LEAST_TILED):
            if tiled:
                good = tiles.factorise(left.part(0), n, part) < 0
                wrong.set(where(good | (most == 0.0), wrong, 1))
            else:
                for i in loop(n):
                    pivot = left[i, i]
                    for positive in if_else(pivot > part * block[i, i]):
                        if positive:
                            for a in loop(n, start=i + 1):
                                for _ in if_(left[a, i] != 0.0):
                                    factor = left[a, i] / pivot
                                    for b in loop(a + 1, start=i + 1):
                                        left[a, b] = left[a, b] - factor * left[b, i]
                        else:
                            wrong.set(where(most == 0.0, wrong, 1))
        doubtful.set(where(wrong == 0, -1, k))
    return where(doubtful < 0, 1, 0)


@sweep(tags=2)
def surely_semidefinite(lanes, tag, flat, sizes, work):
    """1 where every block is finite, symmetric and positive semi-definite but for rounding; then it is made symmetric.

    But for rounding: raised by that part of its variances, it has pivots above 0. Variances of 0 have covariances of 0.
    ``tag`` is the size that all blocks share, or None; then there is one lane, and large ones go by tiles. ``work``
    holds the largest with its lanes. n³/3 flops a block.
    """
    doubtful, start = local(-1), local(0)
    for first, apart in passes(lanes, 0, sizes.size):
        for _ in if_(doubtful < 0):
            n = size(tag, sizes[first])
            at = now(start) if tag is None else first * (n * n)
            block, left = Column(flat.part(0), at, apart * (n * n), lanes), work.lanes(lanes).matrix(0, n, n)
            start.set(at + n * n)
            wrong, skew = local(broadcast(0.0, lanes)), local(broadcast(0.0, lanes))
            for i in loop(n):
                one = block[i * n + i]
                for j in loop(i + 1):
                    x, y = block[i * n + j], block[j * n + i]
                    left[i, j] = 0.5 * (x + y)
                    left[j, i] = left[i, j]
                    skew.set(where(x == y, skew, 1.0))
                    other = left[j, j]
                    good = (x - y) * (x - y) <= (_ROUNDING * one) * (_ROUNDING * other)
                    good = good & ((x == 0.0) | ((one > 0.0) & (other > 0.0)))
                    wrong.set(where(good, wrong, 1.0))
            for even in if_else(all_lanes(skew == 0.0)):
                if not even:
                    for i in loop(n):
                        for j in loop(n):
                            block[i * n + j] = left[i, j]
            for i in loop(n):
                variance = left[i, i]
                left[i, i] = where(variance == 0.0, 1.0, variance + _ROUNDING * variance)
            for tiled in if_else(n >= LEAST_TILED) if lanes == 1 else (False,):
                if tiled:
                    wrong.set(where(tiles.factorise(left.part(0), n, 0.0) < 0, wrong, 1.0))
                else:
                    _eliminate(left, wrong)
            doubtful.set(where(all_lanes(wrong == 0.0), -1, first))
    return where(doubtful < 0, 1, 0)


def _eliminate(left, wrong):
    """Mark the lanes in which a pivot is not above 0."""
    n = left.shape[0]
    for i in loop(n):
        wrong.set(where(left[i, i] > 0.0, wrong, 1.0))
        over = 1.0 / left[i, i]
        for a in loop(n, start=i + 1):
            factor = left[a, i] * over
            for b in loop(a + 1, start=i + 1):
                left[a, b] = left[a, b] - factor * left[b, i]


@sweep
def clearly_noisy(H, Q, R, P, part, work):
    """1 where the noise W = HQH* + R of every node is regular beyond doubt beside HPH* + R, else 0.

    Beyond doubt: W_aa is above that part of R_aa + Σ_i H_ai² P_ii, and pivots of W are above that part of W_aa. ``P``
    has the layout of Q; ``work`` holds m² + nm numbers of the largest node. n²m + nm² + m³/3 flops a node.
    """
    doubtful = local(-1)
    for k in loop(H.rows.size, until=doubtful):
        m, n = H.rows[k], H.cols[k]
        h, q, r, p = H.block(k), Q.block(k), R.block(k), P.matrix(Q.at[k], n, n)
        W, HQ, variance = (
            work.matrix(0, m, m),
            work.matrix(m * m, m, n),
            work.matrix(m * m, 1, m),
        )  # one after the other
        wrong, total = local(0), local(0.0)
        for i in loop(n):
            for a in loop(m):
                total.set(0.0)
                for j in loop(n):
                    total.set(total + q[i, j] * h[a, j])
                HQ[a, i] = total
        for a in loop(m):
            for b in loop(a + 1):
                total.set(r[a, b])
                for i in loop(n):
                    total.set(total + h[a, i] * HQ[b, i])
                W[a, b] = total
        for a in loop(m):
            total.set(r[a, a])
            for i in loop(n):
                total.set(total + h[a, i] * h[a, i] * p[i, i])
            wrong.set(where(W[a, a] > part * total, wrong, 1))
            variance[0, a] = W[a, a]
        for a in loop(m):
            pivot = W[a, a]
            for positive in if_else(pivot > part * variance[0, a]):
                if positive:
                    for i in loop(m, start=a + 1):
                        factor = W[i, a] / pivot
                        for j in loop(i + 1, start=a + 1):
                            W[i, j] = W[i, j] - factor * W[j, a]
                else:
                    wrong.set(1)
        doubtful.set(where(wrong == 0, -1, k))
    return where(doubtful < 0, 1, 0)
