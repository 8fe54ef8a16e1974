"""LLVM's language as text: what the proxies of :mod:`values` write, instruction by instruction.

A writer of our own, since most of what llvmlite's would do is not wanted, and to write is a third of the wait for first
use. It writes less, so that there is less to read, to optimise and to check again:

- an operation without side effects that stands already on the way to this place is not written again (*scopes*: a body
  of a loop or a branch sees what was written before it, and takes what it wrote along when it ends);
- of indices a factor and an offset stay Python's own until somebody wants the sum, so that ``rows[t].R`` is one
  address and nine distances from it.
"""

import struct
from contextlib import contextmanager
from functools import cache, lru_cache


class Type:
    """A type; there is one object of each, so that two are equal only if they are the same."""

    __slots__ = ("_pointer", "_text", "count", "pointee")

    def __init__(self, text, pointee=None, count=1):
        self._text, self.pointee, self.count, self._pointer = text, pointee, count, None

    def as_pointer(self):
        """What points at one."""
        if self._pointer is None:
            self._pointer = PointerType(None, self)
        return self._pointer

    def __str__(self):
        return self._text


class IntType(Type):
    """Integers of so many bits."""

    __slots__ = ()


class VectorType(Type):
    """So many doubles or integers side by side."""

    __slots__ = ()


class PointerType(Type):
    """Pointers."""

    __slots__ = ()

    def __str__(self):
        return f"{self.pointee}*" if _typed() else "ptr"


@cache
def _typed():
    """Whether this LLVM wants to be told what a pointer points at."""
    from llvmlite.binding import llvm_version_info

    return llvm_version_info[0] < 17


@cache
def integer(bits):
    """Integers of so many bits."""
    return IntType(f"i{bits}")


@cache
def vector(kind, count):
    """So many numbers of a kind side by side."""
    return VectorType(f"<{count} x {kind}>", None, count)


class FunctionType(Type):
    """What a function is given and returns."""

    __slots__ = ("given", "returned")

    def __init__(self, returned, given):
        super().__init__(None)
        self.returned, self.given = returned, tuple(given)

    def __str__(self):
        return f"{self.returned} ({', '.join(map(str, self.given))})"


INT, WORD, BYTE, BIT, REAL, VOID = integer(64), integer(32), integer(8), integer(1), Type("double"), Type("void")
EXCHANGED = Type("{i64, i1}")


class Value:
    """Something that instructions take: its type, and its name."""

    __slots__ = ("name", "type")

    def __init__(self, kind, name):
        self.type, self.name = kind, name


class Constant(Value):
    """A number that is known."""

    __slots__ = ("known",)


@lru_cache(maxsize=4096)
def _constant(kind, bits):
    if bits is None:
        made = Constant(kind, "undef")
    elif isinstance(bits, int):
        made = Constant(kind, "null" if isinstance(kind, PointerType) else str(bits))
    elif isinstance(bits, bytes):
        text = f"0x{bits.hex()}"
        made = Constant(kind, text if kind.count == 1 else f"<{', '.join([f'double {text}'] * kind.count)}>")
    else:
        made = Constant(kind, f"<{', '.join(f'i32 {x}' for x in bits)}>")
    made.known = bits
    return made


def constant(kind, value):
    """A number of this type, in every lane; a tuple of integers, lane by lane; None is any."""
    return _constant(kind, struct.pack(">d", value) if isinstance(value, float) else value)


class Index(Value):
    """base · factor + offset, written only where somebody asks for its name."""

    __slots__ = ("_base", "_builder", "factor", "offset")

    def __init__(self, builder, base, factor, offset):
        self._builder, self._base, self.factor, self.offset, self.type = builder, base, factor, offset, INT

    @property
    def name(self):
        """The name of the sum."""
        name, build = self._base.name, self._builder
        if self.factor != 1:
            name = build.pure(INT, f"mul nsw i64 {name}, {self.factor}").name
        return build.pure(INT, f"add nsw i64 {name}, {self.offset}").name if self.offset else name


