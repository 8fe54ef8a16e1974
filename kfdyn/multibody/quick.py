"""Readings through compiled doors: plain arrays go straight in, others are checked and broadcast first."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy import ndarray
from numpy.typing import NDArray

from kfdyn.multibody.arguments import batch, checked, configuration
from kfdyn.multibody.doors import DOORS, address_of, over_rows
from kfdyn.multibody.overflow import overflow
from kfdyn.multibody.system import System

Array = NDArray[np.float64]
Shape = tuple[int, ...]

_FLOAT = np.dtype(np.float64)
_MEANING = {"kinetic": "the kinetic energy", "moment": "the mass centre", "columns": "the Jacobian"}


def reading(system: System, door: str, tail: Shape, q: Any, *v: Any, of: tuple[Any, ...] = ()) -> Array:
    """What a door says (..., *tail) of configurations q (..., nq), and of velocities v (..., nv) if it takes them.

    ``of`` is what the door takes beside: a frame, for example. A door looks at the numbers it is given and has no
    answer if one is not sound; then the checks find the words.
    """
    given, sizes = (q, *v), (system.nq, system.nv)
    if type(q) is ndarray and all(_plain(x, (*q.shape[:-1], size)) for x, size in zip(given, sizes)):
        answer = _through(system, door, tail, q.shape[:-1], given, of)
        if answer is not None:
            return answer
    looked_at = {"q": (configuration(system, q), 1)}
    for x in v:
        looked_at["v"] = (checked(system, x, (system.nv,), "v"), 1)
    lead, arrays = batch(system, **looked_at)
    answer = _through(system, door, tail, lead, arrays, of)
    if answer is None:  # every number has been looked at, so that the answer has none
        raise overflow(system, _MEANING[door], **dict(zip(looked_at, arrays)))
    return answer


def _plain(x: Any, shape: Shape) -> bool:
    """Whether an array can go in as it stands; one state may be a row or column of anything."""
    return type(x) is ndarray and x.dtype is _FLOAT and x.shape == shape and (x.ndim == 1 or x.flags.c_contiguous)


def _through(
    system: System, door: str, tail: Shape, lead: Shape, arrays: tuple[Array, ...], of: tuple[Any, ...]
) -> Array | None:
    enter, model, rows = getattr(DOORS, door), address_of(system), math.prod(lead)
    flat, out = [x.reshape(-1) for x in arrays], np.empty(rows * math.prod(tail))
    if not over_rows(rows, system, lambda *shared: enter(model, *of, *flat, *shared, out)):
        return None
    return out.reshape(lead + tail)
