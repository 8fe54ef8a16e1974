"""Steps towards the mode by one compiled call a series, without a model for the engine to check and to pack."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kfdyn.estimation.model.blocks import FloatArray
from kfdyn.estimation.nonlinear.recursions import chain
from kfdyn.sweeps import Checks, Tag

if TYPE_CHECKING:
    from kfdyn.estimation.nonlinear.trajectory import Linearised, Trajectory

_KNOWN, _WORTH_IT = 16, 100  # sizes up to which rows go into registers, and steps from which on code of their own pays
_TILED = 12  # states from which on other products go by tiles
_REGULAR = 1e-8  # of a reading's covariance, each output in units of its own


class QuickStep(NamedTuple):
    """Tangents d of all states, co-states, the noise it ends at, multipliers, and variances around each reading."""

    d: FloatArray
    costate: FloatArray
    w: FloatArray
    a: FloatArray
    before: FloatArray
    after: FloatArray


class _Given(NamedTuple):
    P0: FloatArray
    z0: FloatArray
    defects: FloatArray
    w: FloatArray
    T: FloatArray
    seen: NDArray[np.bool_]


class _Kept(NamedTuple):
    P: FloatArray
    z: FloatArray
    W: FloatArray
    L: FloatArray
    updates: FloatArray


class QuickSteps:
    """Gauss–Newton's steps on one problem; none where the engine's care is needed: exact readings, wide priors."""

    def __init__(self, problem: Trajectory) -> None:
        self.problem = problem
        N, n, p, m = problem.N, problem.n, problem.p, problem.R.shape[-1]
        self.serves = not problem.carried and problem.method == "block" and not problem.prior.flat.any()
        self.serves = self.serves and N > 1 and m > 0 and _regular(problem.R)
        if self.serves:
            self._kept = _Kept(*(np.empty(N * size) for size in (n * n, n, n * m, m * m, n + 2 * m + 2)))
            known = max(n, m, p) <= _KNOWN and problem.batch * N >= _WORTH_IT and not Checks.on
            self._tags = (Tag(n), Tag(m), Tag(p)) if known else None, Tag(not known and n >= _TILED)
            self._work = np.empty(4 * n * n + 2 * n * max(n, p) + 2 * n * m + m * m + 3 * n + m)

    def step(self, point: Linearised, weights: FloatArray | None) -> QuickStep | None:
        """One step, None if digits would be lost; then it serves no more."""
        problem = self.problem
        B, N, n, p, m = problem.batch, problem.N, problem.n, problem.p, problem.R.shape[-1]
        if not self.serves:
            return None
        R = np.broadcast_to(problem.R if weights is None else problem.reweighted(weights), (B, N, m, m))
        Q = np.broadcast_to(problem.noise, (B, N - 1, p, p))
        H = np.lib.stride_tricks.as_strided(point.H, (B, N, m, n), (N * point.H.strides[0], *point.H.strides))
        F, G = (x.reshape(B, N - 1, -1) for x in (point.F, point.B))
        J0 = point.J0
        P0, z0 = J0 @ problem.prior.P0 @ np.swapaxes(J0, 1, 2), -(J0 @ point.at.prior[..., None])[..., 0]
        seen = ~np.isnan(point.at.T)
        found = QuickStep(
            np.empty((B, N, n)), np.empty((B, N, n)), np.empty((B, N - 1, p)), np.empty((B, N, m)),
            np.empty((B, N, n)), np.empty((B, N, n)),
        )  # fmt: skip
        for b in range(B):
            blocks = (F[b].ravel(), G[b].ravel(), *_once(H[b]), *_once(R[b]), *_once(Q[b]))
            given = (P0[b], z0[b], point.at.defects[b], point.w[b], point.at.T[b], seen[b])
            failed = chain.chain_solved(
                *self._tags, *blocks, _Given(*(x.ravel() for x in given)),
                QuickStep(*(x[b].reshape(-1) for x in found)), self._kept, self._work, n, m, p, N,
            )  # fmt: skip
            if failed >= 0:
                self.serves = False
                return None
        return found


def _once(blocks: FloatArray) -> tuple[FloatArray, int]:
    """Blocks of all times, flat, and how far they are apart: 0 where all are one."""
    if blocks.strides[0] == 0:
        return blocks[0].ravel(), 0
    return blocks.ravel(), blocks.shape[1] * blocks.shape[2]


def _regular(R: FloatArray) -> bool:
    """Whether covariances have roots that lose no digits."""
    scale = np.sqrt(np.diagonal(R, axis1=-2, axis2=-1))
    if not (scale > 0.0).all():
        return False
    alike = R / (scale[..., :, None] * scale[..., None, :])
    return bool((np.linalg.eigvalsh(alike)[..., 0] > _REGULAR).all())
