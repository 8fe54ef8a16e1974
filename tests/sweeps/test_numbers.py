"""Numbers, control and memory in every instantiation: compiled doubles and lanes, Python's floats, symbols."""

import math
from typing import Any, NamedTuple

import mpmath
import numpy as np
import pytest

from kfdyn.sweeps import (
    FAST,
    IN_ORDER,
    Checks,
    Tag,
    all_lanes,
    any_lanes,
    both,
    down,
    if_,
    if_else,
    local,
    loop,
    loop_vars,
    maximum,
    minimum,
    sincos,
    sqrt,
    sweep,
    switch,
    to_float,
    to_int,
    where,
    while_,
)
from kfdyn.sweeps.algebra import Vec3
from kfdyn.sweeps.memory import Checked, Column, passes


@sweep
def visits(n, visited):
    """Every kind of loop and branch; what Python's range would visit, in this order."""
    at = local(0)

    def visit(i):
        visited[at] = i
        at.set(at + 1)

    for i in loop(n, 2):
        visit(i)
    for i in loop(n, 1, step=3):
        visit(i)
    for i in down(n, 4):
        visit(i)
    for i in loop(0):
        visit(i)
    grows = local(2)
    for i in loop(grows):
        visit(i)
        for _ in if_(i == 0):
            grows += 3
    failed = local(-1)
    for i in loop(n, until=failed):
        visit(i)
        for _ in if_(i == 3):
            failed.set(i)
    left = local(3)
    for _ in while_(lambda left=left: left > 0):
        visit(left * 10)
        left -= 1
    for i in loop(4):
        for kind in switch(i, (0, 2, 9)):
            visit(100 * kind + i)
        for yes in if_else(i < 2):
            visit(where(i == 1, 7, 8) if yes else -1)
    visit(to_int(both(n > 3, lambda: n > 100)))
    return at


def expected_visits(n):
    order = [*range(2, n), *range(1, n, 3), *reversed(range(4, n)), *range(5), *range(4), 30, 20, 10]
    for i in range(4):
        order += [100 * (i if i in (0, 2) else 9) + i, (7 if i == 1 else 8) if i < 2 else -1]
    return [*order, 0]


@pytest.mark.parametrize("run", [visits, visits.plain], ids=["compiled", "plain"])
def test_loops_and_branches_visit_what_python_does(run):
    visited = np.full(80, -9)
    assert run(7, visited) == len(expected_visits(7))
    assert visited[: len(expected_visits(7))].tolist() == expected_visits(7)
    assert (visited[len(expected_visits(7)) :] == -9).all()


def _arithmetic(x, y):
    s, c = sincos(x)
    vector = Vec3(x, y, 2.0).cross(Vec3(1.0, x, y)) * 0.5
    return [
        x + y, 1.0 + x, x - y, 1.0 - x, x * y, -x, x / y, 1.0 / y, sqrt(y), abs(x), minimum(x, y), maximum(x, y),
        s, c, where(x < y, x, 2.0), vector.dot(Vec3(x, x, x)), x * 0.0 + 1.0 * y + 0.0, -1.0 * x,
    ]  # fmt: skip


@sweep
def table(x, y, out, lanes):
    """_arithmetic of rows of x and y, in lanes."""
    for start, step in passes(lanes, 0, x.size):
        xs, ys = (Column(a, start, step, lanes)[0] for a in (x, y))
        column = Column(out, start * 18, step * 18, lanes)
        for i, value in enumerate(_arithmetic(xs, ys)):
            column[i] = value


@sweep
def lanes_that_agree(x, out):
    """Of four lanes: whether all, and whether some, are positive."""
    number = Column(x, 0, 1, 4)[0]
    out[0], out[1] = to_int(all_lanes(number > 0.0)), to_int(any_lanes(number > 0.0))


@pytest.mark.parametrize("signs", [(1, 1, 1, 1), (1, -1, 1, 1), (-1, -1, -1, -1), (math.nan, 1, 1, 1)])
def test_conditions_of_all_lanes(signs):
    x, out = np.array(signs, float), np.empty(2, np.int64)
    lanes_that_agree(x, out)
    assert out.tolist() == [(x > 0).all(), (x > 0).any()]


