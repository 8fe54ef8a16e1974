"""Proxies for the values of compiled code: their operators write LLVM instructions.

A recursion is an ordinary Python function. Run on Python's floats it computes; run on these proxies it writes the code
that will compute, once, while it is compiled. A number is a double, or several side by side, one in every *lane*.
Python's own numbers may be mixed in: they become constants, and 0 and 1 vanish from products and sums.
"""

import operator
import struct
from functools import lru_cache

from kfdyn.sweeps.compiler.ir import BIT, BYTE, INT, REAL, integer, vector
from kfdyn.sweeps.trace_context import tracing


def wide(lanes):
    """Return the IR type of a number in so many lanes."""
    return vector(REAL, lanes)


def _is(value, constant):
    """Return True if a number is Python's own and equals a constant."""
    return isinstance(value, int | float) and value == constant


class Value:
    """A number, an index or a condition of the code that is being written."""

    __slots__ = ("name", "type")

    def __init__(self, kind, name):
        self.type, self.name = kind, name

    def __str__(self):
        return f"{self.type} {self.name}"

    @property
    def ir(self):
        """The value as an instruction operand: itself."""
        return self

    def _both(self, other):
        """Return both operands with one type, in lanes if one of them is."""
        a = self.ir
        if not isinstance(other, Value):
            return a, ir_of(other, a.type)
        b = other.ir
        if a.type is b.type:
            return a, b
        kind = b.type if b.type.count > 1 else a.type
        return ir_of(a, kind), ir_of(b, kind)

    def _binary(self, other, real, whole, swapped=False):
        a, b = self._both(other)
        if swapped:
            a, b = b, a
        if a.type.whole:
            return getattr(tracing.builder, whole)(a, b)
        return tracing.builder.operate(f"{real} {tracing.flags}", a, b)

    def __add__(self, other):
        return self if _is(other, 0) else self._binary(other, "fadd", "add")

    __radd__ = __add__

    def __sub__(self, other):
        return self if _is(other, 0) else self._binary(other, "fsub", "sub")

    def __rsub__(self, other):
        return -self if _is(other, 0) else self._binary(other, "fsub", "sub", swapped=True)

    def __mul__(self, other):
        if not isinstance(other, Value | int | float | Variable):
            return NotImplemented  # a vector, which knows how
        if _is(other, 0):
            return other
        if _is(other, 1):
            return self
        if isinstance(other, float) and other == -1.0:
            return -self
        return self._binary(other, "fmul", "mul")

    __rmul__ = __mul__

    def __truediv__(self, other):
        return self if _is(other, 1) else self._binary(other, "fdiv", "")

    def __rtruediv__(self, other):
        return self._binary(other, "fdiv", "", swapped=True)

    def __floordiv__(self, other):
        return tracing.builder.operate("sdiv", *self._both(other))

    def __mod__(self, other):
        return tracing.builder.operate("srem", *self._both(other))

    def __neg__(self):
        value = self.ir
        if value.type.whole:
            return tracing.builder.sub(constant(INT, 0), value)
        return tracing.builder.pure(value.type, f"fneg {value}")

    def _compare(self, other, sign):
        return tracing.builder.compare(sign, *self._both(other))

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

    def _joined(self, what, other):
        value = self.ir
        return tracing.builder.operate(what, value, ir_of(other, value.type))

    def __and__(self, other):
        return self._joined("and", other)

    __rand__ = __and__

    def __or__(self, other):
        return self._joined("or", other)

    __ror__ = __or__

    def __invert__(self):
        lanes = self.type.count
        return self._joined("xor", constant(self.type, (1,) * lanes if lanes > 1 else 1))

    def __abs__(self):
        return where(self < 0, -self, self) if self.type.whole else lanewise("fabs", self)

    def __pow__(self, power):
        return _power(self, power)

    def __bool__(self):
        raise TypeError("this is not known before the code runs: use if_(...), if_else(...) or where(...)")

    def __index__(self):
        raise TypeError("this index is not known before the code runs: use loop(...)")

    def __float__(self):
        raise TypeError(f"this number is not known before the code runs: {_INSTEAD}")

    __int__ = __round__ = __float__

    def __iter__(self):
        raise TypeError("this is one number and not several: for i in loop(n) counts to an index n")

    def __array_ufunc__(self, ufunc, method, *given, **more):
        """Accept NumPy's scalars on the left of an operator; refuse NumPy's functions."""
        act = getattr(operator, _OPERATORS.get(ufunc.__name__, ""), None)
        if act is None or method != "__call__" or more:
            raise TypeError(
                f"NumPy's {ufunc.__name__} takes no number that is not known before the code runs: {_INSTEAD}"
            )
        return act(*(x.item() if hasattr(x, "item") else x for x in given))


