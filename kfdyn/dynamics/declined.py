"""Rows that a compiled sweep leaves to the engine, which has an answer for them or names the hinge without inertia."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from kfdyn.dynamics.forest import States
from kfdyn.multibody.overflow import expect_finite

Array = NDArray[np.float64]

#: Answers (size, ...) for some states, each array with what it is called in errors.
Engine = Callable[[States], dict[str, Array]]


def answered(
    states: States,
    answers: tuple[Array, ...],
    declined: NDArray[np.bool_],
    engine: Engine,
    free: NDArray[np.bool_] | None = None,
) -> tuple[Array, ...]:
    """The answers (size, ...) with the engine's in the rows (size,) that are declined, and the leading axes of states.

    Only those rows go to the engine: it takes a hundred times as long, and all others keep their bits whoever else is
    in the batch. ``free``: which part of the mass matrix is inverted, if not all of it.
    """
    rows = np.flatnonzero(declined)
    if rows.size:
        few = states.only(rows)
        found = engine(few)
        few.expect_invertible(free)
        for answer, (what, own) in zip(answers, found.items()):
            answer[rows] = expect_finite(states.system, own, what, **few.arrays)
    return tuple([x.reshape((*states.lead, *x.shape[1:])) for x in answers])
