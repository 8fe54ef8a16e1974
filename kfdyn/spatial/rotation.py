"""Rotation matrices from rotation vectors, axis and angle, roll-pitch-yaw, and the rates of the latter.

A rotation matrix R takes coordinates in the rotated frame to coordinates in the reference frame. A rotation
vector is axis times angle; its exponential is the rotation. SciPy's ``Rotation`` does the same, but importing it takes
0.2 seconds of processor time, twenty times as long as this room, and older releases have a single batch axis.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.arrays import Array
from kfdyn.errors import ModelError
from kfdyn.spatial._arrays import length, together, trailing
from kfdyn.spatial.cross import _skew
from kfdyn.spatial.quaternion import matrix_to_quaternion, quaternion_log, sinc


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
    theta = length(w, "w")[..., None, None]
    W = _skew(w)
    return np.eye(3) + sinc(theta) * W + 0.5 * sinc(0.5 * theta) ** 2 * (W @ W)


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
    return rotation_from_axis_angle(z, yaw) @ rotation_from_axis_angle(y, pitch) @ rotation_from_axis_angle(x, roll)


def rpy_rate_map(rpy: ArrayLike) -> Array:
    """Matrix B of ω = B(rpy) d(rpy)/dt, the angular velocity in the reference axes.

    Parameters
    ----------
    rpy : (..., 3)
        Roll, pitch and yaw as in :func:`rotation_from_rpy`.

    Returns
    -------
    (..., 3, 3)
        Columns: the roll, pitch and yaw axes as they now stand. Singular at pitch = ±π/2, det B = cos(pitch).

    Notes
    -----
    The change of generalised velocities from angle rates to the quasi-velocity ω; no coordinates
    have ω as their rate, for the rows of B are no gradients. Source: SRB, quasi-velocities.

    Examples
    --------
    >>> from kfdyn.spatial import rpy_rate_map
    >>> rpy_rate_map([0.3, 0.0, 0.0])
    array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.]])
    """
    rpy = trailing(rpy, (3,), "rpy")
    x, y, z = np.eye(3)
    turned = rotation_from_axis_angle(z, rpy[..., 2])
    pitched = turned @ rotation_from_axis_angle(y, rpy[..., 1])
    return np.stack([pitched @ x, turned @ y, np.broadcast_to(z, rpy.shape)], axis=-1) + 0.0
