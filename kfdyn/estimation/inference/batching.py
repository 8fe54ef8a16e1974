"""Bring stacked vectors with batch axes to the compiled sweeps: rows, lanes and threads."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from threading import Lock
from time import perf_counter
from typing import Any

import numpy as np

from kfdyn.estimation.model.blocks import FloatArray
from kfdyn.sweeps.thread_pool import POOL, threads

_ROWS_PER_THREAD = 2048  # below this a thread costs more than it saves
_PARTS = 4  # of each thread's rows: one that wakes late does fewer
# Numbers that a part goes through before Python looks up, and the seconds that it is then to take, or up to four times
# as long: for whoever interrupts.
_BRIEF, _SOON = 2**20, 0.02


def over_models(models: int, numbers: int, sweep: Callable[[Any, Any], object]) -> None:
    """:func:`over_rows` for whole models, which are worth a thread each, and in lanes even where there is one alone."""
    from kfdyn.sweeps.compiler.driver import machine

    over_rows(models, numbers, sweep, machine().lanes, 1)


def over_rows(
    rows: int,
    numbers: int,
    sweep: Callable[[Any, Any], object],
    side_by_side: int | None = None,
    per_thread: int = _ROWS_PER_THREAD,
) -> None:
    """Call ``sweep(lanes, share)`` so that all rows are done: one alone, several in lanes, many in threads.

    A :class:`~kfdyn.estimation.recursions.linalg.lanes.Share` is some of the rows, with a workspace of so many
    numbers for each lane. With ``side_by_side`` lanes rows go in as many, one alone too; a thread is worth its while
    for ``per_thread`` rows.

    The sweeps release the interpreter lock and write disjoint rows, so plain threads serve and the result does
    not depend on their number; nor on the number of rows, since lanes keep the order of operations.
    """
    one, lanes, checks, Share = _lanes(side_by_side)
    if (rows <= 1 and side_by_side is None) or checks.on or not rows:
        if rows:
            sweep(one, Share(0, rows, np.zeros(numbers)))
        return
    workers = min(threads(), rows // max(per_thread, lanes))
    if workers < 2 and rows * numbers <= _BRIEF:
        sweep(lanes, Share(0, rows, np.zeros(lanes * numbers)))
        return
    most = -(-rows // ((_PARTS * workers if workers > 1 else 1) * lanes)) * lanes
    step = min(most, -(-_BRIEF // (max(1, numbers) * lanes)) * lanes)
    done, lock = 0, Lock()

    def work() -> None:
        nonlocal done, step
        try:
            while True:
                with lock:
                    first, done = done, min(done + step, rows)
                    last = done
                if first == last:
                    return
                start = perf_counter()
                sweep(lanes, Share(first, last, np.zeros(lanes * numbers)))
                took = perf_counter() - start
                if took < _SOON:
                    step = min(2 * step, most)
                elif took > 4 * _SOON:
                    step = max(step // (2 * lanes) * lanes, lanes)
        except BaseException:
            with lock:
                done = rows  # nothing is left for the others
            raise

    POOL.share(work, max(workers, 1))


@cache
def _lanes(many: int | None) -> Any:
    """One lane and many, as tags, whether indices are checked, and Share: an import at each call would take longer."""
    from kfdyn.estimation.recursions.linalg.lanes import LANES, Share
    from kfdyn.sweeps import Checks, Tag

    return Tag(1), Tag(LANES if many is None else many), Checks, Share


def as_rows(array: FloatArray, batch: tuple[int, ...] | None = None) -> FloatArray:
    """The vectors of a stacked array one after the other in a flat, read-only buffer, broadcast to a batch shape.

    An array that is the same for the whole batch keeps its single row. Copies only where it must.
    """
    size = array.shape[-1]
    if batch is not None and array.shape[:-1] != batch and array.size != size:
        array = np.broadcast_to(array, (*batch, size))
    if array.ndim == 1 and array.flags.c_contiguous:
        flat = array.view()
    else:
        flat = np.ascontiguousarray(array).reshape(-1).view()
    if not flat.flags.aligned:  # it came over a network, say; compiled code takes aligned arrays only
        flat = flat.copy()
    flat.flags.writeable = False
    return flat


def step_of(flat: FloatArray, size: int, rows: int) -> int:
    """Return the stride of a batch's vectors in the rows of :func:`as_rows`; 0 where one serves all."""
    return 0 if flat.size == size and rows > 1 else size


def count_rows(batch: tuple[int, ...]) -> int:
    """Number of vectors in a batch of this shape."""
    return math.prod(batch)
