"""One callable for one state and for batches: new arrays, the caller's, what declines rows and what is not taken."""

import gc
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from kfdyn.sweeps import Checks, Declined, Entry, Given, Kernel, Parameter, Space, Table, loop, minimum

MODEL = Table(n=int, weights=(float,), gravity=(float,), busy=(int,), workspace=int, floats=int)
WEIGHTS, G, SHIFT = np.array([1.3, 2.1, 3.7]), np.array([1.0, -2.0, 0.5]), np.array([0.25])


class Owner:
    """Keeps a model's address as systems do."""

    __slots__ = ("address", "kept")

    def __init__(self):
        self.address = 0


def weighted(model, row, work):
    """outer_ij = w_i x_i x_j + shift + g_0, total = Σ w_i x_i; fails where x_0 is not positive."""
    total = 0.0
    for i in range(3):
        total = total + model.weights[i] * row.x[i]
    for i in loop(model.n):
        for j in loop(model.n):
            row.outer[i * model.n + j] = model.weights[i] * row.x[i] * row.x[j] + row.shift[0] + row.gravity[0]
    row.total[0] = total
    return minimum(row.x[0], 1.0)


def tripled(model, row, work):
    for i in loop(model.n):
        row.y[i] = 3.0 * row.x[i]
    return row.x[0]


_GIVEN = [Parameter("shift", "f"), Given("x", ("n",)), Given("gravity", (3,), shared=True, own=True)]
_ROOM = Space(lambda model, row: model.n)
WEIGHTED = Entry(weighted, MODEL, _GIVEN, [Given("outer", ("n", "n")), Given("total", ())], _ROOM)
TRIPLED = Entry(tripled, MODEL, [Given("x", ("n",))], [Given("y", ("n",))], _ROOM)


def prepared(owner):
    if not owner.address:
        own = np.empty(100)
        tables = {"n": 3, "weights": WEIGHTS, "gravity": G, "busy": [0], "workspace": own.ctypes.data, "floats": 100}
        address = MODEL.packed(**tables)
        owner.kept = SimpleNamespace(address=address, size=3, own=own)
        owner.address = address
    return owner.kept


@pytest.fixture(params=["compiled", "plain"])
def way(request, monkeypatch):
    monkeypatch.setattr(Checks, "on", request.param == "plain")


@pytest.fixture
def kernel(way):
    return Kernel(__name__, "WEIGHTED", Owner, "address", prepared)


@pytest.fixture
def triple(way):
    return Kernel(__name__, "TRIPLED", Owner, "address", prepared)


def expected(x, g):
    return WEIGHTS[:, None] * x[..., None] * x[..., None, :] + 0.25 + g[..., 0, None, None], x @ WEIGHTS


@pytest.mark.parametrize("lead", [(), (1,), (7,), (2, 3), (0,)])
@pytest.mark.parametrize("gravity", [None, np.array([0.5, 1.0, 2.0])])
def test_one_state_and_batches(kernel, lead, gravity):
    x, owner = np.random.default_rng(0).uniform(0.1, 1.0, size=(*lead, 3)), Owner()
    for _ in range(2):  # when the object is prepared, and afterwards
        answers = kernel.run(owner, SHIFT, x, gravity)
        assert type(answers) is tuple and [a.shape for a in answers] == [(*lead, 3, 3), lead]
        for answer, right in zip(answers, expected(x, G if gravity is None else gravity)):
            np.testing.assert_allclose(answer, right, rtol=1e-14)


@pytest.mark.parametrize("lead", [(), (1,), (5,)])
def test_arrays_of_the_callers_are_the_answer(kernel, triple, lead):
    x, owner = np.random.default_rng(1).uniform(0.1, 1.0, size=(*lead, 3)), Owner()
    new = kernel.run(owner, SHIFT, x, None, None, None)  # None for the results: new ones
    out = np.empty((*lead, 3, 3)), np.empty(lead)
    answers = kernel.run(owner, SHIFT, x, None, *out)
    assert all(a is b for a, b in zip(answers, out))
    for a, b in zip(answers, new):
        np.testing.assert_array_equal(a, b)
    y = np.empty((*lead, 3))
    assert triple.run(owner, x, y) is y
    np.testing.assert_array_equal(y, 3.0 * x)


@pytest.mark.parametrize("lead", [(), (5,)])
def test_results_that_share_memory_with_arguments_are_not_taken(triple, lead):
    memory = np.random.default_rng(2).uniform(0.1, 1.0, size=8 * 5)
    size = 3 * int(np.prod(lead))
    x = memory[2 : 2 + size].reshape((*lead, 3))
    before, owner = memory.copy(), Owner()
    assert triple.run(owner, x).shape == x.shape
    for start in (0, 2, 4, 2 + size - 1):
        assert triple.run(owner, x, memory[start : start + size].reshape(x.shape)) is None
        np.testing.assert_array_equal(memory, before)
    beside = memory[2 + size : 2 + 2 * size].reshape(x.shape)
    assert triple.run(owner, x, beside) is beside


