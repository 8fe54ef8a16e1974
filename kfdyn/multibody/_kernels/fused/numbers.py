"""Numbers, floats or machine vectors: how functions on them are compiled, and their sine and cosine."""

import math

import numpy as np
from numba import njit

from kfdyn._kernels.sizes import ORDERED, size
from kfdyn._kernels.vectors import any_beyond, fabs, floor, get, put, rint

#: For parts on numbers. A call would pass its numbers, and its arrays field by field, through memory: these are never
#: called but become lines of their caller.
INLINED = ORDERED | {"forceinline": True}

# π/2 in three parts of 33 bits, so that k times the first two is exact for |k| < 2²⁰.
_FIRST, _SECOND, _THIRD = 1.57079632673412561417e00, 6.07710050630396597660e-11, 2.02226624879595063154e-21
LARGEST_ANGLE = 1e5


@njit(**INLINED)
def sine_cosine(x):
    """(sin x, cos x) to 2e-16, |x| < 10⁵ (larger angles: see :func:`reduced`).

    Reduce to r = x − kπ/2, sum minimax series on |r| ≤ π/4, put the quadrant k in. It enters by arithmetic: with
    k = 2h + odd, sin x = ± sin r or ± cos r, and likewise cos x.
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


@njit(**INLINED)
def reduced(tag, angle):
    """The angle itself, or its equal between −π and π in lanes where it is large."""
    if any_beyond(fabs(angle), LARGEST_ANGLE):
        return _principal(tag, angle)
    return angle


@njit(**ORDERED)
def _principal(tag, angle):
    lanes = np.empty(size(tag, 1))
    put(tag, lanes, 0, angle)
    for l in range(lanes.size):
        x = lanes[l]
        if abs(x) > LARGEST_ANGLE:
            lanes[l] = math.atan2(math.sin(x), math.cos(x))
    return get(tag, lanes, 0)
