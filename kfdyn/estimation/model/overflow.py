"""Numbers beyond double precision: found after a sweep by one sum, and refused with the node where they begin."""

from __future__ import annotations

import math

import numpy as np

from kfdyn.errors import ModelError
from kfdyn.estimation.model.blocks import Blocks, FloatArray, IntArray
from kfdyn.estimation.model.tree import Tree

_IN_THREADS = (
    8192  # numbers: of more than that, BLAS takes products in threads, which wait for each other on busy cores
)
LEAST = -290  # a power of ten whose inverse, and some factors with it, is a double
TOO_SMALL = "is too small for a double, about 1e-308: measure it in smaller units, which makes H and T larger"
_CURE = "measure the states in units in which their numbers stay below 1e150, or leave out what grows without bound"


def expect_finite_blocks(tree: Tree, name: str, blocks: Blocks, order: IntArray, D: Blocks | None = None) -> None:
    """Refuse blocks (or a batch of stacked vectors) that hold NaN or infinity; ``order`` is that of the sweep.

    The input was finite, so overflow made them, or division by a ``D`` that is too small to have an inverse. A sum is
    not finite if a term is not, which makes the usual case one pass without a temporary.
    """
    if sum_is_finite(blocks.flat):
        return
    lost = ~np.isfinite(blocks.flat).reshape(-1, blocks.flat.shape[-1]).all(axis=0)
    if lost.any():  # else only the sum overflowed
        touched = np.zeros(len(blocks), dtype=bool)
        touched[np.searchsorted(blocks.offsets, np.flatnonzero(lost), side="right") - 1] = True
        k = int(order[np.argmax(touched[order])])
        if D is not None and np.abs(D[k].diagonal()).min(initial=1.0) < 10.0**LEAST:
            raise ModelError(f"{tree.label(k)}: its innovation variance {TOO_SMALL}")
        raise ModelError(f"{name} of {tree.label(k)} is too large for a double, about 1e308: {_CURE}")


def finite_likelihood(llf: FloatArray | np.float64) -> float | FloatArray:
    """A log-likelihood, a float if it is one alone; refused where its sum of squares overflows."""
    alone = not (isinstance(llf, np.ndarray) and llf.ndim)
    if not (math.isfinite(llf) if alone else np.isfinite(llf).all()):
        raise ModelError(
            "the log-likelihood is too large for a double, about 1e308: some measurement is some 1e154 deviations from "
            "what the model predicts; see whether T and the model are in the same units"
        )
    return float(llf) if alone else llf


def out_of_range(h: FloatArray, P: FloatArray) -> str | None:
    """Say why no double holds h P h* with all its digits; return None if one does."""
    finite = bool(np.isfinite(P).all())
    with np.errstate(divide="ignore"):
        digits = 2 * np.log10(np.abs(h).max(initial=0.0)) + np.log10(np.abs(P).max(initial=0.0)) if finite else np.inf
    if digits > 300:
        return f"is too large for a double, about 1e308: {_CURE}"
    if -np.inf < digits < LEAST:
        return TOO_SMALL
    return None


def sum_is_finite(array: FloatArray) -> bool:
    """Tell in one quick look whether the sum of all squares, or of many numbers, is finite.

    It is not if one of them is not, nor beyond 1e154; who is told no must look again.
    """
    if array.size > _IN_THREADS:
        with np.errstate(invalid="ignore", over="ignore"):
            return math.isfinite(array.sum())
    return math.isfinite(np.vdot(array, array))  # which, unlike other products, does not warn of an overflow