@pytest.mark.parametrize("size", [1, 2, 3, 4, 7, 8, 9, 21])
@pytest.mark.parametrize("lanes", [1, 4, 8])
def test_arithmetic_is_numpys(lanes, size):
    rng = np.random.default_rng(size)
    x, y = rng.normal(size=size) * 3, rng.uniform(0.1, 4, size)
    x[::3] *= 1e7  # angles that the C library reduces
    out = np.full(size * 18, np.nan)
    table(x, y, out, Tag(lanes))
    for b in range(size):
        want = np.array(_arithmetic(float(x[b]), float(y[b])))
        scale = np.maximum(1, abs(want))
        assert (abs(out[18 * b : 18 * b + 18] - want) <= 4e-15 * max(1, abs(x[b])) ** 2 * scale).all()
    plain = np.full_like(out, np.nan)
    table.plain(x, y, plain, Tag(1))
    np.testing.assert_array_equal(plain, [z for a, b in zip(x, y) for z in _arithmetic(float(a), float(b))])


def test_angles_to_the_last_digits():
    x = np.concatenate([np.linspace(-20, 20, 401), np.linspace(-9e4, 9e4, 301), [0.0, np.pi, 1e300, -1e17, 1e-300]])
    out = np.empty(len(x) * 18)
    table(x, np.ones_like(x), out, Tag(8))
    with mpmath.workdps(400):
        sines = np.array([float(mpmath.sin(mpmath.mpf(float(z)))) for z in x])
        cosines = np.array([float(mpmath.cos(mpmath.mpf(float(z)))) for z in x])
    got = out.reshape(-1, 18)
    assert abs(got[:, 12] - sines).max() < 3e-16
    assert abs(got[:, 13] - cosines).max() < 3e-16


def test_other_numbers():
    sympy = pytest.importorskip("sympy")
    x, y = sympy.symbols("x y", positive=True)
    made = _arithmetic_of_symbols(x, y)
    assert sympy.simplify(made[0] ** 2 - y) == 0
    assert sympy.simplify(made[1] ** 2 + made[2] ** 2 - 1) == 0
    with mpmath.workdps(50):
        sine = sincos(mpmath.mpf(1))[0]
        assert abs(sine - mpmath.sin(1)) == 0
        assert sqrt(mpmath.mpf(2)) == mpmath.sqrt(2)
    assert sincos(np.longdouble(1))[0] == np.sin(np.longdouble(1))


def _arithmetic_of_symbols(x, y):
    s, c = sincos(x)
    state = loop_vars(Vec3(x, y, 0), s)
    for _ in if_(True):
        vector, z = state.get()
        state.set(vector * 2, z + 0)
    return [sqrt(y), s, c, state.get()[0].x]


@sweep(flags=IN_ORDER)
def fibonacci(n, out):
    """Two numbers and a vector carried through a loop, the vector turned in it."""
    state = loop_vars(1.0, (0.0, Vec3(1.0, 2.0, 3.0)))
    for _ in loop(n):
        a, (b, v) = state.get()
        state.set(a + b, (a, Vec3(v.y, v.z, v.x)))
    a, (b, v) = state.get()
    for i, x in enumerate([a, b, *v]):
        out[i] = x


@pytest.mark.parametrize("run", [fibonacci, fibonacci.plain], ids=["compiled", "plain"])
def test_what_a_loop_carries(run):
    out = np.empty(5)
    run(10, out)
    np.testing.assert_array_equal(out, [89, 55, 2, 3, 1])


@sweep(flags=FAST)
def beyond(x, i):
    """Read where one must not."""
    x[0] = x[i] + to_float(i)


def test_an_index_outside_is_caught(monkeypatch):
    with pytest.raises(IndexError, match="5 is not in 3"):
        beyond.plain(np.zeros(3), 5)
    with pytest.raises(IndexError, match="-1 is not in 3"):
        beyond.plain(np.zeros(3), -1)
    monkeypatch.setattr(Checks, "on", True)
    with pytest.raises(IndexError):
        beyond(np.zeros(3), 5)
    with pytest.raises(IndexError):
        Checked([1.0, 2.0]).part(1, 2)
    with pytest.raises(IndexError):
        Checked([1.0, 2.0]).matrix(0, 1, 2)[1, 0]


