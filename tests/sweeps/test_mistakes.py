"""Mistakes of those who write a recursion: each has words that name the recursion and the cure, and spoils no other."""

import math

import numpy as np
import pytest

from kfdyn.sweeps import Tag, down, if_, if_else, local, loop, loop_vars, sweep, switch, while_


@sweep
def sum_of_another_number(x, out):
    """The sum is a new number in every pass, and nobody knows it behind the loop."""
    total = 0.0 * x[0]
    for i in loop(x.size):
        total = total + x[i]
    out[0] = total


@sweep
def made_in_a_branch(x, out):
    """There is no square where x is negative."""
    square = x[0]
    for _ in if_(x[0] > 0.0):
        square = x[0] * x[0]
    out[0] = square


@sweep
def made_on_one_side(x, out):
    """One side of a branch cannot see the other."""
    for positive in if_else(x[0] > 0.0):
        if positive:
            square = x[0] * x[0]
        else:
            out[0] = square


@pytest.mark.parametrize("function", [sum_of_another_number, made_in_a_branch, made_on_one_side])
def test_what_a_body_made_is_not_known_outside(function):
    name = function.__wrapped__.__name__
    with pytest.raises(TypeError, match=rf"^{name}: what was computed in the body .* Let it be a local or a loop_vars"):
        function(np.ones(3), np.empty(1))


@sweep
def broken_off(x, out):
    """The first negative number, by a break."""
    for i in loop(x.size):
        out[0] = x[i]
        for _ in if_(x[i] < 0.0):
            break


@sweep
def returned_early(x, out):
    """The same by a return."""
    for i in down(x.size):
        for _ in if_(x[i] < 0.0):
            return i
    return -1


@sweep
def left_while(x, out):
    """A loop without an end of its own."""
    at = local(0)
    for _ in while_(lambda at=at: at < x.size):
        at += 1
        break
    return at


@sweep
def left_in_a_case(x, out):
    """One of several ways is left."""
    for i in loop(x.size):
        for kind in switch(i, (0, 1, 2)):
            if kind == 1:
                break
            out[0] = x[i]


@sweep
def left_on_one_side(x, out):
    """The second side is never written."""
    for positive in if_else(x[0] > 0.0):
        if positive:
            return 1
    return 0


@pytest.mark.parametrize("function", [broken_off, returned_early, left_while, left_in_a_case, left_on_one_side])
def test_a_body_is_not_left_early(function):
    name = function.__wrapped__.__name__
    with pytest.raises(TypeError, match=rf"^{name}: a break or a return leaves the body .* Let a local remember"):
        function(np.ones(3), np.empty(1))


@sweep
def first_negative(x):
    """What was meant: the number of the first negative one, or −1."""
    at, found = local(0), local(-1)
    for _ in while_(lambda at=at: (at < x.size) & (found < 0)):
        for _ in if_(x[at] < 0.0):
            found.set(at)
        at += 1
    return found


def raised_in_a_body(x):
    """An error of the recursion's own."""
    for _ in loop(x.size):
        raise KeyError("mine")


def test_the_cure_works_also_after_a_mistake():
    """Even while somebody holds on to the error, and with it to the bodies that were never left."""
    kept = []
    for mistake in (broken_off, sum_of_another_number):
        with pytest.raises(TypeError) as error:
            mistake(np.ones(3), np.empty(1))
        kept.append(error)
    with pytest.raises(KeyError, match="mine") as error:  # which is not mistaken for another
        sweep(raised_in_a_body)(np.ones(3))
    for run in (first_negative, first_negative.plain):
        assert [run(np.array(x)) for x in ([1.0, 2.0], [1.0, -2.0, -3.0], [-1.0])] == [-1, 1, 0]
    del kept, error


@sweep
def known_while_written(x, out, wanted):
    """What Python knows while code is written it may leave, since nothing of that is written."""
    for _ in if_(wanted is not None):
        return 7
    state = loop_vars(x[0])
    out[0] = state.get()
    return 0


def test_a_branch_that_python_takes_may_be_left():
    assert known_while_written(np.ones(1), np.empty(1), None) == 0
    assert known_while_written(np.ones(1), np.empty(1), Tag(1)) == 7


@sweep
def first_changed(x, out):
    """Change the first number."""
    x[0] = 7.0


@sweep
def corner_changed(x, out):
    """The same of a matrix."""
    x[0, 0] = 7.0


def read_only(array):
    array.flags.writeable = False
    return array


@pytest.mark.parametrize("run", ["compiled", "plain"])
def test_what_is_read_only_is_not_changed(run):
    def call(function, *args):
        return (function if run == "compiled" else function.plain)(*args)

    frozen, out = bytes(24), np.empty(1)
    for function, x in (
        (first_changed, np.frombuffer(frozen)),
        (first_changed, read_only(np.zeros(3))),
        (corner_changed, read_only(np.zeros((2, 2)))),
    ):
        with pytest.raises(TypeError, match="x is read-only, and this function changes it: pass a copy"):
            call(function, x, out)
        assert not x.any()
    assert frozen == bytes(24)
    x = np.zeros(3)
    assert call(first_changed, x, read_only(out)) == 0  # which it does not change
    assert x[0] == 7.0


