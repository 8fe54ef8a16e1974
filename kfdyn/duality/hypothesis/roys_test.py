"""Roy's test by the extreme eigenvalues of a sample covariance: the sharpest for errors of low rank."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.arrays import Array
from kfdyn.errors import ModelError

_DEEP = 45.0  # e-foldings of the density after which nothing is left of a tail
_POINTS = 1025


class ExtremeEigenvalues(NamedTuple):
    """Extreme eigenvalues of a whitened sample covariance, and how unlikely they are.

    ``smallest`` and ``largest`` are its eigenvalues at both ends, both 1 for infinitely many samples; ``p_value`` is
    the probability of eigenvalues as far out.

    Examples
    --------
    >>> roys_test(np.diag([1.0, 1.0, 1.3]), 2000).p_value < 1e-6
    True
    """

    smallest: float
    largest: float
    p_value: float


def roys_test(S: ArrayLike, n: int) -> ExtremeEigenvalues:
    """Test Cov = 1 by the largest and the smallest eigenvalue of the covariance S of n samples.

    An error of low rank, Σ = 1 + θvv*, moves one eigenvalue by θ and the likelihood ratio by nθ²/2 among d(d + 1)/2
    degrees of freedom: the former shows it first.

    Parameters
    ----------
    S : (d, d)
        Whitened sample covariance, about a known mean.
    n : int
        Number of samples, at least d.

    Returns
    -------
    ExtremeEigenvalues
        ``smallest``, ``largest``, and the two-sided ``p_value``, twice that of the less likely one.

    Notes
    -----
    With W = nS of d dimensions, the expected number of eigenvalues in dx beyond all the others is ::

        ρ(x) = √π x^((n−d−1)/2) e^(−x/2) |E det(x − W′)| / (2^((n+d−1)/2) Γ(n/2) Γ(d/2))

    where W′ has d − 1 dimensions and n − 1 samples, and E det(x − W′) is the monic Laguerre polynomial of degree d − 1
    and order n − d. The tail ∫ρ (the expected Euler characteristic of Kuriki and Takemura) is P but for
    the chance that two lie there, far below a per cent of P where P < 0.01; where x is within the polynomial's
    zeros, p = 1. O(d³), and O(d) for each of the 1025 points of the integral.

    Examples
    --------
    >>> round(roys_test([[1.2]], 100).p_value, 4)  # one dimension: χ²
    0.1688
    """
    S = np.asarray(S, float)
    if S.ndim != 2 or S.shape[0] != S.shape[1] or not len(S):
        raise ModelError(f"the whitened covariance has shape {S.shape}; give a square matrix of at least one row")
    if not np.isfinite(S).all():
        raise ModelError(
            "the whitened covariance has entries that are not finite; its samples, or the factor that "
            "whitened them, have"
        )
    if n < len(S):
        raise ModelError(f"{n} samples of {len(S)} dimensions have eigenvalues that are 0; give at least {len(S)}")
    value = np.linalg.eigvalsh(S)
    tails = (
        eigenvalue_tail(n * value[0], len(S), n, upper=False),
        eigenvalue_tail(n * value[-1], len(S), n, upper=True),
    )
    return ExtremeEigenvalues(float(value[0]), float(value[-1]), min(1.0, 2 * min(tails)))


def eigenvalue_tail(x: float, d: int, n: int, *, upper: bool) -> float:
    """Return P(largest eigenvalue > x), or P(smallest < x), of a Wishart matrix of d dimensions and n samples.

    The integral is over singular values t = √x, of which the density 2tρ(t²) is smooth at 0: ρ itself is infinite there
    where n = d.
    """
    if not upper and x <= 0:
        return 0.0
    edge = float(np.sqrt(x))
    start = float(_log_density(np.array([edge]), d, n, upper)[0])
    if np.isnan(start):  # among the other eigenvalues
        return 1.0
    reach = 1e-3
    while True:
        end = edge + reach if upper else max(edge - reach, 0.0)
        if end == 0.0 or float(_log_density(np.array([end]), d, n, upper)[0]) < start - _DEEP:
            break
        reach *= 1.5
    from scipy.integrate import simpson

    points = np.linspace(edge, end, _POINTS)
    density = np.exp(_log_density(points, d, n, upper))
    return float(np.clip(abs(simpson(density, x=points)), 0.0, 1.0))


def _log_density(t: Array, d: int, n: int, upper: bool) -> Array:
    """Return log of 2tρ(t²) at singular values t (...), NaN where t² is not beyond every zero of the polynomial."""
    from scipy.special import gammaln, xlogy

    x = t * t
    sign, order = (1.0 if upper else -1.0), n - d
    value, ratio = np.zeros_like(x), np.ones_like(x)
    with np.errstate(divide="ignore", invalid="ignore"):
        for k in range(d - 1):  # monic: p_k+1 = (x − 2k − 1 − α) p_k − k(k + α) p_k−1, by ratios
            ratio = (x - (2 * k + 1 + order)) - (k * (k + order) / ratio if k else 0.0)
            value += np.log(sign * ratio)
        constant = 0.5 * np.log(np.pi) - 0.5 * (n + d - 3) * np.log(2) - gammaln(0.5 * n) - gammaln(0.5 * d)
        weight = xlogy(n - d, t) - 0.5 * x  # t is 0 at the end of a lower tail
    return np.asarray(constant + weight + value)


def eigenvalue_limit(p: float, d: int, n: int, *, upper: bool = True) -> float:
    """Return the largest eigenvalue, of S, that has probability p; or the smallest."""
    from scipy.optimize import brentq

    unit = (1.0 if upper else -1.0) * np.sqrt(2.0 / n)  # of log x: with n near d a smallest one may be 1e-10

    def excess(z: float) -> float:
        return float(np.log(max(eigenvalue_tail(n * np.exp(unit * z), d, n, upper=upper), 1e-300) / p))

    high = 2 * np.sqrt(d)
    while excess(high) > 0:
        high *= 1.3
    return float(np.exp(unit * brentq(excess, 0.0, high, xtol=1e-9)))
