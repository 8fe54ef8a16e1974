"""The way from Python into compiled code: a function of CPython's own calling convention, written beside each sweep.

It looks at every argument as no Python line could in the time: that an array is one, of the right kind of number, in
the machine's order, aligned, contiguous, and writeable where it is written to. What it reads of an array is what every
C extension reads, the struct that NumPy's binary interface promises; :func:`check_layout` looks whether it is there.
Addresses that differ from process to process come in a string of bytes, so that the code itself may lie on a disk.
"""

import ctypes
import struct

import numpy as np
from llvmlite import ir

from kfdyn.sweeps.call import UNFIT
from kfdyn.sweeps.memory import Matrix, Vector
from kfdyn.sweeps.values import BYTE, INT, REAL, Place, Value

_HALF = ir.IntType(32)
_OBJECT = BYTE.as_pointer()
_HEAD = object.__basicsize__  # what an object begins with: references, then its class
_DATA, _AXES, _SHAPE, _DTYPE, _FLAGS = _HEAD, _HEAD + 8, _HEAD + 16, _HEAD + 40, _HEAD + 48
_LETTERS = _HEAD + 8  # in a dtype, behind the class of its scalars
_CONTIGUOUS, _ALIGNED, _NATIVE, _WRITEABLE = 0x1, 0x100, 0x200, 0x400
_FASTCALL = 0x80

_DTYPES = {"f": np.dtype(np.float64), "i": np.dtype(np.int64), "b": np.dtype(np.bool_)}
_KINDS = {"f": REAL, "i": INT, "b": BYTE}

_CALLS = ("PyEval_SaveThread", "PyEval_RestoreThread", "PyLong_AsLongLong", "PyFloat_AsDouble", "PyLong_FromLongLong")
_CONTEXT = ("ndarray", "f", "i", "b", "None", *_CALLS)


class Whole:
    """An argument that is an integer."""

    key = "int"


class Real:
    """An argument that is a float."""

    key = "float"


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


def context():
    """The addresses that entries want, as bytes."""
    api = ctypes.pythonapi
    found = {"ndarray": id(np.ndarray), "None": id(None), **{key: id(dtype) for key, dtype in _DTYPES.items()}}
    found |= {name: ctypes.cast(getattr(api, name), ctypes.c_void_p).value for name in _CALLS}
    return struct.pack(f"{len(_CONTEXT)}q", *(found[name] for name in _CONTEXT))


def check_layout():
    """Look whether an array's fields are where entries read them."""
    array = np.zeros((2, 3))

    def field(offset, kind):
        return ctypes.cast(id(array) + offset, ctypes.POINTER(kind))[0]

    right = (
        field(_HEAD - 8, ctypes.c_void_p) == id(np.ndarray)
        and field(_DATA, ctypes.c_void_p) == array.__array_interface__["data"][0]
        and field(_AXES, ctypes.c_int) == 2
        and list(ctypes.cast(field(_SHAPE, ctypes.c_void_p), ctypes.POINTER(ctypes.c_int64))[:2]) == [2, 3]
        and field(_DTYPE, ctypes.c_void_p) == id(_DTYPES["f"])
        and field(_FLAGS, ctypes.c_int) & 0x701 == 0x501
        and ctypes.string_at(id(array.dtype) + _LETTERS, 3) == b"fd="
        and ctypes.cast(id(array.dtype) + _LETTERS + 4, ctypes.POINTER(ctypes.c_int))[0] == array.dtype.num
    )
    if not right:
        raise ImportError(
            f"arrays of NumPy {np.__version__} are laid out in a way that this version of kfdyn does not know"
        )


