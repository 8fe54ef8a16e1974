"""A recursion as a function to call: compiled for the arguments it meets, or run as it stands."""

import os
from functools import wraps

import numpy as np

from kfdyn.sweeps.memory import Checked, Matrix
from kfdyn.sweeps.records import Packed
from kfdyn.sweeps.values import FAST, unboxed

#: What code returns for arguments that it does not take: this less the argument's number, and smaller ones.
UNFIT = -1000


class Checks:
    """Whether every index is to be checked: KFDYN_CHECK, as it was when the package was first used."""

    on = os.environ.get("KFDYN_CHECK", "").strip().lower() not in ("", "0", "false", "no", "off")


class Tag(int):
    """A size or a choice that is known when code is written; each has its own code."""


def sweep(function=None, *, flags=FAST, tags=None):
    """Let a function that is written in the language of sweeps be called with arrays.

    Arrays are contiguous, of float64, int64 or booleans, flat or matrices; ints and floats are passed on, as are
    addresses of tables (:class:`~kfdyn.sweeps.records.Packed`) and named tuples of all these, which the function sees
    as such. None and :class:`Tag` are known while code is written, and tuples of them. The code of a set of kinds is
    written when first asked for. The result is what the function returns, an integer, and arrays are changed in place.
    ``tags``: so many arguments, the first, are known while code is written, and no other; then a call finds its code by
    them alone, and the code itself looks whether the others are what it takes.

    ``.plain(...)`` runs the function on the same arguments as it stands, every index checked: the debugger's way, and
    what every call does where ``KFDYN_CHECK=1``.

    Examples
    --------
    >>> import numpy as np
    >>> from kfdyn.sweeps import loop, local, sweep
    >>> @sweep
    ... def running_sum(x, out):
    ...     total = local(0.0)
    ...     for i in loop(x.size):
    ...         total += x[i]
    ...         out[i] = total
    >>> x, out = np.arange(4.0), np.empty(4)
    >>> running_sum(x, out), out
    (0, array([0., 1., 3., 6.]))
    """
    if function is None:
        return lambda function: sweep(function, flags=flags, tags=tags)
    known, quick = {}, {}

    @wraps(function)
    def call(*args):
        if Checks.on:
            return plain(*args)
        if tags is not None:
            enter = quick.get(args[:tags])
            if enter is not None:
                result = enter(*args[tags:])
                if result > UNFIT:
                    return result
        kinds = tuple([_kind(x) for x in args])
        enter = known.get(kinds)
        if enter is None:
            enter = known[kinds] = _compile(function, args, kinds, flags)
        if tags is not None:
            quick[args[:tags]] = enter
        result = enter(*[x for x, kind in zip(args, kinds) if passed(kind)])
        if result <= UNFIT:
            raise TypeError(f"{function.__name__}: argument {UNFIT - result} is not what it was, or not contiguous")
        return result

    def plain(*args):
        result = function(*[_plain(x) for x in args])
        return 0 if result is None else int(unboxed(result))

    call.plain = plain
    call.written = lambda *args: _text(function, args, flags)
    return call


class Group(tuple):
    """Kinds of a named tuple whose parts are passed."""


def passed(kind):
    """Whether an argument of this kind is passed, and not known."""
    return type(kind) is not tuple


def _kind(x):
    """What code depends on of an argument: a word for what is passed, a tuple for what is known."""
    if x is None:
        return (None,)
    kind = type(x)
    if kind is np.ndarray:
        known = _ARRAYS.get((x.dtype.char, x.ndim, x.flags.writeable))
        if known is None:
            raise TypeError(f"an array of {x.dtype} with {x.ndim} axes")
        return known
    if kind is int or kind is Packed or isinstance(x, np.integer):
        return "int"
    if kind is float or isinstance(x, np.floating):
        return "float"
    if kind is Tag:
        return (int(x),)
    if isinstance(x, tuple):
        hit = _TUPLES.get(id(x))
        if hit is not None and hit[0] is x:
            return hit[1]
        inner = tuple(_kind(y) for y in x)
        if any(map(passed, inner)):
            if not all(map(passed, inner)) or any(isinstance(k, Group) for k in inner) or not hasattr(x, "_fields"):
                raise TypeError("a tuple of what is not known when code is written")
            return Group(inner)
        if len(_TUPLES) < 256:
            _TUPLES[id(x)] = x, inner
        return inner
    raise TypeError(f"{kind.__name__} is nothing that a sweep takes")


_TUPLES: dict[int, tuple[tuple, tuple]] = {}  # kinds of tuples that were seen: they are kept, so each has its own id
_ARRAYS = {
    (letter, axes, bool(w)): f"{kind}{axes}{w}"
    for letter, kind in zip("dl?", "fib")
    for axes in (0, 1, 2)
    for w in ("", "w")
}


def _known(x):
    """A tag as the function sees it."""
    if isinstance(x, Tag):
        return int(x)
    if isinstance(x, tuple):
        parts = [_known(y) for y in x]
        return type(x)(*parts) if hasattr(x, "_fields") else tuple(parts)
    return x


def _arguments(args, kinds):
    from kfdyn.sweeps.wrapper import Array, Real, Whole

    made = []
    for kind in kinds:
        for one in kind if isinstance(kind, Group) else (kind,) if passed(kind) else ():
            if one == "int":
                made.append(Whole())
            elif one == "float":
                made.append(Real())
            else:
                made.append(Array(one[0], int(one[1]), one.endswith("w")))

    def spread(values):
        left = iter(values)
        return [
            type(x)(*(next(left) for _ in kind))
            if isinstance(kind, Group)
            else next(left)
            if passed(kind)
            else _known(x)
            for x, kind in zip(args, kinds)
        ]

    return made, spread


def _compile(function, args, kinds, flags):
    from kfdyn.sweeps.driver import compiled

    made, spread = _arguments(args, kinds)
    enter = compiled(
        function.__name__,
        lambda *values: function(*spread(values)),
        made,
        module=function.__module__,
        key=("sweep", function.__qualname__, kinds),
        flags=flags,
        vectorise=True,
    )
    given = [kind for kind in kinds if passed(kind)]
    if not any(isinstance(kind, Group) for kind in given):
        return enter
    names = ", ".join(f"x{i}" for i in range(len(given)))
    spread_out = ", ".join(f"*x{i}" if isinstance(kind, Group) else f"x{i}" for i, kind in enumerate(given))
    return eval(f"lambda {names}: enter({spread_out})", {"enter": enter})


def _text(function, args, flags):
    from kfdyn.sweeps.driver import written

    made, spread = _arguments(args, tuple(_kind(x) for x in args))
    return written(function.__name__, lambda *values: function(*spread(values)), made, flags)


def _plain(x):
    if isinstance(x, np.ndarray):
        flat = Checked(x.reshape(-1))
        if x.size and not np.shares_memory(flat.numbers, x):
            raise TypeError("an array that is not contiguous")
        return Matrix(flat, x.shape) if x.ndim == 2 else flat
    if isinstance(x, tuple) and isinstance(_kind(x), Group):
        return type(x)(*map(_plain, x))
    return _known(x)
