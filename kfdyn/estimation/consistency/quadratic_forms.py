"""NIS and NEES: normalised squared innovations and errors, which are χ² if the filter is consistent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.arrays import Array
from kfdyn.errors import ModelError, ShapeError
from kfdyn.estimation.consistency.verdict import Verdict
from kfdyn.estimation.consistency.whitening import whitening


@dataclass(frozen=True)
class QuadraticVerdict:
    """A quadratic form e*C^-1e for each run of a batch, and for the batch as a whole.

    Attributes
    ----------
    statistic, p_value : (...)
        χ²(dof) and its two-sided p-value 2 min(F, 1 − F): too small an error is as inconsistent as too large.
    dof : int
        Degrees of freedom of each run.
    total : Verdict
        The sum over B independent runs, χ²(B·dof), two-sided as well.

    Examples
    --------
    Errors twice as large as their covariance says are found at once, and so are errors half as large:

    >>> rng = np.random.default_rng(0)
    >>> e = rng.normal(size=(100, 3))
    >>> [bool(nees(size * e, np.eye(3)).total.p_value > 0.001) for size in (0.5, 1.0, 2.0)]
    [False, True, False]
    """

    statistic: Array
    dof: int
    p_value: Array
    total: Verdict


def nis(filt: Any) -> QuadraticVerdict:
    """Compute normalised innovations squared, Σ_k ε*D^-1ε ~ χ²(Σm_k) over the observed outputs (THEORY section 5).

    Parameters
    ----------
    filt : Filtered
        Read for ``eps_centered`` and ``nu_centered`` = D^-1 eps_centered, both (..., Σm), and the mask
        ``observed`` (Σm,). Centred innovations have mean 0 also when η ≠ 0 (THEORY section 3).

    Returns
    -------
    QuadraticVerdict
        For each run, and for all.

    Notes
    -----
    O(Σm) per run.

    Examples
    --------
    Ten runs of a robot's filter on torques drawn from its own model, two outputs each:

    >>> import numpy as np, kfdyn as kf
    >>> ss = kf.as_estimation(kf.models.double_pendulum(), [0.3, 0.4])
    >>> verdict = nis(kf.kalman_filter(ss, kf.draw(ss, np.random.default_rng(0), 10).T))
    >>> verdict.dof, verdict.statistic.shape, verdict.total.dof, bool(verdict.total.p_value > 0.01)
    (2, (10,), 20, True)
    """
    if not hasattr(filt, "eps_centered"):
        raise ModelError(
            "nis reads a filter's innovations: filt must be the result of kf.kalman_filter(ss, T) for a model without "
            f"flat priors, under which innovations have no variance until they are resolved; got {type(filt).__name__}"
        )
    observed = np.asarray(filt.observed, bool)
    eps, nu = (np.asarray(a, float)[..., observed] for a in (filt.eps_centered, filt.nu_centered))
    if not (np.isfinite(eps).all() and np.isfinite(nu).all()):
        raise ModelError("observed innovations hold NaN or infinite entries; was the filter run on finite T?")
    return _quadratic(np.asarray((eps * nu).sum(-1)), int(observed.sum()), np.zeros(eps.shape[:-1]), 0.0)


def nees(error: ArrayLike, covariance: ArrayLike, *, scale: ArrayLike | None = None) -> QuadraticVerdict:
    """Compute normalised estimation errors squared, e*C^+e ~ χ²(rank C).

    Parameters
    ----------
    error : (..., d)
        Errors such as x − x̂; leading axes are independent runs.
    covariance : (d, d)
        The covariance claimed for them, of any rank: x − x̂ has rank Σn − Σm when R = 0. A run whose error
        leaves the range of C by more than rounding has p = 0.
    scale : (d,), optional
        Units in which rounding is small, such as the prior standard deviations, see `whitening`.

    Returns
    -------
    QuadraticVerdict
        For each run, and for all.

    Notes
    -----
    O(d³) once and O(d²) per run.

    Examples
    --------
    >>> C = np.ones((2, 2))
    >>> inside, outside = nees([1.0, 1.0], C), nees([1.0, 1.1], C)
    >>> inside.dof, round(float(inside.p_value), 4), float(outside.p_value)
    (1, 0.6346, 0.0)
    """
    e = np.asarray(error, float)
    C = np.asarray(covariance, float)
    if e.ndim == 0 or C.shape != (e.shape[-1],) * 2:
        raise ShapeError(f"error has shape {e.shape}, covariance {C.shape}; they must be (..., d) and (d, d)")
    if not np.isfinite(e).all():
        raise ModelError("error holds NaN or infinite entries; drop what is missing first")
    space = whitening(C, scale=scale)
    outside = ((e @ space.outside) ** 2).max(axis=-1, initial=0.0)
    return _quadratic(((e @ space.inside) ** 2).sum(-1), space.rank, np.asarray(outside), space.tolerance)


def _quadratic(statistic: Array, dof: int, outside: Array, tolerance: float) -> QuadraticVerdict:
    p_value = np.where(outside <= tolerance, _two_sided(statistic, dof), 0.0)
    total, worst = float(statistic.sum()), float(outside.max(initial=0.0))
    total_p = float(_two_sided(np.asarray(total), dof * statistic.size)) if worst <= tolerance else 0.0
    return QuadraticVerdict(
        np.asarray(statistic),
        dof,
        p_value,
        Verdict(total, dof * statistic.size, total_p, worst, statistic.size),
    )


def _two_sided(statistic: Array, dof: int) -> Array:
    from scipy.stats import chi2

    if dof == 0:
        return np.ones_like(statistic)
    return 2 * np.minimum(chi2.sf(statistic, dof), chi2.cdf(statistic, dof))