def test_code_that_was_written_for_another_array_does_not_change_what_is_read_only():
    @sweep(tags=1)
    def tagged(lanes, x):
        x[0] = 7.0

    x = np.zeros(3)
    tagged(Tag(1), x)
    with pytest.raises(TypeError, match="x is read-only"):
        tagged(Tag(1), read_only(np.zeros(3)))


def run_through(x, i, out):
    for y in x:
        out[0] = y


def last_of_all(x, i, out):
    out[0] = x[-1]


def counted(x, i, out):
    return len(x)


def root_of_math(x, i, out):
    out[0] = math.sqrt(x[0])


def root_of_numpy(x, i, out):
    out[0] = np.sqrt(x[0])


def root_of_all(x, i, out):
    out[0] = np.sqrt(x)[0]


def broken_power(x, i, out):
    out[0] = x[0] ** 0.5


def index_as_number(x, i, out):
    out[0] = i[0]


def number_as_index(x, i, out):
    out[0] = x[x[0]]


def number_among_indices(x, i, out):
    i[0] = 2.7


def number_returned(x, i, out):
    return 7.6


@pytest.mark.parametrize(
    ("function", "words", "plain"),
    [
        (run_through, r"x is run through by its indices: for i in loop\(x.size\)", True),
        (last_of_all, "-1 is no place in x: indices are counted from 0", "-1 is not in 3 numbers"),
        (counted, r"x has no len\(...\): x.size", True),
        (root_of_math, "instead of the functions of math and numpy use .* sqrt", False),
        (root_of_numpy, "NumPy's sqrt takes no number .* use .* sqrt", False),
        (root_of_all, "NumPy's sqrt takes no memory of a sweep: take number after number", True),
        (broken_power, r"a power is an integer .* sqrt\(x\) is", False),
        (index_as_number, r"an index stands where a number is wanted: to_float\(i\)", False),
        (number_as_index, "a number stands where an index is wanted: .* arrays of int64", "1.0 is not an index"),
        (number_among_indices, "2.7 is not an index", True),
        (number_returned, "7.6 is not an index", True),
    ],
)
def test_what_python_can_but_the_language_cannot(function, words, plain):
    """The words name the recursion; run plain, it is refused as well where Python could tell (False: it cannot)."""
    args = np.ones(3), np.zeros(2, np.int64), np.empty(1)
    with pytest.raises((TypeError, IndexError), match=rf"^{function.__name__}: .*{words}"):
        sweep(function)(*args)
    if plain:
        with pytest.raises((TypeError, IndexError), match=words if plain is True else plain):
            sweep(function).plain(*args)


@sweep
def powers(x, i, out):
    """What Python writes as an operator works: |x|, powers, NumPy's numbers on the left."""
    out[0] = abs(x[0]) + np.float64(2.0) * x[1] - np.float64(1.0) / x[2]
    out[1], out[2], out[3] = x[0] ** 3, x[0] ** -2, x[0] ** 0
    return abs(i)


def test_operators_that_work():
    x, out = np.array([-1.5, 2.0, 4.0]), np.empty(4)
    for run in (powers, powers.plain):
        assert run(x, -3, out) == 3
        assert out.tolist() == [1.5 + 4.0 - 0.25, -3.375, pytest.approx(1 / 2.25, rel=1e-15), 1.0]


@pytest.mark.parametrize(
    ("x", "words"),
    [
        (np.ones(3, np.float32), r"x is an array of float32 with 1 axes; .* x.astype\(np.float64\)"),
        (np.ones(3, np.int32), r"x is an array of int32 with 1 axes; .* x.astype\(np.int64\)"),
        (np.ones(3, np.uint8), r"x is an array of uint8 with 1 axes; .* x.astype\(np.int64\)"),
        (np.ones((1, 1, 3)), "x is an array of float64 with 3 axes; .* two axes or fewer"),
        ([1.0], "x is of the class list, nothing that a sweep takes"),
        (np.ones(6)[::2], "x,? is not contiguous.* np.require"),
        (np.ones(3).astype(">f8"), "x,? is not contiguous.* byte order"),
    ],
)
def test_what_is_no_argument(x, words):
    for run in (first_changed, first_changed.plain):
        with pytest.raises(TypeError, match=words):
            run(x, np.empty(1))


@sweep
def indexed(x, at, out):
    for i in loop(at.size):
        out[i] = x[at[i]]


@pytest.mark.parametrize("kind", [np.int64, np.int_, np.intp, np.longlong])
def test_every_integer_of_64_bits_is_an_index(kind):
    """C may have two such integers, which NumPy keeps apart: `long` and `long long`."""
    at, x = np.array([2, 0, 1], kind), np.array([1.5, 2.5, 3.5])
    if at.itemsize != 8:
        pytest.skip("this integer has other than 64 bits here")
    for run in (indexed, indexed.plain):
        out = np.empty(3)
        run(x, at, out)
        assert out.tolist() == [3.5, 1.5, 2.5]
