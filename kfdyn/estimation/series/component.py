"""A part of a model of time series: some states, what they add to the output, and their parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from kfdyn.estimation.model.blocks import FloatArray

Bound = tuple[float | None, float | None] | None


class Matrices(NamedTuple):
    """x(k+1) = F x(k) + w, w ~ N(0, Q), T = H x; and the prior of step 0. F, H, Q have a step's axis where they vary.

    ``P0`` is the finite part of the prior's covariance; states that ``flat`` marks have an infinite one beside it.
    """

    F: FloatArray
    H: FloatArray
    Q: FloatArray
    P0: FloatArray
    flat: FloatArray


@dataclass(frozen=True, eq=False)
class Part:
    """One term of a sum; its functions are those of a module, so that a fit can be pickled.

    Attributes
    ----------
    kind : str
        What it is called.
    names : tuple of str
        Its parameters.
    bounds : tuple of (low, high)
        Their limits.
    start : callable
        ``start(spread)``: where to look for them, from the mean square of the series' changes.
    matrices : callable
        ``matrices(theta, steps)``.
    linear : bool
        Whether Q alone depends on the parameters, and linearly.
    analytic : bool
        Whether ``matrices`` takes complex parameters, whose imaginary parts give slopes without differences.
    outputs : int
        Number of outputs.
    steps : int or None
        The steps for which there are regressors or times, if the part knows them.
    times : array or None
        The times of the steps, if the part has its own.
    index : pandas index or None
        Of the regressors, if they were pandas.
    """

    kind: str
    names: tuple[str, ...]
    bounds: tuple[Bound, ...]
    start: Callable[[float], list[float]]
    matrices: Callable[[FloatArray, int], Matrices]
    linear: bool = True
    analytic: bool = False
    outputs: int = 1
    steps: int | None = None
    times: FloatArray | None = None
    index: Any = None


def spread_over(shares: Sequence[float] | FloatArray, spread: float, *, then: Sequence[float] = ()) -> list[float]:
    """Return start values: variances as shares of the series' variance, then the other parameters."""
    return [*(share * spread for share in shares), *then]


def flat_prior(n: int) -> tuple[FloatArray, FloatArray]:
    """Return P0 and the mask of n flat states."""
    return np.zeros((n, n)), np.ones(n, dtype=bool)


def added(pieces: Sequence[Matrices], steps: int) -> Matrices:
    """Add parts: return F, H, Q and the prior of the sum, with an axis of steps where a part has one."""
    if len(pieces) == 1:
        return pieces[0]
    if not pieces:  # noise alone: a state that is always 0
        zero = np.zeros((1, 1))
        return Matrices(zero, zero, zero, zero, np.zeros(1, dtype=bool))
    sizes = [len(piece.flat) for piece in pieces]
    return Matrices(
        _diagonal([p.F for p in pieces], sizes, steps - 1), _beside([p.H for p in pieces], steps),
        _diagonal([p.Q for p in pieces], sizes, steps - 1), _diagonal([p.P0 for p in pieces], sizes, 1),
        np.concatenate([p.flat for p in pieces]),
    )  # fmt: skip


def _diagonal(blocks: list[FloatArray], sizes: list[int], steps: int) -> FloatArray:
    """Place blocks along a diagonal, with an axis of steps if one of them has it."""
    lead = (steps,) if any(b.ndim == 3 for b in blocks) else ()
    out = np.zeros((*lead, sum(sizes), sum(sizes)))
    at = 0
    for block, n in zip(blocks, sizes):
        out[..., at : at + n, at : at + n] = block
        at += n
    return out


def _beside(blocks: list[FloatArray], steps: int) -> FloatArray:
    if any(b.ndim == 3 for b in blocks):
        blocks = [np.broadcast_to(b, (steps, *b.shape[-2:])) for b in blocks]
    return np.concatenate(blocks, axis=-1)
