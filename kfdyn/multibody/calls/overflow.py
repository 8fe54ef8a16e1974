"""Answers beyond double precision: refused with the argument that is too large, never given as infinity or NaN."""

from __future__ import annotations

from typing import Any

import numpy as np

from kfdyn.arrays import Array
from kfdyn.errors import ModelError

# Squared and times a lever, a mass and a number of bodies, this is still a double.
LARGE = 1e100


def expect_finite(system: Any, answer: Array, what: str, **given: Any) -> Array:
    """Return ``answer``, or raise an error if overflow made some of it infinite or NaN; ``given`` is what it is of.

    The arguments were finite when they came in, so what is not finite now has overflowed on the way. Velocities enter
    squared: v = 1e154 is a double, and the force it causes is none.
    """
    if np.isfinite(answer).all():
        return answer
    raise overflow(system, what, **given)


def overflow(system: Any, what: str, **given: Any) -> ModelError:
    """The error: what is too large, and which of the arguments made it so."""
    sizes = {name: float(np.abs(x).max(initial=0.0)) for name, x in given.items() if x is not None}
    culprits = [f"{name} reaches {size:.3g}" for name, size in sizes.items() if size > LARGE]
    if culprits:
        cure = f"{' and '.join(culprits)}; check the units, or whether a motion has exploded on the way here"
    else:
        cure = "masses, inertias or lengths of the model are; check their units"
    return ModelError(f"{what} of system {system.name!r} is too large for a double, about 1e308: {cure}")
