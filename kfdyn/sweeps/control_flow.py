"""Loops and branches of compiled code; the same where Python itself computes.

All are generators, since a ``for`` can run its body any number of times, none included:

- ``for i in loop(n)`` is a loop; ``for i in down(n)`` the same backwards;
- ``for _ in if_(c)`` does its body only where the condition holds;
- ``for yes in if_else(c)`` with ``if yes: ... else: ...`` does one of two;
- ``state = loop_vars(P, z)`` are variables that change in loops: ``P, z = state.get()``, ``state.set(P, z)``.

Where code is written, a body is run once, to write it, and ``if_else`` runs both. Where Python's own numbers or
symbols are, it is run as often as it says; and so it is where straight-line code is asked for (``unrolled``) and the
condition is known. So nothing may leave a body early: no ``break``, no ``return``.
"""

from kfdyn.sweeps.trace_context import tracing
from kfdyn.sweeps.values import BIT, INT, Value, ir_of, now, unboxed
from kfdyn.sweeps.variables import Box, local


def loop(stop, start=0, step=1, until=None):
    """Loop over i = start, start + step, … < stop; end early once ``until`` is not negative.

    Of an unknown ``stop`` a loop is written; of one that Python knows, too, unless no code is being written or
    straight-line code is asked for.
    """
    known = tracing.unrolled and until is None and not any(isinstance(x, Value) for x in (stop, start, step))
    if tracing.builder is None or known:
        i = unboxed(start)
        while i < unboxed(stop) and (until is None or unboxed(until) < 0):
            yield i
            i += unboxed(step)
        return
    i = local(ir_of(start, INT))
    for _ in while_(lambda: i < stop if until is None else (i < stop) & (until < 0)):
        here = now(i)
        yield here
        i.set(here + step)


def down(stop, start=0):
    """Loop over the same i in the opposite order."""
    for i in loop(stop - start):
        yield stop - 1 - i


def while_(condition):
    """Loop while ``condition()`` holds; what it depends on is a :func:`local`."""
    if tracing.builder is None or (tracing.unrolled and not isinstance(condition(), Value)):
        while unboxed(condition()):
            yield
        return
    build = tracing.builder
    head, body, after = build.blocks(3)
    build.branch(head)
    build.block = head
    build.fork(ir_of(condition(), BIT), body, after)
    with build.body(body, head, after):
        yield


def if_(condition, likely=None):
    """Run the body once if the condition holds."""
    condition = unboxed(condition)
    if not isinstance(condition, Value):
        if condition:
            yield
        return
    build = tracing.builder
    body, after = build.blocks(2)
    build.fork(condition.ir, body, after, likely)
    with build.body(body, after):
        yield


def if_else(condition):
    """Yield True if the condition holds, else False; both, in turn, while code is written."""
    condition = unboxed(condition)
    if not isinstance(condition, Value):
        yield bool(condition)
        return
    build = tracing.builder
    yes, no, after = build.blocks(3)
    build.fork(condition.ir, yes, no)
    with build.body(yes, after):
        yield True
    with build.body(no, after):
        yield False


def switch(value, known):
    """Branch on which of the known integers a value is; the last one stands for all the rest."""
    value = unboxed(value)
    if not isinstance(value, Value):
        yield value if value in known[:-1] else known[-1]
        return
    first, *rest = known
    if not rest:
        yield first
        return
    for this in if_else(value == first):
        if this:
            yield first
        else:
            yield from switch(value, rest)


def both(first, second, *args):
    """Return ``first and second(*args)``; the second is computed only if the first holds."""
    if not isinstance(first, Value):
        return first and second(*args)
    result = local(first)
    for _ in if_(result):
        result.set(second(*args))
    return result


class loop_vars:
    """Variables that change in loops and branches, of any structure: numbers, vectors, inertias, tuples.

    A structure is a tuple, or has ``numbers()`` and ``like(numbers)`` (see :mod:`algebra`).
    """

    def __init__(self, *values):
        self._like = values
        self._places = [(Box if tracing.unrolled else local)(x) for x in flattened(values)]

    def get(self):
        """Return the current values; a single one without a tuple."""
        numbers = iter([now(place) for place in self._places])
        values = tuple(rebuilt(like, numbers) for like in self._like)
        return values if len(values) > 1 else values[0]

    def set(self, *values):
        """Set new values."""
        new = flattened(values)
        assert len(new) == len(self._places), (len(new), len(self._places))
        for place, value in zip(self._places, [now(x) for x in new]):  # all are read before one is written
            place.set(value)


def flattened(value):
    """Return the numbers of a structure in one list."""
    if isinstance(value, tuple | list):
        return [x for part in value for x in flattened(part)]
    if hasattr(value, "numbers"):
        return flattened(value.numbers())
    return [] if value is None else [value]


def rebuilt(like, numbers):
    """Rebuild a structure like the given one from an iterator of numbers."""
    if isinstance(like, tuple | list):
        parts = [rebuilt(part, numbers) for part in like]
        return type(like)(*parts) if hasattr(like, "_fields") else type(like)(parts)
    if hasattr(like, "numbers"):
        return like.like([rebuilt(part, numbers) for part in like.numbers()])
    return None if like is None else next(numbers)


def size(tag, runtime):
    """Return the size that a tag knows, else the run-time one."""
    return runtime if tag is None else tag
