"""Null distributions: the exact likelihood ratios of a Wishart matrix, and single entries of a covariance.

Let W ~ Wishart_d(n, I). Both likelihood ratios of this package have cumulant generating functions made of
multivariate gamma functions. With ν = n(1 − 2s), Stirling's series taken out by hand leaves, for both,

    K(s) = −(f/2) log(1 − 2s) + Σ_i c_i [g_i(ν) − g_i(n)],    i = 0 … d−1,  ν > d − 1
    g_i(ν) = ½(ν − i − 1) log(1 − i/ν) + ϱ(½(ν − i)),         ϱ(a) = log Γ(a) − (a − ½) log a + a − ½ log 2π

    Cov = Σ          LR = tr W − n log det(W/n) − nd     f = d(d+1)/2          c_i = 1
    blocks apart     LR = −n log(det W / Π det W_kk)     f = (d² − Σ m_k²)/2   c_i = 1 − #{k : m_k > i}

The first term is χ²(f); the sum is what χ² neglects, O(d³/n), and it does not cancel at n = 1e8 either. The
tail is the Laplace inversion of K along a hyperbola through the saddlepoint, where the trapezoidal rule converges
geometrically: some 1e-11 of p, in the far tail too. The poles of d gamma functions lie on the cut v < 0, up to d/2 of
them at one place: beside it the integrand is as large as e^300 when n is near d, so that a contour which wraps the cut
(Talbot's) loses every digit. A hyperbola stays away from it: its asymptotes lean 30° from the vertical, where K still
falls, as Re K ~ ¼ Re (δ² log(d/δ)) does for a step δ from the saddlepoint while that is steeper than 45°.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfdyn.arrays import Array
from kfdyn.errors import ModelError

__all__ = ["LikelihoodRatioNull", "entry_score"]


# ϱ(a) ~ Σ_j B_2j / (2j(2j−1) a^(2j−1)); at a ≥ 10 seven terms leave 3e-17.
_STIRLING = np.array([1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156])

_LEAN = np.pi / 6  # of the contour's asymptotes from the vertical
_STEP = 0.08  # strips of analyticity are π/6 wide at least: exp(−2π · π/6 / 0.08) = 1e-18 is left by the rule
_BLOCK = 64  # points of the contour at a time
_FALLEN = 1e-17  # of the integrand's size at the saddlepoint: where the contour ends


@dataclass(frozen=True)
class LikelihoodRatioNull:
    """Distribution of a Wishart likelihood ratio under its hypothesis.

    Attributes
    ----------
    weights : (d,)
        The c_i of the module's formula.
    dof : int
        f, the degrees of freedom of the χ² limit.
    n : float
        Degrees of freedom of W, at least d.

    Examples
    --------
    Ten dimensions, fifteen samples; Bartlett's χ² would give 0.36.

    >>> null = LikelihoodRatioNull.covariance(10, 15)
    >>> round(float(null.sf(null.mean)), 3)
    0.472
    """

    weights: Array
    dof: int
    n: float

    def __post_init__(self) -> None:
        if not self.n >= len(self.weights):
            raise ModelError(
                f"{self.n:g} samples cannot test a covariance of {len(self.weights)} dimensions: the sample "
                f"covariance is singular; give at least {len(self.weights)}, better several times as many"
            )

    @classmethod
    def covariance(cls, d: int, n: float) -> LikelihoodRatioNull:
        """Make the null of LR = n(tr S − log det S − d), S = W/n, for the hypothesis Cov = I in d dimensions."""
        return cls(np.ones(d), d * (d + 1) // 2, n)

    @classmethod
    def independence(cls, sizes: Sequence[int], n: float) -> LikelihoodRatioNull:
        """Make the null of LR = −n log(det W / Π det W_kk) for independence of blocks of the given sizes."""
        m = np.asarray(sizes)
        d = int(m.sum())
        weights = 1.0 - (m[:, None] > np.arange(d)).sum(0)
        return cls(weights, int(d**2 - (m**2).sum()) // 2, n)

    @property
    def mean(self) -> float:
        """E[LR] = K'(0)."""
        return self._derivatives(self._v0)[0]

    def cgf(self, s: ArrayLike) -> NDArray[Any]:
        """Return K(s) = log E exp(s LR), off the cut s ≥ ½(1 − (d − 1)/n) of the complex plane, shape of s."""
        return self._cgf(self._v0 - 2 * self.n * np.asarray(s))

    def sf(self, x: ArrayLike) -> Array:
        """Return P(LR > x), shape of x, by inversion of the cumulant generating function; O(100 d) for each x."""
        return np.vectorize(self._tail, otypes=[float])(np.asarray(x, float))

    def _tail(self, x: float) -> float:
        """Return P(LR > x) = (1/2πi) ∫ exp(K(s) − sx) ds/s, upwards and to the right of s = 0 (else −P(LR < x))."""
        if not self.dof or x <= 0:
            return 1.0
        if x == np.inf:
            return 0.0
        # v = ν − (d − 1) = v0 − 2ns; the saddlepoint, kept a standard deviation away from the pole s = 0
        q = self._saddlepoint(x)
        clearance = min(1.0, 2 * self.n / self._v0 / np.sqrt(self._derivatives(self._v0)[1]))
        q = np.copysign(max(abs(q), clearance), q)
        v = self._v0 * np.exp(q)
        # v(u) = v + w (sin(iu − β) + sin β), β the lean; w is the largest that keeps the cut v < 0 at the strip's edge
        w, real, imaginary = v / (1 - np.sin(_LEAN)), np.sin(_LEAN), np.cos(_LEAN)
        deviation = 2 * self.n / (w * imaginary * np.sqrt(self._derivatives(v)[1]))  # of the integrand, in u
        step, total, size, first = min(deviation / 6, _STEP), 0.0, 0.0, 0
        while True:
            u = step * np.arange(first, first + _BLOCK)
            path = v + w * (1j * imaginary * np.sinh(u) - real * (np.cosh(u) - 1))
            speed = w * (1j * imaginary * np.cosh(u) - real * np.sinh(u))
            s = (self._v0 - path) / (2 * self.n)
            integrand = np.exp(self._cgf(path) - s * x) / s * speed / (2 * self.n)
            if not first:
                size = abs(integrand[0])
                integrand[0] *= 0.5
            total += float(integrand.imag.sum())
            first += _BLOCK
            if abs(integrand[-1]) <= _FALLEN * size:
                break
        integral = step * total / np.pi
        return float(np.clip(integral if q < 0 else 1 + integral, 0.0, 1.0))

    @property
    def _v0(self) -> float:
        return self.n - len(self.weights) + 1.0

    def _cgf(self, v: NDArray[Any]) -> NDArray[Any]:
        """Return K at ν = v + d − 1, v complex and off the negative axis."""
        from scipy.special import log1p

        i = np.arange(len(self.weights))
        base = len(self.weights) - 1.0

        def g(v: NDArray[Any]) -> NDArray[Any]:
            nu, gap = v + base, v + (base - i)  # gap = ν − i, without the subtraction
            ratio = np.where(i < 0.5 * np.abs(nu), log1p(-i / nu), np.log(gap / nu))
            return 0.5 * (gap - 1) * ratio + _stirling(gap / 2)

        change = self.weights * (g(np.asarray(v)[..., None]) - g(np.asarray(self._v0)))
        return np.asarray(change.sum(-1) - 0.5 * self.dof * np.log((v + base) / self.n))

    def _derivatives(self, v: float) -> tuple[float, float]:
        """Return K' = nf/ν − 2n Σ c g' and K'' = 2n²f/ν² + 4n² Σ c g'', at real v > 0."""
        n, i = self.n, np.arange(len(self.weights))
        nu = v + len(self.weights) - 1.0
        gap = v + (len(self.weights) - 1.0 - i)
        remainder1, remainder2 = _stirling_derivatives(gap / 2)
        g1 = 0.5 * (np.log1p(-i / nu) + i / nu - i / (nu * gap) + remainder1)
        g2 = 0.5 * (i**2 / (nu**2 * gap) + 1 / gap**2 - 1 / nu**2 + 0.5 * remainder2)
        slope = n * self.dof / nu - 2 * n * float(self.weights @ g1)
        return slope, 2 * n**2 * self.dof / nu**2 + 4 * n**2 * float(self.weights @ g2)

    def _saddlepoint(self, x: float) -> float:
        """Solve K'(s) = x for q, v = v0 e^q: log K' is nearly a straight line of slope −1, hence Newton on it."""
        q = np.log(self.mean / x)
        for _ in range(100):
            v = self._v0 * np.exp(q)
            slope, curvature = self._derivatives(v)
            step = -np.log(slope / x) * slope / curvature * 2 * self.n / v
            q -= np.clip(step, -2.0, 2.0)
            if abs(step) < 1e-6:  # any point near by will do
                break
        return float(q)


