"""A recursion as a function to call: compiled for the arguments it meets, or run as it stands."""

import os
from functools import wraps

import numpy as np

from kfdyn.sweeps.memory import Checked, CheckedMatrix
from kfdyn.sweeps.values import FAST, unboxed


class Checks:
    """Whether every index is to be checked: KFDYN_CHECK, as it was when the package was first used."""

    on = os.environ.get("KFDYN_CHECK", "") not in ("", "0")


class Tag(int):
    """A size or a choice that is known when code is written; each has its own code."""


def sweep(function=None, *, flags=FAST, vectorise=True, release=-1):
    """Let a function that is written in the language of sweeps be called with arrays.

    Arrays are contiguous, of float64, int64 or booleans, flat or matrices; ints and floats are passed on; None and
    :class:`Tag` are known while code is written, and named tuples of these. The code of a set of kinds is written when
    first asked for. The result is what the function returns, an integer, and arrays are changed in place.

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
        return lambda function: sweep(function, flags=flags, vectorise=vectorise, release=release)
    known = {}

    @wraps(function)
    def call(*args):
        if Checks.on:
            return plain(*args)
        kinds = tuple([_kind(x) for x in args])
        entry = known.get(kinds)
        if entry is None:
            entry = known[kinds] = _compile(function, args, kinds, flags, vectorise, release)
        result = entry(*[x for x, kind in zip(args, kinds) if type(kind) is str])
        if result <= -1000:
            raise TypeError(f"{function.__name__}: argument {-1000 - result} is not what it was, or not contiguous")
        return result

    def plain(*args):
        result = function(*[_plain(x) for x in args])
        return 0 if result is None else int(unboxed(result))

    call.plain = plain
    call.written = lambda *args: _text(function, args, flags)
    return call


def _kind(x):
    """What code depends on of an argument: a word for what is passed, a tuple for what is known."""
    if x is None:
        return (None,)
    kind = type(x)
    if kind is np.ndarray:
        if x.dtype.char not in "dl?" or x.ndim > 2:
            raise TypeError(f"an array of {x.dtype} with {x.ndim} axes")
        return f"{'f' if x.dtype.char == 'd' else 'i' if x.dtype.char == 'l' else 'b'}{x.ndim}{_W[x.flags.writeable]}"
    if kind is int or isinstance(x, np.integer):
        return "int"
    if kind is float or isinstance(x, np.floating):
        return "float"
    if kind is Tag:
        return (int(x),)
    if isinstance(x, tuple):
        inner = tuple(_kind(y) for y in x)
        if any(isinstance(k, str) for k in inner):
            raise TypeError("a tuple of what is not known when code is written")
        return inner
    raise TypeError(f"{kind.__name__} is nothing that a sweep takes")


_W = {True: "w", False: ""}


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
        if kind == "int":
            made.append(Whole())
        elif kind == "float":
            made.append(Real())
        elif isinstance(kind, str):
            made.append(Array(kind[0], int(kind[1]), kind.endswith("w")))
    tags = [None if isinstance(kind, str) else (_known(x),) for x, kind in zip(args, kinds)]

    def spread(values):
        left = iter(values)
        return [next(left) if tag is None else tag[0] for tag in tags]

    return made, spread


def _compile(function, args, kinds, flags, vectorise, release):
    from kfdyn.sweeps.driver import compiled

    made, spread = _arguments(args, kinds)
    return compiled(
        function.__name__,
        lambda *values: function(*spread(values)),
        made,
        module=function.__module__,
        key=("sweep", function.__qualname__, kinds),
        flags=flags,
        release=release,
        vectorise=vectorise,
    )


def _text(function, args, flags):
    from kfdyn.sweeps.driver import written

    made, spread = _arguments(args, tuple(_kind(x) for x in args))
    return written(function.__name__, lambda *values: function(*spread(values)), made, flags)


def _plain(x):
    if isinstance(x, np.ndarray):
        flat = Checked(x.reshape(-1))
        if x.size and not np.shares_memory(flat.numbers, x):
            raise TypeError("an array that is not contiguous")
        return CheckedMatrix(flat, x.shape) if x.ndim == 2 else flat
    return _known(x)
