"""What compiled code does again and again, or only sometimes; and the same where Python itself computes.

All are generators, since a ``for`` can run its body any number of times, none included:

- ``for i in loop(n)`` is a loop; ``for i in down(n)`` the same backwards;
- ``for _ in when(c)`` does its body only where the condition holds;
- ``for yes in either(c)`` with ``if yes: ... else: ...`` does one of two;
- ``state = carried(P, z)`` are variables that change in loops: ``P, z = state.get()``, ``state.set(P, z)``.

Where code is written, a body is run once, to write it, and ``either`` runs both. Where Python's own numbers or
symbols are, it is run as often as it says; and so it is where straight-line code is asked for (``unrolled``) and the
condition is known. So nothing may leave a body early: no ``break``, no ``return``.
"""

from kfdyn.sweeps.values import BIT, INT, Box, Place, Value, branch, ir_of, local, unboxed


def loop(stop, start=0, step=1, until=None):
    """Over i = start, start + step, … < stop, ending early once ``until`` is not negative.

    Of an unknown ``stop`` a loop is written; of one that Python knows, too, unless no code is being written or
    straight-line code is asked for.
    """
    known = Place.unrolled and until is None and not any(isinstance(x, Value) for x in (stop, start, step))
    if Place.builder is None or known:
        i = unboxed(start)
        while i < unboxed(stop) and (until is None or unboxed(until) < 0):
            yield i
            i += unboxed(step)
        return
    build = Place.builder
    first, before = build.settled(ir_of(start, INT)), build.basic_block
    head, body, after = (build.append_basic_block() for _ in range(3))
    build.branch(head)
    build.position_at_end(head)
    i = build.phi(INT)
    i.add_incoming(first, before)
    on = Value(i) < stop
    build.cbranch((on if until is None else on & (until < 0)).ir, body, after)
    build.position_at_end(body)
    with build.scope():
        with branch():
            yield Value(i)
        i.add_incoming(build.add(i, ir_of(step, INT)), build.basic_block)
    build.branch(head)
    build.position_at_end(after)


def down(stop, start=0):
    """Over the same i in the opposite order."""
    for i in loop(stop - start):
        yield stop - 1 - i


def span(stop):
    """Over i = 0, 1, … < stop, written out one after the other where ``stop`` is known."""
    return range(stop) if isinstance(stop, int) else loop(stop)


def while_(condition):
    """Again and again while ``condition()`` holds; what it depends on is a :func:`local`."""
    if Place.builder is None or (Place.unrolled and not isinstance(condition(), Value)):
        while unboxed(condition()):
            yield
        return
    build = Place.builder
    head, body, after = (build.append_basic_block() for _ in range(3))
    build.branch(head)
    build.position_at_end(head)
    build.cbranch(ir_of(condition(), BIT), body, after)
    build.position_at_end(body)
    with build.scope(), branch():
        yield
    build.branch(head)
    build.position_at_end(after)


def when(condition, likely=None):
    """Once where the condition holds, else not at all."""
    condition = unboxed(condition)
    if not isinstance(condition, Value):
        if condition:
            yield
        return
    with Place.builder.if_then(condition.ir, likely=likely), branch():
        yield


def either(condition):
    """True where the condition holds, else False; where that is not known yet, True and then False."""
    condition = unboxed(condition)
    if not isinstance(condition, Value):
        yield bool(condition)
        return
    with Place.builder.if_else(ir_of(condition, BIT)) as (yes, no):
        with yes, branch():
            yield True
        with no, branch():
            yield False


def cases(value, known):
    """Which of the known integers a value is: a branch for each of them, the last one for all the rest."""
    value = unboxed(value)
    if not isinstance(value, Value):
        yield value if value in known[:-1] else known[-1]
        return
    first, *rest = known
    if not rest:
        yield first
        return
    with Place.builder.if_else((value == first).ir) as (yes, no):
        with yes, branch():
            yield first
        with no, branch():
            yield from cases(value, rest)


def both(first, second, *args):
    """``first and second(*args)``, where the second is computed only if the first holds."""
    if not isinstance(first, Value):
        return first and second(*args)
    result = local(Value(ir_of(first, BIT)))
    for _ in when(result):
        result.set(second(*args))
    return result


class carried:
    """Variables of any structure that loops and branches change: numbers, vectors, inertias, tuples of them.

    A structure is a tuple, or has ``numbers()`` and ``like(numbers)`` (see :mod:`algebra`).
    """

    def __init__(self, *values):
        self._like = values
        self._places = [(Box if Place.unrolled else local)(x) for x in flattened(values)]

    def get(self):
        """The values now; one alone is not in a tuple."""
        now = iter([Value(place.ir) if isinstance(place, Value) else place.value for place in self._places])
        values = tuple(rebuilt(like, now) for like in self._like)
        return values if len(values) > 1 else values[0]

    def set(self, *values):
        """Give them other values."""
        new = flattened(values)
        assert len(new) == len(self._places), (len(new), len(self._places))
        new = [Value(x.ir) if isinstance(x, Value) else unboxed(x) for x in new]  # all are read before one is written
        for place, value in zip(self._places, new):
            place.set(value)


def flattened(value):
    """The numbers of a structure, one after the other."""
    if isinstance(value, tuple | list):
        return [x for part in value for x in flattened(part)]
    if hasattr(value, "numbers"):
        return flattened(value.numbers())
    return [] if value is None else [value]


def rebuilt(like, numbers):
    """A structure like the given one, of the next numbers of an iterator."""
    if isinstance(like, tuple | list):
        parts = [rebuilt(part, numbers) for part in like]
        return type(like)(*parts) if hasattr(like, "_fields") else type(like)(parts)
    if hasattr(like, "numbers"):
        return like.like([rebuilt(part, numbers) for part in like.numbers()])
    return None if like is None else next(numbers)


def size(tag, runtime):
    """The size that a tag knows, or else the one given."""
    return runtime if tag is None else tag
