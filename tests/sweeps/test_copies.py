"""Answers from lanes to rows: streamed or stored, wherever rows begin; and what is not finite is seen on the way."""

from types import SimpleNamespace

import numpy as np
import pytest

from kfdyn.sweeps import Column, Entry, Given, Table, Tag, Value, count, everywhere, local, loop, sweep
from kfdyn.sweeps.copies import SHORTEST, settle, streams
from kfdyn.sweeps.entry import FAILED, FINE
from kfdyn.sweeps.ir import constant
from kfdyn.sweeps.values import wide

MODEL = Table(n=int, m=int, busy=(int,), workspace=int, floats=int)


@sweep
def copied(numbers, out, at, step, size, streamed, told, lanes):
    """The first numbers of ``numbers`` to rows of ``out``, and whether they were all looked at, and finite."""
    total = local(Value(constant(wide(lanes), 0.0)))
    column = Column(out.part(0), at, step, lanes, size, streamed != 0 if streams(lanes) else False, total)
    column.copy(numbers.part(0).lanes(lanes), size)
    settle(streamed != 0 if streams(lanes) else False)
    told[0], told[1] = int(column.looked_at), count(everywhere(total == 0.0))


def aligned(size, offset):
    """Room for so many numbers, ``offset`` of them behind the beginning of a line."""
    room = np.full(size + 32, -7.0)
    return room, (-room.ctypes.data // 8) % 8 + 8 + offset


@pytest.mark.parametrize("lanes", [4, 8])
@pytest.mark.parametrize("streamed", [0, 1])
@pytest.mark.parametrize("size", [SHORTEST, SHORTEST + 1, SHORTEST + 6, SHORTEST + 7, 81, 100, 101, 500])
def test_copies_are_whole_at_any_offset_and_touch_nothing_else(size, streamed, lanes):
    numbers = np.random.default_rng(size).normal(size=(size, lanes))
    for offset in range(8):
        for gap in (0, 1, 5):
            room, at = aligned(lanes * (size + gap), offset)
            want, told = room.copy(), np.zeros(2, np.int64)
            for l in range(lanes):
                want[at + l * (size + gap) :][:size] = numbers[:, l]
            copied(numbers.reshape(-1), room, at, size + gap, size, streamed, told, Tag(lanes))
            np.testing.assert_array_equal(room, want)
            assert told.tolist() == [1, 1]


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17])
def test_few_numbers_are_copied_too(size):
    numbers = np.random.default_rng(size).normal(size=(size, 8))
    room, told = np.full(8 * size + 2, -7.0), np.zeros(2, np.int64)
    copied(numbers.reshape(-1), room, 1, size, size, 0, told, Tag(8))
    np.testing.assert_array_equal(room[1:-1].reshape(8, size), numbers.T)
    assert room[0] == room[-1] == -7.0
    assert told.tolist() == [1, 1]


@pytest.mark.parametrize("streamed", [0, 1])
def test_what_is_not_finite_is_seen_wherever_it_is(streamed):
    size, told = 77, np.zeros(2, np.int64)
    for bad in (np.nan, np.inf, -np.inf):
        for place in range(size):
            numbers = np.full((size, 8), 1e308)  # which must not be summed up
            numbers[place, place % 8] = bad
            copied(numbers.reshape(-1), np.empty(8 * size), 0, size, size, streamed, told, Tag(8))
            assert told.tolist() == [1, 0]


@sweep
def copied_and_changed(numbers, out, told, lanes):
    """A column that was written to otherwise, in part, or perhaps, must be looked at by somebody else."""
    for case in range(4):
        total = local(Value(constant(wide(lanes), 0.0)))
        column = Column(out.part(0), 0, 20, lanes, 20, False, total)
        if case == 0:
            column.copy(numbers.part(0).lanes(lanes), 19)
        elif case == 1:
            column.copy(numbers.part(0).lanes(lanes), 20)
            column[3] = 1.0
        elif case == 2:
            column.part(1).copy(numbers.part(0).lanes(lanes), 19)
        else:
            for _ in loop(numbers.size):
                column.copy(numbers.part(0).lanes(lanes), 20)
        told[case] = int(column.looked_at)


def test_only_what_was_copied_whole_was_looked_at():
    told = np.full(4, -1)
    copied_and_changed(np.ones(20 * 8), np.empty(20 * 8), told, Tag(8))
    assert told.tolist() == [0, 0, 0, 0]


def squares(model, row, work):
    """out_ij = x_i y_j; fails where x_0 is negative, overflows where numbers are large."""
    for i in loop(model.n):
        for j in loop(model.m):
            work[i * model.m + j] = row.x[i] * row.y[j]
    row.out.copy(work, model.n * model.m)
    return row.x[0]


SQUARES = Entry(
    squares,
    MODEL,
    [Given("x", ("n",)), Given("y", ("m",))],
    [Given("out", ("n", "m"))],
    lambda model, row: model.n * model.m,
)


@pytest.fixture(scope="module")
def model():
    own = np.empty(2000)
    tables = {"n": 9, "m": 13, "busy": [0], "workspace": own.ctypes.data, "floats": 2000}
    address, kept = MODEL.pack(**tables)
    return SimpleNamespace(address=address, size=100, tables=tables, kept=(own, kept))


@pytest.mark.parametrize("offset", range(8))
def test_large_results_are_those_of_small_batches_and_failed_rows_are_nan(model, offset, monkeypatch):
    rows, rng = 30_001, np.random.default_rng(offset)  # 28 MB, more than is stored through the cache
    x, y = rng.uniform(0.5, 1, size=(rows, 9)), rng.normal(size=(rows, 13))
    want = x[:, :, None] * y[:, None, :]
    room, at = aligned(want.size, offset)
    out = room[at : at + want.size].reshape(want.shape)
    for threads in ("1", "2"):
        monkeypatch.setenv("KFDYN_NUM_THREADS", threads)
        out[:] = 7.0
        assert SQUARES(model, x, y, out, rows=rows) == FINE
        np.testing.assert_array_equal(out, want)
        assert (room[:at] == -7.0).all() and (room[at + want.size :] == -7.0).all()
    for failing in ([5], [0, 1234, rows - 1], range(16, 24)):
        broken = x.copy()
        broken[failing, 0] = -1.0
        assert SQUARES(model, broken, y, out, rows=rows) == FAILED
        assert np.flatnonzero(np.isnan(out).any((1, 2))).tolist() == list(failing)
        assert np.isnan(out[failing]).all()
        fine = np.delete(np.arange(rows), failing)
        np.testing.assert_array_equal(out[fine], want[fine])
    broken = x.copy()
    broken[777, 4], y[777, 12] = 1e200, 1e200
    assert SQUARES(model, broken, y, out, rows=rows) == FAILED
