"""Calls into the compiled entries of systems with couplings: what they take, or None where there is no quick answer."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kfdyn.dynamics.entries import Declined
from kfdyn.multibody import System
from kfdyn.multibody.entries import FINE, Later

Array = NDArray[np.float64]


def quick_geared(entry: Later, system: System, tail: tuple[int, ...], q: Any, *more: Any) -> Array | Declined | None:
    """What an entry answers (..., *tail) to q (..., nq) and what else it takes; None where it has no answer."""
    geared = entry.geared
    if geared is None:  # only trees have it
        return None
    found: Array | None = geared.one(system, q, *more)
    if found is not None:  # what loops call
        return found
    if type(system) is not System or type(q) is not np.ndarray or not q.ndim:  # bodies that bend go another way
        return None
    answer = np.empty((*q.shape[:-1], *tail))
    status = geared(system, math.prod(q.shape[:-1]), q, *more, answer)
    return answer if status == FINE else Declined.by(status, answer)