def write_wrapper(module, name, inner, arguments, release):
    """Write the function that Python calls; ``release`` says for which argument's axes the lock is let go.

    None is never; an array's number is where it has more than one axis; −1 is always.
    """
    function = ir.Function(module, ir.FunctionType(_OBJECT, [_OBJECT, _OBJECT.as_pointer(), INT]), name)
    build = ir.IRBuilder(function.append_basic_block("entry"))
    own, given, count = function.args
    own = build.bitcast(build.gep(own, [ir.Constant(INT, bytes.__basicsize__ - 1)]), INT.as_pointer())

    def known(what):
        return build.load(build.gep(own, [ir.Constant(INT, _CONTEXT.index(what))]))

    def call(what, kind, *args):
        return build.call(build.inttoptr(known(what), kind.as_pointer()), args)

    def answer(value):
        build.ret(call("PyLong_FromLongLong", ir.FunctionType(_OBJECT, [INT]), value))

    def unless(condition, argument):
        with build.if_then(build.not_(condition), likely=False):
            answer(ir.Constant(INT, UNFIT - argument))

    unless(build.icmp_signed("==", count, ir.Constant(INT, len(arguments))), len(arguments))
    passed, several = [], ir.Constant(ir.IntType(1), int(release == -1))
    for i, kind in enumerate(arguments):
        thing = build.load(build.gep(given, [ir.Constant(INT, i)]))
        if isinstance(kind, Whole):
            passed.append(call("PyLong_AsLongLong", ir.FunctionType(INT, [_OBJECT]), thing))
        elif isinstance(kind, Real):
            passed.append(call("PyFloat_AsDouble", ir.FunctionType(REAL, [_OBJECT]), thing))
        else:
            fields = _read_array(build, thing, kind, known, lambda right, i=i: unless(right, i))
            passed += fields
            if i == release:
                several = build.icmp_signed(">", fields[1], ir.Constant(INT, 1))
    thread = None
    if release is not None:
        place = build.alloca(_OBJECT)
        with build.if_then(several):
            thread = call("PyEval_SaveThread", ir.FunctionType(_OBJECT, []))
            build.store(thread, place)
    result = build.call(inner, passed)
    if release is not None:
        with build.if_then(several):
            call("PyEval_RestoreThread", ir.FunctionType(ir.VoidType(), [_OBJECT]), build.load(place))
    answer(result)


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
        place = build.inttoptr(build.add(dtype, ir.Constant(INT, _LETTERS)), INT.as_pointer())
        return build.and_(build.load(place), ir.Constant(INT, ~(0xFF << 24)))  # less a byte that is not of it

    def look():
        unless(build.icmp_signed("==", field(_HEAD - 8, INT), known("ndarray")))
        wanted = ir.Constant(_HALF, _CONTIGUOUS | _ALIGNED | (_WRITEABLE if kind.writeable else 0))
        fit = build.icmp_signed("==", build.and_(field(_FLAGS, _HALF), wanted), wanted)
        axes = build.sext(field(_AXES, _HALF), INT)
        fit = build.and_(fit, build.icmp_signed("==", number(field(_DTYPE, INT)), number(known(kind.dtype))))
        if kind.axes is not None:
            fit = build.and_(fit, build.icmp_signed("==", axes, ir.Constant(INT, kind.axes)))
        unless(fit)
        build.store(field(_DATA, pieces[0]), places[0])
        build.store(axes, places[1])
        build.store(field(_SHAPE, pieces[2]), places[2])

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
        if isinstance(kind, Whole):
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
        if isinstance(kind, Whole | Real):
            seen.append(Value(next(left)))
            continue
        data, axes, shape = next(left), next(left), next(left)
        array = Given(data, Value(axes), Vector(shape, None, INT), _KINDS[kind.dtype])
        if kind.optional:
            array.given = Value(Place.builder.icmp_signed("!=", axes, ir.Constant(INT, 0)))
        if kind.axes == 2 and not kind.optional:
            seen.append(Matrix(data, (array.shape[0], array.shape[1]), _KINDS[kind.dtype]))
            continue
        if kind.axes == 1 and not kind.optional:
            array.size = array.shape[0]
        seen.append(array)
    return seen


class _Method(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("at", ctypes.c_void_p), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p)]


_KEPT: list[object] = []  # a function of Python's refers to its definition for ever


def python_function(name, address):
    """A function of Python's at an address."""
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype, make.argtypes = ctypes.py_object, [ctypes.POINTER(_Method), ctypes.py_object, ctypes.c_void_p]
    method = _Method(name.encode(), address, _FASTCALL, None)
    _KEPT.append(method)
    return make(ctypes.byref(method), context(), None)
