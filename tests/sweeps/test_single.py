"""Entries for one row: new arrays or None, arrays of the caller's, the model's own numbers, the bits of batches."""

import gc
import sys

import numpy as np
import pytest

from kfdyn.sweeps import Entry, Given, Parameter, Space, Table, loop, minimum
from kfdyn.sweeps.batch.single_row import side_by_side
from kfdyn.sweeps.compiler.cpython_abi import place_of

MODEL = Table(n=int, weights=(float,), gravity=(float,), busy=(int,), workspace=int, floats=int)


class Owner:
    """Keeps a model's address as systems do."""

    __slots__ = ("address", "kept", "name")


def weighted(model, row, work):
    """outer_ij = w_i x_i x_j + shift + g_0, total = Σ w_i x_i g_i + push; fails where x_0 is not positive."""
    if model.alone:
        side_by_side(lambda w: (w * w,), model.n, lambda i: (model.weights[i],), lambda i, s: put(work, i, s))
    else:
        for i in loop(model.n):
            put(work, i, model.weights[i] * model.weights[i])
    total = 0.0
    for i in range(3):
        total = total + model.weights[i] * row.x[i] * row.gravity[i]
    for i in loop(model.n):
        for j in loop(model.n):
            row.outer[i * model.n + j] = (
                model.weights[i] * row.x[i] * row.x[j] + row.shift[0] + work[i] * row.gravity[0]
            )
    row.total[0] = total
    return minimum(row.x[0], 1.0)


def put(work, i, x):
    work[i] = x


ENTRY = Entry(
    weighted,
    MODEL,
    [Parameter("shift", "f"), Given("x", ("n",)), Given("gravity", (3,), shared=True, own=True)],
    [Given("outer", ("n", "n")), Given("total", ())],
    Space(lambda model, row: model.n),
)
SHIFT, G = np.array([0.25]), np.array([1.0, -2.0, 0.5])
WEIGHTS = np.array([1.3, 2.1, 3.7])


@pytest.fixture(scope="module")
def one():
    return ENTRY.single(Owner, "address")


@pytest.fixture(scope="module")
def model():
    own, owner = np.empty(100), Owner()
    tables = {"n": 3, "weights": WEIGHTS, "gravity": G, "busy": [0], "workspace": own.ctypes.data, "floats": 100}
    owner.address, owner.kept = MODEL.packed(**tables), own
    return owner


def expected(x, g):
    return np.outer(WEIGHTS * x, x) + 0.25 + (WEIGHTS**2 * g[0])[:, None], WEIGHTS * x @ g


def test_new_arrays_with_and_without_what_the_model_has(one, model):
    x, other = np.array([0.3, -1.2, 2.0]), np.array([0.1, 0.2, 0.3])
    for given, g in ((None, G), (other, other)):
        outer, total = one(model, SHIFT, x, given)
        assert type(outer) is np.ndarray and outer.shape == (3, 3) and total.shape == () and outer.flags.owndata
        for answer, right in zip((outer, total), expected(x, g)):
            np.testing.assert_allclose(answer, right, rtol=1e-14)
    assert one(model, SHIFT, x, None)[0] is not one(model, SHIFT, x, None)[0]


def test_the_bits_are_those_of_a_batch(one, model):
    x = np.random.default_rng(0).uniform(0.1, 1.0, size=(50, 3))
    outer, total = np.empty((50, 3, 3)), np.empty(50)
    assert ENTRY.compiled(4)(model.address, 0, SHIFT, x, G, outer, total) == 1
    for b in range(50):
        alone = one(model, SHIFT, x[b], G)
        np.testing.assert_array_equal(alone[0], outer[b])
        np.testing.assert_array_equal(alone[1], total[b])


@pytest.mark.parametrize("lead", [(), (1,), (1, 1)])
def test_arrays_of_the_callers(one, model, lead):
    x = np.array([0.3, -1.2, 2.0])
    out = np.full((*lead, 3, 3), np.nan), np.full(lead, np.nan)
    answers = one(model, SHIFT, x.reshape((*lead, 3)), G, *out)
    assert len(answers) == 2 and all(a is b for a, b in zip(answers, out))
    for answer, right in zip(out, one(model, SHIFT, x, G)):
        np.testing.assert_array_equal(answer, right.reshape(answer.shape))


