"""Proxies of the values that compiled code will have, for functions that write code (see :mod:`emit`).

Their operators write LLVM's instructions where numba's builder stands. A number is a double, or several side by side:
one in every lane.
"""

import kfdyn._kernels.compiler  # isort: skip  # noqa: F401

from contextlib import contextmanager

from llvmlite import ir
from numba.core import cgutils

#: May be reassociated: short sums then use vector registers; NaN and infinity keep their meaning.
FAST = ("contract", "reassoc", "nsz", "arcp")

#: For what cancels on purpose: there the order of the operations is the method.
IN_ORDER = ("contract",)

INT = ir.IntType(64)
_BYTE = ir.IntType(8)
BIT = ir.IntType(1)


class Place:
    """Where code is being written: numba's builder, and the liberties of its arithmetic."""

    builder: ir.IRBuilder = None
    flags: tuple[str, ...] = ()


@contextmanager
def arithmetic(flags):
    """Write numbers' operations with these liberties."""
    before, Place.flags = Place.flags, flags
    try:
        yield
    finally:
        Place.flags = before


def builder():
    """Numba's builder at the place where code is being written."""
    return Place.builder


class Value:
    """A number, an index or a condition of the code that is being written."""

    def __init__(self, value):
        self._value = value

    @property
    def ir(self):
        """What the builder takes."""
        return self._value

    def _both(self, other):
        """What the builder takes for both, as numbers in lanes where one of them is."""
        a, b = self.ir, other.ir if isinstance(other, Value) else other
        kind = b.type if isinstance(other, Value) and isinstance(b.type, ir.VectorType) else a.type
        return ir_of(a, kind), ir_of(b, kind)

    def _binary(self, other, real, whole, swapped=False):
        a, b = self._both(other)
        if swapped:
            a, b = b, a
        if isinstance(a.type, ir.IntType):
            return Value(getattr(Place.builder, whole)(a, b, flags=("nsw",)))
        return Value(getattr(Place.builder, real)(a, b, flags=Place.flags))

    def __add__(self, other):
        return self._binary(other, "fadd", "add")

    __radd__ = __add__

    def __sub__(self, other):
        return self._binary(other, "fsub", "sub")

    def __rsub__(self, other):
        return self._binary(other, "fsub", "sub", swapped=True)

    def __mul__(self, other):
        return self._binary(other, "fmul", "mul")

    __rmul__ = __mul__

    def __truediv__(self, other):
        return self._binary(other, "fdiv", "")

    def __rtruediv__(self, other):
        return self._binary(other, "fdiv", "", swapped=True)

    def __neg__(self):
        return Value(Place.builder.fneg(self.ir))

    def _compare(self, other, sign):
        a, b = self._both(other)
        # As Python has it: nothing is less than NaN, or equal to it.
        kind = "icmp_signed" if isinstance(a.type, ir.IntType) else "fcmp_unordered" if sign == "!=" else "fcmp_ordered"
        return Value(getattr(Place.builder, kind)(sign, a, b))

    def __lt__(self, other):
        return self._compare(other, "<")

    def __le__(self, other):
        return self._compare(other, "<=")

    def __ge__(self, other):
        return self._compare(other, ">=")

    def __gt__(self, other):
        return self._compare(other, ">")

    def __eq__(self, other):
        return self._compare(other, "==")

    def __ne__(self, other):
        return self._compare(other, "!=")

    __hash__ = None  # type: ignore[assignment]

    def __and__(self, other):
        return Value(Place.builder.and_(self.ir, ir_of(other, self.ir.type)))

    def __or__(self, other):
        return Value(Place.builder.or_(self.ir, ir_of(other, self.ir.type)))

    def __invert__(self):
        return Value(Place.builder.not_(self.ir))

    def __bool__(self):
        raise TypeError("this is not known before the code runs: use when(...) or choice(...)")


