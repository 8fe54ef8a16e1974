"""Threads that stay: everyone's work is done, errors come back, callers do not mix up their answers."""

import gc
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest

from kfdyn._kernels.crew import Crew


def test_all_take_part_and_stay():
    crew, meeting = Crew(), threading.Barrier(4)

    def work():
        meeting.wait(10)  # passes only if four are here at once
        return threading.current_thread()

    first, second = set(crew.share(work, 4)), set(crew.share(work, 4))
    assert len(first) == 4 and threading.current_thread() in first
    assert second == first
    assert crew.share(threading.get_ident, 1) == [threading.get_ident()]


def test_an_error_of_any_thread_is_raised_and_the_crew_goes_on():
    crew, here = Crew(), threading.get_ident()

    def fail():
        if threading.get_ident() != here:
            raise KeyError("elsewhere")

    for _ in range(3):
        with pytest.raises(KeyError, match="elsewhere"):
            crew.share(fail, 3)
    assert crew.share(lambda: 1, 3) == [1, 1, 1]


def test_many_callers_at_once_get_their_own_answers():
    crew = Crew()
    with ThreadPoolExecutor(8) as callers:
        answers = callers.map(lambda i: crew.share(lambda: i, 1 + i % 4), range(400))
        assert [set(answer) for answer in answers] == [{i} for i in range(400)]


def test_nothing_is_held_between_calls():
    class Load:
        def __call__(self):
            return 1

    crew, load = Crew(), Load()
    seen = weakref.ref(load)
    crew.share(load, 3)
    crew.share(lambda: 0, 3)  # whoever had the load has let it go
    del load
    gc.collect()
    assert seen() is None


def test_a_thread_that_does_not_start_is_not_waited_for(monkeypatch):
    """The system may refuse threads for a while: then fewer do the work, and later calls neither wait nor fail."""
    crew, start, allowed = Crew(), threading.Thread.start, [1]

    def refuse(self):
        if not allowed[0]:
            raise RuntimeError("can't start new thread")
        allowed[0] -= 1
        start(self)

    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert crew.share(lambda: 1, 4) == [1, 1]  # this thread and the one that started
    assert crew.share(lambda: 2, 4) == [2, 2]
    allowed[0] = 9
    assert crew.share(lambda: 3, 4) == [3, 3, 3, 3]
