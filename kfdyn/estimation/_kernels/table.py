"""How a model reaches the compiled sweeps: one address, behind which stands where each of its arrays begins.

The layout is compiled into every sweep, so it lies among the kernels: a change here must empty numba's cache.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_Index = NDArray[np.int64]
_Real = NDArray[np.float64]

#: The arrays of numbers; the others hold indices.
REAL = frozenset(("phi", "H", "Q", "R"))

#: Entries of the table before the addresses: N, and the largest state size.
COUNTS = 2


class Arrays(NamedTuple):
    """The model as flat read-only arrays, which is what compiled sweeps take."""

    order: _Index
    parent: _Index
    child_start: _Index
    children: _Index
    state: _Index
    output: _Index
    phi: _Real
    phi_at: _Index
    H: _Real
    H_at: _Index
    Q: _Real
    Q_at: _Index
    R: _Real
    R_at: _Index


def table_of(arrays: Arrays, most_states: int) -> tuple[int, list[NDArray[np.generic]]]:
    """Address of the table of a model, and what must be kept as long as that is used."""
    kinds = [np.float64 if name in REAL else np.int64 for name in Arrays._fields]
    kept: list[NDArray[np.generic]] = [np.ascontiguousarray(array, kind) for array, kind in zip(arrays, kinds)]
    table = np.array(
        [arrays.order.size, most_states, *(array.__array_interface__["data"][0] for array in kept)], np.int64
    )
    return table.ctypes.data, [*kept, table]


def table_with(
    table: tuple[int, list[NDArray[np.generic]]], changed: dict[str, NDArray[np.generic]]
) -> tuple[int, list[NDArray[np.generic]]]:
    """The table of a model that differs from another in some arrays only, which are contiguous and of their kind."""
    kept = list(table[1])
    entries = kept[-1].copy()
    for name, array in changed.items():
        i = Arrays._fields.index(name)
        kept[i] = array
        entries[COUNTS + i] = array.__array_interface__["data"][0]
    kept[-1] = entries
    return entries.ctypes.data, kept
