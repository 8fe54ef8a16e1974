"""How large an error must be to be rejected with a given probability, by the laws of the statistics at the error.

An error has a sign, and may be counted from the claim or from the truth; these differ by the square of the error, which
few samples show. Each function returns what is rejected in every case.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kfdyn.arrays import Array
from kfdyn.duality.roots import root_limit
from kfdyn.estimation.consistency.entry_score import entry_score
from kfdyn.estimation.consistency.wishart import LikelihoodRatioNull

_CORRELATIONS = np.linspace(-1.0, 1.0, 401)
_HALVINGS = 60


def variance_error(n: int, p: float, power: float) -> float:
    """Relative error of a variance that n samples reject at p, two-sided: nS is χ²(n) times the ratio of the two."""
    from scipy.stats import chi2

    larger = chi2.isf(p / 2, n) / chi2.isf(power, n)
    smaller = chi2.ppf(power, n) / chi2.ppf(p / 2, n)
    return float(max(larger, smaller) - 1)


def root_error(d: int, n: int, p: float, power: float) -> float:
    """Relative error in one direction v that the extreme roots of S in d dimensions reject at p, two-sided.

    They lie beyond v*Sv, which is χ²(n)/n times the ratio of true and claimed variance.
    """
    from scipy.stats import chi2

    smallest, largest = (root_limit(p / 2, d, n, upper=upper) for upper in (False, True))
    larger = n * largest / chi2.isf(power, n)
    smaller = chi2.ppf(power, n) / (n * max(smallest, np.finfo(float).tiny))
    return float(max(larger, smaller) - 1)


def pair_error(r: Array, n: int, p: float, power: float) -> Array:
    """Error t of an entry off the diagonal that its score rejects at p, two-sided.

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
        """Whether Σ_ij truly larger by t is found, often enough."""
        s = 1 + 2 * t * r
        possible = t * (1 - r) < 1
        rho = np.where(possible, (r + t * (1 + r**2)) / np.where(possible, s, 1.0), 0.0)
        return ~possible | (s * np.interp(rho, _CORRELATIONS, lowest) >= np.interp(r, _CORRELATIONS, critical))

    def rejected_claim(r: Array, t: Array) -> NDArray[np.bool_]:
        """Whether a claim of Σ_ij larger by t is found, often enough: −r and −t are those of −y_j."""
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
    """Entry of a sample covariance of unit variances whose normal score is z, for each of the correlations."""
    reach = 20 * (abs(z) / np.sqrt(n) + z**2 / n) + 1 / n
    low, high = _CORRELATIONS - reach, _CORRELATIONS + reach
    for _ in range(_HALVINGS):
        y = 0.5 * (low + high)
        below = entry_score(y, _CORRELATIONS, n) < z
        low, high = np.where(below, y, low), np.where(below, high, y)
    return 0.5 * (low + high)


def whole_error(d: int, n: int, p: float, power: float) -> float:
    """Relative error in all of a covariance in d dimensions that the likelihood ratio of n samples rejects at p."""
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
    """Normal score of P(LR > x) where the true covariance is the claimed one times a ratio; 0 where that is below ½.

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
