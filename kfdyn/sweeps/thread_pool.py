"""The thread pool of the package: how many threads a batch may use, and threads that stay from call to call."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar

from kfdyn.errors import KfdynError

Work = Callable[[], Any]
Part = TypeVar("Part")
_HERE = threading.local()


@contextmanager
def alone() -> Iterator[None]:
    """Let the sweeps of this thread use no other thread, for callers that share out work themselves."""
    before, _HERE.alone = getattr(_HERE, "alone", False), True
    try:
        yield
    finally:
        _HERE.alone = before


def threads() -> int:
    """Return the number of threads for batches: KFDYN_NUM_THREADS, or the cores of this process; 1 inside `alone`."""
    if getattr(_HERE, "alone", False):
        return 1
    asked = os.environ.get("KFDYN_NUM_THREADS")
    if asked:
        if not asked.isdecimal() or int(asked) < 1:
            raise KfdynError(f"KFDYN_NUM_THREADS is {asked!r}; set it to a number of threads, 1 or more, or unset it")
        return int(asked)
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


class ThreadPool:
    """Threads that wait for work from call to call, since starting one may take longer than a batch.

    Lighter than a pool of futures, whose locks cost as much as a hundred forward dynamics: one queue hands out the
    work, and each caller has one for what comes back. Work must not wait for other work of the pool.
    """

    def __init__(self) -> None:
        self._tasks: SimpleQueue[tuple[Work, SimpleQueue[Any]]] = SimpleQueue()
        self._size = 0

    def share(self, work: Work, threads: int) -> list[Any]:
        """Run ``work()`` in so many threads at once, this one included; return all results or raise an error.

        In fewer threads where the system starts no more: so ``work`` must share out what there is to do by itself.
        """
        helpers = min(self._started(threads - 1), threads - 1)
        answers: SimpleQueue[Any] = SimpleQueue()
        for _ in range(helpers):
            self._tasks.put((work, answers))
        try:
            done = [work()]
        finally:  # whatever happens here: the others still work on what the caller may let go of
            others = [answers.get() for _ in range(helpers)]
        for answer in others:
            if isinstance(answer, BaseException):
                raise answer
        return done + others

    def map(self, work: Callable[[Part], Any], parts: Sequence[Part], threads: int) -> list[Any]:
        """Return ``work(part)`` of all parts, in order; sweeps inside use no further threads.

        Parts are handed out in order, so that all before one that fails are done whatever the number of threads.
        """
        left, lock = iter(enumerate(parts)), threading.Lock()
        done: dict[int, Any] = {}
        errors: dict[int, BaseException] = {}

        def some() -> None:
            with alone():
                while not errors:
                    with lock:
                        handed = next(left, None)
                    if handed is None:
                        return
                    i, part = handed
                    try:
                        done[i] = work(part)
                    except BaseException as error:
                        errors[i] = error

        self.share(some, threads)
        if errors:
            raise errors[min(errors)]
        return [done[i] for i in range(len(parts))]

    def _started(self, wanted: int) -> int:
        """Start threads up to the wanted number; return how many run."""
        while self._size < wanted:
            thread = Thread(target=_serve, args=(self._tasks,), name=f"kfdyn-{self._size + 1}", daemon=True)
            try:
                thread.start()
            except (RuntimeError, MemoryError):  # a limit on threads or memory, or the interpreter is about to end
                break
            self._size += 1
        return self._size

    def forget(self) -> None:
        """Begin anew without threads, as a forked process must."""
        ThreadPool.__init__(self)


def _serve(tasks: SimpleQueue[tuple[Work, SimpleQueue[Any]]]) -> None:
    while True:
        work, answers = tasks.get()
        try:
            answers.put(work())
        except BaseException as error:  # the caller is to see it, whatever it is
            answers.put(error)
        del work, answers  # and with them the arrays they hold, while there is nothing to do


#: The threads of all sweeps.
POOL = ThreadPool()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=POOL.forget)
