"""Steps towards the mode by one compiled call, without a model for the engine to check and to pack."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kfdyn.estimation.model.blocks import FloatArray
from kfdyn.estimation.nonlinear.recursions import chain
from kfdyn.sweeps import Checks, Tag
from kfdyn.sweeps.compiler.driver import machine

if TYPE_CHECKING:
    from kfdyn.estimation.nonlinear.trajectory import Linearised, Trajectory

_KNOWN, _WORTH_IT = 16, 100  # sizes up to which rows go into registers, and steps from which on code of their own pays
_SIDE_BY_SIDE = 4  # series from which on they go in lanes
_TILED = 12  # states from which on other products go by tiles
_REGULAR = 1e-8  # of a reading's covariance, each output in units of its own


class QuickSteps:
    """Gauss–Newton's steps on one problem; none where the engine's care is needed: exact readings, wide priors."""

    def __init__(self, problem: Trajectory) -> None:
        self.problem = problem
        N, n, p, m = problem.N, problem.n, problem.p, problem.R.shape[-1]
        self.serves = not problem.carried and problem.method == "block" and not problem.prior.flat.any()
        self.serves = self.serves and N > 1 and m > 0 and _regular(problem.R)
        if self.serves:
            lanes = machine().lanes if problem.batch >= _SIDE_BY_SIDE and not Checks.on else 1
            known = max(n, m, p) <= _KNOWN and problem.batch * N >= _WORTH_IT and not Checks.on
            sizes = (Tag(n), Tag(m), Tag(p)) if known else None
            self._tags = Tag(lanes), sizes, Tag(lanes == 1 and not known and n >= _TILED)

    def step(self, point: Linearised, weights: FloatArray | None) -> chain.Found | None:
        """Take one step; return None if digits would be lost, and serve no more."""
        problem = self.problem
        B, N, n, p, m = problem.batch, problem.N, problem.n, problem.p, problem.R.shape[-1]
        if not self.serves:
            return None
        R = problem.R if weights is None else problem.reweighted(weights)
        J0 = point.J0
        P0, z0 = J0 @ problem.prior.P0 @ np.swapaxes(J0, 1, 2), -(J0 @ point.at.prior[..., None])
        blocks, apart = [], []
        for part, steps in ((point.F, N - 1), (point.B, N - 1), (point.H, N), (R, N), (problem.noise, N - 1)):
            numbers, *places = _blocks(part, B, steps)
            blocks.append(numbers)
            apart += places
        at = point.at
        given = chain.Given(*blocks, *(x.ravel() for x in (P0, z0, at.defects, point.w, at.T)), *apart)
        found = chain.Found(*(np.empty((B, *s)) for s in ((N, n), (N, n), (N - 1, p), (N, m), (N, n), (N, n))))
        work = np.empty(chain.numbers(n, m, p, N, int(self._tags[0])))
        flat = chain.Found(*(x.reshape(-1) for x in found))
        self.serves = chain.chains_solved(*self._tags, given, flat, work, n, m, p, N, B) < 0
        return found if self.serves else None


def _blocks(blocks: FloatArray, series: int, steps: int) -> tuple[FloatArray, int, int]:
    """Matrices of each series and step, of each step, or one of all; and how far series and steps are apart."""
    size = blocks.shape[-2] * blocks.shape[-1]
    if blocks.ndim == 2 or (blocks.ndim == 3 and blocks.strides[0] == 0):
        return (blocks if blocks.ndim == 2 else blocks[0]).ravel(), 0, 0
    whole = blocks.ndim == 4 or len(blocks) == series * steps
    return blocks.ravel(), steps * size if whole else 0, size


def _regular(R: FloatArray) -> bool:
    """Tell whether covariances have factors that lose no digits."""
    scale = np.sqrt(np.diagonal(R, axis1=-2, axis2=-1))
    if not (scale > 0.0).all():
        return False
    alike = R / (scale[..., :, None] * scale[..., None, :])
    return bool((np.linalg.eigvalsh(alike)[..., 0] > _REGULAR).all())
