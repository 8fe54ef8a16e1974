"""The likelihood along one number, all others fitted anew."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np

from kfdyn.arrays import Array
from kfdyn.errors import ModelError
from kfdyn.motion.identification.linear import Log
from kfdyn.motion.identification.search import Found, Search


def profile(parameters: Any, logs: list[Log], found: Found, name: str, values: Array) -> Array:
    """Log-likelihood with one number at each of some values, from the maximum outward."""
    place = found.place
    J = parameters.slope(place.z)
    row = J[parameters.names.index(name)]
    if (row != 0.0).sum() != 1:
        raise ModelError(f"{name!r} is mixed with other numbers, so that it cannot be held; fit '<body>/mass' instead")
    i = int(np.flatnonzero(row)[0])
    frees = parameters.free_numbers(name, values)
    out = np.empty(len(values))
    order = np.argsort(np.abs(frees - place.z[i]))
    for k in order:
        held = copy(parameters)
        held.lower, held.upper, held.start = parameters.lower.copy(), parameters.upper.copy(), place.z.copy()
        held.lower[i] = held.upper[i] = held.start[i] = frees[k]
        out[k] = Search(held, logs, 100, 1e-6).run(found).place.llf
    return out
