"""What is written, and what is not written again."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfdyn.sweeps import if_, if_else, local, loop, sweep
from kfdyn.sweeps.algebra import Mat3
from kfdyn.sweeps.records import Record

PLACE = Record(R=Mat3, x=float)


@sweep
def turned_rows(rows, out):
    """Row by row, the sum of all numbers of R."""
    for t in loop(out.size):
        out[t] = sum(PLACE.rows(rows)[t].R.m, 0.0)


@sweep
def repeated(x, out):
    """The same product in front of a branch, in both ways of it and behind; and one that stands in one way only."""
    a, b = x[0], x[1]
    out[0] = a * b
    for positive in if_else(a > 0.0):
        if positive:
            out[1] = a * b + a / b
        else:
            out[1] = a / b
    out[2] = a / b + a * b


@sweep
def in_loops(n, out):
    """The square of i of one loop is not that of the next, and a body that never runs leaves nothing behind."""
    total = local(0)
    for i in loop(n):
        total += i * i
    for i in loop(n):
        total += i * i
    for _ in if_(n < 0):
        total += n * n
    out[0] = total + n * n
    return total


def _count(text, what):
    return sum(f" = {what} " in line for line in text.splitlines())


def test_a_row_is_one_address_and_distances_from_it():
    text = turned_rows.written(np.zeros(20), np.zeros(2))
    assert _count(text, "mul nsw") == 1
    rows, out = np.arange(20.0), np.zeros(2)
    turned_rows(rows, out)
    assert out.tolist() == [rows[:9].sum(), rows[10:19].sum()]


@pytest.mark.parametrize("x", [(3.0, 2.0), (-3.0, 2.0)])
def test_what_stands_already_is_not_written_again_but_what_may_not_have_run_is(x):
    text = repeated.written(np.array(x), np.zeros(3))
    assert _count(text, "fmul contract reassoc nsz arcp double") == 1
    assert _count(text, "fdiv contract reassoc nsz arcp double") == 3
    out, expected = np.zeros(3), np.zeros(3)
    repeated(np.array(x), out)
    repeated.plain(np.array(x), expected)
    np.testing.assert_allclose(out, expected, rtol=1e-15)


@pytest.mark.parametrize("n", [0, 1, 7])
def test_bodies_keep_what_they_wrote_to_themselves(n):
    out = np.zeros(1, np.int64)
    assert in_loops(n, out) == 2 * sum(i * i for i in range(n))
    assert out[0] == 2 * sum(i * i for i in range(n)) + n * n


def _indices(a, b):
    """Sums, differences and products that cancel, meet again, and have constants on either side."""
    c = 3 * a + 4
    return [
        c * 5 - 2, c - c, c + c, (c + b) * 2 - b, 7 - c, -c, 0 - -c, c * b, (a - 3) * (b + 3), a + 3 - a, 2 * a - a,
        (c - 4) // 3, c % 7, 0 * b + a, (a * 4 + 1) * 2 - 8 * a, b - (b + 2), c * 0 + 1,
    ]  # fmt: skip


@sweep
def indices(a, b, out):
    """All of them, before, in and behind a loop."""
    first = _indices(a, b)
    for i in loop(2):
        for k, value in enumerate(_indices(a + i, b - i)):
            out[17 + 17 * i + k] = value
    for k, value in enumerate(first):
        out[k] = value


@given(st.integers(0, 2**40), st.integers(0, 2**20))
def test_indices_are_integers(a, b):
    out = np.zeros(3 * 17, np.int64)
    indices(a, b, out)
    assert out[:17].tolist() == _indices(a, b)
    assert out[17:34].tolist() == _indices(a, b)
    assert out[34:].tolist() == _indices(a + 1, b - 1)
