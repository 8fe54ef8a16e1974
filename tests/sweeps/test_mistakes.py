"""Mistakes of those who write a recursion: each has words that name the recursion and the cure, and spoils no other."""

import numpy as np
import pytest

from kfdyn.sweeps import carried, cases, down, either, local, loop, sweep, when, while_


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
    for _ in when(x[0] > 0.0):
        square = x[0] * x[0]
    out[0] = square


@sweep
def made_on_one_side(x, out):
    """One side of a branch cannot see the other."""
    for positive in either(x[0] > 0.0):
        if positive:
            square = x[0] * x[0]
        else:
            out[0] = square


@pytest.mark.parametrize("function", [sum_of_another_number, made_in_a_branch, made_on_one_side])
def test_what_a_body_made_is_not_known_outside(function):
    name = function.__wrapped__.__name__
    with pytest.raises(TypeError, match=rf"^{name}: what was computed in the body .* Let it be a local or a carried"):
        function(np.ones(3), np.empty(1))


@sweep
def broken_off(x, out):
    """The first negative number, by a break."""
    for i in loop(x.size):
        out[0] = x[i]
        for _ in when(x[i] < 0.0):
            break


@sweep
def returned_early(x, out):
    """The same by a return."""
    for i in down(x.size):
        for _ in when(x[i] < 0.0):
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
        for kind in cases(i, (0, 1, 2)):
            if kind == 1:
                break
            out[0] = x[i]


@sweep
def left_on_one_side(x, out):
    """The second side is never written."""
    for positive in either(x[0] > 0.0):
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
        for _ in when(x[at] < 0.0):
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
    for _ in when(wanted is not None):
        return 7
    state = carried(x[0])
    out[0] = state.get()
    return 0


def test_a_branch_that_python_takes_may_be_left():
    assert known_while_written(np.ones(1), np.empty(1), None) == 0
    from kfdyn.sweeps import Tag

    assert known_while_written(np.ones(1), np.empty(1), Tag(1)) == 7
