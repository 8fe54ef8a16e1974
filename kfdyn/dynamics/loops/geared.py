"""Calls into the compiled entries of systems with couplings: what they take, or None where there is no quick answer."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kfdyn.multibody import System
from kfdyn.multibody.entries import FINE, Later
from kfdyn.multibody.prepared import gears_of

Array = NDArray[np.float64]

GEARED_FORWARD = Later("kfdyn.dynamics.recursions.geared", "GEARED_FORWARD", gears_of)
GEARED_INVERSE = Later("kfdyn.dynamics.recursions.geared", "GEARED_INVERSE", gears_of)
GEARED_MASS_MATRIX = Later("kfdyn.dynamics.recursions.geared", "GEARED_MASS_MATRIX", gears_of)
GEARED_MASS_MATRIX_INVERSE = Later("kfdyn.dynamics.recursions.geared", "GEARED_MASS_MATRIX_INVERSE", gears_of)


def quick_geared(entry: Later, system: System, tail: tuple[int, ...], q: Any, *more: Any) -> Array | None:
    """What an entry answers (..., *tail) to q (..., nq) and what else it takes; None where it has no answer."""
    found: Array | None = entry.one(system, q, *more)
    if found is not None:  # what loops call
        return found
    if type(system) is not System or type(q) is not np.ndarray or not q.ndim:  # bodies that bend go another way
        return None
    answer = np.empty((*q.shape[:-1], *tail))
    return answer if entry(system, math.prod(q.shape[:-1]), q, *more, answer) == FINE else None
