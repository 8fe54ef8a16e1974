"""Rotations: unit quaternions (x, y, z, w), matrices, rotation vectors, axis and angle, roll-pitch-yaw.

A rotation matrix R takes coordinates in the rotated frame to coordinates in the reference frame, and a
quaternion stands for that matrix: q and −q are one rotation. The product p q means "q first, then p", as for
matrices. A rotation vector is axis times angle; its exponential is the rotation.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.errors import ModelError
from kfdyn.spatial._arrays import Array, together, trailing
from kfdyn.spatial.cross import _skew

UNIT_TOLERANCE = 1e-6  # a quaternion further from unit length than this is a mistake, not rounding
ROTATION_TOLERANCE = 1e-8  # likewise for the entries of R*R − 1


def check_rotation(R: Array, name: str = "rotation") -> Array:
    """``R`` (..., 3, 3) itself, or a ModelError if it is no proper rotation: R*R = 1, det R = +1."""
    error = float(np.abs(np.swapaxes(R, -1, -2) @ R - np.eye(3)).max(initial=0.0))
    if error > ROTATION_TOLERANCE:
        raise ModelError(
            f"{name} is not orthonormal: R*R differs from 1 by {error:.1e}; "
            "give a rotation matrix to full precision, or build it from a quaternion"
        )
    if (np.linalg.det(R) < 0).any():
        raise ModelError(f"{name} is a reflection (det = −1); swap or negate an axis to make it right-handed")
    return R


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
    half = 0.5 * np.linalg.norm(w, axis=-1, keepdims=True)
    return np.concatenate([0.5 * _sinc(half) * w, np.cos(half)], axis=-1)


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


def rotation_vector_to_matrix(w: ArrayLike) -> Array:
    """Rotation matrix of a rotation vector: R = exp(w~) = 1 + (sin θ/θ) w~ + ((1 − cos θ)/θ²) w~w~.

    Parameters
    ----------
    w : (..., 3)
        Rotation vector, axis times angle θ.

    Returns
    -------
    (..., 3, 3)

    Notes
    -----
    Rodrigues' formula; (1 − cos θ)/θ² is computed as ½ (sin(θ/2)/(θ/2))², which does not cancel.

    Examples
    --------
    >>> import numpy as np
    >>> from kfdyn.spatial import rotation_vector_to_matrix
    >>> rotation_vector_to_matrix([0.0, 0.0, np.pi / 2]).round(15)
    array([[ 0., -1.,  0.],
           [ 1.,  0.,  0.],
           [ 0.,  0.,  1.]])
    """
    w = trailing(w, (3,), "w")
    theta = np.linalg.norm(w, axis=-1)[..., None, None]
    W = _skew(w)
    return np.eye(3) + _sinc(theta) * W + 0.5 * _sinc(0.5 * theta) ** 2 * (W @ W)


def matrix_to_rotation_vector(R: ArrayLike) -> Array:
    """Rotation vector of a rotation matrix, the shortest one: 0 ≤ |w| ≤ π.

    Parameters
    ----------
    R : (..., 3, 3)
        Rotation matrix.

    Returns
    -------
    (..., 3)

    Examples
    --------
    >>> from kfdyn.spatial import matrix_to_rotation_vector, rotation_vector_to_matrix
    >>> matrix_to_rotation_vector(rotation_vector_to_matrix([0.0, 3.0, 0.0])).round(14)
    array([0., 3., 0.])
    """
    return quaternion_log(matrix_to_quaternion(R))


def rotation_from_axis_angle(axis: ArrayLike, angle: ArrayLike) -> Array:
    """Rotation matrix about an axis by an angle.

    Parameters
    ----------
    axis : (..., 3)
        Direction of the axis; its length does not matter, but must not be zero.
    angle : (...)
        In radians, right-handed.

    Returns
    -------
    (..., 3, 3)

    Examples
    --------
    >>> import numpy as np
    >>> from kfdyn.spatial import rotation_from_axis_angle
    >>> rotation_from_axis_angle([0, 0, 2], np.pi / 2).round(15) @ [1, 0, 0]
    array([0., 1., 0.])
    """
    axis, angle = trailing(axis, (3,), "axis"), trailing(angle, (), "angle")
    together((axis, 1, "axis"), (angle, 0, "angle"))
    largest = np.abs(axis).max(axis=-1, keepdims=True)
    if (largest == 0).any():
        raise ModelError("axis is zero and has no direction; give a nonzero axis")
    axis = axis / largest
    U = _skew(axis / np.linalg.norm(axis, axis=-1, keepdims=True))
    angle = angle[..., None, None]
    return np.eye(3) + np.sin(angle) * U + 2 * np.sin(0.5 * angle) ** 2 * (U @ U)


def rotation_from_rpy(rpy: ArrayLike) -> Array:
    """Rotation matrix of roll, pitch and yaw as URDF means them: R = R_z(yaw) R_y(pitch) R_x(roll).

    Parameters
    ----------
    rpy : (..., 3)
        Angles about the fixed x, y and z axes, applied in this order.

    Returns
    -------
    (..., 3, 3)

    Examples
    --------
    >>> import numpy as np
    >>> from kfdyn.spatial import rotation_from_rpy
    >>> rotation_from_rpy([np.pi / 2, 0, np.pi / 2]).round(15) @ [0, 1, 0]  # y to z by the roll, z stays
    array([0., 0., 1.])
    """
    rpy = trailing(rpy, (3,), "rpy")
    x, y, z = np.eye(3)
    roll, pitch, yaw = rpy[..., 0], rpy[..., 1], rpy[..., 2]
    return (
        rotation_from_axis_angle(z, yaw)
        @ rotation_from_axis_angle(y, pitch)
        @ rotation_from_axis_angle(x, roll)
    )


def _sinc(x: Array) -> Array:
    """sin(x)/x, accurate to rounding everywhere."""
    return np.divide(np.sin(x), x, out=np.ones_like(x), where=x != 0)
