"""The entry template on a small model: shapes, broadcasting of shared rows, sound numbers, failed rows, threads."""

import pickle
from types import SimpleNamespace

import numpy as np
import pytest

from kfdyn.sweeps import Checks, Entry, Given, Parameter, Space, Table, clear, loop, minimum
from kfdyn.sweeps import thread_pool as pool
from kfdyn.sweeps.entry import FAILED, FINE

MODEL = Table(n=int, weights=(float,), busy=(int,), workspace=int, floats=int)


def weighted(model, row, work):
    """out_i = weight_i x_i + g_0 + push_i + shift, passed through the workspace; fails where some x is negative."""
    least = 1e300
    for i in range(3):
        least = minimum(least, row.x[i] + 1e-300)
    for i in loop(model.n):
        work[i] = model.weights[i] * row.x[i] + row.g[0] + row.shift[0]
    row.out.copy(work, model.n)
    return least


def begin(model, row, work):
    clear(work, model.n)


ENTRY = Entry(
    weighted,
    MODEL,
    [Parameter("shift", "f"), Given("x", ("n",)), Given("g", (1,), shared=True)],
    [Given("out", ("n",))],
    Space(lambda model, row: model.n, begin),
)


@pytest.fixture(scope="module")
def model():
    own = np.empty(100)
    tables = {"n": 3, "weights": [1.0, 2.0, 3.0], "busy": [0], "workspace": own.ctypes.data, "floats": 100}
    return SimpleNamespace(address=MODEL.packed(**tables), size=3, kept=own)


SHIFT = np.array([0.5])


def expected(x, g):
    return x * [1, 2, 3] + g + 0.5


@pytest.mark.parametrize("lead", [(), (1,), (5,), (8,), (2, 9), (129,), (300,), (0,), (2, 0)])
def test_any_leading_axes(model, lead, monkeypatch):
    x, out = np.random.default_rng(1).uniform(size=(*lead, 3)), np.full((*lead, 3), np.nan)
    for g in (np.array([2.0]), np.random.default_rng(2).normal(size=(*lead, 1))):
        assert ENTRY(model, SHIFT, x, g, out, rows=out.size // 3) == FINE
        np.testing.assert_allclose(out, expected(x, g), rtol=1e-15)
        plain = np.full_like(out, np.nan)
        monkeypatch.setattr(Checks, "on", True)
        assert ENTRY(model, SHIFT, x, g, plain) == FINE
        monkeypatch.undo()
        np.testing.assert_allclose(plain, out, rtol=1e-15)


def test_each_row_has_the_bits_of_the_batch(model):
    x, out = np.random.default_rng(3).uniform(size=(37, 3)), np.empty((37, 3))
    ENTRY(model, SHIFT, x, SHIFT, out)
    for b in range(37):
        alone = np.empty(3)
        ENTRY(model, SHIFT, x[b], SHIFT, alone)
        np.testing.assert_array_equal(alone, out[b])


@pytest.mark.parametrize("run", [ENTRY.__call__, ENTRY.plain], ids=["compiled", "plain"])
def test_rows_without_an_answer_are_nan_and_no_others(model, run):
    x = np.random.default_rng(4).uniform(size=(20, 3))
    x[[3, 11, 19], [0, 1, 2]] = -1
    out = np.empty((20, 3))
    assert run(model, SHIFT, x, SHIFT, out) == FAILED
    bad = np.isnan(out).any(-1)
    assert np.flatnonzero(bad).tolist() == [3, 11, 19]
    np.testing.assert_allclose(out[~bad], expected(x, 0.5)[~bad], rtol=1e-15)
    for nonsense in (np.nan, np.inf, -np.inf):
        x[0, 2] = nonsense
        assert run(model, SHIFT, x, SHIFT, out) == FAILED
        assert np.isnan(out[0]).all()


@pytest.mark.parametrize("run", [ENTRY.__call__, ENTRY.plain], ids=["compiled", "plain"])
@pytest.mark.parametrize("rows", [1, 7, 20, 300])
def test_an_answer_beyond_doubles_is_told_wherever_it_is(model, run, rows):
    for row in {0, rows // 2, rows - 1}:
        x, out = np.ones((rows, 3)), np.empty((rows, 3))
        assert run(model, SHIFT, x, SHIFT, out) == FINE
        x[row, 2] = 1e308
        assert run(model, SHIFT, x, SHIFT, out) == FAILED


def test_what_does_not_fit_is_refused_before_anything_is_written(model):
    x, g, out = np.ones((4, 3)), np.ones(1), np.zeros((4, 3))
    odd = np.frombuffer(bytearray(8 * 12 + 1), np.uint8)[1:].view(np.float64).reshape(4, 3)
    locked = out.view()
    locked.flags.writeable = False
    for bad in [
        (np.ones((3, 3)), g, out), (np.ones((4, 2)), g, out), (np.ones(12), g, out), (np.ones((4, 6))[:, ::2], g, out),
        (x.astype(">f8"), g, out), (x.astype("f4"), g, out), (x.tolist(), g, out), (None, g, out), (odd, g, out),
        (x, np.ones(2), out), (x, np.ones((3, 1)), out), (x, g, np.zeros((4, 4))), (x, g, locked), (x, g, np.zeros(())),
        (np.ma.masked_array(x), g, out), (x.view(np.matrix), g, out),
    ]:  # fmt: skip
        assert ENTRY(model, SHIFT, *bad) < 0
    assert not out.any()


def test_threads_do_not_show(model, monkeypatch):
    x = np.random.default_rng(5).uniform(size=(20_000, 3))
    answers = []
    for count in ("1", "2", "5"):
        monkeypatch.setenv("KFDYN_NUM_THREADS", count)
        out = np.full_like(x, np.nan)
        assert ENTRY(model, SHIFT, x, SHIFT, out, rows=len(x)) == FINE
        answers.append(out)
    np.testing.assert_array_equal(answers[0], answers[1])
    np.testing.assert_array_equal(answers[0], answers[2])
    with pool.alone():
        assert pool.threads() == 1


def test_parameters_come_first():
    with pytest.raises(TypeError, match="weighted: parameters come before arrays"):
        Entry(weighted, MODEL, [Given("x", ("n",)), Parameter("shift", "f")], [], ENTRY.workspace)


def test_a_workspace_too_small_is_replaced(model):
    x, out = np.ones((9, 3)), np.empty((9, 3))
    small = SimpleNamespace(address=MODEL.packed(**model.address.given | {"floats": 3}), size=3)
    assert ENTRY(small, SHIFT, x, SHIFT, out) == FINE
    np.testing.assert_allclose(out, expected(x, 0.5), rtol=1e-15)


def test_pickled_and_derived_arrays_fit(model):
    """A dtype that came out of a pickle is another object, equal to NumPy's own; swapped bytes are not."""
    x, out = np.random.default_rng(6).uniform(size=(9, 3)), np.empty((9, 3))
    pickled = pickle.loads(pickle.dumps(x))
    assert ENTRY(model, SHIFT, pickled * 1, SHIFT, out) == FINE
    np.testing.assert_allclose(out, expected(x, 0.5), rtol=1e-15)
    for other in (x.astype(">f8"), x.view(np.int64), x.view("M8[s]"), x.view("m8")):
        assert ENTRY(model, SHIFT, other, SHIFT, out) < 0
