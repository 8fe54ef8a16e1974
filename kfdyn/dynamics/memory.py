"""Room for large results: memory that a result before has left is taken again.

An array of more than 32 MB is returned to the system when it is dropped, and the next one is zeroed page by page by the
kernel: for the mass matrices of a humanoid that takes longer than to compute them. So one such piece of memory is kept.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: Bytes from which the C library maps memory afresh for every array, whatever its history.
LARGE = 2**25

_spare: list[Array] = []


class _Lease:
    """What a result has for its base: it dies with the last view of the result, and then gives the memory back."""

    def __init__(self, size: int) -> None:
        self.store = _taken(size)
        self.__array_interface__ = self.store[:size].__array_interface__

    def __del__(self) -> None:
        if _spare == []:  # at the end of the process it is None
            _spare.append(self.store)


def room(rows: int, columns: int) -> Array:
    """An array (rows, columns) of whatever was there; if large, in the memory of one that nobody sees any more.

    At most one piece is kept, and only for results of half its size or more; it is dropped when another size is asked.
    """
    size = rows * columns
    if 8 * size <= LARGE:
        return np.empty((rows, columns))
    return np.asarray(_Lease(size)).reshape(rows, columns)


def _taken(size: int) -> Array:
    try:
        store = _spare.pop()
    except IndexError:
        return np.empty(size)
    return store if size <= store.size <= 2 * size else np.empty(size)
