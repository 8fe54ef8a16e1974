"""Sine and cosine of a number, a float or a machine vector."""

import math

from numba import njit, types
from numba.extending import overload

from kfdyn.estimation._kernels.sizes import ORDERED
from kfdyn.estimation._kernels.vectors import Vector, floor, rint

# π/2 in three parts of 33 bits, so that k times the first two is exact for |k| < 2²⁰.
_FIRST, _SECOND, _THIRD = 1.57079632673412561417e00, 6.07710050630396597660e-11, 2.02226624879595063154e-21
_LARGEST_ANGLE = 1e5


def sine_cosine(x):
    """(sin x, cos x), |x| < 10⁵ (larger angles: see :func:`principal`)."""
    return math.sin(x), math.cos(x)


@overload(sine_cosine)
def _sine_cosine(x):
    if isinstance(x, Vector) or x == types.float64:  # one series for all, so that lanes do not show in the answer
        return lambda x: _series(x)
    return None


@njit(**ORDERED)
def _series(x):
    """Both to 2e-16 on all lanes: reduce to r = x − kπ/2, sum minimax series on |r| ≤ π/4, put the quadrant k in.

    The quadrant enters by arithmetic: with k = 2h + odd, sin x = ± sin r or ± cos r, and likewise cos x.
    """
    k = rint(x * 0.6366197723675814)
    r = ((x - k * _FIRST) - k * _SECOND) - k * _THIRD
    y = r * r
    s = y * 1.58962301576546568060e-10 + -2.50507477628578072866e-8
    s = s * y + 2.75573136213857245213e-6
    s = s * y + -1.98412698295895385996e-4
    s = s * y + 8.33333333332211858878e-3
    s = s * y + -1.66666666666666307295e-1
    s = r + r * y * s
    c = y * -1.13585365213876817300e-11 + 2.08757008419747316778e-9
    c = c * y + -2.75573141792967388112e-7
    c = c * y + 2.48015872888517045348e-5
    c = c * y + -1.38888888888730564116e-3
    c = c * y + 4.16666666666665929218e-2
    c = (1.0 - 0.5 * y) + y * y * c
    half = floor(k * 0.5)
    odd = k - 2.0 * half
    sign = 1.0 - 2.0 * (half - 2.0 * floor(half * 0.5))
    return sign * (s + odd * (c - s)), sign * (c - odd * (c + s))


@njit(**ORDERED)
def principal(angle):
    """The angle itself, or its equal between −π and π where it is large. A float."""
    if abs(angle) < _LARGEST_ANGLE:
        return angle
    return math.atan2(math.sin(angle), math.cos(angle))
