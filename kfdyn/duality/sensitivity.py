"""What the cross-check can see: the smallest error in 𝓜⁻¹, or in a matrix somebody claims, that it would reject."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kfdyn.duality.roots import root_limit
from kfdyn.estimation.consistency.wishart import LikelihoodRatioNull

Array = NDArray[np.float64]


class Detectable(NamedTuple):
    """Relative errors in 𝓜⁻¹ that are rejected with probability ``power``.

    Examples
    --------
    Six joints and 200,000 samples, read in 30 tests: one variance wrong by 2 % is found, or all by 1 %.

    >>> found = detectable(d=6, n=200_000, tests=30)
    >>> round(found.entry, 3), round(found.whole, 3), found.power
    (0.02, 0.01, 0.95)

    One entry off the diagonal is seen from 1.5 % (nothing correlated) to 2 % of the two deviations:

    >>> round(found.off_diagonal, 3)
    0.02
    """

    entry: float
    """One variance 𝓜⁻¹(i,i) wrong by this factor − 1, the rest right."""
    whole: float
    """All of 𝓜⁻¹ wrong by this factor − 1, as if every mass were."""
    power: float
    off_diagonal: float = float("nan")
    """One 𝓜⁻¹(i,j), i ≠ j, wrong by this part of √(𝓜⁻¹(i,i) 𝓜⁻¹(j,j)), whichever entry it is."""


def detectable(d: int, n: int, tests: int, level: float = 1e-3, power: float = 0.95) -> Detectable:
    """Smallest relative error δ in 𝓜⁻¹ that n samples reject, at Holm's first step p < level/tests.

    One entry: S_ij has deviation √((1 + ρ²)/n), at most √(2/n), against the Šidák limit of d(d+1)/2 entries. The whole:
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
        ``entry``, ``off_diagonal`` and ``whole``, relative errors; ``power``.

    Notes
    -----
    Both are O(1/√n): four times the samples see half the error.

    Examples
    --------
    >>> found = detectable(7, 200_000, 31)
    >>> round(100 * found.entry, 1), round(100 * found.whole, 1)
    (2.1, 1.0)
    """
    entry = _scores(d, tests, level, power) * np.sqrt(2 / n)
    whole = _whole(d, n, tests, level, power)
    return Detectable(float(entry), whole, power, float(entry) if d > 1 else float("nan"))


class Limits(NamedTuple):
    """Errors in one claimed covariance Σ that its samples reject with probability ``power``, from (best, worst) entry.

    Examples
    --------
    Two accelerations correlated at 0.99: an error in their covariance is seen at 0.05 % of the deviations, where
    the sampled covariance itself would show 3 %.

    >>> Sigma = np.array([[1.0, 0.99], [0.99, 1.0]])
    >>> found = limits(Sigma, 50_000, 40)
    >>> round(100 * found.off_diagonal[1], 2), found.one_percent
    (0.04, (1, 1))
    """

    variance: tuple[float, float]
    """Of one Σ(i,i), relative to it."""
    off_diagonal: tuple[float, float]
    """Of one Σ(i,j), i ≠ j, relative to √(Σ(i,i) Σ(j,j)); NaN in one dimension."""
    one_percent: tuple[int, int]
    """In how many entries above the diagonal an error of 1 % of the entry itself is rejected, and of how many."""
    rank_one: float
    """In one direction v: Σ + θ vv*, v*Σ⁻¹v = 1."""
    whole: float
    """In all of Σ."""
    power: float


def limits(Sigma: Array, n: int, tests: int, level: float = 1e-3, power: float = 0.95) -> Limits:
    """Smallest errors in a claimed covariance Σ that n samples reject.

    An error δ in the entry (i, j) moves S_ij by δ, against a deviation of √((Σ_ii Σ_jj + Σ_ij²)/n); and it moves
    the same entry of the covariance of Σ⁻¹x by δ(Ω_ii Ω_jj + Ω_ij²), Ω = Σ⁻¹, against √((Ω_ii Ω_jj + Ω_ij²)/n). The
    second is the score of the likelihood: no test of one entry sees a smaller error, and where Σ is correlated the
    first sees only a far larger one.

    Parameters
    ----------
    Sigma : (d, d)
        The covariance claimed, positive definite.
    n : int
        Number of samples, at least d.
    tests : int
        Number of tests read together.
    level, power : float
        Probability of rejecting a true claim, at most, and a false one, at least.

    Returns
    -------
    Limits
        For variances, entries off the diagonal, errors of rank one, and all of Σ.

    Examples
    --------
    >>> round(100 * limits(np.eye(6), 200_000, 40).variance[1], 1)
    2.1
    """
    from scipy.optimize import brentq
    from scipy.stats import norm

    d = len(Sigma)
    deviation = np.sqrt(np.diag(Sigma))
    unit = Sigma / deviation / deviation[:, None]  # squares of the claim itself may leave double precision
    inverse = np.linalg.inv(unit)
    scores = _scores(d, tests, level, power)
    direct, sharp = (np.sqrt(np.outer(np.diag(A), np.diag(A)) + A**2) for A in (unit, inverse))
    relative = scores * np.minimum(direct, 1 / sharp) / np.sqrt(n)
    i, j = np.diag_indices(d)
    relative[i, j] = scores * np.sqrt(2 / n) * np.minimum(1.0, 1 / np.diag(inverse))
    above = np.triu_indices(d, 1)
    seen = relative[above] <= 0.01 * np.abs(unit[above])
    limit = root_limit(0.5 * level / tests, d, n)

    def shown(theta: float) -> float:
        """Largest root at θ, less what chance may take from it; Baik and Silverstein's mean, Paul's deviation."""
        pull = (d - 1) / (n * theta)
        deviation = np.sqrt(2 / n * max(1 - pull / theta, 0.0))
        return float((1 + theta) * (1 + pull - norm.ppf(power) * deviation))

    threshold = float(np.sqrt((d - 1) / n)) + 1e-12
    rank_one = (
        float(brentq(lambda theta: shown(theta) - limit, threshold, 100.0)) if shown(threshold) < limit else threshold
    )
    return Limits(
        _range(np.diag(relative)),
        _range(relative[above]),
        (int(seen.sum()), len(seen)),
        rank_one,
        _whole(d, n, tests, level, power),
        power,
    )


def _range(values: Array) -> tuple[float, float]:
    return (float(values.min()), float(values.max())) if values.size else (float("nan"), float("nan"))


def _scores(d: int, tests: int, level: float, power: float) -> float:
    """Normal score that an entry must be off by, among d(d + 1)/2 entries and so many tests."""
    from scipy.stats import norm

    single = -np.expm1(np.log1p(-level / tests) / (d * (d + 1) // 2))
    return float(norm.isf(single / 2) + norm.ppf(power))


def _whole(d: int, n: int, tests: int, level: float, power: float) -> float:
    """Relative error in all of a covariance that its likelihood ratio rejects."""
    from scipy.optimize import brentq
    from scipy.stats import ncx2

    f = d * (d + 1) // 2
    null = LikelihoodRatioNull.covariance(d, n)
    limit = brentq(lambda x: float(np.log(max(float(null.sf(x)), 1e-300) * tests / level)), null.mean, 50 * null.mean)
    # far from the null mean f, χ² is a limit: measure the excess over E[LR], which is exact
    excess = limit * f / null.mean
    high = 2 * excess + 100.0
    noncentral = brentq(lambda c: float(ncx2.sf(excess, f, c)) - power, 1e-6, high)
    return float(np.sqrt(2 * noncentral / (n * d)))
