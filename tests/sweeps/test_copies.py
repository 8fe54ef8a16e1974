"""Answers from lanes to rows: streamed or stored, wherever rows begin; and what is not finite is seen on the way."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from kfdyn.sweeps import Column, Entry, Given, Table, Tag, all_lanes, broadcast, clear, if_, local, loop, sweep, to_int
from kfdyn.sweeps.batch.streaming_store import SHORTEST, late, settle, streams
from kfdyn.sweeps.entry import FAILED, FINE, Options, Space
from kfdyn.sweeps.memory import Result

MODEL = Table(n=int, m=int, busy=(int,), workspace=int, floats=int)


@sweep
def copied(numbers, out, at, step, size, streamed, told, lanes):
    """The first numbers of ``numbers`` to rows of ``out``, and whether they are all finite."""
    total = local(broadcast(0.0, lanes))
    column = Column(out.part(0), at, step, lanes, Result(size, streamed != 0 if streams(lanes) else False, total))
    column.copy(numbers.part(0).lanes(lanes), size)
    settle(streamed != 0 if streams(lanes) else False)
    told[0] = to_int(all_lanes(total == 0.0))


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
            want, told = room.copy(), np.zeros(1, np.int64)
            for l in range(lanes):
                want[at + l * (size + gap) :][:size] = numbers[:, l]
            copied(numbers.reshape(-1), room, at, size + gap, size, streamed, told, Tag(lanes))
            np.testing.assert_array_equal(room, want)
            assert told[0] == 1


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17])
def test_few_numbers_are_copied_too(size):
    numbers = np.random.default_rng(size).normal(size=(size, 8))
    room, told = np.full(8 * size + 2, -7.0), np.zeros(1, np.int64)
    copied(numbers.reshape(-1), room, 1, size, size, 0, told, Tag(8))
    np.testing.assert_array_equal(room[1:-1].reshape(8, size), numbers.T)
    assert room[0] == room[-1] == -7.0
    assert told[0] == 1


@pytest.mark.parametrize("streamed", [0, 1])
def test_what_is_not_finite_is_seen_wherever_it_is(streamed):
    size, told = 77, np.zeros(1, np.int64)
    for bad in (np.nan, np.inf, -np.inf):
        for place in range(size):
            numbers = np.full((size, 8), 1e308)  # which must not be summed up
            numbers[place, place % 8] = bad
            copied(numbers.reshape(-1), np.empty(8 * size), 0, size, size, streamed, told, Tag(8))
            assert told[0] == 0


def written(numbers, out, told, way, lanes):
    """Twenty numbers, each of which is to be looked at however it is written."""
    total, numbers = local(broadcast(0.0, lanes)), numbers.part(0).lanes(lanes)
    column = Column(out.part(0), 0, 20, lanes, Result(20, False, total))
    if way == "copied":
        column.copy(numbers, 20)
    elif way == "in two parts":
        column.copy(numbers, 7)
        column.part(7).copy(numbers.part(7), 13)
    elif way == "one by one":
        for i in loop(20):
            column[i] = numbers[i]
    else:
        for _ in if_(told[0] < 0):  # as it is
            column.part(3)[16] = numbers[19]
            column.copy(numbers, 19)
    told[0] = to_int(all_lanes(total == 0.0))


@pytest.mark.parametrize("way", ["copied", "in two parts", "one by one", "perhaps"])
def test_what_is_not_finite_is_seen_however_it_is_written(way):
    run = sweep(lambda numbers, out, told, lanes: written(numbers, out, told, way, lanes))
    for place in (None, 0, 6, 7, 18, 19):
        numbers, out, told = np.full((20, 8), 1e308), np.empty((8, 20)), np.full(1, -1)
        if place is not None:
            numbers[place, 5] = np.inf
        run(numbers.reshape(-1), out, told, Tag(8))
        assert told[0] == (place is None)
        np.testing.assert_array_equal(out, numbers.T)


def squares(model, row, work):
    """out_ij = x_i y_j; fails where x_0 is negative, overflows where numbers are large."""
    for i in loop(model.n):
        for j in loop(model.m):
            work[i * model.m + j] = row.x[i] * row.y[j]
    row.out.copy(work, model.n * model.m)
    return row.x[0]


def squares_late(model, row, work):
    """The same, and twice that, while the next rows are worked on; and the sum of x, which comes at once."""
    size = model.n * model.m
    copies = late(row, lambda: [("out", work), ("twice", work.part(model.n * model.m))], size, model.n - 1)
    total = local(row.x[0])
    for i in loop(model.n, 1):
        total += row.x[i]
        copies.some()
    copies.rest()
    for i in loop(model.n):
        for j in loop(model.m):
            product = row.x[i] * row.y[j]
            work[i * model.m + j], work[size + i * model.m + j] = product, 2.0 * product
    copies.leave(row)
    row.sum[0] = total
    return row.x[0]


X, Y, OUT = Given("x", ("n",)), Given("y", ("m",)), Given("out", ("n", "m"))
SQUARES = Entry(squares, MODEL, [X, Y], [OUT], Space(lambda model, row: model.n * model.m))
LATE = Entry(
    squares_late,
    MODEL,
    [X, Y],
    [OUT, Given("twice", ("n", "m")), Given("sum", (1,))],
    Space(lambda model, row: 2 * model.n * model.m, lambda model, row, work: clear(work, 2 * model.n * model.m)),
    Options(block=8),
)


@pytest.fixture(scope="module")
def model():
    own = np.empty(2000)
    tables = {"n": 9, "m": 13, "busy": [0], "workspace": own.ctypes.data, "floats": 2000}
    return SimpleNamespace(address=MODEL.packed(**tables), size=100, kept=own)


def room_for(entry, shape, offset):
    """An array for every result, each at another place within a line, and what is around them."""
    rooms, outs = [], []
    for k, about in enumerate(entry.results):
        tail = shape[1:] if len(about.tail) == 2 else (1,)
        size = shape[0] * math.prod(tail)
        room, at = aligned(size, (offset + 3 * k) % 8)
        outs.append(room[at : at + size].reshape(shape[0], *tail))
        rooms.append((room[:at], room[at + size :]))
    return outs, rooms


@pytest.mark.parametrize("rows", [1, 3, 8, 9, 77, 30_001])  # the last are 28 MB, more than is stored through the cache
@pytest.mark.parametrize("offset", range(8))
@pytest.mark.parametrize("entry", [SQUARES, LATE], ids=["at once", "late"])
def test_batches_of_any_size_have_the_same_answers_and_failed_rows_are_nan(model, entry, offset, rows, monkeypatch):
    rng = np.random.default_rng(offset)
    x, y = rng.uniform(0.5, 1, size=(rows, 9)), rng.normal(size=(rows, 13))
    product = x[:, :, None] * y[:, None, :]
    want = [product, 2 * product, np.cumsum(x, axis=1)[:, -1:]][: len(entry.results)]
    outs, rooms = room_for(entry, product.shape, offset)
    for threads in ("1", "2"):
        monkeypatch.setenv("KFDYN_NUM_THREADS", threads)
        for out in outs:
            out[:] = 7.0
        assert entry(model, x, y, *outs, rows=rows) == FINE
        for out, expected in zip(outs, want):
            np.testing.assert_array_equal(out, expected)
        assert all((side == -7.0).all() for room in rooms for side in room)
    for failing in ([rows // 2], sorted({0, rows // 3, rows - 1}), list(range(16, 24)) if rows > 24 else [0]):
        broken = x.copy()
        broken[failing, 0] = -1.0
        fine = np.delete(np.arange(rows), failing)
        assert entry(model, broken, y, *outs, rows=rows) == FAILED
        for out, expected in zip(outs, want):
            assert np.isnan(out[failing]).all()
            np.testing.assert_array_equal(out[fine], expected[fine])
    x[rows // 2, 4], y[rows // 2, 12] = 1e200, 1e200
    assert entry(model, x, y, *outs, rows=rows) == FAILED


def test_late_copies_run_plain(model):
    x, y = np.random.default_rng(1).uniform(0.5, 1, size=(3, 9)), np.random.default_rng(2).normal(size=(3, 13))
    outs = [np.empty((3, 9, 13)), np.empty((3, 9, 13)), np.empty((3, 1))]
    assert LATE.plain(model, x, y, *outs) == FINE
    np.testing.assert_array_equal(outs[0], x[:, :, None] * y[:, None, :])
    np.testing.assert_array_equal(outs[1], 2 * outs[0])
