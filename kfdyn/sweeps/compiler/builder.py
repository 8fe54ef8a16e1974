"""Write LLVM instructions one after the other: what the proxies of :mod:`values` call.

It writes little, so that there is little to read, to optimise and to check again:

- an operation without side effects that stands already on the way to this place is not written again (a *body* of a
  loop or a branch sees what was written before it, and takes what it wrote along when it ends);
- of indices a factor and an offset stay Python's own until somebody wants the sum, so that ``rows[t].R`` is one
  address and nine distances from it.
"""

from contextlib import contextmanager

from kfdyn.sweeps.compiler.ir import BIT, INT, WORD, Block, Function, Type, vector
from kfdyn.sweeps.values import Constant, Value, constant


class Index(Value):
    """An index base · factor + offset, written only when its name is asked for."""

    __slots__ = ("_builder", "base", "factor", "offset")

    def __init__(self, builder, base, factor, offset):
        self._builder, self.base, self.factor, self.offset, self.type = builder, base, factor, offset, INT

    @property
    def name(self):
        """Name of the sum, written now."""
        name, build = self.base.name, self._builder
        if self.factor != 1:
            name = build.pure(INT, f"mul nsw i64 {name}, {self.factor}").name
        return build.pure(INT, f"add nsw i64 {name}, {self.offset}").name if self.offset else name


class Distance(Value):
    """A pointer some elements away from another."""

    __slots__ = ("_builder", "base", "offset")

    def __init__(self, builder, base, offset):
        self._builder, self.base, self.offset, self.type = builder, base, offset, base.type

    @property
    def name(self):
        """Name of the sum, written now."""
        to = f"getelementptr inbounds {self.type.pointee}, {self.base}, i64 {self.offset}"
        return self._builder.pure(self.type, to).name


def _parts(index):
    """Return base, factor and offset of an index; the base of a constant is None."""
    if isinstance(index, Index):
        return index.base, index.factor, index.offset
    if isinstance(index, Constant):
        return None, 0, index.known
    return index, 1, 0


_SIGNS = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}


