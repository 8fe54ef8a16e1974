"""Compute the smallest error that is rejected with a given probability.

An error has a sign, and may be counted from the claim or from the truth; these differ by the square of the error, which
few samples show. What is given is rejected in every case.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kfdyn.arrays import Array
from kfdyn.duality.hypothesis.roys_test import eigenvalue_limit
from kfdyn.estimation.consistency.null_distributions import LikelihoodRatioNull, entry_score


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
    """Return the smallest relative error δ in 𝓜⁻¹ that n samples reject, at Holm's first step p < level/tests.

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
    """Return the smallest errors in a claimed covariance Σ that n samples reject.

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
        direction_error(d, n, level / tests, power),
        whole_error(d, n, level / tests, power),
        power,
    )


def _range(values: Array) -> tuple[float, float]:
    return (float(values.min()), float(values.max())) if values.size else (float("nan"), float("nan"))


def _single(d: int, tests: int, level: float) -> float:
    """Return the level of one entry among d(d + 1)/2, and of so many tests."""
    return float(-np.expm1(np.log1p(-level / tests) / (d * (d + 1) // 2)))


_CORRELATIONS = np.linspace(-1.0, 1.0, 401)
_HALVINGS = 60


def variance_error(n: int, p: float, power: float) -> float:
    """Return the relative error of a variance that n samples reject at p, two-sided, by χ²(n)."""
    from scipy.stats import chi2

    larger = chi2.isf(p / 2, n) / chi2.isf(power, n)
    smaller = chi2.ppf(power, n) / chi2.ppf(p / 2, n)
    return float(max(larger, smaller) - 1)


def direction_error(d: int, n: int, p: float, power: float) -> float:
    """Return the relative error in one direction v that the extreme eigenvalues of S reject at p, two-sided.

    They lie beyond v*Sv, which is χ²(n)/n times the ratio of true and claimed variance.
    """
    from scipy.stats import chi2

    smallest, largest = (eigenvalue_limit(p / 2, d, n, upper=upper) for upper in (False, True))
    larger = n * largest / chi2.isf(power, n)
    smaller = chi2.ppf(power, n) / (n * max(smallest, np.finfo(float).tiny))
    return float(max(larger, smaller) - 1)


def pair_error(r: Array, n: int, p: float, power: float) -> Array:
    """Return the error t of an entry off the diagonal that its score rejects at p, two-sided.

    Parameters
    ----------
    r : array
        Ω_ij/√(Ω_ii Ω_jj), where Ω is the inverse of the covariance.
    n : int
        Number of samples.
    p, power : float
        Level of the test of this entry, and probability of rejecting the error, at least.

    Returns
    -------
    array, shape of r
        t = δ√(Ω_ii Ω_jj): Σ_ij is wrong by δ. An error that leaves no covariance counts as rejected.

    Notes
    -----
    The score is the entry (i, j) of the covariance of y = Ωx, in units of √(Ω_ii Ω_jj). If Σ_ij is truly larger by δ,
    both variances of y are s = 1 + 2tr in these units, and their covariance is r + t(1 + r²). Claiming δ too much makes
    of r and t: r − t(1 − r²) and −t/(1 + 2rt − t²(1 − r²)).
    """
    from scipy.stats import norm

    critical = _quantiles(norm.isf(p / 2), n)
    lowest = _quantiles(norm.isf(power), n)

    def rejected(r: Array, t: Array) -> NDArray[np.bool_]:
        """Return True if Σ_ij truly larger by t is found, often enough."""
        s = 1 + 2 * t * r
        possible = t * (1 - r) < 1
        rho = np.where(possible, (r + t * (1 + r**2)) / np.where(possible, s, 1.0), 0.0)
        return ~possible | (s * np.interp(rho, _CORRELATIONS, lowest) >= np.interp(r, _CORRELATIONS, critical))

    def rejected_claim(r: Array, t: Array) -> NDArray[np.bool_]:
        """Return True if a claim of Σ_ij larger by t is found, often enough: −r and −t are those of −y_j."""
        scale = 1 + 2 * r * t - t**2 * (1 - r**2)
        possible = scale > 0
        claimed = np.clip(np.where(possible, r - t * (1 - r**2), 0.0), -1.0, 1.0)
        return ~possible | rejected(-claimed, t / np.where(possible, scale, 1.0))

    low, high = np.zeros_like(_CORRELATIONS), np.full_like(_CORRELATIONS, 100.0)
    for _ in range(_HALVINGS):
        t = 0.5 * (low + high)
        found = np.all(
            [test(sign * _CORRELATIONS, t) for test in (rejected, rejected_claim) for sign in (1, -1)], axis=0
        )
        low, high = np.where(found, low, t), np.where(found, t, high)
    return np.asarray(np.interp(r, _CORRELATIONS, high))


def _quantiles(z: float, n: int) -> Array:
    """Return the entry of a sample covariance of unit variances whose normal score is z, for each correlation."""
    reach = 20 * (abs(z) / np.sqrt(n) + z**2 / n) + 1 / n
    low, high = _CORRELATIONS - reach, _CORRELATIONS + reach
    for _ in range(_HALVINGS):
        y = 0.5 * (low + high)
        below = entry_score(y, _CORRELATIONS, n) < z
        low, high = np.where(below, y, low), np.where(below, high, y)
    return 0.5 * (low + high)


def whole_error(d: int, n: int, p: float, power: float) -> float:
    """Return the relative error in all of a covariance that the likelihood ratio of n samples rejects at p."""
    from scipy.optimize import brentq
    from scipy.stats import norm

    null = LikelihoodRatioNull.covariance(d, n)
    limit = brentq(lambda x: float(np.log(max(float(null.sf(x)), 1e-300) / p)), null.mean, 50 * null.mean)
    wanted = norm.ppf(power)

    def error(sign: int) -> float:
        high = 1.0 / np.sqrt(n)
        while _scaled_score(limit, d, n, (1 + high) ** sign) < wanted:
            high *= 2
        return float(brentq(lambda x: _scaled_score(limit, d, n, (1 + x) ** sign) - wanted, 0.0, high, xtol=1e-10))

    return max(error(1), error(-1))


def _scaled_score(x: float, d: int, n: int, ratio: float) -> float:
    """Return the normal score of P(LR > x) if the true covariance is the claimed one times a ratio; 0 below ½.

    LR = n(tr S − log det S − d), nS = W times the ratio ϱ. By the integral of the Wishart density, ν = n(1 − 2s), ::

        K(s) = nds(log(n/2ϱ) − 1) + log Γ_d(ν/2) − log Γ_d(n/2) − (νd/2) log(1 − 2sϱ)

    and the score is Barndorff-Nielsen's r*, as in `entry_score`.
    """
    from scipy.optimize import brentq
    from scipy.special import digamma, multigammaln, polygamma

    offsets = 0.5 * np.arange(d)

    def slope(s: float) -> float:
        nu, rest = n * (1 - 2 * s), 1 - 2 * s * ratio
        level = n * d * (np.log(n / (2 * ratio)) - 1) - n * float(digamma(nu / 2 - offsets).sum())
        return float(level + n * d * np.log(rest) + nu * d * ratio / rest)

    def curvature(s: float) -> float:
        nu, rest = n * (1 - 2 * s), 1 - 2 * s * ratio
        bend = n**2 * float(polygamma(1, nu / 2 - offsets).sum())
        return float(bend - 4 * n * d * ratio / rest + 2 * nu * d * (ratio / rest) ** 2)

    if slope(0.0) - x < 0.1 * np.sqrt(curvature(0.0)):
        return 0.0
    low = -1.0 / n
    while slope(low) > x:
        low *= 2
    s = float(brentq(lambda s: slope(s) - x, low, 0.0, xtol=1e-16))
    nu = n * (1 - 2 * s)
    cumulants = n * d * s * (np.log(n / (2 * ratio)) - 1) - 0.5 * nu * d * np.log1p(-2 * s * ratio)
    cumulants += multigammaln(nu / 2, d) - multigammaln(n / 2, d)
    r = np.sqrt(2 * max(s * x - float(cumulants), 0.0))
    return float(r + np.log(-s * np.sqrt(curvature(s)) / r) / r)
