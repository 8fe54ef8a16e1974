"""The way from Python into compiled code: a function of CPython's own calling convention, written beside each sweep.

It looks at every argument as no Python line could in the time: that an array is one, of the right kind of number, in
the machine's order, aligned, contiguous, and writeable where it is written to (see :mod:`interpreter`).
"""

from kfdyn.sweeps.call import UNFIT
from kfdyn.sweeps.interpreter import (
    AXES,
    DATA,
    DTYPE,
    ERROR,
    FLAGS,
    HEAD,
    LETTERS,
    OBJECT,
    SHAPE,
    TOLD,
    Python,
)
from kfdyn.sweeps.ir import BIT, BYTE, INT, REAL, VOID, WORD, Builder, Function, FunctionType, constant
from kfdyn.sweeps.memory import Matrix, Vector
from kfdyn.sweeps.values import Place, Value

_CONTIGUOUS, _ALIGNED, _WRITEABLE = 0x1, 0x100, 0x400
_KINDS = {"f": REAL, "i": INT, "b": BYTE}


class Whole:
    """An argument that is an integer."""

    key, types = "int", (INT,)

    def read(self, python, thing, unless):
        """What the sweep is called with, found in an object."""
        return [python.call("PyLong_AsLongLong", FunctionType(INT, [OBJECT]), thing)]

    def seen(self, value):
        """What the function that writes the sweep sees of it."""
        return [Value(value)]


class Real(Whole):
    """An argument that is a float."""

    key, types = "float", (REAL,)

    def read(self, python, thing, unless):
        """A double."""
        return [python.call("PyFloat_AsDouble", FunctionType(REAL, [OBJECT]), thing)]


class Model:
    """The first argument: an object of this class that keeps the address of its table in one of its slots.

    A function that takes one answers with new arrays, and with None to whatever it does not take; it never lets the
    lock go.
    """

    key, types = "model", (INT.as_pointer(), INT)

    def __init__(self, owner, slot):
        self.owner, self.slot = owner, slot

    def read(self, python, thing, unless):
        """The context, and the address that a model keeps in its slot."""
        build, nought = python.build, constant(INT, 0)

        def word(offset):
            place = build.cast("inttoptr", build.add(build.cast("ptrtoint", thing, INT), offset), INT.as_pointer())
            return build.load(place)

        unless(build.compare("==", word(constant(INT, HEAD - 8)), python.known("class")))
        kept = word(python.known("slot"))
        unless(build.compare("!=", kept, nought))  # a slot that was never set
        number = build.cast("inttoptr", kept, OBJECT)
        address = python.call("PyLong_AsLongLong", FunctionType(INT, [OBJECT]), number)
        unless(build.compare("!=", address, nought))
        return [python.own, address]

    def seen(self, own, address):
        """Python's functions, and the address."""
        return [Python(own), Value(address)]


class Array:
    """An argument that is a contiguous array of floats (f), int64 (i) or booleans (b); ``None`` if ``optional``."""

    def __init__(self, dtype="f", axes=None, writeable=False, optional=False):
        self.dtype, self.axes, self.writeable, self.optional = dtype, axes, writeable, optional
        self.types = (_KINDS[dtype].as_pointer(), INT, INT.as_pointer())

    @property
    def key(self):
        """What makes two such arguments alike."""
        return f"{self.dtype}{self.axes}{'w' if self.writeable else ''}{'?' if self.optional else ''}"

    def read(self, python, thing, unless):
        """Data, number of axes and shape of an array; all 0 for None."""
        build, known = python.build, python.known
        places = [build.alloca(piece) for piece in self.types]
        for place, piece in zip(places, self.types):
            build.store(constant(piece, 0), place)

        def field(offset, type_):
            return build.load(build.cast("bitcast", build.gep(thing, constant(INT, offset)), type_.as_pointer()))

        def number(dtype):
            """Kind, letter, byte order and number of a dtype: an array that was pickled has an object of its own."""
            place = build.cast("inttoptr", build.add(dtype, constant(INT, LETTERS)), INT.as_pointer())
            return build.whole("and", build.load(place), constant(INT, ~(0xFF << 24)))  # less a byte that is not of it

        def look():
            unless(build.compare("==", field(HEAD - 8, INT), known("ndarray")))
            wanted = constant(WORD, _CONTIGUOUS | _ALIGNED | (_WRITEABLE if self.writeable else 0))
            fit = build.compare("==", build.whole("and", field(FLAGS, WORD), wanted), wanted)
            axes = build.cast("sext", field(AXES, WORD), INT)
            fit = build.whole("and", fit, build.compare("==", number(field(DTYPE, INT)), number(known(self.dtype))))
            if self.axes is not None:
                fit = build.whole("and", fit, build.compare("==", axes, constant(INT, self.axes)))
            unless(fit)
            build.store(field(DATA, self.types[0]), places[0])
            build.store(axes, places[1])
            build.store(field(SHAPE, self.types[2]), places[2])

        if self.optional:
            with build.if_then(build.compare("!=", build.cast("ptrtoint", thing, INT), known("None"))):
                look()
        else:
            look()
        return [build.load(place) for place in places]

    def seen(self, data, axes, shape):
        """The array as the sweep sees it; a matrix where it has two axes."""
        kind, shape = _KINDS[self.dtype], Vector(shape, None, INT)
        if self.axes == 2 and not self.optional:
            return [Matrix(data, (shape[0], shape[1]), kind)]
        array = Given(data, Value(axes), shape, kind)
        if self.optional:
            address = Place.builder.cast("ptrtoint", data, INT)
            array.given = Value(Place.builder.compare("!=", address, constant(INT, 0)))
        elif self.axes == 1:
            array.size = array.shape[0]
        return [array]