class Builder:
    """Writer of instructions at the end of a block of a function.

    ``depth``: how many branches that are not known until the code runs stand around this place; ``left``: whether
    somebody has left a body before its end.
    """

    def __init__(self, function):
        self.function, self.made, self.depth, self.left = function, 0, 0, False
        self.args = [Value(kind, f"%a{i}") for i, kind in enumerate(function.given)]
        self.known, self.fresh = {}, []  # what stands already, and what of it since the body began
        (self.block,) = self.blocks(1)

    def pure(self, kind, text):
        """Write an operation without side effects, or return its value if it was written already."""
        found = self.known.get(text)
        if found is None:
            found = self.known[text] = self.value(kind, text)
            self.fresh.append(text)
        return found

    def value(self, kind, text):
        """Write an instruction and return its value."""
        self.made += 1
        name = f"%v{self.made}"
        self.block.lines.append(f"{name} = {text}")
        return Value(kind, name)

    def line(self, text):
        """Write an instruction without a value."""
        self.block.lines.append(text)

    # Blocks.

    def blocks(self, count):
        """Add blocks to the function."""
        there = self.function.blocks
        there += [Block(f"b{len(there) + i}") for i in range(count)]
        return there[-count:]

    @contextmanager
    def body(self, block, onward, after=None):
        """Write a block that continues at ``onward``; afterwards write at ``after``, or at ``onward``.

        What is written in it may not have run where it ends.
        """
        self.block = block
        before, self.fresh = self.fresh, []
        self.depth += 1
        try:
            yield
        except GeneratorExit:  # its ``for`` has ended without it; an error here nobody would see
            self.left = True
            raise
        finally:
            for text in self.fresh:
                del self.known[text]
            self.fresh = before
            self.depth -= 1
        if not self.block.ended:
            self.branch(onward)
        self.block = after or onward

    def branch(self, block):
        """Jump to a block."""
        self._end(f"br label %{block.name}")

    def fork(self, condition, yes, no, likely=None):
        """Jump to one of two blocks by a condition."""
        weights = "" if likely is None else f", !prof !{0 if likely else 1}"
        self._end(f"br {condition}, label %{yes.name}, label %{no.name}{weights}")

    def ret(self, value):
        """Return from the function."""
        self._end(f"ret {value}")

    def _end(self, text):
        self.line(text)
        self.block.ended = True

    # Arithmetic.

    def operate(self, what, a, b):
        """Write an operation on two values of one type; ``what`` names it and its fast-math flags."""
        return self.pure(a.type, f"{what} {a}, {b.name}")

    def add(self, a, b):
        """Add two indices."""
        return self._sum("add", 1, a, b)

    def sub(self, a, b):
        """Subtract two indices."""
        return self._sum("sub", -1, a, b)

    def _sum(self, what, sign, a, b):
        (x, f, c), (y, g, d) = _parts(a), _parts(b)
        if x is None or y is None or x is y:
            return self.index(x if y is None else y, f + sign * g, c + sign * d)
        x, y = self.index(x, f, 0).name, self.index(y, g, 0).name
        return self.index(self.pure(INT, f"{what} nsw i64 {x}, {y}"), 1, c + sign * d)

    def mul(self, a, b):
        """Multiply two indices."""
        (x, f, c), (y, g, d) = _parts(a), _parts(b)
        if x is None or y is None:
            factor = c if x is None else d
            return self.index(x if y is None else y, (f + g) * factor, (d if x is None else c) * factor)
        return self.pure(INT, f"mul nsw i64 {a.name}, {b.name}")

    def index(self, base, factor, offset):
        """Return base · factor + offset."""
        if base is None or factor == 0:
            return constant(INT, offset)
        return base if factor == 1 and offset == 0 else Index(self, base, factor, offset)

    def compare(self, sign, a, b):
        """Compare lane by lane; as in Python, nothing is less than NaN or equal to it."""
        if a.type.whole:
            what = f"icmp {'s' if len(sign) == 1 or sign[0] in '<>' else ''}{_SIGNS[sign]}"
        else:
            what = f"fcmp {'u' if sign == '!=' else 'o'}{_SIGNS[sign]}"
        return self.pure(vector(BIT, a.type.count), f"{what} {a}, {b.name}")

    def select(self, condition, yes, no):
        """Select one of two values."""
        return self.pure(yes.type, f"select {condition}, {yes}, {no}")

    def cast(self, what, a, kind):
        """Convert to another type: trunc, zext, sext, sitofp, ptrtoint, inttoptr, bitcast."""
        if what == "bitcast" and str(kind) == str(a.type):  # pointers of a newer LLVM
            return Value(kind, a.name)
        return self.pure(kind, f"{what} {a} to {kind}")

    # Lanes.

    def insert_element(self, a, x, l):
        """Replace lane l, known, of a vector."""
        return self.pure(a.type, f"insertelement {a}, {x}, i32 {l}")

    def shuffle_vector(self, a, b, lanes):
        """Pick lanes of two vectors by number."""
        return self.pure(a.type, f"shufflevector {a}, {b}, {constant(vector(WORD, len(lanes)), tuple(lanes))}")

    def in_all_lanes(self, x, kind):
        """Repeat a number in all lanes of a vector type."""
        bottom = constant(kind, None)
        return self.shuffle_vector(self.insert_element(bottom, x, 0), bottom, [0] * kind.count)

    # Memory and calls.

    def gep(self, place, index):
        """Return the pointer so many elements further on."""
        base, offset = (place.base, place.offset) if isinstance(place, Distance) else (place, 0)
        x, factor, more = _parts(index)
        if x is not None:
            to = f"getelementptr {base.type.pointee}, {base}, i64 {self.index(x, factor, 0).name}"
            base = self.pure(base.type, to)
        return Distance(self, base, offset + more) if offset + more else base

    def load(self, place, align=None):
        """Load a value."""
        kind = place.type.pointee
        return self.value(kind, f"load {kind}, {place}" + (f", align {align}" if align else ""))

    def store(self, value, place, align=None):
        """Store a value."""
        self.line(f"store {value}, {place}" + (f", align {align}" if align else ""))

    def alloca(self, kind, count=1, align=None):
        """Reserve a place on the stack, once for the whole function."""
        self.made += 1
        more = (f", i64 {count}" if count > 1 else "") + (f", align {align}" if align else "")
        self.function.places.append(f"%v{self.made} = alloca {kind}{more}")
        return Value(kind.as_pointer(), f"%v{self.made}")

    def call(self, name, returned, args, pure=False):
        """Call a function by its name, or by its address; ``pure``: one without side effects."""
        if isinstance(name, str):
            functions = self.function.module.functions
            if name not in functions:
                Function(self.function.module, name, returned, [a.type for a in args])
            callee = f'@"{name}"'
        else:
            kind = Type(f"{returned} ({', '.join(str(a.type) for a in args)})")
            callee = self.cast("inttoptr", name, kind.as_pointer()).name
        text = f"call {returned} {callee}({', '.join(map(str, args))})"
        if str(returned) == "void":
            return self.line(text)
        return (self.pure if pure else self.value)(returned, text)
