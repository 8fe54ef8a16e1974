"""Numbers in memory: vectors and matrices in flat buffers, and which rows of a batch the lanes of a block are."""

import numpy as np
from numba import njit

from kfdyn._kernels.sizes import ORDERED, size
from kfdyn._kernels.vectors import all_beyond, collect, get, item, put, set_item, spread, spread_all, zero
from kfdyn.multibody._kernels.fused.numbers import INLINED
from kfdyn.multibody._kernels.fused.plan import REAL


@njit(**INLINED)
def get3(tag, work, at):
    return get(tag, work, at), get(tag, work, at + 1), get(tag, work, at + 2)


@njit(**INLINED)
def put3(tag, work, at, x):
    put(tag, work, at, x[0])
    put(tag, work, at + 1, x[1])
    put(tag, work, at + 2, x[2])


@njit(**INLINED)
def get6(tag, work, at):
    a, b = get3(tag, work, at), get3(tag, work, at + 3)
    return a[0], a[1], a[2], b[0], b[1], b[2]


@njit(**INLINED)
def put6(tag, work, at, x):
    put3(tag, work, at, (x[0], x[1], x[2]))
    put3(tag, work, at + 3, (x[3], x[4], x[5]))


@njit(**INLINED)
def get9(tag, work, at):
    a, b, c = get3(tag, work, at), get3(tag, work, at + 3), get3(tag, work, at + 6)
    return a[0], a[1], a[2], b[0], b[1], b[2], c[0], c[1], c[2]


@njit(**INLINED)
def put9(tag, work, at, R):
    put3(tag, work, at, (R[0], R[1], R[2]))
    put3(tag, work, at + 3, (R[3], R[4], R[5]))
    put3(tag, work, at + 6, (R[6], R[7], R[8]))


@njit(**INLINED)
def collect3(tag, rows, at, stride):
    return collect(tag, rows, at, stride), collect(tag, rows, at + 1, stride), collect(tag, rows, at + 2, stride)


@njit(**INLINED)
def real3(plan, t, column):
    """Three floats of body t."""
    a = t * REAL + column
    return item(plan.real, a), item(plan.real, a + 1), item(plan.real, a + 2)


@njit(**INLINED)
def real9(plan, t, column):
    a, b, c = real3(plan, t, column), real3(plan, t, column + 3), real3(plan, t, column + 6)
    return a[0], a[1], a[2], b[0], b[1], b[2], c[0], c[1], c[2]


@njit(**INLINED)
def lanes_at(row, first, last, lanes):
    """Of rows first … last, the row of the first lane when those from ``row`` on are next, the step from lane to lane,
    and the row to go on with.

    The last lanes look back at rows already done, which costs nothing and changes nothing; where there are fewer rows
    than lanes, all lanes are one row.
    """
    if row + lanes <= last:
        return row, 1, row + lanes
    if last - first >= lanes:
        return last - lanes, 1, last
    return row, 0, row + 1


@njit(**INLINED)
def settle(tag, least, array, start, stride, count):
    """Whether ``least`` is positive in all lanes; where not, ``count`` numbers of the lane's row become NaN."""
    if all_beyond(least, 0.0):
        return True
    _spoil(tag, least, array, start, stride, count)
    return False


@njit(**ORDERED)
def _spoil(tag, least, array, start, stride, count):
    lanes = np.empty(size(tag, 1))
    put(tag, lanes, 0, least)
    for l in range(lanes.size):
        if not lanes[l] > 0.0:
            for i in range(count):
                set_item(array, start + l * stride + i, np.nan)


@njit(**INLINED)
def clear(tag, work, count):
    """Set the first numbers of a buffer to 0."""
    for i in range(count):
        put(tag, work, i, zero(tag))


@njit(**INLINED)
def write_out(tag, buffer, count, array, start, stride):
    """Copy ``count`` numbers of a buffer to rows of an array, lane by lane."""
    lanes = size(tag, 1)
    whole = count - count % lanes
    for i in range(0, whole, lanes):
        spread_all(tag, buffer, i, array, start + i, stride)
    for i in range(whole, count):
        spread(tag, array, start + i, stride, get(tag, buffer, i))
