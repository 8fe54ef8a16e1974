"""LLVM's language as text: types, values, functions and modules; :mod:`builder` writes the instructions.

A writer of our own, since most of what llvmlite's would do is not wanted, and to write is a third of the wait for first
use.
"""

import struct
from functools import cache, lru_cache


class Type:
    """A type; there is one object of each, so that two are equal only if they are the same.

    ``count`` is how many are side by side, ``part`` what each of them is, ``whole`` says whether they are integers, and
    a pointer knows its ``pointee``.
    """

    __slots__ = ("_pointer", "_text", "count", "part", "pointee", "whole")

    def __init__(self, text, count=1, part=None, whole=False, pointee=None):
        self._text, self.count, self.part, self.whole, self.pointee = text, count, part or self, whole, pointee
        self._pointer = None

    def as_pointer(self):
        """What points at one."""
        if self._pointer is None:
            self._pointer = Type(f"{self}*" if _typed() else "ptr", pointee=self)
        return self._pointer

    def __str__(self):
        return self._text


@cache
def _typed():
    """Whether this LLVM wants to be told what a pointer points at."""
    from llvmlite.binding import llvm_version_info

    return llvm_version_info[0] < 17


@cache
def integer(bits):
    """Integers of so many bits."""
    return Type(f"i{bits}", whole=True)


@cache
def vector(kind, count):
    """So many numbers of a kind side by side; one is the number itself."""
    return kind if count == 1 else Type(f"<{count} x {kind}>", count, kind, kind.whole)


INT, WORD, BYTE, BIT, REAL, VOID = integer(64), integer(32), integer(8), integer(1), Type("double"), Type("void")


class Value:
    """Something that instructions take: its type, and its name."""

    __slots__ = ("name", "type")

    def __init__(self, kind, name):
        self.type, self.name = kind, name

    def __str__(self):
        return f"{self.type} {self.name}"


class Constant(Value):
    """A number that is known."""

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
    """A number of this type, in every lane; a tuple of integers, lane by lane; None is any."""
    return _constant(kind, struct.pack(">d", value) if isinstance(value, float) else value)


class Block:
    """A basic block: lines, of which the last leads elsewhere."""

    __slots__ = ("ended", "lines", "name")

    def __init__(self, name):
        self.name, self.lines, self.ended = name, [], False


class Function:
    """A function of a module: with blocks, or declared only; ``places`` are its variables on the stack."""

    def __init__(self, module, name, returned, given, linkage="", attributes=""):
        self.module, self.name, self.returned = module, name, returned
        self.linkage, self.attributes = linkage, attributes
        self.args = [Value(kind, f"%a{i}") for i, kind in enumerate(given)]
        self.blocks, self.places = [], []
        module.functions[name] = self

    def text(self):
        """The function as LLVM reads it."""
        if not self.blocks:
            return f'declare {self.returned} @"{self.name}"({", ".join(str(a.type) for a in self.args)})'
        given = ", ".join(map(str, self.args))
        lines = [f'define {self.linkage} {self.returned} @"{self.name}"({given}) {self.attributes} {{']
        for i, block in enumerate(self.blocks):
            lines += [f"{block.name}:", *(self.places if i == 0 else ()), *block.lines]
        return "\n".join((*lines, "}"))


class Module:
    """Functions that are compiled together."""

    def __init__(self, triple):
        self.triple, self.functions = triple, {}

    def __str__(self):
        weights = ('!0 = !{!"branch_weights", i32 99, i32 1}', '!1 = !{!"branch_weights", i32 1, i32 99}')
        head = f'target triple = "{self.triple}"'
        return "\n".join((head, *(function.text() for function in self.functions.values()), *weights, ""))