_INSTEAD = (
    "instead of the functions of math and numpy use abs(x), or sqrt, sincos, atan2, minimum, maximum or to_float "
    "of kfdyn.sweeps"
)

# Of NumPy's functions, those that are operators.
_OPERATORS = {
    "add": "add", "subtract": "sub", "multiply": "mul", "divide": "truediv", "floor_divide": "floordiv",
    "remainder": "mod", "power": "pow", "negative": "neg", "absolute": "abs", "less": "lt", "less_equal": "le",
    "greater": "gt", "greater_equal": "ge", "equal": "eq", "not_equal": "ne",
}  # fmt: skip


def _power(x, power):
    """Return an integer power by repeated squaring."""
    power = unboxed(power)
    if not isinstance(power, int):
        raise TypeError("a power is an integer that is known while code is written, as in x ** 2; sqrt(x) is √x")
    if power < 0:
        return 1.0 / _power(x, -power)
    made = 1 if x.type.whole else 1.0
    for bit in f"{power:b}":
        made = made * made * x if bit == "1" else made * made
    return made


class Constant(Value):
    """A value known while code is written."""

    __slots__ = ("known",)


@lru_cache(maxsize=4096)
def _constant(kind, bits):
    if bits is None:
        made = Constant(kind, "undef")
    elif isinstance(bits, int):
        made = Constant(kind, str(bits) if kind.pointee is None else "null")
    elif isinstance(bits, bytes):
        text = f"0x{bits.hex()}"
        made = Constant(kind, text if kind.count == 1 else f"<{', '.join([f'{kind.part} {text}'] * kind.count)}>")
    else:
        made = Constant(kind, f"<{', '.join(f'{kind.part} {x}' for x in bits)}>")
    made.known = bits
    return made


def constant(kind, value):
    """Return a constant of this type, the same in every lane; a tuple of integers lane by lane; None is undefined."""
    return _constant(kind, struct.pack(">d", value) if isinstance(value, float) else value)


class Variable:
    """A value that changes: ``total += x`` changes it, ``total = total + x`` makes another number.

    Of the two kinds (:mod:`variables`) one is a :class:`Value`, the other holds a ``value`` of Python's.
    """

    def __iadd__(self, other):
        self.set(self + other)
        return self

    def __isub__(self, other):
        self.set(self - other)
        return self


def unboxed(value):
    """Return the value of a Python variable; anything else as it is."""
    return value.value if isinstance(value, Variable) and not isinstance(value, Value) else value


def now(variable):
    """Return the current value of a variable, which later changes do not touch."""
    return variable.ir if isinstance(variable, Value) else unboxed(variable)


def lanes_of(x):
    """Return the number of lanes."""
    return x.type.count if isinstance(x, Value) else 1


def where(condition, yes, no):
    """Return ``yes if condition else no``, both computed, lane by lane."""
    condition = unboxed(condition)
    if not isinstance(condition, Value):
        return unboxed(yes if condition else no)
    lanes = max(map(lanes_of, (condition, yes, no)))
    kinds = [x.type for x in (yes, no) if isinstance(x, Value)]
    if lanes > 1:
        kind = wide(lanes)
    elif kinds:
        kind = kinds[0]
    else:
        kind = INT if isinstance(yes, int) and isinstance(no, int) else REAL
    return tracing.builder.select(condition.ir, ir_of(yes, kind), ir_of(no, kind))


def not_(condition):
    """Negate a condition; Python's own ~True is −2."""
    condition = unboxed(condition)
    return ~condition if isinstance(condition, Value) else not condition


