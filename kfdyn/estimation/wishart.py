"""Null distributions of the likelihood ratios of a Wishart matrix, beyond χ².

Let W ~ Wishart_d(n, I). Both likelihood ratios of this package have cumulant generating functions made of
multivariate gamma functions. With ν = n(1 − 2s), Stirling's series taken out by hand leaves, for both,

    K(s) = −(f/2) log(1 − 2s) + Σ_i c_i [g_i(ν) − g_i(n)],    i = 0 … d−1,  ν > d − 1
    g_i(ν) = ½(ν − i − 1) log(1 − i/ν) + ϱ(½(ν − i)),         ϱ(a) = log Γ(a) − (a − ½) log a + a − ½ log 2π

    Cov = Σ          LR = tr W − n log det(W/n) − nd     f = d(d+1)/2          c_i = 1
    blocks apart     LR = −n log(det W / Π det W_kk)     f = (d² − Σ m_k²)/2   c_i = 1 − #{k : m_k > i}

The first term is χ²(f); the sum is what χ² neglects, O(d³/n), and is free of cancellation up to n = 1e8 and
beyond. The tail follows from K by the saddlepoint formula with χ²(f) for its base (Wood, Booth, Butler
1993; Lugannani, Rice 1980 is the same with a normal base), so that it is exact as n → ∞ for every d.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfdyn.errors import ModelError

__all__ = ["LikelihoodRatioNull"]

Array = NDArray[np.float64]

# ϱ(a) ~ Σ_j B_2j / (2j(2j−1) a^(2j−1)); at a ≥ 10 seven terms leave 3e-17.
_STIRLING = np.array([1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156])
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)
_CENTRE = 1e-6  # standard deviations from the mean below which s is replaced by its value there


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
    Ten dimensions, fifteen samples: Bartlett's χ² gives an ordinary value, the mean, a p-value a quarter off.

    >>> null = LikelihoodRatioNull.covariance(10, 15)
    >>> round(float(null.sf(null.mean)), 3), round(float(null.sf(null.mean, "bartlett")), 3)
    (0.472, 0.36)
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
        """Null of LR = n(tr S − log det S − d), S = W/n, for the hypothesis Cov = I in d dimensions."""
        return cls(np.ones(d), d * (d + 1) // 2, n)

    @classmethod
    def independence(cls, sizes: Sequence[int], n: float) -> LikelihoodRatioNull:
        """Null of LR = −n log(det W / Π det W_kk) for independence of blocks of the given sizes."""
        m = np.asarray(sizes)
        d = int(m.sum())
        weights = 1.0 - (m[:, None] > np.arange(d)).sum(0)
        return cls(weights, int(d**2 - (m**2).sum()) // 2, n)

    @property
    def mean(self) -> float:
        """E[LR] = K'(0)."""
        return float(self._slope(np.zeros(1))[0])

    def cgf(self, s: ArrayLike) -> Array:
        """K(s) = log E exp(s LR), for s < ½(1 − (d − 1)/n), shape of s."""
        s = np.asarray(s, float)
        v = self.n - len(self.weights) + 1 - 2 * self.n * s
        nu = v + len(self.weights) - 1
        return np.asarray(-0.5 * self.dof * np.log(nu / self.n) + self._sum(v, 0) - self._sum(self._v0, 0))

    def sf(self, x: ArrayLike, method: Literal["saddlepoint", "bartlett"] = "saddlepoint") -> Array:
        """P(LR > x), shape of x; O(d) for each entry.

        "bartlett" rescales to the χ² mean to first order, x(1 − Σ c_i(i²/2 + i + 1/3)/(nf)), and needs n ≫ d.
        """
        from scipy.stats import chi2

        x = np.asarray(x, float)
        f = self.dof
        if f == 0:  # one block, nothing to test
            return np.ones_like(x)
        if method == "bartlett":
            i = np.arange(len(self.weights))
            factor = 1 - self.weights @ (i**2 / 2 + i + 1 / 3) / (self.n * f)
            return np.asarray(chi2.sf(x * factor, f))
        if method != "saddlepoint":
            raise ModelError(f"method is {method!r}; say 'saddlepoint' or 'bartlett'")
        inside = (x > 0) & np.isfinite(x)
        q = self._saddlepoint(x[inside])
        s = self._s(q)
        curvature = self._curvature(q)
        h = np.sign(s) * _inverse_excess(2 * self._exponent(q) / f, np.sign(s))  # base point ξ = f e^h
        xi, t = f * np.exp(h), -0.5 * np.expm1(-h)
        tail = chi2.sf(xi, f) + chi2.pdf(xi, f) * (xi * np.sqrt(2 / f) / (s * np.sqrt(curvature)) - 1 / t)
        p = np.where(x > 0, 0.0, 1.0)
        p[inside] = np.clip(tail, 0.0, 1.0)
        return p

    # All of K in the variable q: ν − (d − 1) = v0 e^q, in which log K' is nearly a straight line of slope −1.

    @property
    def _v0(self) -> Array:
        return np.asarray(self.n - len(self.weights) + 1.0)

    def _s(self, q: Array) -> Array:
        return -self._v0 * np.expm1(q) / (2 * self.n)

    def _sum(self, v: Array, order: int) -> Array:
        """Σ c_i g_i^(order)(ν), at ν = v + d − 1; shape of v."""
        d = len(self.weights)
        i = np.arange(d)
        v = np.asarray(v)[..., None]
        nu, gap = v + (d - 1), v + (d - 1 - i)  # gap = ν − i, without the subtraction
        if order == 0:
            g = 0.5 * (gap - 1) * np.log(gap / nu) + _stirling(gap / 2, 0)
            g = np.where(i / nu < 0.5, 0.5 * (gap - 1) * np.log1p(-i / nu) + _stirling(gap / 2, 0), g)
        elif order == 1:
            log_ratio = np.where(i / nu < 0.5, np.log1p(-np.minimum(i / nu, 0.5)), np.log(gap / nu))
            g = 0.5 * (log_ratio + i / nu - i / (nu * gap) + _stirling(gap / 2, 1))
        else:
            g = 0.5 * (i**2 / (nu**2 * gap) + 1 / gap**2 - 1 / nu**2 + 0.5 * _stirling(gap / 2, 2))
        return np.asarray(g @ self.weights)

    def _slope(self, q: Array) -> Array:
        """K' = nf/ν − 2n Σ c g'."""
        v = self._v0 * np.exp(q)
        nu = v + len(self.weights) - 1
        return self.n * self.dof / nu - 2 * self.n * self._sum(v, 1)

    def _curvature(self, q: Array) -> Array:
        """K'' = 2n²f/ν² + 4n² Σ c g''."""
        v = self._v0 * np.exp(q)
        nu = v + len(self.weights) - 1
        return 2 * self.n**2 * self.dof / nu**2 + 4 * self.n**2 * self._sum(v, 2)

    def _exponent(self, q: Array) -> Array:
        """Legendre transform s K'(s) − K(s) ≥ 0; near s = 0, where it cancels, the integral of s K''(s)."""
        s = self._s(q)
        direct = s * self._slope(q) - self.cgf(s)
        tau = 0.5 * (1 + _NODES)
        inner = np.log1p(-2 * self.n * s[:, None] * tau / self._v0)
        near = s**2 * (self._curvature(inner) @ (0.5 * _WEIGHTS * tau))
        return np.where(near < 0.1, near, direct)

    def _saddlepoint(self, x: Array) -> Array:
        """Solve K'(s) = x by Newton on log K' against q."""
        q = np.log(self.mean / x)
        for _ in range(100):
            slope = self._slope(q)
            rate = -self._curvature(q) / slope * self._v0 * np.exp(q) / (2 * self.n)
            step = np.log(slope / x) / rate
            q = q - np.clip(step, -2.0, 2.0)
            if (np.abs(step) < 1e-12).all():
                break
        else:
            raise ModelError(f"no saddlepoint found for likelihood ratios in {x.min():g} … {x.max():g}")
        floor = 2 * self.n / float(self._v0) * _CENTRE / np.sqrt(float(self._curvature(np.zeros(1))[0]))
        return np.where(np.abs(q) < floor, -floor, q)


