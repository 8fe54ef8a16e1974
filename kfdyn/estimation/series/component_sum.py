"""How parts add up: their states beside each other, their outputs summed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kfdyn.estimation.model.blocks import FloatArray
from kfdyn.estimation.series.component import Matrices


def added(pieces: Sequence[Matrices], steps: int) -> Matrices:
    """F, H, Q and the prior of a sum over so many steps; with an axis of steps where a part has one."""
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
    """Blocks along a diagonal, with an axis of steps if one of them has it."""
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
