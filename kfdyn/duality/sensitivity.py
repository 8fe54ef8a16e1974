"""What the cross-check can see: the smallest error in 𝓜⁻¹ that it would reject."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kfdyn.estimation.wishart import LikelihoodRatioNull


class Detectable(NamedTuple):
    """Relative errors in 𝓜⁻¹ that are rejected with probability ``power``.

    Examples
    --------
    Six joints and 200,000 samples, read in 30 tests: one variance wrong by 2 % is found, or all by 1 %.

    >>> found = detectable(d=6, n=200_000, tests=30)
    >>> round(found.entry, 3), round(found.whole, 3), found.power
    (0.02, 0.01, 0.95)
    """

    entry: float
    """One variance 𝓜⁻¹(i,i) wrong by this factor − 1, the rest right."""
    whole: float
    """All of 𝓜⁻¹ wrong by this factor − 1, as if every mass were."""
    power: float


def detectable(d: int, n: int, tests: int, level: float = 1e-3, power: float = 0.95) -> Detectable:
    """Smallest relative error δ in 𝓜⁻¹ that n samples reject, at Holm's first step p < level/tests.

    One entry: S_ii is normal with deviation √(2/n) of its mean, against the Šidák limit of d(d+1)/2 entries. The whole:
    the likelihood ratio is noncentral χ² with d(d+1)/2 degrees of freedom and noncentrality ndδ²/2.

    Parameters
    ----------
    d : int
        Dimension of a.
    n : int
        Number of samples, at least d.
    tests : int
        Number of tests read together.
    level, power : float
        Probability of rejecting a true claim, at most, and a false one, at least.

    Returns
    -------
    Detectable
        ``entry`` and ``whole``, relative errors; ``power``.

    Notes
    -----
    Both are O(1/√n): four times the samples see half the error.

    Examples
    --------
    >>> entry, whole, _ = detectable(7, 200_000, 31)
    >>> round(100 * entry, 1), round(100 * whole, 1)
    (2.1, 1.0)
    """
    from scipy.optimize import brentq
    from scipy.stats import ncx2, norm

    f = d * (d + 1) // 2
    single = -np.expm1(np.log1p(-level / tests) / f)
    entry = (norm.isf(single / 2) + norm.ppf(power)) * np.sqrt(2 / n)
    null = LikelihoodRatioNull.covariance(d, n)
    limit = brentq(lambda x: float(np.log(max(float(null.sf(x)), 1e-300) * tests / level)), null.mean, 50 * null.mean)
    # far from the null mean f, χ² is a limit: measure the excess over E[LR], which is exact
    excess = limit * f / null.mean
    high = 2 * excess + 100.0
    noncentral = brentq(lambda c: float(ncx2.sf(excess, f, c)) - power, 1e-6, high)
    return Detectable(float(entry), float(np.sqrt(2 * noncentral / (n * d))), power)