def test_none_for_all_else(one, model):
    x, empty = np.array([0.3, -1.2, 2.0]), Owner()
    subclass = type("Subclass", (Owner,), {})()
    for given in (
        ("panda.urdf", SHIFT, x, None),
        (None, SHIFT, x, None),
        (empty, SHIFT, x, None),  # its slot was never set
        (subclass, SHIFT, x, None),
        (model, SHIFT, x.tolist(), None),
        (model, SHIFT, x[None], None),  # a batch of one is a batch
        (model, SHIFT, x[:2], None),
        (model, SHIFT, x.astype(np.float32), None),
        (model, SHIFT, np.zeros((3, 2))[:, 0], None),
        (model, SHIFT, np.array([np.nan, 1.0, 1.0]), None),
        (model, SHIFT, -x, None),  # the recursion has no answer
        (model, SHIFT, np.full(3, 1e200), None),  # it overflows
        (model, SHIFT, x, G[:2]),
        (model, SHIFT, x, None, np.empty((3, 3)), None),
        (model, SHIFT, x),
        (),
    ):
        assert one(*given) is None, given
    empty.address = 0
    assert one(empty, SHIFT, x, None) is None


def test_nothing_is_left_behind(one, model):
    """Neither of answers nor of refusals: references to None and to the arrays are as before."""
    x, bad = np.array([0.3, -1.2, 2.0]), np.array([-0.3, 1.0, 1.0])
    gc.collect()
    before, owned = sys.getrefcount(None), sys.getrefcount(x)
    for _ in range(1000):
        kept = one(model, SHIFT, x, None)
        one(model, SHIFT, bad, None)
    counts = sys.getrefcount(kept[0]), sys.getrefcount(kept)
    assert counts == (2, 2)
    assert abs(sys.getrefcount(None) - before) < 100 and sys.getrefcount(x) == owned


def test_a_slot_is_found_where_it_is():
    owner, mark = Owner(), object()
    owner.name = mark
    import ctypes

    assert ctypes.c_void_p.from_address(id(owner) + place_of(Owner, "name")).value == id(mark)
    assert len({place_of(Owner, slot) for slot in Owner.__slots__}) == 3


def test_what_it_does_not_take_goes_to_another_function(model):
    """With the very same arguments, whose answer is returned and whose errors are raised."""
    seen = []

    def otherwise(*given):
        seen.append(given)
        if given[2] is None:
            raise KeyError("x")
        return "another"

    one, x = ENTRY.single(Owner, "address", otherwise), np.array([0.3, -1.2, 2.0])
    assert one(model, SHIFT, x, None)[0].shape == (3, 3) and not seen
    for given in ((model, SHIFT, -x, None), (model, SHIFT, x[None], G), ("panda.urdf", 0, 0), (model, SHIFT, x)):
        assert one(*given) == "another"
        assert all(a is b for a, b in zip(seen.pop(), given, strict=True))
    with pytest.raises(KeyError):
        one(model, SHIFT, None, None)


def test_none_for_the_results_asks_for_new_ones(one, model):
    x = np.array([0.3, -1.2, 2.0])
    for a, b in zip(one(model, SHIFT, x, None, None, None), one(model, SHIFT, x, None)):
        np.testing.assert_array_equal(a, b)


def test_results_that_share_memory_with_arguments_are_not_taken(one, model):
    memory = np.random.default_rng(2).uniform(0.1, 1.0, size=30)
    before = memory.copy()
    for start in (0, 1, 8, 9):
        x, outer = memory[start : start + 3], memory[1:10].reshape(3, 3)
        assert one(model, SHIFT, x, None, outer, np.empty(())) is None
        np.testing.assert_array_equal(memory, before)
    x, outer = memory[10:13], memory[1:10].reshape(3, 3)
    assert one(model, SHIFT, x, None, outer, np.empty(()))[0] is outer
