"""CPython and NumPy as compiled code sees them: where objects have their fields, and which functions it may call.

What it reads of an array is what every C extension reads, the struct that NumPy's binary interface promises;
:func:`check_layout` looks whether it is there. Addresses that differ from process to process come in a string of bytes,
the *context*, so that the code itself may lie on a disk.
"""

import ctypes
import struct

import numpy as np

from kfdyn.sweeps.compiler.ir import INT, VOID, WORD
from kfdyn.sweeps.control_flow import if_else
from kfdyn.sweeps.memory import pointer
from kfdyn.sweeps.trace_context import tracing
from kfdyn.sweeps.values import constant, now, where

HEAD = object.__basicsize__  # what an object begins with: references, then its class
DATA, AXES, SHAPE, DTYPE, FLAGS = HEAD, HEAD + 8, HEAD + 16, HEAD + 40, HEAD + 48
DTYPE_KIND = HEAD + 8  # in a dtype, behind the class of its scalars
DTYPES = {"f": np.dtype(np.float64), "i": np.dtype(np.int64), "b": np.dtype(np.bool_)}
# C's `long` and `long long` both have 64 bits on Linux and macOS. NumPy calls one of them int64; arrays of the other
# hold the same numbers, but their dtype has another letter and number. On Windows only `long long` has 64 bits.
DTYPES["other i"] = next(
    (x for x in map(np.dtype, "lq") if x.itemsize == 8 and x.char != DTYPES["i"].char), DTYPES["i"]
)
#: The letters of NumPy's dtypes that are floats (f), int64 (i) and booleans (b).
LETTERS = {"f": "d", "i": DTYPES["i"].char + DTYPES["other i"].char, "b": "?"}

#: What a sweep that answers with objects returns where Python knows of an error, and where results are the caller's.
ERROR, TOLD = -1, 1

_CALLS = (
    "PyEval_SaveThread", "PyEval_RestoreThread", "PyLong_AsLongLong", "PyFloat_AsDouble", "PyLong_FromLongLong",
    "Py_IncRef", "Py_DecRef", "PyTuple_New", "PyTuple_SetItem", "PyType_GetFlags", "PyObject_Vectorcall",
)  # fmt: skip
_CONTEXT = ("ndarray", *DTYPES, "None", *_CALLS, "PyArray_New", "class", "slot", "otherwise")
_NEW_ARRAY = 93  # its place in NumPy's binary interface
_FASTCALL = 0x80


def context(owner=None, slot=None, otherwise=None):
    """Return the addresses that entries need, as bytes.

    ``owner`` is a class whose objects are taken for their ``slot``; ``otherwise`` is called where there is no answer.
    """
    api = ctypes.pythonapi
    found = {"ndarray": id(np.ndarray), "None": id(None), **{key: id(dtype) for key, dtype in DTYPES.items()}}
    found |= {name: ctypes.cast(getattr(api, name), ctypes.c_void_p).value for name in _CALLS}
    place = 0 if owner is None else place_of(owner, slot)
    found |= {"PyArray_New": new_array_at(), "class": id(owner) if place else 0, "slot": place}
    found["otherwise"] = 0 if otherwise is None else id(otherwise)
    return struct.pack(f"{len(_CONTEXT)}q", *(found[name] for name in _CONTEXT))


def new_array_at():
    """Return the address of NumPy's function that makes an array."""
    read = ctypes.pythonapi.PyCapsule_GetPointer
    read.restype, read.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = read(np._core.multiarray._ARRAY_API, None)
    return ctypes.cast(table, ctypes.POINTER(ctypes.c_void_p))[_NEW_ARRAY]


