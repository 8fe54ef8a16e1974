"""Rotation matrices turned by axis and angle or by quaternion; exponential and logarithm."""

import math

from kfdyn.multibody._kernels.vectors import add, cross, dot, get, inner, scale


@inner
def turn(R, a, angle):
    """R <- R exp(a~ angle) for a unit vector a in the moving frame (Rodrigues), row by row.

    Turning from the left by exp(w~ angle), w = R a, is the same on paper, but w inherits R's rounding, is
    no longer a unit vector, and the error grows with every hinge of a chain instead of adding up.
    """
    s, c = math.sin(angle), math.cos(angle)
    h = 2.0 * math.sin(0.5 * angle) ** 2  # 1 - cos, without cancellation
    for i in range(3):
        x = get(R, i)
        y = cross(x, a)
        d = h * dot(a, x)
        for j in range(3):
            R[i, j] = c * x[j] + s * y[j] + d * a[j]


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
def turn_by_quaternion(R, e):
    """R <- R R(e)."""
    x = rotate(e, (1.0, 0.0, 0.0))
    y = rotate(e, (0.0, 1.0, 0.0))
    z = rotate(e, (0.0, 0.0, 1.0))
    for i in range(3):
        r = (R[i, 0], R[i, 1], R[i, 2])
        R[i, 0], R[i, 1], R[i, 2] = dot(r, x), dot(r, y), dot(r, z)


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
