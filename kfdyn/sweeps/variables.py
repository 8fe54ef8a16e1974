"""Variables: on the stack in compiled code, in a box for Python's own numbers."""

import operator

from kfdyn.sweeps.compiler.ir import BIT, INT, REAL
from kfdyn.sweeps.trace_context import settled, tracing
from kfdyn.sweeps.values import Value, Variable, ir_of, unboxed


def local(value):
    """Make a variable: in compiled code while code is written, unless Python can keep it."""
    written = isinstance(value, Value) or (isinstance(value, int | float) and not tracing.unrolled)
    if tracing.builder is None or not written:
        return Box(unboxed(value))
    if isinstance(value, Value):
        value = value.ir
    else:
        value = ir_of(value, BIT if isinstance(value, bool) else INT if isinstance(value, int) else REAL)
    place = tracing.builder.alloca(value.type)
    tracing.builder.store(value, place)
    return Local(place)


class Local(Variable, Value):
    """A variable of compiled code, on its stack."""

    def __init__(self, place):
        self.place = place

    @property
    def ir(self):
        """Its current value."""
        return tracing.builder.load(self.place)

    @property
    def type(self):
        """Type of its values."""
        return self.place.type.pointee

    def set(self, value):
        """Set another value."""
        tracing.builder.store(ir_of(value, self.type), self.place)


class Box(Variable):
    """A variable that holds Python's numbers or symbols, as :class:`Local` does in compiled code."""

    def __init__(self, value):
        self.value, self.depth = value, tracing.depth

    def set(self, value):
        """Set another value."""
        settled(self.depth)
        self.value = unboxed(value)

    def __index__(self):
        return self.value.__index__()

    def __bool__(self):
        return bool(self.value)

    def __float__(self):
        return float(self.value)

    def __neg__(self):
        return -self.value

    def __abs__(self):
        return abs(self.value)

    def __pow__(self, power):
        return self.value ** unboxed(power)

    def __invert__(self):
        return not self.value

    __hash__ = None  # type: ignore[assignment]


def _box_operators():
    """Give boxes the operators of their values, on either side."""
    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "and_", "or_", "lt", "le", "gt", "ge", "eq", "ne"):
        act, plain = getattr(operator, name), name.rstrip("_")
        setattr(Box, f"__{plain}__", lambda self, other, act=act: act(self.value, unboxed(other)))
        if len(plain) > 2 or plain == "or":  # Python turns comparisons round by itself
            setattr(Box, f"__r{plain}__", lambda self, other, act=act: act(unboxed(other), self.value))


_box_operators()
