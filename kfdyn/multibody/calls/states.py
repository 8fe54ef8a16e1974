"""Arguments of a call, bound: checked by name, broadcast, and with their leading axes made one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from kfdyn.arrays import Array
from kfdyn.multibody.calls.arguments import batch, checked, configuration, loads

if TYPE_CHECKING:
    from kfdyn.multibody.system import System
    from kfdyn.sweeps.entry import Given

Own = TypeVar("Own", bound="States")

#: Attributes of a system by the names that entries have for sizes.
SIZES: dict[Any, str] = {"nq": "nq", "nv": "nv", "n": "n_bodies"}


@dataclass(frozen=True, eq=False)
class States:
    """States of a system with their leading axes made one, checked and broadcast.

    Attributes
    ----------
    lead : tuple of int
        The leading axes; ``size`` is their product.
    arrays : dict
        ``q`` (size, nq); ``v``, ``tau``, ``a`` (size, nv), ``external_forces`` (size, n_bodies, 6) and
        ``gravity`` (size, 3) where given.
    taken_from : (States, (size,) array of int) or None
        Of which states these are some, and which: errors name a state by its place in what the caller gave.
    """

    system: System
    lead: tuple[int, ...]
    arrays: dict[str, Array]
    taken_from: tuple[States, NDArray[np.int64]] | None = None

    @classmethod
    def bound(
        cls: type[Own],
        system: System,
        about: Sequence[Given],
        values: Sequence[Any],
        rest: bool = True,
        called: Mapping[str, str] = MappingProxyType({}),
    ) -> Own:
        """Check what an entry is given, each array by its name, and broadcast leading axes.

        ``called`` are other names that callers know arrays by. With ``rest`` no ``v`` is at rest.
        """
        given = {}
        for one, value in zip(about, values):
            name = called.get(one.name, one.name)
            if value is None and (one.optional or one.own or (rest and name == "v")):
                continue
            if name == "external_forces":
                given[name] = (loads(system, value), 2)
                continue
            if one.sound is not None and one.tail == ("nq",):
                given[name] = (configuration(system, value, name), 1)
                continue
            tail = tuple([getattr(system, SIZES[x]) if x in SIZES else x for x in one.tail])
            given[name] = (checked(system, value, tail, name), len(tail))
        lead, arrays = batch(system, **given)
        return cls(system, lead, dict(zip(given, arrays)))

    @property
    def size(self) -> int:
        """Number of states."""
        return math.prod(self.lead)

    def __getitem__(self, name: str) -> Array:
        return self.arrays[name]

    def only(self: Own, rows: NDArray[np.int64]) -> Own:
        """Some of the states."""
        arrays = {name: x[rows] for name, x in self.arrays.items()}
        return type(self)(self.system, (len(rows),), arrays, (self, rows))

    def place(self, index: int) -> tuple[int, ...]:
        """Name the place of a state among those that the caller gave."""
        if self.taken_from is not None:
            whole, rows = self.taken_from
            return whole.place(int(rows[index]))
        return tuple(map(int, np.unravel_index(index, self.lead))) if self.lead else ()

    def as_given(self, array: Array) -> Array:
        """An array (size, ...), or its only row where the caller gave no leading axes: one state is no batch of one."""
        return array if self.lead else array.reshape(array.shape[1:])

    def shaped(self, array: Array) -> Array:
        """An array (size, ...) with the leading axes."""
        return array.reshape((*self.lead, *array.shape[1:]))

    def part(self, part: slice | NDArray[np.int64]) -> tuple[Array, Array | None, Array | None, Array | None]:
        """q, v, external forces and gravity of some of the states, None where not given."""
        v, force, g = (self.arrays.get(name) for name in ("v", "external_forces", "gravity"))
        return self["q"][part], *(None if x is None else x[part] for x in (v, force, g))  # type: ignore[return-value]
