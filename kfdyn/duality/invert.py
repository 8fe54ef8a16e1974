"""The inverse of a covariance by somebody who never heard of a filter, as exact as the covariance is known."""

from __future__ import annotations

import numpy as np

from kfdyn.arrays import Array


def inverse(covariance: Array) -> Array:
    """Σ⁻¹ by Cholesky's factor, (d, d).

    The factor is that of Σ + E, |E_ij| ≤ c ε √(Σ_ii Σ_jj), whatever the units; so that Σ⁻¹EΣ⁻¹, what is wrong with
    the inverse, keeps to :func:`~kfdyn.duality.rounding.rounding_bound`. The E of an LU factor with pivots, numpy's
    ``inv``, is c ε times the *largest* entry: the inertia of a hinge beside the mass of a slide is rounded away. What
    has no factor is no covariance; then LU has the word, and whoever compares sees it.

    Notes
    -----
    O(d³). Source: Demmel, On floating point errors in Cholesky (LAPACK working note 14).

    Examples
    --------
    >>> inverse(np.array([[4.0, 0.0], [0.0, 0.5]]))
    array([[0.25, 0.  ],
           [0.  , 2.  ]])
    """
    from scipy.linalg.lapack import dpotrf, dpotri

    covariance = np.asarray(covariance, float)
    if not covariance.size:
        return covariance
    lower, flaw = dpotrf(covariance, lower=1)
    if flaw:
        return np.asarray(np.linalg.inv(covariance), float)
    found = np.tril(dpotri(lower, lower=1)[0])
    return np.asarray(found + np.tril(found, -1).T)
