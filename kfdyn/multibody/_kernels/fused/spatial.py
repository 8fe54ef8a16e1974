"""Spatial algebra on numbers: vectors are tuples, a symmetric 6 x 6 is 21 numbers; nothing is stored.

Sums run from left to right, each product added as it is made: one fused multiply-add and no other instruction.
"""

from numba import njit

from kfdyn.multibody._kernels.fused.numbers import INLINED


@njit(**INLINED)
def add(a, b):
    return a[0] + b[0], a[1] + b[1], a[2] + b[2]


@njit(**INLINED)
def scale(s, a):
    return s * a[0], s * a[1], s * a[2]


@njit(**INLINED)
def dot(a, b):
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@njit(**INLINED)
def dot6(a, b, c, d):
    """a·c + b·d for spatial vectors [a; b], [c; d]."""
    return a[0] * c[0] + a[1] * c[1] + a[2] * c[2] + b[0] * d[0] + b[1] * d[1] + b[2] * d[2]


@njit(**INLINED)
def cross(a, b):
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


@njit(**INLINED)
def add_cross(x, a, b):
    """x + a × b."""
    return (
        x[0] + a[1] * b[2] - a[2] * b[1],
        x[1] + a[2] * b[0] - a[0] * b[2],
        x[2] + a[0] * b[1] - a[1] * b[0],
    )


@njit(**INLINED)
def add_apply(y, R, x):
    """y + R x for a matrix of nine numbers, row by row."""
    return (
        y[0] + R[0] * x[0] + R[1] * x[1] + R[2] * x[2],
        y[1] + R[3] * x[0] + R[4] * x[1] + R[5] * x[2],
        y[2] + R[6] * x[0] + R[7] * x[1] + R[8] * x[2],
    )


@njit(**INLINED)
def add_symmetric(y, J, x):
    """y + J x for symmetric J = (xx, xy, xz, yy, yz, zz)."""
    return (
        y[0] + J[0] * x[0] + J[1] * x[1] + J[2] * x[2],
        y[1] + J[1] * x[0] + J[3] * x[1] + J[4] * x[2],
        y[2] + J[2] * x[0] + J[4] * x[1] + J[5] * x[2],
    )


@njit(**INLINED)
def apply(R, x):
    """R x for a matrix of nine numbers, row by row."""
    return (
        R[0] * x[0] + R[1] * x[1] + R[2] * x[2],
        R[3] * x[0] + R[4] * x[1] + R[5] * x[2],
        R[6] * x[0] + R[7] * x[1] + R[8] * x[2],
    )


@njit(**INLINED)
def apply_transposed(R, x):
    """R* x for a matrix of nine numbers, row by row."""
    return (
        R[0] * x[0] + R[3] * x[1] + R[6] * x[2],
        R[1] * x[0] + R[4] * x[1] + R[7] * x[2],
        R[2] * x[0] + R[5] * x[1] + R[8] * x[2],
    )


@njit(**INLINED)
def compose(A, B):
    """A B for matrices of nine numbers."""
    return (
        A[0] * B[0] + A[1] * B[3] + A[2] * B[6],
        A[0] * B[1] + A[1] * B[4] + A[2] * B[7],
        A[0] * B[2] + A[1] * B[5] + A[2] * B[8],
        A[3] * B[0] + A[4] * B[3] + A[5] * B[6],
        A[3] * B[1] + A[4] * B[4] + A[5] * B[7],
        A[3] * B[2] + A[4] * B[5] + A[5] * B[8],
        A[6] * B[0] + A[7] * B[3] + A[8] * B[6],
        A[6] * B[1] + A[7] * B[4] + A[8] * B[7],
        A[6] * B[2] + A[7] * B[5] + A[8] * B[8],
    )


@njit(**INLINED)
def turned_row(x, a, s, c, h):
    """A row of R exp(a~ angle): c x + s x × a + (1 − c)(a·x) a (Rodrigues, in the moving frame)."""
    y = cross(x, a)
    d = h * dot(x, a)
    return c * x[0] + s * y[0] + d * a[0], c * x[1] + s * y[1] + d * a[1], c * x[2] + s * y[2] + d * a[2]


@njit(**INLINED)
def turn(R, a, s, c):
    """R exp(a~ angle) for a unit vector a in the moving frame."""
    h = 1.0 - c
    x = turned_row((R[0], R[1], R[2]), a, s, c, h)
    y = turned_row((R[3], R[4], R[5]), a, s, c, h)
    z = turned_row((R[6], R[7], R[8]), a, s, c, h)
    return x[0], x[1], x[2], y[0], y[1], y[2], z[0], z[1], z[2]


@njit(**INLINED)
def from_quaternion(x, y, z, w):
    """Rotation matrix of a quaternion of any length but 0."""
    r = 2.0 / (x * x + y * y + z * z + w * w)
    xx, yy, zz = r * x * x, r * y * y, r * z * z
    xy, xz, yz = r * x * y, r * x * z, r * y * z
    wx, wy, wz = r * w * x, r * w * y, r * w * z
    return 1.0 - (yy + zz), xy - wz, xz + wy, xy + wz, 1.0 - (xx + zz), yz - wx, xz - wy, yz + wx, 1.0 - (xx + yy)


@njit(**INLINED)
def mix(c, s, x, y):
    """c x + s y and c y − s x: two columns of a matrix turned about the third."""
    return (
        (c * x[0] + s * y[0], c * x[1] + s * y[1], c * x[2] + s * y[2]),
        (c * y[0] - s * x[0], c * y[1] - s * x[1], c * y[2] - s * x[2]),
    )


@njit(**INLINED)
def symmetric_apply(J, x):
    """J x for symmetric J = (xx, xy, xz, yy, yz, zz)."""
    return (
        J[0] * x[0] + J[1] * x[1] + J[2] * x[2],
        J[1] * x[0] + J[3] * x[1] + J[4] * x[2],
        J[2] * x[0] + J[4] * x[1] + J[5] * x[2],
    )


@njit(**INLINED)
def across(omega, alpha, a, l, h_omega, h_v):
    """Move from one frame to the next, l away, moving against it at H*β = [h_omega; h_v] (R86 5.1–5.6).

    alpha, a carry the acceleration left when the parent's acceleration and β̇ are 0: THEORY section 6's η, in steps.
    """
    a = add(a, add(cross(alpha, l), cross(omega, add(cross(omega, l), h_v))))
    alpha = add(alpha, cross(omega, h_omega))
    omega = add(omega, h_omega)
    return omega, alpha, add(a, cross(omega, h_v))
