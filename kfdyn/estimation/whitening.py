"""Coordinates in which a covariance, singular or not, is the identity on its range and 0 outside."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfdyn.errors import ModelError, ShapeError

__all__ = ["Whitening", "whitening"]

Array = NDArray[np.float64]


class Whitening(NamedTuple):
    """Two linear maps of a vector e of covariance Σ: ``e @ inside`` has covariance I, ``e @ outside`` is 0.

    ``inside`` (d, rank); ``outside`` (d, d − rank), in units of the standard deviations of e;
    ``tolerance``, the variance of ``e @ outside`` that rounding excuses.
    """

    inside: Array
    outside: Array
    tolerance: float

    @property
    def rank(self) -> int:
        """Dimension of the range of Σ."""
        return self.inside.shape[1]


def whitening(Sigma: ArrayLike, rank: int | None = None, rtol: float = 1e-11) -> Whitening:
    """Whiten Σ on its range, Σ = Δ^½ V λ V* Δ^½: inside = Δ^-½ V_r λ_r^-½.

    Parameters
    ----------
    Sigma : (d, d)
        Covariance, positive semi-definite. It is scaled to unit diagonal Δ first, so that neither rank nor
        result depends on units. A component of variance 0 is measured by the largest standard deviation.
    rank : int, optional
        The rank, if theory knows it; else eigenvalues of the scaled Σ below rtol count as 0.
    rtol : float
        Relative size of variances that are taken for rounding.

    Notes
    -----
    O(d³).

    Examples
    --------
    >>> whitening([[4.0, 2.0], [2.0, 1.0]]).rank
    1
    """
    Sigma = np.asarray(Sigma, float)
    if Sigma.ndim != 2 or Sigma.shape[0] != Sigma.shape[1]:
        raise ShapeError(f"the covariance has shape {Sigma.shape}; it must be a square matrix")
    if not np.isfinite(Sigma).all():
        raise ModelError("the covariance has entries that are not finite")
    d = len(Sigma)
    variance = np.diag(Sigma)
    if (variance < 0).any():
        raise ModelError(f"the covariance has a negative variance at {int(np.argmin(variance))}")
    if rank is not None and not 0 <= rank <= d:
        raise ModelError(f"rank {rank} is impossible for a covariance of {d} dimensions")
    scale = np.sqrt(np.where(variance > 0, variance, variance.max(initial=0.0) or 1.0))
    unit = Sigma / np.outer(scale, scale)
    if not np.allclose(unit, unit.T, rtol=0, atol=1e-9):
        raise ModelError("the covariance is not symmetric")
    eigenvalue, vector = np.linalg.eigh(0.5 * (unit + unit.T))
    null = d - rank if rank is not None else int((eigenvalue <= rtol).sum())
    noise = max(rtol, float(np.abs(eigenvalue[:null]).max(initial=0.0)) if rank is not None else 0.0)
    if (eigenvalue < -10 * d * noise).any():
        raise ModelError(
            f"the covariance is indefinite: an eigenvalue of its unit form is {eigenvalue[0]:.3g}"
        )
    if rank is not None and (eigenvalue[null:] <= 0).any():
        raise ModelError(f"the covariance has fewer than rank = {rank} positive eigenvalues; lower the rank")
    directions = vector / scale[:, None]
    return Whitening(directions[:, null:] / np.sqrt(eigenvalue[null:]), directions[:, :null], 10 * noise)
