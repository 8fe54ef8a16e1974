"""The way from Python into compiled code: a function of CPython's own calling convention, written beside each sweep.

It looks at every argument as no Python line could in the time: that an array is one, of the right kind of number, in
the machine's order, aligned, contiguous, and writeable where it is written to (see :mod:`interpreter`).
"""

from llvmlite import ir

from kfdyn.sweeps.call import UNFIT
from kfdyn.sweeps.interpreter import (
    AXES,
    DATA,
    DTYPE,
    ERROR,
    FLAGS,
    HALF,
    HEAD,
    LETTERS,
    OBJECT,
    SHAPE,
    TOLD,
    Python,
)
from kfdyn.sweeps.memory import Matrix, Vector
from kfdyn.sweeps.values import BYTE, INT, REAL, Place, Value

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
    function = ir.Function(module, ir.FunctionType(OBJECT, [OBJECT, OBJECT.as_pointer(), INT]), name)
    build = ir.IRBuilder(function.append_basic_block("entry"))
    own, given, count = function.args
    own = build.bitcast(build.gep(own, [ir.Constant(INT, bytes.__basicsize__ - 1)]), INT.as_pointer())
    python = Python(own, build)
    known, call = python.known, python.call
    objects = bool(arguments) and isinstance(arguments[0], Model)

    def answer(value):
        build.ret(call("PyLong_FromLongLong", ir.FunctionType(OBJECT, [INT]), value))

    def nothing():
        python.refer(known("None"))
        build.ret(build.inttoptr(known("None"), OBJECT))

    def unless(condition, argument):
        with build.if_then(build.not_(condition), likely=False):
            if objects:
                nothing()
            else:
                answer(ir.Constant(INT, UNFIT - argument))

    results = sum(isinstance(kind, Array) and kind.writeable for kind in arguments) if objects else 0
    whole, fewer = (ir.Constant(INT, len(arguments) - less) for less in (0, results))
    all_there = build.icmp_signed("==", count, whole)
    unless(build.or_(all_there, build.icmp_signed("==", count, fewer)), len(arguments))
    passed, several = [], ir.Constant(ir.IntType(1), int(release == -1))
    for i, kind in enumerate(arguments):
        at = ir.Constant(INT, i)
        if i >= len(arguments) - results:
            at = build.select(all_there, at, ir.Constant(INT, 0))  # not there: one that is, which is not looked at
        thing = build.load(build.gep(given, [at]))
        if i >= len(arguments) - results:
            thing = build.select(all_there, thing, build.inttoptr(known("None"), OBJECT))
        if isinstance(kind, Model):
            passed += [own, _address(build, thing, python, lambda right, i=i: unless(right, i))]
        elif isinstance(kind, Whole):
            passed.append(call("PyLong_AsLongLong", ir.FunctionType(INT, [OBJECT]), thing))
        elif isinstance(kind, Real):
            passed.append(call("PyFloat_AsDouble", ir.FunctionType(REAL, [OBJECT]), thing))
        else:
            fields = _read_array(build, thing, kind, known, lambda right, i=i: unless(right, i))
            passed += fields
            if i == release:
                several = build.icmp_signed(">", fields[1], ir.Constant(INT, 1))
    thread = None
    if release is not None:
        place = build.alloca(OBJECT)
        with build.if_then(several):
            thread = call("PyEval_SaveThread", ir.FunctionType(OBJECT, []))
            build.store(thread, place)
    result = build.call(inner, passed)
    if release is not None:
        with build.if_then(several):
            call("PyEval_RestoreThread", ir.FunctionType(ir.VoidType(), [OBJECT]), build.load(place))
    if not objects:
        answer(result)
        return
    with build.if_then(build.icmp_signed("==", result, ir.Constant(INT, 0)), likely=False):
        nothing()
    with build.if_then(build.icmp_signed("==", result, ir.Constant(INT, TOLD)), likely=False):
        answer(result)
    failed = build.icmp_signed("==", result, ir.Constant(INT, ERROR))
    build.ret(build.inttoptr(build.select(failed, ir.Constant(INT, 0), result), OBJECT))


def _address(build, thing, python, unless):
    """The address that a model keeps in its slot."""

    def word(offset):
        place = build.inttoptr(build.add(build.ptrtoint(thing, INT), offset), INT.as_pointer())
        return build.load(place)

    nought = ir.Constant(INT, 0)
    unless(build.icmp_signed("==", word(ir.Constant(INT, HEAD - 8)), python.known("class")))
    kept = word(python.known("slot"))
    unless(build.icmp_signed("!=", kept, nought))  # a slot that was never set
    number = build.inttoptr(kept, OBJECT)
    address = python.call("PyLong_AsLongLong", ir.FunctionType(INT, [OBJECT]), number)
    unless(build.icmp_signed("!=", address, nought))
    return address


def _read_array(build, thing, kind, known, unless):
    """Data, number of axes and shape of an array; all 0 for None."""
    pieces = (_KINDS[kind.dtype].as_pointer(), INT, INT.as_pointer())
    places = [build.alloca(piece) for piece in pieces]
    for place, piece in zip(places, pieces):
        build.store(ir.Constant(piece, None if isinstance(piece, ir.PointerType) else 0), place)

    def field(offset, type_):
        return build.load(build.bitcast(build.gep(thing, [ir.Constant(INT, offset)]), type_.as_pointer()))

    def number(dtype):
        """Kind, letter, byte order and number of a dtype: an array that was pickled has an object of its own."""
        place = build.inttoptr(build.add(dtype, ir.Constant(INT, LETTERS)), INT.as_pointer())
        return build.and_(build.load(place), ir.Constant(INT, ~(0xFF << 24)))  # less a byte that is not of it

    def look():
        unless(build.icmp_signed("==", field(HEAD - 8, INT), known("ndarray")))
        wanted = ir.Constant(HALF, _CONTIGUOUS | _ALIGNED | (_WRITEABLE if kind.writeable else 0))
        fit = build.icmp_signed("==", build.and_(field(FLAGS, HALF), wanted), wanted)
        axes = build.sext(field(AXES, HALF), INT)
        fit = build.and_(fit, build.icmp_signed("==", number(field(DTYPE, INT)), number(known(kind.dtype))))
        if kind.axes is not None:
            fit = build.and_(fit, build.icmp_signed("==", axes, ir.Constant(INT, kind.axes)))
        unless(fit)
        build.store(field(DATA, pieces[0]), places[0])
        build.store(axes, places[1])
        build.store(field(SHAPE, pieces[2]), places[2])

    if kind.optional:
        with build.if_then(build.icmp_signed("!=", build.ptrtoint(thing, INT), known("None"))):
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
            array.given = Value(Place.builder.icmp_unsigned("!=", data, ir.Constant(data.type, None)))
        if kind.axes == 2 and not kind.optional:
            seen.append(Matrix(data, (array.shape[0], array.shape[1]), _KINDS[kind.dtype]))
            continue
        if kind.axes == 1 and not kind.optional:
            array.size = array.shape[0]
        seen.append(array)
    return seen
