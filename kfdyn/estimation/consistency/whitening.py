"""Whiten a covariance on its range, whether it is singular or not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfdyn.arrays import Array
from kfdyn.errors import ModelError, ShapeError

__all__ = ["Whitening", "deviations", "whitening"]


_NOISE = 1e-13  # variance, relative to the largest, that a component determined by others still shows

_UNEVEN = 1e-9  # difference of Σ_ij and Σ_ji, in units of the deviations, that is taken for rounding


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


def deviations(variance: Array, scale: ArrayLike | None, rtol: float) -> tuple[Array, NDArray[np.bool_]]:
    """Return the units (d,) of a covariance's components, and which of them vary at all."""
    for wrong, what in (
        (~np.isfinite(variance), "a variance that is not finite"),
        (variance < 0, "a negative variance"),
    ):
        if wrong.any():
            k = int(np.argmax(wrong))
            raise ModelError(f"the covariance has {what}: {variance[k]:.3g} at ({k}, {k})")
    if scale is None:
        alive = variance > _NOISE * variance.max(initial=0.0)
        return np.sqrt(np.where(alive, variance, variance.max(initial=0.0) or 1.0)), alive
    units = np.asarray(scale, float)
    if units.shape != variance.shape or not (np.isfinite(units).all() and (units > 0).all()):
        raise ShapeError(f"scale must hold {len(variance)} positive standard deviations, one a component")
    return units, variance > rtol * units**2


def whitening(
    Sigma: ArrayLike,
    rank: int | None = None,
    rtol: float = 1e-11,
    scale: ArrayLike | None = None,
    names: Sequence[str] = (),
) -> Whitening:
    """Whiten Σ on its range, Σ = Δ V λ V* Δ: inside = Δ^-1 V_r λ_r^-½.

    Parameters
    ----------
    Sigma : (d, d)
        Covariance, positive semi-definite.
    rank : int, optional
        The rank, if theory knows it; else eigenvalues of Δ^-1ΣΔ^-1 below rtol count as 0.
    rtol : float
        Relative size of variances that are taken for rounding.
    scale : (d,), optional
        The units Δ, such as the standard deviations before conditioning, against which rounding is small. By default
        each component's own standard deviation, so that nothing depends on units; one below 3e-7 of the largest
        is taken for 0 and measured by the largest.
    names : sequence of str, optional
        What messages call the components; by default their numbers.

    Notes
    -----
    O(d³): by the Cholesky factor where that shows Σ to be regular, ten times as fast as by eigenvectors.

    Examples
    --------
    >>> whitening([[4.0, 2.0], [2.0, 1.0]]).rank
    1
    """
    Sigma = np.asarray(Sigma, float)
    if Sigma.ndim != 2 or Sigma.shape[0] != Sigma.shape[1]:
        raise ShapeError(f"the covariance has shape {Sigma.shape}; it must be a square matrix")
    d = len(Sigma)
    if rank is not None and not 0 <= rank <= d:
        raise ModelError(f"rank {rank} is impossible for a covariance of {d} dimensions")
    units, _ = deviations(np.diag(Sigma), scale, rtol)
    unit = Sigma / np.outer(units, units)
    if flaw := _flaw(Sigma, unit, names):
        raise ModelError(flaw)
    unit = 0.5 * (unit + unit.T)
    if rank in (None, d) and (regular := _triangular(unit, rtol)) is not None:
        return Whitening(regular / units[:, None], np.zeros((d, 0)), 10 * rtol)
    eigenvalue, vector = np.linalg.eigh(unit)
    null = d - rank if rank is not None else int((eigenvalue <= rtol).sum())
    noise = max(rtol, float(np.abs(eigenvalue[:null]).max(initial=0.0)) if rank is not None else 0.0)
    if (eigenvalue < -10 * d * rtol).any():
        raise ModelError(f"the covariance is indefinite: an eigenvalue of its unit form is {eigenvalue[0]:.3g}")
    if (eigenvalue[null:] <= 0).any():
        raise ModelError(f"the covariance has fewer than rank = {rank} positive eigenvalues; lower the rank")
    directions = vector / units[:, None]
    return Whitening(directions[:, null:] / np.sqrt(eigenvalue[null:]), directions[:, :null], 10 * noise)


def _flaw(Sigma: Array, unit: Array, names: Sequence[str]) -> str:
    """Describe the worst asymmetry of a matrix; empty if it is symmetric."""
    name = names if len(names) == len(Sigma) else range(len(Sigma))
    if not np.isfinite(Sigma).all():
        i, j = np.argwhere(~np.isfinite(Sigma))[0]
        return f"the covariance is not finite: {Sigma[i, j]} at ({name[i]}, {name[j]})"
    uneven = np.abs(unit - unit.T)
    if uneven.max(initial=0.0) <= _UNEVEN:
        return ""
    i, j = divmod(int(np.argmax(uneven)), len(Sigma))
    return (
        f"the covariance is not symmetric: {Sigma[i, j]:.12g} at ({name[i]}, {name[j]}), "
        f"{Sigma[j, i]:.12g} at ({name[j]}, {name[i]})"
    )


def _triangular(unit: Array, rtol: float) -> Array | None:
    """Return L^-* of a matrix LL* whose eigenvalues all exceed rtol, as 1/Σ|L^-1|² ≤ the smallest does; else None."""
    from scipy.linalg import LinAlgError, cholesky
    from scipy.linalg.lapack import dtrtri

    if not len(unit):
        return unit
    try:
        inverse, _ = dtrtri(cholesky(unit, lower=True, check_finite=False), lower=1)
    except LinAlgError:
        return None
    return inverse.T if (inverse**2).sum() * rtol < 1 else None
