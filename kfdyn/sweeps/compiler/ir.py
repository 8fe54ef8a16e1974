"""LLVM IR as text: types, functions and modules; :mod:`builder` writes the instructions.

A writer of our own, since most of what llvmlite's would do is not wanted, and to write is a third of the wait for first
use.
"""

from functools import cache


class Type:
    """An IR type, one object each, so that two are equal only if they are the same.

    ``count`` is how many are side by side, ``part`` what each of them is, ``whole`` says whether they are integers, and
    a pointer knows its ``pointee``.
    """

    __slots__ = ("_pointer", "_text", "count", "part", "pointee", "whole")

    def __init__(self, text, count=1, part=None, whole=False, pointee=None):
        self._text, self.count, self.part, self.whole, self.pointee = text, count, part or self, whole, pointee
        self._pointer = None

    def as_pointer(self):
        """Return the type of a pointer to it."""
        if self._pointer is None:
            self._pointer = Type(f"{self}*" if _typed() else "ptr", pointee=self)
        return self._pointer

    def __str__(self):
        return self._text


@cache
def _typed():
    """Return True if this LLVM has typed pointers."""
    from llvmlite.binding import llvm_version_info

    return llvm_version_info[0] < 17


@cache
def integer(bits):
    """Return the integer type of so many bits."""
    return Type(f"i{bits}", whole=True)


@cache
def vector(kind, count):
    """Return the vector type of so many numbers; one is the number itself."""
    return kind if count == 1 else Type(f"<{count} x {kind}>", count, kind, kind.whole)


INT, WORD, BYTE, BIT, REAL, VOID = integer(64), integer(32), integer(8), integer(1), Type("double"), Type("void")


class Block:
    """A basic block: lines, the last of which jumps or returns."""

    __slots__ = ("ended", "lines", "name")

    def __init__(self, name):
        self.name, self.lines, self.ended = name, [], False


class Function:
    """A function of a module, defined by blocks or only declared.

    ``given`` are the types of its arguments, which are called %a0, %a1, …; ``places`` its variables on the stack.
    """

    def __init__(self, module, name, returned, given, linkage="", attributes=""):
        self.module, self.name, self.returned = module, name, returned
        self.linkage, self.attributes = linkage, attributes
        self.given, self.blocks, self.places = given, [], []
        module.functions[name] = self

    def text(self):
        """Return the function as IR text."""
        if not self.blocks:
            return f'declare {self.returned} @"{self.name}"({", ".join(map(str, self.given))})'
        given = ", ".join(f"{kind} %a{i}" for i, kind in enumerate(self.given))
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
