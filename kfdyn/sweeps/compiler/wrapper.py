"""Call compiled code from Python: a function in CPython's calling convention, written beside each sweep.

It looks at every argument as no Python line could in the time: that an array is one, of the right kind of number, in
the machine's order, aligned, contiguous, and writeable where it is written to (see :mod:`cpython_abi`).
"""

from kfdyn.sweeps.compiler.builder import Builder
from kfdyn.sweeps.compiler.cpython_abi import (
    AXES,
    DATA,
    DTYPE,
    DTYPE_KIND,
    ERROR,
    FLAGS,
    HEAD,
    SHAPE,
    TOLD,
    Python,
    field,
    items,
)
from kfdyn.sweeps.compiler.ir import BYTE, INT, REAL, VOID, WORD, Function
from kfdyn.sweeps.control_flow import if_
from kfdyn.sweeps.memory import Matrix, Vector, pointer
from kfdyn.sweeps.trace_context import tracing
from kfdyn.sweeps.values import constant, now, where
from kfdyn.sweeps.variables import local

#: What a function answers to arguments that it does not take: this less the argument's number, and smaller ones.
UNFIT = -1000

_CONTIGUOUS, _ALIGNED, _WRITEABLE = 0x1, 0x100, 0x400
_TUPLE = 1 << 26  # among the flags of a class: a tuple, or derived from it
_KINDS = {"f": REAL, "i": INT, "b": BYTE}


class Whole:
    """An argument that is an integer."""

    key, types = "int", (INT,)

    def read(self, python, thing, unless):
        """Unpack the sweep's arguments from an object."""
        return [python.call("PyLong_AsLongLong", INT, thing)]

    def seen(self, value):
        """Return the proxy that the writing function sees."""
        return [value]


class Real(Whole):
    """An argument that is a float."""

    key, types = "float", (REAL,)

    def read(self, python, thing, unless):
        """Unpack a double."""
        return [python.call("PyFloat_AsDouble", REAL, thing)]


class Model:
    """The first argument: an object of this class that keeps its table's address in one of its slots.

    A function that takes one answers with new arrays, or with those its caller gave for the answer. Whatever it does
    not take goes to ``otherwise(...)``, a Python function of the same arguments; without one it answers None. It
    releases the interpreter lock if it is ``long`` and the caller gave the arrays: shorter ones are done before another
    thread wakes.
    """

    types = INT, INT

    def __init__(self, owner, slot, long=False, otherwise=None):
        self.owner, self.slot, self.long, self.otherwise = owner, slot, long, otherwise
        self.key = "model", long

    def read(self, python, thing, unless):
        """Unpack the context, and the address that a model keeps in its slot."""
        unless(field(thing, HEAD - 8) == python.known("class"))
        kept = field(thing, python.known("slot"))
        unless(kept != 0)  # a slot that was never set
        address = python.call("PyLong_AsLongLong", INT, kept)
        unless(address != 0)
        return [tracing.builder.cast("ptrtoint", python.words.data, INT), address]

    def seen(self, words, address):
        """Return Python's functions, and the address."""
        return [Python(pointer(words, INT)), address]


class Array:
    """An argument that is a contiguous array of floats (f), int64 (i) or booleans (b); ``None`` if ``optional``.

    ``batch``: the lock is let go only where it has more than one axis, so that there is work for several. ``handed``: a
    handler is handed it, and is not told of it beforehand.
    """

    handed = False

    def __init__(self, dtype="f", axes=None, writeable=False, optional=False, batch=False):
        self.dtype, self.axes, self.writeable, self.optional, self.batch = dtype, axes, writeable, optional, batch
        self.key = dtype, axes, writeable, optional, batch
        self.types = (_KINDS[dtype].as_pointer(), INT, INT.as_pointer())

    def read(self, python, thing, unless):
        """Unpack data, number of axes and shape of an array; all 0 for None."""
        data, axes, shape = (local(constant(kind, 0)) for kind in self.types)
        for _ in if_(thing != python.known("None") if self.optional else True):
            unless(field(thing, HEAD - 8) == python.known("ndarray"))
            wanted = _CONTIGUOUS | _ALIGNED | (_WRITEABLE if self.writeable else 0)
            fit = (field(thing, FLAGS, WORD) & wanted) == wanted
            fit = fit & self._holds_numbers(python, _letters(field(thing, DTYPE)))
            found = tracing.builder.cast("sext", field(thing, AXES, WORD), INT)
            if self.axes is not None:
                fit = fit & (found == self.axes)
            unless(fit)
            data.set(field(thing, DATA, data.type))
            axes.set(found)
            shape.set(field(thing, SHAPE, shape.type))
        return [now(place) for place in (data, axes, shape)]

    def _holds_numbers(self, python, letters):
        """Check that a dtype of these letters is the wanted one, or the other int64."""
        right = letters == _letters(python.known(self.dtype))
        return right | (letters == _letters(python.known("other i"))) if self.dtype == "i" else right

    def seen(self, data, axes, shape):
        """Return the array as the sweep sees it: a matrix if it has two axes, else flat."""
        array, shape = Vector(data), Vector(shape)
        array.changeable = self.writeable
        if self.axes == 2:
            return [Matrix(array, (shape[0], shape[1]))]
        array.axes, array.shape, array.size = axes, shape, shape[0] if self.axes == 1 else None
        array.given = tracing.builder.cast("ptrtoint", data, INT) != 0 if self.optional else True
        return [array]


