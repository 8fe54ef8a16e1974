"""Rows of numbers with named fields: ``body.mass``, ``slot.P``, instead of columns by number.

A :class:`Record` names its fields and what each is: ``float`` or ``int`` for one number, or a class with ``SIZE`` and
``of(numbers)`` such as those of :mod:`algebra`. ``rows = BODY.rows(memory)`` are rows of it, ``rows[t].mass`` is read
when it is asked for and ``rows[t].l = x`` is written at once. A :class:`Table` has the fields of a whole model: sizes,
and memory.
"""

import ctypes

import numpy as np

from kfdyn.sweeps.compiler.ir import BYTE, INT, REAL
from kfdyn.sweeps.control_flow import flattened
from kfdyn.sweeps.memory import Checked, pointer
from kfdyn.sweeps.values import unboxed

_WORD, _HEAD = ctypes.c_int64, object.__basicsize__
_DTYPES = {float: np.float64, int: np.int64, bool: np.bool_}
_KINDS = {float: REAL, int: INT, bool: BYTE}


class Record:
    """Names, offsets and kinds of the numbers in a row."""

    def __init__(self, **fields):
        self.fields, self.width = {}, 0
        for name, kind in fields.items():
            count = 1 if kind in (int, float) else kind.SIZE
            self.fields[name] = (self.width, count, kind)
            self.width += count

    def facts(self):
        """Return what the record is made of, for the cache's digest."""
        return tuple(self.fields), tuple(place[:2] for place in self.fields.values())

    def rows(self, memory):
        """Return rows of this record, one after the other in memory."""
        return Rows(self, memory)

    def place(self, name):
        """Return the offset of a field in a row."""
        return self.fields[name][0]

    def filled(self, count, dtype=np.float64, **columns):
        """Make an array of ``count`` rows from columns (count,) or (count, size) by name, 0 if not given."""
        table = np.zeros((count, self.width), dtype)
        for name, values in columns.items():
            first, size, _ = self.fields[name]
            table[:, first : first + size] = np.reshape(values, (count, size))
        return table


class Rows:
    """Rows of a record."""

    def __init__(self, record, memory):
        self.record, self.memory = record, memory

    def __getitem__(self, t):
        return Row(self.record, self.memory, unboxed(t) * self.record.width)


class Row:
    """A row; its fields are read when asked for."""

    __slots__ = ("_memory", "_record", "_start")

    def __init__(self, record, memory, start):
        put = super().__setattr__
        put("_record", record)
        put("_memory", memory)
        put("_start", start)

    def __getattr__(self, name):
        try:
            first, count, kind = self._record.fields[name]
        except KeyError:
            raise AttributeError(f"a row of {', '.join(self._record.fields)} has no {name}") from None
        numbers = [self._memory[self._start + (first + i)] for i in range(count)]
        return numbers[0] if kind in (int, float) else kind.of(numbers)

    def __setattr__(self, name, value):
        first, count, _ = self._record.fields[name]
        numbers = flattened(value)
        if len(numbers) != count:
            raise ValueError(f"{name} has {count} numbers, not {len(numbers)}")
        for i, x in enumerate(numbers):
            self._memory[self._start + (first + i)] = x


class Table:
    """A model as recursions see it: named sizes (int), and named arrays of float, int or bool.

    Python packs it once, by :meth:`packed`, and recursions find it behind one address, by :meth:`at`, since each array
    that Python hands over costs time.
    """

    def __init__(self, **fields):
        self.fields = fields

    def facts(self):
        """Return what the table is made of, for the cache's digest."""
        return tuple(self.fields), tuple(repr(kind) for kind in self.fields.values())

    def packed(self, **given):
        """Pack arrays and sizes; return the address, which keeps the arrays alive."""
        return Packed(self, given)

    def at(self, address, **known):
        """Return the table behind an address; ``known`` fields are compile-time values.

        Where no code is written, all is known, and every index is checked.
        """
        plain = isinstance(address, Packed)
        known, entries = (address.given, None) if plain else (known, pointer(address, INT))
        seen = Fields()
        for i, (name, kind) in enumerate(self.fields.items()):
            if name in known:
                value = known[name]
                value = int(value) if kind is int else Checked(np.asarray(value).reshape(-1))
            else:
                value = entries[i] if kind is int else pointer(entries[i], _KINDS[kind[0]])
            setattr(seen, name, value)
        return seen


class Packed(int):
    """Address of a packed table, as an integer that keeps the arrays alive."""

    def __new__(cls, table, given):
        """Pack the fields given by name."""
        entries, kept = [], {}
        for name, kind in table.fields.items():
            if kind is int:
                entries.append(int(given[name]))
                continue
            array = np.ascontiguousarray(given[name], _DTYPES[kind[0]])
            kept[name] = array if array.flags.aligned else array.copy()
            entries.append(address_of(kept[name]))
        strange = given.keys() - table.fields.keys()
        if strange:
            raise TypeError(f"a table of {', '.join(table.fields)} has no {', '.join(strange)}")
        return cls._made(table, given, np.array(entries, np.int64), kept)

    @classmethod
    def _made(cls, table, given, entries, kept):
        self = super().__new__(cls, address_of(entries))
        self.table, self.given, self.entries, self.kept = table, given, entries, kept
        return self

    def replaced(self, **changed):
        """Return a copy with some arrays replaced, which are contiguous and of their kind."""
        names, entries = list(self.table.fields), self.entries.copy()
        for name, array in changed.items():
            entries[names.index(name)] = address_of(array)
        return self._made(self.table, self.given | changed, entries, self.kept | changed)

    def __reduce__(self):
        return Packed, (self.table, self.given)


class Fields:
    """Known fields of a model, by name; ``alone``: the code is for one row (see :mod:`single_row`)."""

    alone = False


def address_of(array):
    """Return the address of an array's numbers, as compiled code reads it (see :mod:`cpython_abi`)."""
    if type(array) is not np.ndarray:
        raise TypeError(f"{type(array).__name__} is no array")
    return _WORD.from_address(id(array) + _HEAD).value
