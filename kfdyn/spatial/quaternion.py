"""Unit quaternions (x, y, z, w): rotations that can be integrated, with no angle to avoid.

A quaternion stands for the matrix R that takes coordinates in the rotated frame to coordinates in the
reference frame; q and −q are one rotation. The product p q means "q first, then p", as for matrices.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.arrays import Array
from kfdyn.errors import ModelError
from kfdyn.spatial._arrays import check_rotation, length, together, trailing
from kfdyn.spatial.cross import _skew

UNIT_TOLERANCE = 1e-6  # a quaternion further from unit length than this is a mistake, not rounding


def normalize_quaternion(q: ArrayLike) -> Array:
    """Quaternion scaled to unit length, q / |q|.

    Parameters
    ----------
    q : (..., 4)
        Any nonzero quaternion (x, y, z, w).

    Returns
    -------
    (..., 4)

    Notes
    -----
    Scaled by the largest entry first, so that no length over- or underflows.

    Examples
    --------
    >>> from kfdyn.spatial import normalize_quaternion
    >>> normalize_quaternion([0.0, 0.0, 3.0, 4.0])
    array([0. , 0. , 0.6, 0.8])
    """
    q = trailing(q, (4,), "quaternion")
    largest = np.abs(q).max(axis=-1, keepdims=True)
    if (largest == 0).any():
        raise ModelError("quaternion is zero, which is no rotation; (0, 0, 0, 1) is the identity")
    q = q / largest
    return q / np.linalg.norm(q, axis=-1, keepdims=True)


def _unit(q: ArrayLike, name: str = "quaternion") -> Array:
    q = trailing(q, (4,), name)
    with np.errstate(over="ignore"):  # an infinite length is refused like any other
        length = np.linalg.norm(q, axis=-1, keepdims=True)
    if (np.abs(length - 1) > UNIT_TOLERANCE).any():
        worst = float(length.flat[np.abs(length - 1).argmax()])
        raise ModelError(f"{name} has length {worst:.6g}, not 1; pass it through normalize_quaternion first")
    return q / length


def quaternion_to_matrix(q: ArrayLike) -> Array:
    """Rotation matrix of a unit quaternion, R = 1 + 2w u~ + 2 u~u~ with u = (x, y, z).

    Parameters
    ----------
    q : (..., 4)
        Unit quaternion (x, y, z, w). Rounding in its length is divided out; more is an error.

    Returns
    -------
    (..., 3, 3)

    Examples
    --------
    >>> from kfdyn.spatial import quaternion_to_matrix
    >>> quaternion_to_matrix([0.0, 0.0, 1.0, 0.0])  # half a turn about z
    array([[-1.,  0.,  0.],
           [ 0., -1.,  0.],
           [ 0.,  0.,  1.]])
    """
    q = _unit(q)
    u = _skew(q[..., :3])
    return np.eye(3) + 2 * (q[..., 3, None, None] * u + u @ u)


def matrix_to_quaternion(R: ArrayLike) -> Array:
    """Unit quaternion (x, y, z, w) of a rotation matrix, with w ≥ 0.

    The 4×4 matrix 4qq* is linear in R; its longest column is a multiple of q and is never short, so the
    result is accurate to rounding at every angle, half turns included.

    Parameters
    ----------
    R : (..., 3, 3)
        Rotation matrix.

    Returns
    -------
    (..., 4)

    Examples
    --------
    >>> from kfdyn.spatial import matrix_to_quaternion
    >>> matrix_to_quaternion([[-1, 0, 0], [0, -1, 0], [0, 0, 1]])
    array([0., 0., 1., 0.])
    """
    R = check_rotation(trailing(R, (3, 3), "rotation"))
    outer = np.empty((*R.shape[:-2], 4, 4))  # 4qq*
    trace = np.trace(R, axis1=-2, axis2=-1)
    outer[..., :3, :3] = R + np.swapaxes(R, -1, -2) + (1 - trace)[..., None, None] * np.eye(3)
    outer[..., 3, 3] = 1 + trace
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        outer[..., i, 3] = outer[..., 3, i] = R[..., k, j] - R[..., j, k]
    longest = np.diagonal(outer, axis1=-2, axis2=-1).argmax(axis=-1)
    q = np.take_along_axis(outer, longest[..., None, None], axis=-1)[..., 0]
    q = q / np.linalg.norm(q, axis=-1, keepdims=True)
    return np.where(q[..., 3:] < 0, -q, q) + 0.0  # + 0.0 turns −0 into 0


def quaternion_multiply(p: ArrayLike, q: ArrayLike) -> Array:
    """Product p q of unit quaternions: first q, then p, so that R(p q) = R(p) R(q).

    Parameters
    ----------
    p, q : (..., 4)
        Unit quaternions (x, y, z, w).

    Returns
    -------
    (..., 4)

    Examples
    --------
    >>> from kfdyn.spatial import quaternion_multiply
    >>> quaternion_multiply([1, 0, 0, 0], [0, 1, 0, 0])  # i j = k
    array([0., 0., 1., 0.])
    """
    p, q = _unit(p, "p"), _unit(q, "q")
    together((p, 1, "p"), (q, 1, "q"))
    a, b = p[..., :3], q[..., :3]
    s, t = p[..., 3:], q[..., 3:]
    return np.concatenate([s * b + t * a + np.cross(a, b), s * t - (a * b).sum(-1, keepdims=True)], axis=-1)


def quaternion_rate(q: ArrayLike, omega: ArrayLike) -> Array:
    """Rate of a unit quaternion from the body-frame angular velocity: dq/dt = ½ q (ω, 0).

    Parameters
    ----------
    q : (..., 4)
        Unit quaternion (x, y, z, w), body to reference axes.
    omega : (..., 3)
        Angular velocity of the body, in the body's axes.

    Returns
    -------
    (..., 4)
        Orthogonal to q.

    Notes
    -----
    ω is a quasi-velocity: not the rate of any three coordinates, so the rate of the four is needed.
    Source: SRB, quasi-velocities.

    Examples
    --------
    >>> from kfdyn.spatial import quaternion_rate
    >>> quaternion_rate([0, 0, 0, 1], [0, 0, 2])
    array([0., 0., 1., 0.])
    """
    q, omega = _unit(q), trailing(omega, (3,), "omega")
    together((q, 1, "quaternion"), (omega, 1, "omega"))
    u, w = q[..., :3], q[..., 3:]
    return 0.5 * np.concatenate([w * omega + np.cross(u, omega), 0.0 - (u * omega).sum(-1, keepdims=True)], axis=-1)


def quaternion_exp(w: ArrayLike) -> Array:
    """Unit quaternion of a rotation vector: exp(w/2) = (sin(θ/2) w/θ, cos(θ/2)), θ = |w|.

    Parameters
    ----------
    w : (..., 3)
        Rotation vector, axis times angle, of any length.

    Returns
    -------
    (..., 4)

    Notes
    -----
    A body turning at constant ω (in its own axes) for a time t goes from q to q exp(ωt).

    Examples
    --------
    >>> import numpy as np
    >>> from kfdyn.spatial import quaternion_exp
    >>> quaternion_exp([0.0, 0.0, np.pi / 2]) ** 2
    array([0. , 0. , 0.5, 0.5])
    """
    w = trailing(w, (3,), "w")
    half = 0.5 * length(w, "w")[..., None]
    return np.concatenate([0.5 * sinc(half) * w, np.cos(half)], axis=-1)


def quaternion_log(q: ArrayLike) -> Array:
    """Rotation vector of a unit quaternion, the shortest one: 0 ≤ |w| ≤ π.

    Parameters
    ----------
    q : (..., 4)
        Unit quaternion (x, y, z, w); q and −q give the same vector (up to sign at exactly half a turn).

    Returns
    -------
    (..., 3)

    Notes
    -----
    θ = 2 atan2(|u|, w) keeps full relative accuracy near 0 and near π, where acos would lose half the digits.

    Examples
    --------
    >>> from kfdyn.spatial import quaternion_exp, quaternion_log
    >>> quaternion_log(quaternion_exp([1e-9, 0.0, 0.5]))
    array([1.e-09, 0.e+00, 5.e-01])
    """
    q = _unit(q)
    q = np.where(q[..., 3:] < 0, -q, q)
    u, w = q[..., :3], q[..., 3:]
    s = np.linalg.norm(u, axis=-1, keepdims=True)
    return u * np.divide(2 * np.arctan2(s, w), s, out=np.full_like(s, 2.0), where=s > 0)


def sinc(x: Array) -> Array:
    """sin(x)/x, accurate to rounding everywhere."""
    return np.divide(np.sin(x), x, out=np.ones_like(x), where=x != 0)