class Group:
    """An argument that is a named tuple of others."""

    def __init__(self, named, parts):
        self.named, self.parts = named, parts
        self.key, self.types = tuple(part.key for part in parts), inner_types(parts)

    def read(self, python, thing, unless):
        """Unpack the arguments of its parts."""
        unless(python.call("PyType_GetFlags", INT, field(thing, HEAD - 8)) & _TUPLE != 0)
        unless(field(thing, HEAD) == len(self.parts))
        found = zip(self.parts, items(thing, len(self.parts)))
        return [x for part, item in found for x in part.read(python, item, unless)]

    def seen(self, *values):
        """Return the tuple of its parts' proxies."""
        return [self.named(*proxies(self.parts, values))]


def _letters(dtype):
    """Return kind, letter, byte order and number of a dtype: a pickled array has a dtype object of its own."""
    return field(dtype, DTYPE_KIND) & ~(0xFF << 24)  # less a byte that is not of it


def write_wrapper(module, name, inner, arguments):
    """Write the function that Python calls.

    With a :class:`Model` the last arguments, those that may be written to, need not be there.
    """
    if not (arguments and isinstance(arguments[0], Model)):
        with tracing.having(builder=Builder(Function(module, name, INT, [INT, INT, INT]))):
            _write(*tracing.builder.args, inner, arguments)
        return
    attempt = Function(module, f"{name}.attempt", INT, [INT, INT, INT], "internal", "noinline")
    with tracing.having(builder=Builder(attempt)):
        _write(*tracing.builder.args, inner, arguments)
    with tracing.having(builder=Builder(Function(module, name, INT, [INT, INT, INT]))):
        _write_otherwise(*tracing.builder.args, attempt)


def _write_otherwise(own, given, count, attempt):
    """Write the attempt at an answer and the fallback, taken where the answer is 0."""
    python, build = _python(own), tracing.builder
    result = build.call(attempt.name, INT, [own, given, count])
    for _ in if_(result == 0, likely=False):
        other = python.known("otherwise")
        for _ in if_(other != 0):
            build.ret(python.call("PyObject_Vectorcall", INT, other, given, count, 0))
        python.refer(python.known("None"))
        build.ret(python.known("None"))
    build.ret(where(result == ERROR, 0, result))


def _python(own):
    """Return Python's functions, by the addresses in the bytes that the function object keeps."""
    return Python(pointer(own + (bytes.__basicsize__ - 1), INT))


def _write(own, given, count, inner, arguments):
    python, things = _python(own), pointer(given, INT)
    known, call, leave_with = python.known, python.call, tracing.builder.ret
    objects = bool(arguments) and isinstance(arguments[0], Model)

    def answer(value):
        leave_with(call("PyLong_FromLongLong", INT, value))

    def unless(condition, argument):
        for _ in if_(~condition, likely=False):
            if objects:
                leave_with(constant(INT, 0))
            else:
                answer(UNFIT - argument)

    whole = len(arguments)
    fewer = whole - sum(isinstance(kind, Array) and kind.writeable for kind in arguments) if objects else whole
    all_there = count == whole
    unless(all_there | (count == fewer), whole)
    passed, free = [], not objects
    for i, kind in enumerate(arguments):
        if i < fewer:
            thing = things[i]
        else:  # where it is not there, one that is, which is not looked at
            thing = where(all_there, things[where(all_there, i, 0)], known("None"))
        fields = kind.read(python, thing, lambda right, i=i: unless(right, i))
        passed += fields
        if isinstance(kind, Array) and kind.batch:
            free = fields[1] > 1
        if objects and i == fewer and arguments[0].long:
            free = now(tracing.builder.cast("ptrtoint", fields[0], INT)) != 0
    thread = local(0)
    for _ in if_(free):
        thread.set(call("PyEval_SaveThread", INT))
    result = tracing.builder.call(inner.name, INT, passed)
    for _ in if_(free):
        call("PyEval_RestoreThread", VOID, thread)
    if not objects:
        answer(result)
        return
    for _ in if_(result == TOLD, likely=False):
        results = [things[i] for i in range(fewer, whole)]
        for thing in results:
            python.refer(thing)
        leave_with(results[0] if len(results) == 1 else python.tuple_of(results))
    leave_with(result)


def inner_types(arguments):
    """Return the IR types of a sweep's arguments."""
    return [piece for kind in arguments for piece in kind.types]


def proxies(arguments, values):
    """Return the proxies of a sweep's arguments."""
    left = iter(values)
    return [one for kind in arguments for one in kind.seen(*(next(left) for _ in kind.types))]
