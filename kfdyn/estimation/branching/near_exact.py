"""Rows that know a state better than everything else does: found, solved with their branch, and what is lost said.

The score needs N = 1 − C Λ C* of rows with unit noise (:mod:`.score`). For one row it is R/(R + V), where V is the
variance with which all other data predict the row. Where R ≪ V it is a small difference, of relative error ε(R + V)/R,
and ρ is one as well. Such rows are solved with the noise of the branch that carries them, as exact ones are
(:mod:`.exact`): then the parent has a row of noise C W C* + R. Where that is small too, the same is done again.
"""

from __future__ import annotations

import sys
import warnings
from types import FrameType
from typing import TYPE_CHECKING

import numpy as np

from kfdyn.errors import LostDigitsWarning
from kfdyn.estimation.inference.filter_covariances import BoolArray
from kfdyn.estimation.model.blocks import FloatArray
from kfdyn.estimation.precision.cancellation import TOLERABLE, is_of

if TYPE_CHECKING:
    from kfdyn.estimation.branching.dual import Dual
    from kfdyn.estimation.branching.model import OutwardTree
    from kfdyn.estimation.branching.rows import Rows

_EPS = float(np.finfo(float).eps)
_HERE = __name__.rpartition(".")[0]
_PACKAGE = _HERE.partition(".")[0]
#: A row with less than this left of its noise is solved: half of the digits that the score may lose.
STRONG = 1e-6


def almost_exact(model: OutwardTree) -> BoolArray | None:
    """Nodes with an output whose noise is next to nothing beside what the branch adds to it, (N,); None if none is.

    Their information would be so large that the filter drowns what is known of other outputs.
    """
    tree, C, W, R = model.tree, model.C, model.W, model.R
    seen = ((tree.parent >= 0) | (model.root_cov is not None)) & (model.m > 0)
    out = np.zeros(len(model), dtype=bool)
    for nodes, c in C.grouped():
        nodes, c = nodes[seen[nodes]], c[seen[nodes]]
        if not nodes.size:
            continue
        m, n = c.shape[1:]
        noise = R.flat[R.places(nodes, m * m)].reshape(-1, m, m)
        some = np.flatnonzero(noise.any(axis=(1, 2)))
        if not some.size:
            continue
        nodes, c, noise = nodes[some], c[some], noise[some]
        added = c @ W.flat[W.places(nodes, n * n)].reshape(-1, n, n) @ c.transpose(0, 2, 1)
        small = np.diagonal(noise, axis1=1, axis2=2) < STRONG * np.diagonal(added, axis1=1, axis2=2)
        few = np.flatnonzero(small.any(axis=1))
        total = (added + noise)[few]
        unit = np.sqrt(np.diagonal(total, axis1=1, axis2=2))
        there = (unit > 0.0).all(axis=1)
        few, total, unit = few[there], total[there], unit[there]
        regular = np.linalg.eigvalsh(total / (unit[:, :, None] * unit[:, None, :]))[:, 0] > STRONG
        out[nodes[few[regular]]] = True
    return out if out.any() else None


def noise_left(dual: Dual, rows: Rows) -> FloatArray:
    """Smallest eigenvalue of N = 1 − C Λ C* of each block of rows, (g,)."""
    size = rows.C.shape[2]
    Lambda = dual.smooth.Lambda
    cov = Lambda.flat[Lambda.places(rows.at, size * size)].reshape(-1, size, size)
    N = np.eye(rows.C.shape[1]) - rows.C @ cov @ rows.C.transpose(0, 2, 1)
    if N.shape[1] == 1:
        return N[:, 0, 0]
    least = np.linalg.det(N)  # eigenvalues lie between 0 and 1, so none is smaller
    small = np.flatnonzero(~(least > STRONG))
    least[small] = np.linalg.eigvalsh(N[small])[:, 0]
    return least


def warn_of_lost_score(model: OutwardTree, dual: Dual) -> None:
    """Warn where fewer than five digits of the score are left; not if the package itself asks, as a fit does."""
    frame = caller()
    if frame is None:
        return
    left = np.ones(len(model))
    flat = (model.tree.parent < 0) & (model.root_cov is None)
    for rows in dual.noisy:
        np.minimum.at(left, rows.at, np.where(flat[rows.at], 1.0, noise_left(dual, rows)))
    k = int(np.argmin(left)) if left.size else 0
    if not left.size or left[k] * TOLERABLE > _EPS:
        return
    error = _EPS / max(float(left[k]), _EPS)
    warnings.warn(
        f"the score loses about {min(round(np.log10(error / _EPS)), 16)} of its 16 digits at {model.tree.label(k)}: "
        "observations on branches without length, or almost, know its state far better than all others do; entries of "
        f"score.R, score.W and score.C there and outward of it have a relative error of about {min(error, 1.0):.0e}. "
        "Give the observations a larger noise R, or the branches a length",
        LostDigitsWarning,
        stacklevel=depth(frame),
    )


def caller() -> FrameType | None:
    """The first frame that is none of this folder's; None if it is the package's."""
    frame = sys._getframe(1)
    while frame.f_back and (is_of(frame, _HERE) or is_of(frame, "functools")):
        frame = frame.f_back
    return None if is_of(frame, _PACKAGE) else frame


def depth(frame: FrameType) -> int:
    """How many calls up a frame is, for the caller of this function."""
    count, at = 1, sys._getframe(1)
    while at is not None and at is not frame:
        count, at = count + 1, at.f_back  # type: ignore[assignment]
    return count