def test_what_does_not_fit_is_refused():
    out = np.empty(5)
    with pytest.raises(TypeError, match="argument 1"):
        fibonacci(3, np.empty(10)[::2])
    with pytest.raises(TypeError, match="float32"):
        fibonacci(3, np.empty(5, np.float32))
    with pytest.raises(TypeError, match="nothing that a sweep takes"):
        fibonacci("3", out)
    odd = np.frombuffer(bytearray(8 * 5 + 1), np.uint8)[1:].view(np.float64)
    if odd.ctypes.data % 8:
        with pytest.raises(TypeError, match="argument 1"):
            fibonacci(3, odd)
    with pytest.raises(TypeError, match="not known before the code runs"):
        _branches_on_a_value(out)


@sweep
def _branches_on_a_value(x):
    if x[0] > 0.0:
        x[0] = 1.0


def test_nan_is_as_in_python():
    @sweep
    def compare(x, out):
        a, b = x[0], x[1]
        for i, truth in enumerate([a < b, a <= b, a > b, a >= b, a == b, a != b]):
            out[i] = to_int(truth)

    for a in (math.nan, 1.0, 2.0):
        for b in (math.nan, 1.0):
            out = np.empty(6, np.int64)
            compare(np.array([a, b]), out)
            assert out.tolist() == [a < b, a <= b, a > b, a >= b, a == b, a != b]


class Pair(NamedTuple):
    x: Any
    factor: Any


class Three(NamedTuple):
    x: Any
    factor: Any
    more: Any


@sweep(tags=1)
def scaled(lanes, pair, out):
    """out = factor x."""
    for i in loop(out.size):
        out[i] = pair.factor * pair.x[i]


@pytest.mark.parametrize("run", [scaled, scaled.plain], ids=["compiled", "plain"])
def test_a_named_tuple_goes_in_as_it_is(run):
    x, out = np.arange(3.0), np.empty(3)
    for factor in (2.0, 3.0):
        assert run(Tag(1), Pair(x, factor), out) == 0
        assert out.tolist() == (factor * x).tolist()


def test_what_is_no_such_tuple_is_not_read():
    x, out = np.arange(3.0), np.zeros(3)
    scaled(Tag(1), Pair(x, 2.0), out)  # whose code is asked first from now on
    out[:] = 0.0
    for wrong in ([x, 2.0], "pair", 7, 1.5, None, x, Pair(x[::2], 2.0), Pair(x.astype(">f8"), 2.0), Pair(2.0, x)):
        with pytest.raises((TypeError, AttributeError)):
            scaled(Tag(1), wrong, out)
    assert not out.any()
    assert scaled(Tag(1), Three(x, 2.0, 1), out) == 0  # which has code of its own
    assert out.tolist() == [0.0, 2.0, 4.0]


@sweep
def limits(x, out, lanes):
    """min and max of pairs that stand side by side."""
    for start, step in passes(lanes, 0, x.size // 2):
        pair, column = Column(x, 2 * start, 2 * step, lanes), Column(out, 2 * start, 2 * step, lanes)
        column[0], column[1] = minimum(pair[0], pair[1]), maximum(pair[0], pair[1])


@pytest.mark.parametrize("lanes", [1, 4])
def test_the_smaller_and_the_larger(lanes):
    """As Python's min and max: of a pair with NaN, and of equal numbers, both are the first."""
    values = [-1.5, 0.0, -0.0, 2.0, math.inf, -math.inf, math.nan]
    pairs = [(a, b) for a in values for b in values]
    x, out = np.array(pairs).reshape(-1), np.empty(2 * len(pairs))
    want = np.array([(min(a, b), max(a, b)) for a, b in pairs]).reshape(-1)
    limits(x, out, Tag(lanes))
    np.testing.assert_array_equal(out, want)
    np.testing.assert_array_equal(np.signbit(out), np.signbit(want))
    limits.plain(x, out, Tag(1))
    np.testing.assert_array_equal(out, want)