class Distance(Value):
    """A pointer, so many elements away from another."""

    __slots__ = ("_base", "_builder", "offset")

    def __init__(self, builder, base, offset):
        self._builder, self._base, self.offset, self.type = builder, base, offset, base.type

    @property
    def name(self):
        """The name of the sum."""
        to = f"getelementptr inbounds {self.type.pointee}, {self.type} {self._base.name}, i64 {self.offset}"
        return self._builder.pure(self.type, to).name


def _parts(index):
    """Base, factor and offset of an index; the base of a constant is None."""
    if isinstance(index, Index):
        return index._base, index.factor, index.offset
    if isinstance(index, Constant):
        return None, 0, index.known
    return index, 1, 0


class Block:
    """A basic block: lines, of which the last leads elsewhere."""

    __slots__ = ("ended", "lines", "name")

    def __init__(self, name):
        self.name, self.lines, self.ended = name, [], False


class Function(Value):
    """A function: with blocks, or declared only."""

    __slots__ = ("args", "attributes", "blocks", "kind", "linkage", "places")

    def __init__(self, module, kind, name, linkage="", attributes=""):
        super().__init__(kind.as_pointer(), f'@"{name}"')
        self.kind, self.linkage, self.attributes, self.blocks, self.places = kind, linkage, attributes, [], []
        self.args = [Value(given, f"%a{i}") for i, given in enumerate(kind.given)]
        module.globals[name] = self

    def append_basic_block(self):
        """A new block."""
        self.blocks.append(Block(f"b{len(self.blocks)}"))
        return self.blocks[-1]

    def text(self):
        """The function as LLVM reads it."""
        if not self.blocks:
            return f"declare {self.kind.returned} {self.name}({', '.join(map(str, self.kind.given))})"
        given = ", ".join(f"{a.type} {a.name}" for a in self.args)
        lines = [f"define {self.linkage} {self.kind.returned} {self.name}({given}) {self.attributes} {{"]
        for i, block in enumerate(self.blocks):
            lines += [f"{block.name}:", *(self.places if i == 0 else ()), *map(str, block.lines)]
        return "\n".join((*lines, "}"))


class Module:
    """Functions that are compiled together."""

    def __init__(self, triple):
        self.triple, self.globals = triple, {}

    def __str__(self):
        weights = ('!0 = !{!"branch_weights", i32 99, i32 1}', '!1 = !{!"branch_weights", i32 1, i32 99}')
        head = f'target triple = "{self.triple}"'
        return "\n".join((head, *(function.text() for function in self.globals.values()), *weights, ""))


class Phi(Value):
    """A value that depends on whence one came."""

    __slots__ = ("whence",)

    def add_incoming(self, value, block):
        """Let it be this value where one comes from that block."""
        self.whence.append(f"[{value.name}, %{block.name}]")

    def __str__(self):
        return f"{self.name} = phi {self.type} {', '.join(self.whence)}"


@cache
def _spaced(flags):
    return "".join(f"{flag} " for flag in flags)


_SIGNS = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}