def number(value, lanes=1):
    """Return a number as an operand, in every lane."""
    return ir_of(value, wide(lanes))


def lanewise(name, *args):
    """Apply an LLVM intrinsic lane by lane."""
    lanes = max(map(lanes_of, args))
    name = f"llvm.{name}.{f'v{lanes}f64' if lanes > 1 else 'f64'}"
    numbers = [number(x, lanes) for x in args]
    return tracing.builder.call(name, numbers[0].type, numbers, pure=True)


def broadcast(value, lanes):
    """Repeat a number in every lane; return it as it is where no code is written."""
    return value if tracing.builder is None else number(value, lanes)


def to_int(condition):
    """Return 1 where the condition holds, else 0."""
    condition = unboxed(condition)
    return tracing.builder.cast("zext", condition.ir, INT) if isinstance(condition, Value) else int(condition)


def to_float(i):
    """Return an index as a number."""
    i = unboxed(i)
    return tracing.builder.cast("sitofp", i.ir, REAL) if isinstance(i, Value) else float(i)


def lane(x, l):
    """Return lane l of a number, l known while code is written."""
    return x if lanes_of(x) == 1 else tracing.builder.pure(REAL, f"extractelement {x.ir}, i32 {l}")


def from_lanes(values):
    """Join numbers as the lanes of one."""
    values = [ir_of(value, REAL) for value in values]
    if len(values) == 1:
        return values[0]
    made = constant(wide(len(values)), None)
    for l, value in enumerate(values):
        made = tracing.builder.insert_element(made, value, l)
    return made


def vanishing(x):
    """Return 0 where a number is finite, else NaN; this product is never optimised away."""
    x = now(x)
    return tracing.builder.operate("fmul", x, constant(x.type, 0.0)) if isinstance(x, Value) else x * 0.0


def all_lanes(condition):
    """Return True if a condition holds in all lanes."""
    return _of_lanes(condition, "==", -1)


def any_lanes(condition):
    """Return True if a condition holds in some lane."""
    return _of_lanes(condition, "!=", 0)


def _of_lanes(condition, sign, bits):
    """Compare the bits of a condition's lanes with these."""
    condition = unboxed(condition)
    if lanes_of(condition) == 1:
        return condition
    found = tracing.builder.cast("bitcast", condition.ir, integer(condition.type.count))
    return tracing.builder.compare(sign, found, constant(found.type, bits))


def ir_of(value, kind):
    """Return a value or a Python number as an operand of this type, in every lane if lanes are wanted."""
    value = now(value)
    if not isinstance(value, Value):
        if not kind.whole:
            return constant(kind, float(value))
        if isinstance(value, float):
            raise TypeError(f"{value} is not {_noun(kind)}")
        return constant(kind, int(value))
    if value.type is kind:
        return value
    if kind.count > value.type.count == 1:
        return tracing.builder.in_all_lanes(value, kind)
    if kind is BYTE and value.type is BIT:
        return tracing.builder.cast("zext", value, kind)
    cure = _CURES.get((value.type, kind), "")
    if value.type.part is kind:
        cure = f": broadcast(x, {value.type.count}) is a number in as many lanes, for a variable to begin with"
    raise TypeError(f"{_noun(value.type)} stands where {_noun(kind)} is wanted{cure}")


_NOUNS = {REAL: "a number", INT: "an index", BIT: "a condition", BYTE: "a truth value"}
_CURES = {
    (INT, REAL): ": to_float(i) is the number of an index i",
    (REAL, INT): ": indices are counted by loop(n), or stand in arrays of int64",
    (BIT, REAL): ": where(c, 1.0, 0.0) is a number",
    (BIT, INT): ": to_int(c) is 1 where a condition c holds, else 0",
    (REAL, BIT): ": x != 0.0 is a condition",
    (INT, BIT): ": i != 0 is a condition",
}


def _noun(kind):
    """Name a type of LLVM in error messages."""
    noun = _NOUNS.get(kind.part, str(kind.part))
    return noun if kind.count == 1 else f"{noun} in {kind.count} lanes"
