"""Rotation matrices turned by axis and angle or by quaternion; exponential and logarithm."""

import math

from kfdyn.multibody._kernels.fused.numbers import LARGEST_ANGLE
from kfdyn.multibody._kernels.fused.numbers import sine_cosine as small_sine_cosine
from kfdyn.multibody._kernels.vectors import add, cross, dot, inner, scale


@inner
def sine_cosine(x):
    """(sin x, cos x) to 2e-16; one reduction serves both, and below 10^5 nothing is called."""
    if not abs(x) < LARGEST_ANGLE:
        return math.sin(x), math.cos(x)
    return small_sine_cosine(x)


@inner
def turn(R, a, s, c):
    """R exp(a~ angle) for a unit vector a in the moving frame (Rodrigues), row by row.

    Turning from the left by exp(w~ angle), w = R a, is the same on paper, but w inherits R's rounding, is
    no longer a unit vector, and the error grows with every hinge of a chain instead of adding up.
    """
    x = _turned_row((R[0], R[1], R[2]), a, s, c)
    y = _turned_row((R[3], R[4], R[5]), a, s, c)
    z = _turned_row((R[6], R[7], R[8]), a, s, c)
    return x[0], x[1], x[2], y[0], y[1], y[2], z[0], z[1], z[2]


@inner
def _turned_row(x, a, s, c):
    y = cross(x, a)
    d = (1.0 - c) * dot(a, x)
    return c * x[0] + s * y[0] + d * a[0], c * x[1] + s * y[1] + d * a[1], c * x[2] + s * y[2] + d * a[2]


@inner
def unit_quaternion(q, at):
    """The quaternion (x, y, z, w) at q[at:], divided by its length."""
    x, y, z, w = q[at], q[at + 1], q[at + 2], q[at + 3]
    r = 1.0 / math.sqrt(x * x + y * y + z * z + w * w)
    return x * r, y * r, z * r, w * r


@inner
def rotate(e, x):
    """Turn the vector x by the unit quaternion e."""
    n = (e[0], e[1], e[2])
    t = scale(2.0, cross(n, x))
    return add(x, add(scale(e[3], t), cross(n, t)))


@inner
def quaternion_product(a, b):
    return (
        a[3] * b[0] + a[0] * b[3] + a[1] * b[2] - a[2] * b[1],
        a[3] * b[1] - a[0] * b[2] + a[1] * b[3] + a[2] * b[0],
        a[3] * b[2] + a[0] * b[1] - a[1] * b[0] + a[2] * b[3],
        a[3] * b[3] - a[0] * b[0] - a[1] * b[1] - a[2] * b[2],
    )


@inner
def from_quaternion(x, y, z, w):
    """Rotation matrix, nine numbers, of a quaternion of any length but 0."""
    r = 2.0 / (x * x + y * y + z * z + w * w)
    xx, yy, zz = r * x * x, r * y * y, r * z * z
    xy, xz, yz = r * x * y, r * x * z, r * y * z
    wx, wy, wz = r * w * x, r * w * y, r * w * z
    return 1.0 - (yy + zz), xy - wz, xz + wy, xy + wz, 1.0 - (xx + zz), yz - wx, xz - wy, yz + wx, 1.0 - (xx + yy)


@inner
def quaternion_exp(w):
    half = 0.5 * math.sqrt(dot(w, w))
    s = 0.5 * (1.0 - half * half / 6.0) if half < 1e-4 else 0.5 * math.sin(half) / half
    return s * w[0], s * w[1], s * w[2], math.cos(half)


@inner
def quaternion_log(e):
    """Rotation vector of length at most pi; e and -e are the same rotation."""
    sign = -1.0 if e[3] < 0.0 else 1.0
    n = (sign * e[0], sign * e[1], sign * e[2])
    size = math.sqrt(dot(n, n))
    # 2 atan2(size, w) / size -> 2 / w as size -> 0
    s = 2.0 / (sign * e[3]) if size < 1e-12 else 2.0 * math.atan2(size, sign * e[3]) / size
    return scale(s, n)