class Builder:
    """Writes instructions at the end of a block."""

    def __init__(self, module, function):
        self.module, self.function, self.made = module, function, 0
        self.known, self.fresh = {}, []  # what stands already, and what of it since the scope began
        self.basic_block = function.append_basic_block()

    # What stands on the way to this place.

    @contextmanager
    def scope(self):
        """What is written here may not have run where it ends."""
        before, self.fresh = self.fresh, []
        try:
            yield
        finally:
            for text in self.fresh:
                del self.known[text]
            self.fresh = before

    def pure(self, kind, text):
        """The value of an operation without side effects, which is not written again where it stands already."""
        found = self.known.get(text)
        if found is None:
            found = self.known[text] = self.value(kind, text)
            self.fresh.append(text)
        return found

    def value(self, kind, text):
        """The value of an instruction."""
        self.made += 1
        name = f"%v{self.made}"
        self.basic_block.lines.append(f"{name} = {text}")
        return Value(kind, name)

    def settled(self, value):
        """The same, written by now: for those who ask for its name where it is too late to write."""
        return Value(value.type, value.name)

    def line(self, text):
        """An instruction without a value."""
        self.basic_block.lines.append(text)

    # Blocks.

    def append_basic_block(self):
        """A new block of the function."""
        return self.function.append_basic_block()

    def position_at_end(self, block):
        """Go on at the end of a block."""
        self.basic_block = block

    def branch(self, block):
        """Go on there."""
        self._end(f"br label %{block.name}")

    def cbranch(self, condition, yes, no, likely=None):
        """Go on there if the condition holds, else here."""
        weights = "" if likely is None else f", !prof !{0 if likely else 1}"
        self._end(f"br i1 {condition.name}, label %{yes.name}, label %{no.name}{weights}")

    def ret(self, value):
        """Leave the function with this."""
        self._end(f"ret {value.type} {value.name}")

    def _end(self, text):
        self.basic_block.lines.append(text)
        self.basic_block.ended = True

    @contextmanager
    def if_then(self, condition, likely=None):
        """What is written here runs only if the condition holds."""
        body, after = self.append_basic_block(), self.append_basic_block()
        self.cbranch(condition, body, after, likely)
        with self._body(body, after):
            yield
        self.position_at_end(after)

    @contextmanager
    def if_else(self, condition):
        """Two contexts, for what runs if the condition holds and if not."""
        yes, no, after = self.append_basic_block(), self.append_basic_block(), self.append_basic_block()
        self.cbranch(condition, yes, no)
        yield self._body(yes, after), self._body(no, after)
        self.position_at_end(after)

    @contextmanager
    def _body(self, block, after):
        self.position_at_end(block)
        with self.scope():
            yield
        if not self.basic_block.ended:
            self.branch(after)

    def phi(self, kind):
        """A value that depends on whence one came."""
        self.made += 1
        made = Phi(kind, f"%v{self.made}")
        made.whence = []
        self.basic_block.lines.append(made)
        return made

    # Arithmetic.

    def real(self, what, a, b, flags):
        """An operation on doubles or lanes of them; ``flags`` says what the compiler may do."""
        return self.pure(a.type, f"{what} {_spaced(flags)}{a.type} {a.name}, {b.name}")

    def add(self, a, b):
        """The sum of two indices."""
        return self._sum("add", 1, a, b)

    def sub(self, a, b):
        """The difference of two indices."""
        return self._sum("sub", -1, a, b)

    def _sum(self, what, sign, a, b):
        (x, f, c), (y, g, d) = _parts(a), _parts(b)
        if x is None or y is None or x is y:
            return self.index(x if y is None else y, f + sign * g, c + sign * d)
        x, y = self.index(x, f, 0).name, self.index(y, g, 0).name
        return self.index(self.pure(INT, f"{what} nsw i64 {x}, {y}"), 1, c + sign * d)

    def mul(self, a, b):
        """The product of two indices."""
        (x, f, c), (y, g, d) = _parts(a), _parts(b)
        if x is None or y is None:
            factor = c if x is None else d
            return self.index(x if y is None else y, (f + g) * factor, (d if x is None else c) * factor)
        return self.pure(INT, f"mul nsw i64 {a.name}, {b.name}")

    def index(self, base, factor, offset):
        """base · factor + offset."""
        if base is None or factor == 0:
            return constant(INT, offset)
        return base if factor == 1 and offset == 0 else Index(self, base, factor, offset)

    def whole(self, what, a, b):
        """Another operation on integers or conditions."""
        return self.pure(a.type, f"{what} {a.type} {a.name}, {b.name}")

    def not_(self, a):
        """The opposite of a condition."""
        ones = "1" if a.type.count == 1 else f"<{', '.join(['i1 1'] * a.type.count)}>"
        return self.pure(a.type, f"xor {a.type} {a.name}, {ones}")

    def fneg(self, a):
        """−a."""
        return self.pure(a.type, f"fneg {a.type} {a.name}")

    def compare(self, sign, a, b):
        """A condition, lane by lane; as Python has it, nothing is less than NaN or equal to it."""
        kind = BIT if a.type.count == 1 else vector(BIT, a.type.count)
        if isinstance(a.type, IntType):
            what = f"icmp {'s' if len(sign) == 1 or sign[0] in '<>' else ''}{_SIGNS[sign]}"
        else:
            what = f"fcmp {'u' if sign == '!=' else 'o'}{_SIGNS[sign]}"
        return self.pure(kind, f"{what} {a.type} {a.name}, {b.name}")

    def select(self, condition, yes, no):
        """One of two values."""
        given = f"{condition.type} {condition.name}, {yes.type} {yes.name}, {no.type} {no.name}"
        return self.pure(yes.type, f"select {given}")

    def cast(self, what, a, kind):
        """The same as another type: trunc, zext, sext, sitofp, ptrtoint, inttoptr, bitcast."""
        if what == "bitcast" and isinstance(kind, PointerType) and not _typed():
            return Value(kind, a.name)
        return self.pure(kind, f"{what} {a.type} {a.name} to {kind}")

    # Lanes.

    def extract_element(self, a, l):
        """Lane l, known, of lanes of doubles."""
        return self.pure(REAL, f"extractelement {a.type} {a.name}, i32 {l}")

    def insert_element(self, a, x, l):
        """Lanes with lane l, known, changed."""
        return self.pure(a.type, f"insertelement {a.type} {a.name}, {x.type} {x.name}, i32 {l}")

    def shuffle_vector(self, a, b, lanes):
        """Lanes of two vectors by number."""
        mask = constant(vector(WORD, len(lanes)), tuple(lanes))
        return self.pure(a.type, f"shufflevector {a.type} {a.name}, {b.type} {b.name}, {mask.type} {mask.name}")

    def unseen(self, a, register):
        """The same lanes, of which the compiler knows nothing: an instruction that is none has taken and given them."""
        return self.pure(a.type, f'call {a.type} asm "", "={register},0"({a.type} {a.name})')

    # Memory and calls.

    def gep(self, place, index):
        """So many elements on from a place."""
        base, offset = (place._base, place.offset) if isinstance(place, Distance) else (place, 0)
        x, factor, more = _parts(index)
        if x is not None:
            kind = base.type
            to = f"getelementptr {kind.pointee}, {kind} {base.name}, i64 {self.index(x, factor, 0).name}"
            base = self.pure(kind, to)
        return Distance(self, base, offset + more) if offset + more else base

    def load(self, place, align=None):
        """What is there."""
        kind, at = place.type.pointee, f", align {align}" if align else ""
        return self.value(kind, f"load {kind}, {place.type} {place.name}{at}")

    def store(self, value, place, align=None):
        """Put it there."""
        at = f", align {align}" if align else ""
        self.line(f"store {value.type} {value.name}, {place.type} {place.name}{at}")

    def alloca(self, kind, count=None, align=None):
        """A place on the stack, reserved once for the whole function however often a loop comes by."""
        self.made += 1
        more = (f", i64 {count}" if count is not None else "") + (f", align {align}" if align else "")
        self.function.places.append(f"%v{self.made} = alloca {kind}{more}")
        return Value(kind.as_pointer(), f"%v{self.made}")

    def call(self, function, args, pure=False):
        """Call a function; ``pure``: one without side effects."""
        kind = function.kind if isinstance(function, Function) else function.type.pointee
        text = f"call {kind.returned} {function.name}({', '.join([f'{a.type} {a.name}' for a in args])})"
        if kind.returned is VOID:
            return self.line(text)
        return (self.pure if pure else self.value)(kind.returned, text)
