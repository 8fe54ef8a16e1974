"""Memory of large results is taken again, but never from under a result that somebody still sees."""

import gc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import kfdyn as kf
from kfdyn.dynamics import memory


@pytest.fixture(autouse=True)
def small_is_large(monkeypatch):
    monkeypatch.setattr(memory, "LARGE", 1000)
    memory._spare.clear()
    yield
    memory._spare.clear()


def address(array):
    return array.__array_interface__["data"][0]


def test_what_is_dropped_is_taken_again():
    first = memory.room(20, 30)
    place = address(first)
    assert first.shape == (20, 30) and first.flags.c_contiguous and first.flags.writeable and first.dtype == float
    del first
    again = memory.room(20, 30)
    assert address(again) == place
    other = memory.room(20, 30)
    assert not np.shares_memory(again, other)


@pytest.mark.parametrize("seen", [lambda a: a[3:5], lambda a: a.reshape(-1), lambda a: a.T, memoryview, np.asarray])
def test_a_view_keeps_it(seen):
    whole = memory.room(20, 30)
    whole[:] = 1.0
    view = seen(whole)
    del whole
    gc.collect()
    memory.room(20, 30)[:] = 2.0
    assert (np.asarray(view) == 1.0).all()


def test_one_piece_at_most_and_of_about_the_size():
    pieces = [memory.room(20, 30) for _ in range(5)]
    pieces.clear()
    assert len(memory._spare) == 1
    assert memory.room(50, 30).shape == (50, 30)  # too large for it: the spare one is dropped for another
    assert memory._spare[0].size == 1500
    memory.room(10, 20)
    assert memory._spare[0].size == 200  # and too small
    small = memory.room(5, 5)
    assert small.base is None and len(memory._spare) == 1


def test_results_that_live_are_not_written_to():
    arm, rng = kf.models.puma560(), np.random.default_rng(0)
    batches = rng.normal(size=(6, 40, 6))
    expected = [np.stack([kf.mass_matrix(arm, q) for q in batch]) for batch in batches]
    for _ in range(3):
        kept = [kf.mass_matrix(arm, batch) for batch in batches]
        kf.mass_matrix_inverse(arm, batches[0])
        for found, right in zip(kept, expected):
            np.testing.assert_array_equal(found, right)
        del kept[::2]


def test_threads_share_the_spare_piece():
    arm, rng = kf.models.puma560(), np.random.default_rng(1)
    batches = rng.normal(size=(8, 40, 6))
    expected = [kf.mass_matrix_inverse(arm, batch).copy() for batch in batches]

    def ask(i):
        return all((kf.mass_matrix_inverse(arm, batches[i]) == expected[i]).all() for _ in range(40))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(ask, range(8)))
