"""The arrays of a model, flat: what its blocks look into and what the recursions take."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

_Index = NDArray[np.int64]
_Real = NDArray[np.float64]


class Arrays(NamedTuple):
    """The model as flat read-only arrays; ``_at`` is where each block begins."""

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


def packed(arrays: Arrays, most_states: int, most_outputs: int) -> Any:
    """The model behind one address, see :data:`kfdyn.estimation.recursions.state_space.MODEL`."""
    from kfdyn.estimation.recursions.state_space import MODEL

    return MODEL.packed(nodes=arrays.order.size, most=most_states, most_outputs=most_outputs, **arrays._asdict())
