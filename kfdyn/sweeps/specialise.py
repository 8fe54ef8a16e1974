"""Entries for one model: loops are unrolled, the model's numbers are constants of straight-line code.

The recursion is the same, and so is what it computes, but for the rounding of what has vanished: products with 0 and 1,
sums with 0, branches that this model never takes, loads and stores of what can stay in a register.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np

from kfdyn.sweeps.entry import Entry, Space
from kfdyn.sweeps.jit import Checks
from kfdyn.sweeps.memory import Checked
from kfdyn.sweeps.records import Fields
from kfdyn.sweeps.trace_context import unrolled

#: Of a model, what belongs to the process that runs the code and not to the model, or what no recursion looks at.
_OF_PROCESS = ("busy", "workspace", "floats", "gravity")


class Absent:
    """Stands for an optional argument that is not given."""

    given = False


class Special(Entry):
    """An entry for one model and for one set of optional arguments.

    Few rows of a batch and many run the same code.
    """

    level = 1  # straight-line code leaves little to find: more takes twice as long and is no faster

    def __init__(self, entry: Entry, tables: dict[str, Any], given: frozenset[str]) -> None:
        absent = [about.name for about in entry.given if about.optional and about.name not in given]
        kept = [about._replace(optional=False) for about in entry.given if about.name not in absent]
        self.known = {name: tables[name] for name in entry.table.fields if name not in _OF_PROCESS}

        def recursion(model: Any, row: Any, work: Any) -> Any:
            for name in absent:
                setattr(row, name, Absent())
            memory = Checked([None] * int(entry.workspace.size(model, row)))
            with unrolled():
                entry.workspace.start(model, row, memory)
                return entry.recursion(model, row, memory)

        recursion.__name__, recursion.__module__ = entry.recursion.__name__, entry.recursion.__module__
        nowhere = Space(lambda model, row: 0)
        super().__init__(recursion, entry.table, [*entry.parameters, *kept], entry.results, nowhere, entry.options)
        self.key = ("one model", _digest(self.known), *absent)

    def seen(self, address: Any) -> Fields:
        """Return the model, whose numbers are Python's own."""
        return self.table.at(address, **self.known)

    @property
    def narrow(self) -> Callable[..., int]:
        """The function for few rows, the same as for many."""
        return self.wide


class Specials:
    """The special entries of one model, each made when first called; ``size`` is how much there is to unroll."""

    def __init__(self, size: int, tables: dict[str, Any]) -> None:
        self.size, self.tables = size, tables
        self._made: dict[tuple[Any, ...], Entry] = {}

    def of(self, entry: Entry, arrays: tuple[Any, ...]) -> tuple[Entry, tuple[Any, ...]]:
        """Return the entry to call for these arguments, and which of them to pass; the general entry if none pays."""
        if self.size > entry.options.unroll or Checks.on:
            return entry, arrays
        absent = tuple([x is None for x in arrays])
        made = self._made.get((entry, absent))
        if made is None:
            names = (*(about.name for about in entry.parameters), *(about.name for about in entry.given))
            given = frozenset(name for name, none in zip(names, absent) if not none)
            made = self._made[entry, absent] = self._compiled(entry, given)
        if made is entry or True not in absent:
            return made, arrays
        return made, tuple([x for x in arrays if x is not None])

    def _compiled(self, entry: Entry, given: frozenset[str]) -> Entry:
        """Compile the specialised entry; fall back to the general one if specialisation divides by zero."""
        try:
            made = Special(entry, self.tables, given)
            made.wide  # noqa: B018
        except ZeroDivisionError:
            return entry
        return made


def _digest(known: dict[str, Any]) -> str:
    made = hashlib.sha256()
    for name, value in known.items():
        array = np.ascontiguousarray(value)
        made.update(f"{name} {array.dtype} {array.shape} ".encode() + array.tobytes())
    return made.hexdigest()


__all__ = ["Special", "Specials"]
