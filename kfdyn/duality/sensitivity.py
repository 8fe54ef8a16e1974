"""What the cross-check can see: the smallest error in 𝓜⁻¹, or in a matrix somebody claims, that it would reject."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kfdyn.arrays import Array
from kfdyn.duality.power import pair_error, root_error, variance_error, whole_error


class Detectable(NamedTuple):
    """Relative errors in 𝓜⁻¹ that are rejected with probability ``power`` at least, of either sign.

    Examples
    --------
    Six joints and 200,000 samples, read in 30 tests: one variance wrong by 2.1 % is found, or all by 1 %.

    >>> found = detectable(d=6, n=200_000, tests=30)
    >>> round(found.entry, 3), round(found.whole, 3), found.power
    (0.021, 0.01, 0.95)

    One entry off the diagonal is seen from 1.5 % (nothing correlated) to 2.1 % of the two deviations:

    >>> round(found.off_diagonal, 3)
    0.021
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

    One entry: S_ii is χ²(n)/n times the ratio of true and claimed variance, against Šidák's limit of d(d+1)/2 entries;
    an entry off the diagonal, of deviation √((1 + ρ²)/n), is seen no later. The whole: the likelihood ratio by its own
    law at the error. Of too much and too little, the one that is harder to see counts.

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
    Both are O(1/√n): four times the samples see half the error, or somewhat less than half if they are few.

    Examples
    --------
    >>> found = detectable(7, 200_000, 31)
    >>> round(100 * found.entry, 1), round(100 * found.whole, 1)
    (2.1, 1.0)
    """
    entry = variance_error(n, _single(d, tests, level), power)
    whole = whole_error(d, n, level / tests, power)
    return Detectable(entry, whole, power, entry if d > 1 else float("nan"))


class Limits(NamedTuple):
    """Errors in one claimed covariance Σ that its samples reject with probability ``power`` at least.

    Of either sign; for entries, those of the (best, worst) one.

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

    An error δ in the entry (i, j) moves the same entry of the covariance of Σ⁻¹x by δ(Ω_ii Ω_jj + Ω_ij²), Ω = Σ⁻¹,
    against a deviation of √((Ω_ii Ω_jj + Ω_ij²)/n). This is the score of the likelihood: no test of one entry sees a
    smaller error, and where Σ is correlated S_ij itself shows only a far larger one. To first order δ is
    z/√(n(Ω_ii Ω_jj + Ω_ij²)), z normal scores; few samples need more, the more of one sign, by the exact laws.

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
    d = len(Sigma)
    deviation = np.sqrt(np.diag(Sigma))
    unit = Sigma / deviation / deviation[:, None]  # squares of the claim itself may leave double precision
    inverse = np.linalg.inv(unit)
    single = _single(d, tests, level)
    above = np.triu_indices(d, 1)
    size = np.sqrt(np.diag(inverse))
    scale = np.outer(size, size)[above]
    pairs = pair_error(inverse[above] / scale, n, single, power) / scale
    seen = pairs <= 0.01 * np.abs(unit[above])
    return Limits(
        _range(variance_error(n, single, power) / np.diag(inverse)),
        _range(pairs),
        (int(seen.sum()), len(seen)),
        root_error(d, n, level / tests, power),
        whole_error(d, n, level / tests, power),
        power,
    )


def _range(values: Array) -> tuple[float, float]:
    return (float(values.min()), float(values.max())) if values.size else (float("nan"), float("nan"))


def _single(d: int, tests: int, level: float) -> float:
    """Level of one entry among d(d + 1)/2, and of so many tests."""
    return float(-np.expm1(np.log1p(-level / tests) / (d * (d + 1) // 2)))
