"""Record operations on symbolic numbers, so that a recursion run on them leaves its formula.

A term is a coefficient times an entry of the tape. Products with constants go into the coefficient, nothing is added
to 0 or multiplied by it, and an operation on the same operands is written once: that folds the zeros and ones of the
arm, evaluates its constants, and finds common subexpressions, all while the recursion runs.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np

#: Entries: ("leaf", name), ("cos", i), ("sin", i), ("recip", i), ("mul", i, j), ("add", a, i, b, j) for a·i + b·j.
Entry = tuple[Any, ...]


class Tape:
    """Entries in the order in which they were computed, each written once."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self._index: dict[Entry, int] = {}

    def write(self, entry: Entry) -> int:
        """Return the place of an entry, new or old."""
        at = self._index.get(entry)
        if at is None:
            at = self._index[entry] = len(self.entries)
            self.entries.append(entry)
        return at

    def leaf(self, name: str) -> Term:
        """Make a named input."""
        return Term(self, 1.0, self.write(("leaf", name)))

    def needed(self, results: Iterable[Any]) -> list[int]:
        """Return the entries that the results depend on, in order."""
        todo = [x.at for x in results if isinstance(x, Term)]
        seen: set[int] = set()
        while todo:
            at = todo.pop()
            if at not in seen:
                seen.add(at)
                todo += operands(self.entries[at])
        return sorted(seen)


def operands(entry: Entry) -> list[int]:
    """Return the places of the entries that an entry is made of."""
    kind = entry[0]
    return [] if kind == "leaf" else [entry[2], entry[4]] if kind == "add" else list(entry[1:])


class Term:
    """``coefficient`` times the entry ``at`` of a tape; arithmetic with terms and with plain numbers."""

    __slots__ = ("at", "coefficient", "tape")

    def __init__(self, tape: Tape, coefficient: float, at: int) -> None:
        self.tape, self.coefficient, self.at = tape, coefficient, at

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, Term):
            i, j = sorted((self.at, other.at))
            return Term(self.tape, self.coefficient * other.coefficient, self.tape.write(("mul", i, j)))
        if not isinstance(other, int | float | np.number | Fraction):
            return NotImplemented  # an array, or a vector, which knows how
        return Term(self.tape, self.coefficient * float(other), self.at) if other else 0

    __rmul__ = __mul__

    def __neg__(self) -> Term:
        return Term(self.tape, -self.coefficient, self.at)

    def __add__(self, other: Any) -> Any:
        if isinstance(other, np.ndarray):
            return NotImplemented
        if not isinstance(other, Term):
            if other == 0:
                return self
            other = Term(self.tape, float(other), self.tape.write(("leaf", "1")))
        if self.at == other.at:
            both = self.coefficient + other.coefficient
            return Term(self.tape, both, self.at) if both else 0
        first, second = sorted((self, other), key=lambda term: term.at)
        sign = -1.0 if first.coefficient < 0 else 1.0
        entry = ("add", sign * first.coefficient, first.at, sign * second.coefficient, second.at)
        return Term(self.tape, sign, self.tape.write(entry))

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self + (-other)

    def __rsub__(self, other: Any) -> Any:
        return (-self) + other

    def __rtruediv__(self, other: Any) -> Any:
        return other * Term(self.tape, 1.0 / self.coefficient, self.tape.write(("recip", self.at)))

    def __truediv__(self, other: Any) -> Any:
        return self * (1 / other)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Term):
            return self.at == other.at and self.coefficient == other.coefficient
        return False  # a term that is known to be a number has been folded already

    def __hash__(self) -> int:
        return hash((self.at, self.coefficient))

    def function(self, name: str) -> Term:
        """Sine or cosine."""
        if self.coefficient != 1.0:
            raise ValueError(f"{name} is taken of inputs alone")
        return Term(self.tape, 1.0, self.tape.write((name, self.at)))


def cosine(x: Any) -> Any:
    """Return the cosine of a term or of a number."""
    return x.function("cos") if isinstance(x, Term) else np.cos(x)


def sine(x: Any) -> Any:
    """Return the sine of a term or of a number."""
    return x.function("sin") if isinstance(x, Term) else np.sin(x)
