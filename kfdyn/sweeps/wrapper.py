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

_CONTIGUOUS, _ALIGNED, _NATIVE, _WRITEABLE = 0x1, 0x100, 0x200, 0x400
_KINDS = {"f": REAL, "i": INT, "b": BYTE}


class Whole:
    """An argument that is an integer."""

    key = "int"


class Real:
    """An argument that is a float."""

    key = "float"


class Model:
    """The first argument: an object of this class that keeps the address of its table in one of its slots.

    A function that takes one answers with new arrays, and with None to whatever it does not take; it never lets the
    lock go.
    """

    key = "model"

    def __init__(self, owner, slot):
        self.owner, self.slot = owner, slot


class Array:
    """An argument that is a contiguous array of floats (f), int64 (i) or booleans (b); ``None`` if ``optional``."""

    def __init__(self, dtype="f", axes=None, writeable=False, optional=False):
        self.dtype, self.axes, self.writeable, self.optional = dtype, axes, writeable, optional

    @property
    def key(self):
        """What makes two such arguments alike."""
        return f"{self.dtype}{self.axes}{'w' if self.writeable else ''}{'?' if self.optional else ''}"


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
        if isinstance(kind, Model):
            passed += [own, _address(build, thing, python, lambda right, i=i: unless(right, i))]
        elif isinstance(kind, Whole):
            passed.append(call("PyLong_AsLongLong", FunctionType(INT, [OBJECT]), thing))
        elif isinstance(kind, Real):
            passed.append(call("PyFloat_AsDouble", FunctionType(REAL, [OBJECT]), thing))
        else:
            fields = _read_array(build, thing, kind, known, lambda right, i=i: unless(right, i))
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


def _address(build, thing, python, unless):
    """The address that a model keeps in its slot."""

    def word(offset):
        place = build.cast("inttoptr", build.add(build.cast("ptrtoint", thing, INT), offset), INT.as_pointer())
        return build.load(place)

    nought = constant(INT, 0)
    unless(build.compare("==", word(constant(INT, HEAD - 8)), python.known("class")))
    kept = word(python.known("slot"))
    unless(build.compare("!=", kept, nought))  # a slot that was never set
    number = build.cast("inttoptr", kept, OBJECT)
    address = python.call("PyLong_AsLongLong", FunctionType(INT, [OBJECT]), number)
    unless(build.compare("!=", address, nought))
    return address


def _read_array(build, thing, kind, known, unless):
    """Data, number of axes and shape of an array; all 0 for None."""
    pieces = (_KINDS[kind.dtype].as_pointer(), INT, INT.as_pointer())
    places = [build.alloca(piece) for piece in pieces]
    for place, piece in zip(places, pieces):
        build.store(constant(piece, 0), place)

    def field(offset, type_):
        return build.load(build.cast("bitcast", build.gep(thing, constant(INT, offset)), type_.as_pointer()))

    def number(dtype):
        """Kind, letter, byte order and number of a dtype: an array that was pickled has an object of its own."""
        place = build.cast("inttoptr", build.add(dtype, constant(INT, LETTERS)), INT.as_pointer())
        return build.whole("and", build.load(place), constant(INT, ~(0xFF << 24)))  # less a byte that is not of it

    def look():
        unless(build.compare("==", field(HEAD - 8, INT), known("ndarray")))
        wanted = constant(WORD, _CONTIGUOUS | _ALIGNED | (_WRITEABLE if kind.writeable else 0))
        fit = build.compare("==", build.whole("and", field(FLAGS, WORD), wanted), wanted)
        axes = build.cast("sext", field(AXES, WORD), INT)
        fit = build.whole("and", fit, build.compare("==", number(field(DTYPE, INT)), number(known(kind.dtype))))
        if kind.axes is not None:
            fit = build.whole("and", fit, build.compare("==", axes, constant(INT, kind.axes)))
        unless(fit)
        build.store(field(DATA, pieces[0]), places[0])
        build.store(axes, places[1])
        build.store(field(SHAPE, pieces[2]), places[2])

    if kind.optional:
        with build.if_then(build.compare("!=", build.cast("ptrtoint", thing, INT), known("None"))):
            look()
    else:
        look()
    return [build.load(place) for place in places]


def inner_types(arguments):
    """LLVM's types of what a sweep is called with."""
    types = []
    for kind in arguments:
        if isinstance(kind, Model):
            types += [INT.as_pointer(), INT]
        elif isinstance(kind, Whole):
            types.append(INT)
        elif isinstance(kind, Real):
            types.append(REAL)
        else:
            types += [_KINDS[kind.dtype].as_pointer(), INT, INT.as_pointer()]
    return types


def proxies(arguments, values):
    """What the function that writes a sweep sees of its arguments."""
    left, seen = iter(values), []
    for kind in arguments:
        if isinstance(kind, Model):
            seen += [Python(next(left)), Value(next(left))]
            continue
        if isinstance(kind, Whole | Real):
            seen.append(Value(next(left)))
            continue
        data, axes, shape = next(left), next(left), next(left)
        array = Given(data, Value(axes), Vector(shape, None, INT), _KINDS[kind.dtype])
        if kind.optional:
            address = Place.builder.cast("ptrtoint", data, INT)
            array.given = Value(Place.builder.compare("!=", address, constant(INT, 0)))
        if kind.axes == 2 and not kind.optional:
            seen.append(Matrix(data, (array.shape[0], array.shape[1]), _KINDS[kind.dtype]))
            continue
        if kind.axes == 1 and not kind.optional:
            array.size = array.shape[0]
        seen.append(array)
    return seen
