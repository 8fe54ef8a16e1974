"""Information of noise levels, as covariances tell it of themselves, judged from a part of a log."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kfdyn.arrays import Array
from kfdyn.motion.identification.adjoint import slopes_of
from kfdyn.motion.identification.linear import Linear, Motion

_WINDOW = 240  # steps from which it is judged
_STEP = 1e-4  # of logarithms of variances


def information_of_covariances(parameters: Any, z: Array, which: int, line: Linear, noise: NDArray[np.intp]) -> Array:
    """½ tr(V⁻¹ dV_i V⁻¹ dV_j) of one log, for numbers that are logarithms of variances.

    Without data the gradient is −½ tr(V⁻¹ dV_i), and d²V_i = dV_i, so that differences of it are what is asked for.
    A part of the log stands for the whole, in proportion to its readings: steps of a search need no more.
    """
    log, base = line.log, parameters.bases[which]
    part = log.part(_WINDOW)
    counts = [(~np.isnan(one.rows)).sum() for one in (log, part)]
    if not counts[1]:
        part, counts = log, [1, 1]
    few = part.rows.shape[1]
    x = line.motion.x[:, :few]
    w = np.zeros_like(line.motion.w[:, : few - (not line.problem.carried)])
    calm = Motion(x, w, line.motion.variances)
    point = Linear(line.model, part, calm).point
    nothing = point.at._replace(
        prior=np.zeros_like(point.at.prior), defects=np.zeros_like(point.at.defects), T=0.0 * point.at.T
    )
    point = point._replace(at=nothing)

    def gradient(z: Array) -> Array:
        there = Linear(parameters.models(z)[which], part, calm, point)
        found: Array = parameters.pull(z, there, base, slopes_of(there, robot=False), noise_alone=True)[noise]
        there.release()
        return found

    here, columns = gradient(z), []
    for j in noise:
        there = z.copy()
        there[j] += _STEP
        columns.append((gradient(there) - here) / _STEP)
    H = np.stack(columns, axis=1) - np.diag(here)
    return np.asarray(counts[0] / counts[1] * 0.5 * (H + H.T))