def place_of(owner, slot):
    """Return the offset of a slot in an object of a class; 0 if it cannot be determined."""
    probe, mark = object.__new__(owner), 2**60 + 1
    object.__setattr__(probe, slot, mark)
    words = (ctypes.c_void_p * (owner.__basicsize__ // 8)).from_address(id(probe))
    found = [8 * i for i, word in enumerate(words) if word == id(mark)]
    return found[0] if len(found) == 1 else 0


class Python:
    """CPython's functions, for code that is being written; objects are addresses, ``words`` the context."""

    def __init__(self, words):
        self.words = words

    def known(self, what):
        """Return an address of the context."""
        return self.words[_CONTEXT.index(what)]

    def call(self, what, returned, *args):
        """Call a function that returns this type."""
        args = [constant(INT, x) if isinstance(x, int) else now(x) for x in args]
        return tracing.builder.call(self.known(what), returned, args)

    def new_array(self, dims, count):
        """Make an array of floats with so many axes; 0, with a Python error set, if there is no memory."""
        axes, number, nought = (constant(WORD, x) for x in (count, DTYPES["f"].num, 0))
        return self.call("PyArray_New", INT, self.known("ndarray"), axes, dims, number, 0, 0, nought, nought, 0)

    def refer(self, thing):
        """Call Py_IncRef."""
        self.call("Py_IncRef", VOID, thing)

    def release(self, thing):
        """Call Py_DecRef."""
        self.call("Py_DecRef", VOID, thing)

    def tuple_of(self, things):
        """Make a tuple of objects to which nobody else refers; ERROR if there is no memory."""
        made = self.call("PyTuple_New", INT, len(things))
        for there in if_else(made != 0):
            for i, thing in enumerate(things):
                if there:
                    self.call("PyTuple_SetItem", WORD, made, i, thing)
                else:
                    self.release(thing)
        return where(made != 0, made, ERROR)


def field(thing, offset, kind=INT):
    """Load the field of an object at an offset in bytes."""
    return pointer(thing + offset, kind)[0]


def items(thing, count):
    """Return the objects of a tuple, which stores its length behind its head."""
    return [field(thing, tuple.__basicsize__ + 8 * i) for i in range(count)]


def check_layout():
    """Check that arrays and tuples have their fields where entries read them."""
    array = np.zeros((2, 3))
    pair = (None, array)

    def field(offset, kind, thing=array):
        return ctypes.cast(id(thing) + offset, ctypes.POINTER(kind))[0]

    right = (
        field(HEAD - 8, ctypes.c_void_p) == id(np.ndarray)
        and field(DATA, ctypes.c_void_p) == array.__array_interface__["data"][0]
        and field(AXES, ctypes.c_int) == 2
        and list(ctypes.cast(field(SHAPE, ctypes.c_void_p), ctypes.POINTER(ctypes.c_int64))[:2]) == [2, 3]
        and field(DTYPE, ctypes.c_void_p) == id(DTYPES["f"])
        and field(FLAGS, ctypes.c_int) & 0x701 == 0x501
        and ctypes.string_at(id(array.dtype) + DTYPE_KIND, 3) == b"fd="
        and ctypes.cast(id(array.dtype) + DTYPE_KIND + 4, ctypes.POINTER(ctypes.c_int))[0] == array.dtype.num
        and field(HEAD, ctypes.c_int64, pair) == 2
        and field(tuple.__basicsize__ + 8, ctypes.c_void_p, pair) == id(array)
        and _makes_arrays()
    )
    if not right:
        raise ImportError(
            f"arrays of NumPy {np.__version__} are laid out in a way that this version of kfdyn does not know"
        )


def _makes_arrays():
    """Check that NumPy's function makes an array."""
    size, number, word = ctypes.POINTER(ctypes.c_int64), ctypes.c_int, ctypes.c_void_p
    kind = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object, number, size, number, word, word, number, number, word)
    dims = (ctypes.c_int64 * 2)(2, 3)
    made = kind(new_array_at())(np.ndarray, 2, dims, DTYPES["f"].num, None, None, 0, 0, None)
    return type(made) is np.ndarray and made.shape == (2, 3) and made.dtype == DTYPES["f"]


class _Method(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("at", ctypes.c_void_p), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p)]


class _Context(bytes):
    """Keeps the context of a function and the engine of its code alive as long as the function."""


def python_function(name, address, code, *taken):
    """Make a Python function from an address; it keeps its ``code`` alive.

    ``taken`` are the class and the slot of a model, if it takes one, and what is called instead of an answer of None.
    """
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype, make.argtypes = ctypes.py_object, [ctypes.POINTER(_Method), ctypes.py_object, ctypes.c_void_p]
    method = _Method(name.encode(), address, _FASTCALL, None)
    # A function looks into its definition even while it is taken down. Whatever a module keeps may be gone by then, as
    # the interpreter ends, so nobody may ever let go of this.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(method))
    own = _Context(context(*taken))
    own.kept = code, taken
    return make(ctypes.byref(method), own, None)
