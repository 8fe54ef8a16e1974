"""One pool: threads that stay, everyone's work is done, errors come back, nobody takes more threads than asked."""

import gc
import signal
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import kfdyn as kf
from kfdyn.estimation.inference import batching
from kfdyn.sweeps import entry
from kfdyn.sweeps.thread_pool import POOL, ThreadPool, alone, threads

ARM = kf.models.double_pendulum()


def test_all_take_part_and_stay():
    pool, meeting = ThreadPool(), threading.Barrier(4)

    def work():
        meeting.wait(600)  # passes only if four are here at once
        return threading.current_thread()

    first, second = set(pool.share(work, 4)), set(pool.share(work, 4))
    assert len(first) == 4 and threading.current_thread() in first
    assert second == first
    assert pool.share(threading.get_ident, 1) == [threading.get_ident()]


def test_an_error_of_any_thread_is_raised_and_the_crew_goes_on():
    pool, here = ThreadPool(), threading.get_ident()

    def fail():
        if threading.get_ident() != here:
            raise KeyError("elsewhere")

    for _ in range(3):
        with pytest.raises(KeyError, match="elsewhere"):
            pool.share(fail, 3)
    assert pool.share(lambda: 1, 3) == [1, 1, 1]


def test_many_callers_at_once_get_their_own_answers():
    pool = ThreadPool()
    with ThreadPoolExecutor(8) as callers:
        answers = callers.map(lambda i: pool.share(lambda: i, 1 + i % 4), range(400))
        assert [set(answer) for answer in answers] == [{i} for i in range(400)]


def test_nothing_is_held_between_calls():
    class Load:
        def __call__(self):
            return 1

    pool, load = ThreadPool(), Load()
    seen = weakref.ref(load)
    pool.share(load, 3)
    del load
    gc.collect()
    for _ in range(3000):
        if seen() is None:
            break
        time.sleep(0.01)  # a thread that has answered is not yet one that waits
    assert seen() is None


def test_a_thread_that_does_not_start_is_not_waited_for(monkeypatch):
    """The system may refuse threads for a while: then fewer do the work, and later calls neither wait nor fail."""
    pool, start, allowed = ThreadPool(), threading.Thread.start, [1]

    def refuse(self):
        if not allowed[0]:
            raise RuntimeError("can't start new thread")
        allowed[0] -= 1
        start(self)

    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert pool.share(lambda: 1, 4) == [1, 1]  # this thread and the one that started
    assert pool.share(lambda: 2, 4) == [2, 2]
    allowed[0] = 9
    assert pool.share(lambda: 3, 4) == [3, 3, 3, 3]


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_parts_are_answered_in_order_and_the_earliest_error_is_raised(workers):
    pool = ThreadPool()
    assert pool.map(lambda i: i * i, range(50), workers) == [i * i for i in range(50)]
    assert pool.map(str, [], workers) == []

    def fail(i):
        if i >= 7:
            raise KeyError(i)

    for _ in range(20):
        with pytest.raises(KeyError, match="7"):
            pool.map(fail, range(50), workers)


def test_work_on_parts_takes_no_further_threads(monkeypatch):
    """Else threads of the pool would wait for each other."""
    monkeypatch.setenv("KFDYN_NUM_THREADS", "3")
    assert ThreadPool().map(lambda i: threads(), range(9), 3) == [1] * 9
    assert threads() == 3


def test_leaving_an_inner_alone_leaves_the_outer_one_alone(monkeypatch):
    monkeypatch.setenv("KFDYN_NUM_THREADS", "3")
    with alone():
        with alone():
            assert threads() == 1
        assert threads() == 1
    assert threads() == 3


ENGINE = kf.StateSpace.chain(0.9, 1.0, 1.0, 1.0, 0.0, 1.0, steps=3)
BATCHES = {
    "engine": lambda: kf.kalman_filter(ENGINE, np.ones((3 * 2048, 3))),
    "entry": lambda: kf.forward_dynamics(ARM, *np.ones((3, 20_000, 2))),
    "forest": lambda: kf.forward_dynamics(ARM, *np.ones((3, 20_000, 2)), method="engine"),
}


@pytest.mark.parametrize("batch", BATCHES)
def test_alone_holds_back_the_threads_of_every_batch(batch, monkeypatch):
    """Whatever shares out work asks this one pool, and not inside of `alone`."""
    monkeypatch.setenv("KFDYN_NUM_THREADS", "3")
    share, asked = POOL.share, []

    def counted(work, number):
        asked.append(number)
        return share(work, number)

    monkeypatch.setattr(POOL, "share", counted)
    BATCHES[batch]()
    assert max(asked) > 1
    asked.clear()
    with alone():
        BATCHES[batch]()
    assert max(asked, default=1) == 1


def batches():
    """Calls with many rows, and what they go through a part at a time: where it is kept, and under which name."""
    import kfdyn.estimation.recursions.vector_pass as states
    from kfdyn.dynamics.forward import FORWARD

    q, v, tau = np.random.default_rng(1).normal(size=(3, 2000, 2))
    T = np.random.default_rng(2).normal(size=(2000, 3))
    yield lambda: kf.forward_dynamics(ARM, q, v, tau), FORWARD.entry.__dict__, "wide"
    yield lambda: kf.kalman_filter(ENGINE, T).nu, vars(states), "filter_states"


@pytest.mark.parametrize("which", [0, 1])
def test_a_batch_looks_for_signals_and_has_the_same_bits_in_any_parts(which, monkeypatch):
    """Parts as small as can be, so that a signal in the third of them is seen before there is a fourth."""
    batch, place, name = list(batches())[which]
    monkeypatch.setenv("KFDYN_NUM_THREADS", "1")
    whole, sweep, calls = batch(), place[name], []
    for module in (entry, batching):
        monkeypatch.setattr(module, "_BRIEF", 1)
        monkeypatch.setattr(module, "_SOON", 0.0)

    def counted(*args):
        calls.append(args)
        if len(calls) == 3 and interrupted:
            signal.raise_signal(signal.SIGINT)
        return sweep(*args)

    monkeypatch.setitem(place, name, counted)
    interrupted = False
    assert np.array_equal(batch(), whole)
    assert len(calls) > 10
    monkeypatch.setenv("KFDYN_NUM_THREADS", "3")
    assert np.array_equal(batch(), whole)
    monkeypatch.setenv("KFDYN_NUM_THREADS", "1")
    calls.clear()
    interrupted = True
    with pytest.raises(KeyboardInterrupt):
        batch()
    assert len(calls) == 3