def _stirling(a: NDArray[Any]) -> NDArray[Any]:
    """Return ϱ(a), the remainder of log Γ after Stirling's leading terms, a complex and off the negative axis."""
    from scipy.special import loggamma

    # The series is good where |a| cos²(½ arg a) is large, not where |a| is.
    far = 0.5 * (np.abs(a) + a.real) >= 10
    large, small = a[far], a[~far]
    value = np.empty_like(a)
    value[far] = np.polynomial.polynomial.polyval(large**-2.0, _STIRLING) / large
    value[~far] = loggamma(small) - (small - 0.5) * np.log(small) + small - 0.5 * np.log(2 * np.pi)
    return value


def _stirling_derivatives(a: Array) -> tuple[Array, Array]:
    """Return ϱ'(a) and ϱ''(a), a real and positive."""
    from scipy.special import digamma, polygamma

    large, small = np.maximum(a, 10.0), np.minimum(a, 10.0)
    power = 2 * np.arange(len(_STIRLING)) + 1
    first = -np.polynomial.polynomial.polyval(large**-2.0, _STIRLING * power) / large**2
    second = np.polynomial.polynomial.polyval(large**-2.0, _STIRLING * power * (power + 1)) / large**3
    return (
        np.where(a < 10, digamma(small) - np.log(small) + 0.5 / small, first),
        np.where(a < 10, polygamma(1, small) - 1 / small - 0.5 / small**2, second),
    )