class Given(Vector):
    """An array as a sweep sees it: flat, with its shape. ``given`` is False where None stands for it."""

    def __init__(self, data, axes, shape, kind, given=True):
        super().__init__(data, None, kind)
        self.axes, self.shape, self.given = axes, shape, given


def write_wrapper(module, name, inner, arguments, release):
    """Write the function that Python calls; ``release`` says for which argument's axes the lock is let go.

    None is never; an array's number is where it has more than one axis; −1 is always. With a :class:`Model` the last
    arguments, those that may be written to, need not be there.
    """
    function = Function(module, FunctionType(OBJECT, [OBJECT, OBJECT.as_pointer(), INT]), name)
    build = Builder(module, function)
    own, given, count = function.args
    own = build.cast("bitcast", build.gep(own, constant(INT, bytes.__basicsize__ - 1)), INT.as_pointer())
    python = Python(own, build)
    known, call = python.known, python.call
    objects = bool(arguments) and isinstance(arguments[0], Model)

    def answer(value):
        build.ret(call("PyLong_FromLongLong", FunctionType(OBJECT, [INT]), value))

    def nothing():
        python.refer(known("None"))
        build.ret(build.cast("inttoptr", known("None"), OBJECT))

    def unless(condition, argument):
        with build.if_then(build.not_(condition), likely=False):
            if objects:
                nothing()
            else:
                answer(constant(INT, UNFIT - argument))

    results = sum(isinstance(kind, Array) and kind.writeable for kind in arguments) if objects else 0
    whole, fewer = (constant(INT, len(arguments) - less) for less in (0, results))
    all_there = build.compare("==", count, whole)
    unless(build.whole("or", all_there, build.compare("==", count, fewer)), len(arguments))
    passed, several = [], constant(BIT, int(release == -1))
    for i, kind in enumerate(arguments):
        at = constant(INT, i)
        if i >= len(arguments) - results:
            at = build.select(all_there, at, constant(INT, 0))  # not there: one that is, which is not looked at
        thing = build.load(build.gep(given, at))
        if i >= len(arguments) - results:
            thing = build.select(all_there, thing, build.cast("inttoptr", known("None"), OBJECT))
        fields = kind.read(python, thing, lambda right, i=i: unless(right, i))
        passed += fields
        if i == release:
            several = build.compare(">", fields[1], constant(INT, 1))
    thread = None
    if release is not None:
        place = build.alloca(OBJECT)
        with build.if_then(several):
            thread = call("PyEval_SaveThread", FunctionType(OBJECT, []))
            build.store(thread, place)
    result = build.call(inner, passed)
    if release is not None:
        with build.if_then(several):
            call("PyEval_RestoreThread", FunctionType(VOID, [OBJECT]), build.load(place))
    if not objects:
        answer(result)
        return
    with build.if_then(build.compare("==", result, constant(INT, 0)), likely=False):
        nothing()
    with build.if_then(build.compare("==", result, constant(INT, TOLD)), likely=False):
        answer(result)
    failed = build.compare("==", result, constant(INT, ERROR))
    build.ret(build.cast("inttoptr", build.select(failed, constant(INT, 0), result), OBJECT))


def inner_types(arguments):
    """LLVM's types of what a sweep is called with."""
    return [piece for kind in arguments for piece in kind.types]


def proxies(arguments, values):
    """What the function that writes a sweep sees of its arguments."""
    left = iter(values)
    return [one for kind in arguments for one in kind.seen(*(next(left) for _ in kind.types))]