def test_rows_without_an_answer(kernel):
    x, owner = np.random.default_rng(3).uniform(0.1, 1.0, size=(2, 5, 3)), Owner()
    x[1, 3, 0], x[0, 4, 0] = -1.0, 0.0
    declined = kernel.run(owner, SHIFT, x, None)
    assert type(declined) is Declined and np.argwhere(declined.rows).tolist() == [[0, 4], [1, 3]]
    for answer, right in zip(declined.answers, expected(x, G)):
        np.testing.assert_allclose(answer[~declined.rows], right[~declined.rows], rtol=1e-14)
        assert np.isnan(answer[declined.rows]).all()
    alone = kernel.run(owner, SHIFT, x[1, 3], None)
    assert type(alone) is Declined and alone.rows.shape == () and alone.rows
    for bad in (np.nan, np.inf, 1e200):
        x[0, 0, 1] = bad
        assert kernel.run(owner, SHIFT, x, None).rows[0, 0]
        assert kernel.run(owner, SHIFT, x[0, 0].copy(), None).rows


def test_a_single_state_gets_the_bits_of_a_batch(kernel):
    x, owner = np.random.default_rng(4).uniform(0.1, 1.0, size=(50, 3)), Owner()
    outer, total = kernel.run(owner, SHIFT, x, None)
    for b in range(50):
        alone = kernel.run(owner, SHIFT, x[b], None)
        np.testing.assert_array_equal(alone[0], outer[b])
        np.testing.assert_array_equal(alone[1], total[b])


def test_contiguous_copies_are_made(kernel):
    x, owner = np.random.default_rng(5).uniform(0.1, 1.0, size=(3, 8)).T, Owner()
    for given in (x, x[0], x[::2]):
        assert not given.flags.c_contiguous
        for a, b in zip(kernel.run(owner, SHIFT, given, None), kernel.run(owner, SHIFT, given.copy("C"), None)):
            np.testing.assert_array_equal(a, b)


def test_what_is_not_taken(kernel):
    x, owner, other = np.array([0.3, -1.2, 2.0]), Owner(), Owner()
    subclass = type("Subclass", (Owner,), {})()
    for _ in range(2):  # before the first answer, which compiles, and afterwards
        for given in (
            ("panda.urdf", SHIFT, x, None),
            (None, SHIFT, x, None),
            (subclass, SHIFT, x, None),
            (other, SHIFT, x.tolist(), None),
            (other, SHIFT, x[:2], None),
            (other, SHIFT, np.float64(1.0), None),
            (other, SHIFT, x.astype(np.float32), None),
            (other, SHIFT, x, G[:2]),
            (other, SHIFT, np.stack([x, x]), np.stack([G, G, G])),
            (other, SHIFT, x, None, np.empty((3, 2)), np.empty(())),
            (other, SHIFT, x, None, np.empty((3, 3)), None),
            (),
        ):
            assert kernel.run(*given) is None, given
        assert kernel.run(owner, SHIFT, x, None) is not None
    for wrong in ((x,), (SHIFT, x), (SHIFT, x, None, None)):
        with pytest.raises(TypeError, match="weighted takes 3 arguments and 2 results"):
            kernel.run(owner, *wrong)


def test_objects_that_it_does_not_serve(way):
    kernel = Kernel(__name__, "TRIPLED", Owner, "address", lambda owner: None)
    x = np.array([0.3, -1.2, 2.0])
    assert kernel.run(Owner(), x) is None and kernel._entry is None  # nothing was imported or compiled


def test_without_a_slot_one_state_is_served_as_a_batch(way):
    kernel = Kernel(__name__, "TRIPLED", Owner, "", prepared)
    x = np.array([0.3, -1.2, 2.0])
    for _ in range(2):
        np.testing.assert_array_equal(kernel.run(Owner(), x), 3.0 * x)


def test_nothing_is_left_behind(way):
    """Of answers, of declined rows, of the callers' arrays."""
    kernel, owner = Kernel(__name__, "WEIGHTED", Owner, "address", prepared), Owner()
    x, bad, out = np.array([0.3, -1.2, 2.0]), np.array([-0.3, 1.0, 1.0]), (np.empty((3, 3)), np.empty(()))
    calls = ((SHIFT, x, None), (SHIFT, bad, None), (SHIFT, x, None, *out), (SHIFT, x.tolist(), None))
    for _ in range(2):
        gc.collect()
        before = sys.getrefcount(None), [sys.getrefcount(thing) for thing in (x, bad, owner, *out)]
        for _ in range(100):
            for given in calls:
                kernel.run(owner, *given)
        assert abs(sys.getrefcount(None) - before[0]) < 50
        assert [sys.getrefcount(thing) for thing in (x, bad, owner, *out)] == before[1]
