"""Make a recursion a function to call: compiled for its arguments, or run as it stands."""

import os
from functools import wraps

import numpy as np

from kfdyn.sweeps.compiler.cpython_abi import LETTERS
from kfdyn.sweeps.compiler.wrapper import UNFIT, Array, Group, Real, Whole
from kfdyn.sweeps.memory import Checked, Matrix, Memory
from kfdyn.sweeps.records import Packed
from kfdyn.sweeps.trace_context import FAST
from kfdyn.sweeps.values import unboxed


class Checks:
    """Holds whether every index is checked: KFDYN_CHECK when the package was first used."""

    on = os.environ.get("KFDYN_CHECK", "").strip().lower() not in ("", "0", "false", "no", "off")


class Tag(int):
    """A size or a choice known when code is written; each value has its own code."""


def sweep(function=None, *, flags=FAST, tags=None):
    """Make a function written in the language of sweeps callable with arrays.

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
        kinds = _kinds(function, args)
        enter = known.get(kinds)
        if enter is None:
            from kfdyn.sweeps.compiler.driver import compiled

            enter = known[kinds] = compiled(_code(function, flags, args, kinds))
        if tags is not None:
            quick[args[:tags]] = enter
        result = enter(*[x for x, kind in zip(args, kinds) if passed(kind)])
        if result <= UNFIT:
            i = [i for i, kind in enumerate(kinds) if passed(kind)][UNFIT - result]
            raise TypeError(f"{function.__name__}: argument {i}, {_name(function, i)}, {_STRANGE}")
        return result

    def plain(*args):
        _kinds(function, args)  # refuses what compiled code does
        result = function(*[_plain(x, _name(function, i)) for i, x in enumerate(args)])
        result = unboxed(result)
        if isinstance(result, float):
            raise TypeError(
                f"{function.__name__}: {result} is not an index, but a sweep returns one: put it into an array"
            )
        return 0 if result is None else int(result)

    def written(*args):
        from kfdyn.sweeps.compiler.driver import written

        return written(_code(function, flags, args, _kinds(function, args)))

    call.plain, call.written = plain, written
    return call


def passed(kind):
    """Return True if an argument of this kind is passed at run time, not known at compile time."""
    return type(kind) is not tuple


_STRANGE = (
    "is not contiguous, not aligned or not in the machine's byte order; "
    "np.require(x, x.dtype.newbyteorder('='), 'CA') makes an array that is all this"
)


def _kinds(function, args):
    """Return the kinds of all arguments; name the argument that has none."""
    try:
        return tuple([_kind(x) for x in args])
    except TypeError:
        for i, x in enumerate(args):
            try:
                _kind(x)
            except TypeError as error:
                raise TypeError(f"{function.__name__}: {_name(function, i)} is {error}") from None
        raise


def _name(function, i):
    """Return the name of a function's argument i."""
    code = function.__code__
    names = code.co_varnames[: code.co_argcount]
    return names[i] if i < len(names) else f"argument {i}"


def _kind(x):
    """Return the kind of an argument: one of :mod:`wrapper` if it is passed, a tuple if it is known."""
    if x is None:
        return (None,)
    kind = type(x)
    if kind is np.ndarray:
        known = _ARRAYS.get((x.dtype.char, x.ndim, x.flags.writeable))
        if known is None:
            other = "int64" if x.dtype.kind in "iu" else "float64"
            raise TypeError(
                f"an array of {x.dtype} with {x.ndim} axes; a sweep takes arrays of float64, int64 or bool with two "
                f"axes or fewer: x.astype(np.{other}) or x.reshape(...) makes one"
            )
        return known
    if kind is int or kind is Packed or isinstance(x, np.integer):
        return _WHOLE
    if kind is float or isinstance(x, np.floating):
        return _REAL
    if kind is Tag:
        return (int(x),)
    if isinstance(x, tuple):
        parts = tuple([_kind(y) for y in x])
        if not any(map(passed, parts)):
            return parts
        if not all(map(passed, parts)) or any(isinstance(part, Group) for part in parts) or not hasattr(x, "_fields"):
            raise TypeError(
                "a tuple of what is not known when code is written; a named tuple of arrays and numbers is taken, and "
                "a tuple of tags"
            )
        return _GROUPS.setdefault((kind, parts), Group(kind, parts))
    raise TypeError(f"of the class {kind.__name__}, nothing that a sweep takes: that is arrays, ints, floats, tags")


# There is one of each kind, so that two are equal only if they are the same.
_WHOLE, _REAL = Whole(), Real()
_GROUPS: dict[tuple[type, tuple], Group] = {}
_ARRAYS = {
    (letter, axes, writeable): Array(dtype, axes, writeable)
    for dtype, letters in LETTERS.items()
    for letter in letters
    for axes in (0, 1, 2)
    for writeable in (False, True)
}


def _known(x):
    """Return a tag as the function sees it."""
    if isinstance(x, Tag):
        return int(x)
    if isinstance(x, tuple):
        parts = [_known(y) for y in x]
        return type(x)(*parts) if hasattr(x, "_fields") else tuple(parts)
    return x


def _code(function, flags, args, kinds):
    from kfdyn.sweeps.compiler.driver import Code

    def write(*values):
        left, seen = iter(values), []
        for i, (x, kind) in enumerate(zip(args, kinds)):
            seen.append(_named(next(left), _name(function, i)) if passed(kind) else _known(x))
        return function(*seen)

    key = "sweep", function.__qualname__, [None if passed(kind) else kind for kind in kinds]
    given = [kind for kind in kinds if passed(kind)]
    return Code(function.__name__, function.__module__, key, write, given, flags, vectorise=True)


def _named(value, name):
    """Tell an array, or the arrays of a named tuple, its name."""
    if isinstance(value, tuple):
        for part, field in zip(value, value._fields):
            _named(part, f"{name}.{field}")
    elif isinstance(value, Matrix):
        value.vector.name = name
    elif isinstance(value, Memory):
        value.name = name
    return value


def _plain(x, name):
    if isinstance(x, np.ndarray):
        if not (x.flags.c_contiguous and x.flags.aligned and x.dtype.isnative):
            raise TypeError(f"{name} {_STRANGE}")
        flat = Checked(x.reshape(-1))
        flat.changeable = x.flags.writeable
        return _named(Matrix(flat, x.shape) if x.ndim == 2 else flat, name)
    if isinstance(x, tuple) and passed(_kind(x)):
        return type(x)(*(_plain(part, f"{name}.{field}") for part, field in zip(x, x._fields)))
    return _known(x)
