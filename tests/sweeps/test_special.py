"""Straight-line code for one model: same answers, its numbers in the name; what Python cannot know is refused."""

from types import SimpleNamespace

import numpy as np
import pytest

from kfdyn.sweeps import Entry, Given, Options, Space, Table, if_, local, loop, loop_vars, minimum, while_
from kfdyn.sweeps.specialise import Special, Specials
from kfdyn.sweeps.trace_context import unrolled

MODEL = Table(n=int, weights=(float,), parent=(int,), busy=(int,), workspace=int, floats=int)


def walked(model, row, work):
    """out_i = Σ weight_j x_j over i and all that is inboard of it (+ push_i, if given); fails where x_0 < 0."""
    least = local(row.x[0] + 1e-300)
    for i in loop(model.n):
        at, total = local(i), loop_vars(0.0 * row.x[0])
        for _ in while_(lambda at=at: at >= 0):
            j = at + 0
            total.set(total.get() + model.weights[j] * row.x[j])
            at.set(model.parent[j])
        work[i] = total.get()
        for _ in if_(row.push.given):
            work[i] = work[i] + row.push[i]
        least.set(minimum(least, row.x[0] + 1e-300))
    row.out.copy(work, model.n)
    return least


ENTRY = Entry(
    walked,
    MODEL,
    [Given("x", ("n",)), Given("push", ("n",), optional=True)],
    [Given("out", ("n",))],
    Space(lambda model, row: model.n),
    Options(unroll=5),
)


def model(weights, parent):
    own = np.empty(100)
    tables = {
        "n": len(weights), "weights": np.array(weights), "parent": np.array(parent), "busy": np.zeros(1, np.int64),
        "workspace": own.ctypes.data, "floats": 100,
    }  # fmt: skip
    return SimpleNamespace(address=MODEL.packed(**tables), size=len(weights), kept=own)


WEIGHTS, PARENT = [1.0, 0.0, -1.0, 0.25, 3.0], [-1, 0, 1, 1, 0]
PATHS = np.array([[1, 0, 0, 0, 0], [1, 1, 0, 0, 0], [1, 1, 1, 0, 0], [1, 1, 0, 1, 0], [1, 0, 0, 0, 1]])


@pytest.mark.parametrize("rows", [1, 3, 8, 13, 300])
def test_answers_of_every_batch(rows):
    this = model(WEIGHTS, PARENT)
    specials = Specials(5, this.address.given)
    rng = np.random.default_rng(rows)
    x, push, out = rng.uniform(size=(rows, 5)), rng.normal(size=(rows, 5)), np.empty((rows, 5))
    for given, want in ((None, 0.0), (push, push)):
        entry, arrays = specials.of(ENTRY, (x, given, out))
        assert entry is not ENTRY and entry(this, *arrays, rows=rows) == 1
        np.testing.assert_allclose(out, (x * WEIGHTS) @ PATHS.T + want, rtol=0, atol=1e-14)
    x[0, 0] = -1.0
    entry, arrays = specials.of(ENTRY, (x, None, out))
    assert entry(this, *arrays, rows=rows) == 0 and np.isnan(out[0]).all() and np.isfinite(out[1:]).all()


def test_another_model_has_another_name_and_a_large_one_none():
    first, second = (Specials(5, model(w, PARENT).address.given) for w in (WEIGHTS, [1.0, 1e-9, -1.0, 0.25, 3.0]))
    arrays = (np.ones((2, 5)), None, np.empty((2, 5)))
    one, other = first.of(ENTRY, arrays)[0], second.of(ENTRY, arrays)[0]
    assert one.key != other.key
    assert first.of(ENTRY, arrays)[0] is one
    assert Specials(6, first.tables).of(ENTRY, arrays) == (ENTRY, arrays)


def test_a_variable_of_python_cannot_change_where_nobody_knows():
    def spoilt(model, row, work):
        total = loop_vars(0.0)
        for _ in if_(row.x[0] > 0.5):
            total.set(1.0)
        row.out[0] = total.get()

    entry = Entry(spoilt, MODEL, [Given("x", ("n",))], [Given("out", ("n",))], Space(lambda model, row: 1))
    from kfdyn.sweeps.compiler.driver import machine

    with pytest.raises(TypeError, match="a variable that Python holds"):
        Special(entry, model(WEIGHTS, PARENT).address.given, frozenset()).compiled(machine().lanes)
    with unrolled():  # and outside of code nothing has changed
        assert list(loop(3)) == [0, 1, 2]
