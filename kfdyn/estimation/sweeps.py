"""How stacked vectors with batch axes reach the compiled sweeps: rows, lanes and threads."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np

from kfdyn.errors import KfdynError
from kfdyn.estimation.blocks import FloatArray

Tag = tuple[int, ...]
_ROWS_PER_THREAD = 2048  # below this a thread costs more than it saves

_HERE = threading.local()


@contextmanager
def alone() -> Iterator[None]:
    """Let the sweeps of this thread use no other thread: for callers that share out the work themselves."""
    before, _HERE.alone = getattr(_HERE, "alone", False), True
    try:
        yield
    finally:
        _HERE.alone = before


def threads() -> int:
    """Number of threads for batches: KFDYN_NUM_THREADS, or the cores this process may use; 1 inside `alone`."""
    if getattr(_HERE, "alone", False):
        return 1
    asked = os.environ.get("KFDYN_NUM_THREADS")
    if asked:
        if not asked.isdecimal() or int(asked) < 1:
            raise KfdynError(f"KFDYN_NUM_THREADS is {asked!r}; set it to a number of threads, 1 or more, or unset it")
        return int(asked)
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def over_rows(rows: int, sweep: Callable[[Tag, int, int], object]) -> None:
    """Call ``sweep(lanes, first, last)`` so that all rows are done: one alone, several in lanes, many in threads.

    The kernels release the interpreter lock and write disjoint rows, so plain threads serve and the result does
    not depend on their number.
    """
    from kfdyn.estimation._kernels.sizes import LANES, static

    if rows <= 1:
        if rows:
            sweep(static(1), 0, rows)
        return
    workers = min(threads(), rows // _ROWS_PER_THREAD)
    if workers < 2:
        sweep(static(LANES), 0, rows)
        return
    per_worker = -(-rows // (workers * LANES)) * LANES
    parts = [(first, min(first + per_worker, rows)) for first in range(0, rows, per_worker)]
    with ThreadPoolExecutor(workers) as pool:
        for done in [pool.submit(sweep, static(LANES), *part) for part in parts]:
            done.result()


def as_rows(array: FloatArray, batch: tuple[int, ...] | None = None) -> FloatArray:
    """The vectors of a stacked array one after the other in a flat, read-only buffer, broadcast to a batch shape.

    An array that is the same for the whole batch keeps its single row. Copies only where it must.
    """
    size = array.shape[-1]
    if batch is not None and array.shape[:-1] != batch and array.size != size:
        array = np.broadcast_to(array, (*batch, size))
    flat = np.ascontiguousarray(array).reshape(-1).view()
    flat.flags.writeable = False
    return flat


def count_rows(batch: tuple[int, ...]) -> int:
    """Number of vectors in a batch of this shape."""
    return math.prod(batch)
