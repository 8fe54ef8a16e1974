"""Threads that stay: a batch is often done sooner than a new thread begins."""

from __future__ import annotations

import os
from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread
from typing import Any

Work = Callable[[], Any]


class Crew:
    """Threads that wait for work from call to call.

    Lighter than a pool of futures, whose locks cost as much as a hundred forward dynamics: one queue hands out the
    work, and each caller has one for what comes back. Work must not wait for other work of the crew.
    """

    def __init__(self) -> None:
        self._tasks: SimpleQueue[tuple[Work, SimpleQueue[Any]]] = SimpleQueue()
        self._hands = 0

    def share(self, work: Work, threads: int) -> list[Any]:
        """What ``work()`` returns in so many threads at once, this one included; an error in any of them is raised."""
        while self._hands < threads - 1:
            self._hands += 1
            Thread(target=_serve, args=(self._tasks,), name=f"kfdyn-{self._hands}", daemon=True).start()
        answers: SimpleQueue[Any] = SimpleQueue()
        for _ in range(threads - 1):
            self._tasks.put((work, answers))
        try:
            done = [work()]
        finally:  # whatever happens here: the others still work on what the caller may let go of
            others = [answers.get() for _ in range(threads - 1)]
        for answer in others:
            if isinstance(answer, BaseException):
                raise answer
        return done + others

    def forget(self) -> None:
        """Begin anew without threads, as in a forked process, which has none of its parent's."""
        Crew.__init__(self)


def _serve(tasks: SimpleQueue[tuple[Work, SimpleQueue[Any]]]) -> None:
    while True:
        work, answers = tasks.get()
        try:
            answers.put(work())
        except BaseException as error:  # the caller is to see it, whatever it is
            answers.put(error)
        del work, answers  # and with them the arrays they hold, while there is nothing to do


#: The threads of all sweeps.
CREW = Crew()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=CREW.forget)