def _stirling(a: Array, order: int) -> Array:
    """ϱ(a), ϱ'(a) or ϱ''(a): the remainder of log Γ after Stirling's leading terms."""
    from scipy.special import digamma, gammaln, polygamma

    large = np.maximum(a, 10.0)
    j = np.arange(len(_STIRLING))
    power = 2 * j + 1
    scale = [np.ones_like(power), -power, power * (power + 1)][order]
    series = np.polynomial.polynomial.polyval(large**-2.0, _STIRLING * scale) * large ** -(1.0 + order)
    small = np.minimum(a, 10.0)
    if order == 0:
        direct = gammaln(small) - (small - 0.5) * np.log(small) + small - 0.5 * np.log(2 * np.pi)
    elif order == 1:
        direct = digamma(small) - np.log(small) + 0.5 / small
    else:
        direct = polygamma(1, small) - 1 / small - 0.5 / small**2
    return np.asarray(np.where(a < 10.0, direct, series))


def _inverse_excess(c: Array, sign: Array) -> Array:
    """|h| for which e^h − 1 − h = c, h of the given sign: Newton, from the far side of a convex function."""
    t = np.sqrt(2 * c)
    h = np.where(sign > 0, np.log1p(c + t), -(c + t))
    for _ in range(50):
        small = np.where(np.abs(h) < 0.3, h, 0.0)
        series = np.zeros_like(h)
        for k in range(16, 1, -1):  # Σ h^k/k!, k ≥ 2
            series = small / (k + 1) * series + 1.0
        excess = np.where(np.abs(h) < 0.3, 0.5 * small**2 * series, np.expm1(h) - h)
        step = (excess - c) / np.expm1(h)
        h = h - step
        if (np.abs(step) <= 1e-14 * np.abs(h)).all():
            break
    return np.abs(h)
