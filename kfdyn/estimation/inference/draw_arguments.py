"""What every draw is given: a generator, and how many."""

from __future__ import annotations

import numpy as np

from kfdyn.errors import ModelError, ShapeError


def expect_generator(rng: np.random.Generator) -> None:
    """Refuse anything but a numpy Generator, legacy states and seeds included."""
    if not isinstance(rng, np.random.Generator):
        raise ModelError(f"rng must be a numpy Generator (np.random.default_rng(seed)), not {type(rng).__name__}")


def draw_axes(n: int | None) -> tuple[int, ...]:
    """Leading axes of n draws: (n,), or none for a single draw."""
    if n is None:
        return ()
    if not isinstance(n, int | np.integer) or n < 0:
        raise ShapeError(f"n must be a number of draws, 0 or more (or None for a single draw), got {n!r}")
    return (int(n),)
