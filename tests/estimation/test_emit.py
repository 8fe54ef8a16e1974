"""Functions that write code against the same lines run by Python."""

from typing import Any, NamedTuple

import numpy as np
import pytest
from numba import njit, types

from kfdyn._kernels.sizes import static
from kfdyn._kernels.vectors import pointer
from kfdyn.estimation._kernels.emit import both, down, either, emitted, loop, size, when
from kfdyn.estimation._kernels.lanes import get, put, zero
from kfdyn.estimation._kernels.values import (
    IN_ORDER,
    absolute,
    choice,
    count,
    local,
    matrix,
    real,
    root,
    vector,
)


class Pair(NamedTuple):
    first: Any
    second: Any


@emitted(types.none)
def _loops(n, visited, flat, A):
    at = local(0)

    def visit(i):
        visited[at] = i
        at.set(at + 1)

    for i in loop(n, 2):
        visit(i)
    for i in loop(n, 1, step=3):
        visit(i)
    for i in down(n, 4):
        visit(i)
    for i in loop(0):
        visit(i)
    grows = local(2)
    for i in loop(grows):
        visit(i)
        with when(i == 0):
            grows += 3
    failed = local(-1)
    for i in loop(n, until=failed):
        visit(i)
        with when(i == 3):
            failed.set(i)
    visited[at] = failed
    rows, columns = A.shape
    for i in loop(rows):
        for j in loop(i + 1):
            A[i, j] -= vector(flat, columns)[j] * matrix(flat, 1, rows, columns)[i, j]


def test_loops_visit_what_range_does():
    n = 7
    visited, flat, A = np.full(40, -9), np.arange(14.0), np.arange(12.0).reshape(4, 3).copy()
    expected = A.copy()
    njit(lambda *args: _loops(*args))(n, visited, flat, A)
    order = [*range(2, n), *range(1, n, 3), *reversed(range(4, n)), *range(5), *range(4), 3]
    assert visited[: len(order)].tolist() == order
    assert (visited[len(order) :] == -9).all()
    tail, block = flat[3:], flat[1:13].reshape(4, 3)
    for i in range(4):
        for j in range(min(i + 1, 3)):
            expected[i, j] -= tail[j] * block[i, j]
    np.testing.assert_array_equal(A[:3], expected[:3])


@emitted(types.intp)
def _from_a_variable(n):
    first, sum_ = local(1), local(0)
    first += 1
    for i in loop(n, first):
        first.set(0)  # too late
        sum_ += i
    return sum_


def test_a_loop_may_start_at_a_variable():
    assert njit(lambda n: _from_a_variable(n))(5) == 2 + 3 + 4


@emitted(types.UniTuple(types.float64, 2))
def _branches(x, y, seen):
    s, which = local(0.0), local(0)
    with when((x < y) & ~seen[0]):
        s += 1.0
    with either((x >= y) | seen[1]) as (yes, no):
        with yes:
            s += 10.0
        with no:
            s -= 20.0
    with when(both(x > y, _marked, seen)):
        s += 8000.0
    which += count(x != x)
    s += 100.0 * real(which)
    s += choice(x == y, 1000.0, 0.0) + choice(x <= y, 2000.0, 0.0) + choice(x > y, 4000.0, 0.0)
    return s, absolute(-x) / root(y) - 1.0 / (2.0 - y)


def _marked(seen):
    """False, but it leaves a trace."""
    seen[2] = True
    return seen[1] & ~seen[1]


@pytest.mark.parametrize("x", [1.0, 4.0, 9.0, -3.0, np.nan])
@pytest.mark.parametrize("seen", [(False, False), (True, False), (False, True)])
def test_branches_and_numbers(x, seen):
    y = 4.0
    expected = 1.0 if x < y and not seen[0] else 0.0
    expected += 10.0 if x >= y or seen[1] else -20.0
    expected += (100.0 if np.isnan(x) else 0.0) + 1000.0 * (x == y) + 2000.0 * (x <= y) + 4000.0 * (x > y)
    marks = np.array([*seen, False])
    s, quotient = njit(lambda *args: _branches(*args))(x, y, marks)
    assert s == expected
    assert marks[2] == (x > y)  # the second condition is looked at only if the first holds
    np.testing.assert_equal(quotient, abs(x) / 2.0 + 0.5)


@emitted(types.intp)
def _sizes(tag, pair):
    assert pair.second is None or isinstance(pair.second, int)
    return size(tag, pair.first) * 10 + size(pair.second, pair.first)


@pytest.mark.parametrize(("tag", "known"), [(None, None), (3, None), (None, 2), (3, 2)])
def test_tags_arrive_as_numbers_of_python(tag, known):
    given = [None if t is None else static(t) for t in (tag, known)]
    result = njit(lambda tag, pair: _sizes(tag, pair))(given[0], Pair(7, given[1]))
    assert result == (7 if tag is None else tag) * 10 + (7 if known is None else known)


@emitted(types.none)
def _axpy(lanes, y, c, x, n):
    for i in loop(n):
        put(lanes, y, i, get(lanes, y, i) - c * get(lanes, x, i) + zero(lanes))


@pytest.mark.parametrize("lanes", [1, 2, 16])
def test_a_number_may_have_lanes(lanes):
    x, y = np.random.default_rng(0).normal(size=(2, 5 * lanes))
    expected = y - 3.0 * x
    njit(lambda lanes, y, x: _axpy(lanes, y, 3.0, x, 5))(static(lanes), y, x)
    np.testing.assert_allclose(y, expected, rtol=1e-15, atol=1e-15)


@emitted(types.float64, IN_ORDER)
def _cancels(x, y):
    return (x + y) - x


@emitted(types.float64)
def _around(x, y):
    return _cancels(x, y) * (x / x)


def test_the_order_of_operations_is_kept_where_it_is_the_method():
    """(1 + y) − 1 is y if reassociated; inside a function that may be, too."""
    assert njit(lambda x, y: _around(x, y))(1.0, 1e-17) == 0.0


@emitted(types.none)
def _double(data, n):
    for i in loop(n):
        data[i] = 2.0 * data[i]


def test_pointers_will_do_for_arrays():
    x = np.arange(4.0)
    njit(lambda x: _double(pointer(x), 3))(x)
    assert x.tolist() == [0.0, 2.0, 4.0, 3.0]


@emitted(types.float64)
def _asks(x):
    return 1.0 if x > 0.0 else 0.0


@emitted(types.intp)
def _mixes(i):
    return i * 0.5


@emitted(types.UniTuple(types.intp, 2))
def _returns_three(i):
    return i, i, i


@pytest.mark.parametrize(
    ("function", "x", "error", "message"),
    [
        (_asks, 1.0, TypeError, "not known before the code runs"),
        (_mixes, 1, TypeError, "is no index"),
        (_returns_three, 1, ValueError, "shorter"),
    ],
)
def test_what_cannot_be_written_is_refused(function, x, error, message):
    with pytest.raises(error, match=message):
        njit(lambda x: function(x))(x)


@pytest.mark.parametrize("x", [np.arange(6.0)[::2], np.zeros((2, 2, 2))])
def test_arrays_that_no_proxy_fits_are_refused(x):
    with pytest.raises(AssertionError):
        njit(lambda x: _double(x, 2))(x)