class Local(Value):
    """A variable."""

    @property
    def ir(self):
        """Its value now."""
        return Place.builder.load(self._value)

    def set(self, value):
        """Give it another value."""
        Place.builder.store(ir_of(value, self._value.type.pointee), self._value)

    def __iadd__(self, other):
        self.set(self + other)
        return self

    def __isub__(self, other):
        self.set(self - other)
        return self


class Vector:
    """Numbers in memory, one after the other; ``size`` of them where that is known."""

    def __init__(self, data, size=None):
        self.data, self.size = data, size

    def __getitem__(self, i):
        value = Place.builder.load(_at(self.data, i))
        return Value(Place.builder.trunc(value, BIT) if value.type == _BYTE else value)

    def __setitem__(self, i, value):
        place = _at(self.data, i)
        Place.builder.store(ir_of(value, place.type.pointee), place)


class Matrix:
    """Numbers in memory, row by row."""

    def __init__(self, data, shape):
        self.data, self.shape = data, shape

    def _row(self, i):
        return Vector(_at(self.data, i * self.shape[1]))

    def __getitem__(self, place):
        return self._row(place[0])[place[1]]

    def __setitem__(self, place, value):
        self._row(place[0])[place[1]] = value


def choice(condition, yes, no):
    """``yes if condition else no``, both of which are computed."""
    like = yes if isinstance(yes, Value) else no
    kind = like.ir.type if isinstance(like, Value) else ir.DoubleType()
    return Value(Place.builder.select(condition.ir, ir_of(yes, kind), ir_of(no, kind)))


def local(value):
    """A new variable."""
    value = value.ir if isinstance(value, Value) else ir_of(value, INT if isinstance(value, int) else ir.DoubleType())
    place = cgutils.alloca_once(Place.builder, value.type)
    Place.builder.store(value, place)
    return Local(place)


def vector(flat, start, n=None):
    """The n numbers from start on."""
    return Vector(_at(flat.data, start), n)


def matrix(flat, start, rows, columns):
    """The numbers from start on as a matrix (rows, columns)."""
    return Matrix(_at(flat.data, start), (rows, columns))


def number(value, lanes=1):
    """What the builder takes for a number, in every lane."""
    return ir_of(value, ir.DoubleType() if lanes == 1 else ir.VectorType(ir.DoubleType(), lanes))


def count(condition):
    """1 where the condition holds, else 0."""
    return Value(Place.builder.zext(condition.ir, INT))


def real(i):
    """An index as a number."""
    return Value(Place.builder.sitofp(i.ir, ir.DoubleType())) if isinstance(i, Value) else float(i)


def absolute(x):
    """|x|."""
    return _function("fabs", x)


def root(x):
    """√x."""
    return _function("sqrt", x)


def _function(name, x):
    double = ir.DoubleType()
    function = cgutils.get_or_insert_function(
        Place.builder.module, ir.FunctionType(double, [double]), f"llvm.{name}.f64"
    )
    return Value(Place.builder.call(function, [x.ir]))


def _at(data, i):
    return Place.builder.gep(data, [ir_of(i, INT)], inbounds=True)


def ir_of(value, kind):
    """What the builder takes, for a proxy or a number of Python; a number in every lane where lanes are wanted."""
    value = value.ir if isinstance(value, Value) else value
    if not isinstance(value, ir.Value):
        if isinstance(kind, ir.IntType) and isinstance(value, float):
            raise TypeError(f"{value} is no index")
        value = int(value) if isinstance(value, bool) else value
        return ir.Constant(kind, [float(value)] * kind.count if isinstance(kind, ir.VectorType) else value)
    if value.type == kind:
        return value
    if isinstance(kind, ir.VectorType):
        bottom = ir.Constant(kind, ir.Undefined)
        first = Place.builder.insert_element(bottom, value, ir.Constant(ir.IntType(32), 0))
        mask = ir.Constant(ir.VectorType(ir.IntType(32), kind.count), [0] * kind.count)
        return Place.builder.shuffle_vector(first, bottom, mask)
    if kind == _BYTE:
        return Place.builder.zext(value, kind)
    raise TypeError(f"{value.type} is no {kind}")
