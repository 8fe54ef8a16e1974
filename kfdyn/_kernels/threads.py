"""How many threads a batch may use."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from kfdyn.errors import KfdynError

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