def entry_score(y: ArrayLike, rho: ArrayLike, n: float) -> Array:
    """Return the normal score of one entry y of a sample covariance: N(0, 1) whatever the skewness of its law.

    For n pairs of unit normals of correlation ρ, the sum of products n·y is ½[(1 + ρ)A − (1 − ρ)B], A and B
    independent χ²(n), so K(s) = −(n/2) log(1 − 2ρs − (1 − ρ²)s²), whose saddlepoint is the root
    of a quadratic. The score is Barndorff-Nielsen's r* = r + log(u/r)/r; ρ = 1 is a variance, χ²(n)/n.

    Parameters
    ----------
    y, rho : arrays that broadcast
        Entry divided by the two standard deviations, and the correlation claimed.
    n : float
        Number of samples.

    Returns
    -------
    score : array
        −∞ or +∞ for a y that this ρ cannot produce.

    Notes
    -----
    Right to 2 % of the exact tail probability at n = 10 and 0.05 % at n = 100, out to three deviations.

    Examples
    --------
    Zero is the median of an uncorrelated product; the mean of a variance is above its median.

    >>> entry_score([0.0, 1.0], [0.0, 1.0], 10).round(3)
    array([0.   , 0.149])
    """
    y, rho = np.broadcast_arrays(np.asarray(y, float), np.asarray(rho, float))
    a = (1 - rho) * (1 + rho)
    denominator = a + 2 * rho * y + np.hypot(a, 2 * y)
    impossible = denominator <= 0  # |ρ| = 1 and y of the other sign
    s = 2 * (y - rho) / np.where(impossible, 1.0, denominator)
    inside = s * (2 * rho + a * s)  # 1 − e^(−2K/n)
    impossible |= inside >= 1
    inside = np.where(impossible, 0.0, inside)
    curvature = n * (a / (1 - inside) + 2 * ((rho + a * s) / (1 - inside)) ** 2)
    exponent = np.maximum(n * (s * y + 0.5 * np.log1p(-inside)), 0.0)
    r = np.sign(s) * np.sqrt(2 * exponent)
    centre = np.abs(r) < 1e-3
    skewness = rho * (6 + 2 * rho**2) / ((1 + rho**2) ** 1.5 * np.sqrt(n))
    ratio = np.where(centre, 1.0, s * np.sqrt(curvature) / np.where(centre, 1.0, r))
    ratio = np.maximum(ratio, np.finfo(float).tiny)  # y below 1e-154 ρ: its score is beyond any doubt already
    score = r + np.where(centre, skewness / 6, np.log(ratio) / np.where(centre, 1.0, r))
    return np.where(impossible, np.copysign(np.inf, y - rho), score)
