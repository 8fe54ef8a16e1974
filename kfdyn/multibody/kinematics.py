"""Where a frame is, how it moves, and its Jacobian: outward sweeps along its path to the root."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfdyn.multibody.arguments import batch, checked, configuration, opened
from kfdyn.multibody.layout import Layout
from kfdyn.multibody.overflow import expect_finite
from kfdyn.multibody.quick import reading
from kfdyn.multibody.system import System

Array = NDArray[np.float64]


class Pose(NamedTuple):
    """Rotation (..., 3, 3) from frame to world, and position (..., 3) of the frame's origin.

    Examples
    --------
    A point of a body in the world, from its place in the body's frame:

    >>> from kfdyn.multibody.models import pendulum
    >>> pose = frame_pose(pendulum(length=2.0), [0.5 * np.pi], "bob")
    >>> (pose.position + pose.rotation @ [0.0, 0.0, -2.0]).round(6)
    array([-2.,  0., -0.])
    """

    rotation: Array
    position: Array


def frame_pose(system: System, q: ArrayLike, frame: str) -> Pose:
    """Pose of a body or named frame in the world.

    Parameters
    ----------
    system : System
        The robot.
    q : (..., nq)
    frame
        Name of a body or of one of ``system.frames``.

    Returns
    -------
    Pose
        ``rotation`` (..., 3, 3), ``position`` (..., 3). Cost O(depth of the frame).

    Examples
    --------
    >>> from kfdyn.multibody.models import double_pendulum
    >>> frame_pose(double_pendulum(length=2.0), [0, 0], "lower").position
    array([ 0.,  0., -2.])
    """
    from kfdyn.multibody import _kernels

    if not system.is_tree:
        system, q = opened(system, q)
    path, rotation, position = _path(system, frame)
    lead, (q_flat,) = batch(system, q=(configuration(system, q), 1))
    R, p = np.empty((len(q_flat), 3, 3)), np.empty((len(q_flat), 3))
    _kernels.frame_pose(path, rotation, position, q_flat, R, p)
    expect_finite(system, p, f"the position of frame {frame!r}", q=q_flat)
    return Pose(R.reshape((*lead, 3, 3)), p.reshape((*lead, 3)))


def frame_velocity(system: System, q: ArrayLike, v: ArrayLike, frame: str) -> Array:
    """Spatial velocity V(k) = φ* V(p) + H* β of a frame (R86 5.1-5.3).

    Parameters
    ----------
    system : System
        The robot.
    q, v : (..., nq), (..., nv)
    frame : str
        Name of a body or of one of ``system.frames``.

    Returns
    -------
    (..., 6) array
        [angular; linear], world orientation, at the frame's origin. Cost O(depth).

    Examples
    --------
    The lower of two rods of one metre, turning at 3 rad/s about the upper hinge, is carried along at 3 m/s:

    >>> from kfdyn.multibody.models import double_pendulum
    >>> frame_velocity(double_pendulum(), [0, 0], [3.0, 0.0], "lower").round(6)
    array([ 0.,  3.,  0., -3.,  0.,  0.])
    """
    return _motion(system, q, v, None, frame, of_order=1)


def frame_acceleration(system: System, q: ArrayLike, v: ArrayLike, a: ArrayLike, frame: str) -> Array:
    """Classical acceleration α(k) = φ* α(p) + H* β̇ + η of a frame (R86 5.4-5.5), gravity not included.

    Parameters
    ----------
    system : System
        The robot.
    q, v, a : (..., nq), (..., nv), (..., nv)
    frame : str
        Name of a body or of one of ``system.frames``.

    Returns
    -------
    (..., 6) array
        [angular; linear], world orientation: derivatives of the angular velocity and of the velocity of
        the frame's origin. Equal to J a + J̇ v. Cost O(depth).

    Examples
    --------
    Steady turning at 3 rad/s on a radius of one metre: nine m/s² towards the hinge, which is up.

    >>> from kfdyn.multibody.models import double_pendulum
    >>> frame_acceleration(double_pendulum(), [0, 0], [3.0, 0.0], [0.0, 0.0], "lower").round(6)
    array([0., 0., 0., 0., 0., 9.])
    """
    return _motion(system, q, v, a, frame, of_order=2)


def frame_bias_acceleration(system: System, q: ArrayLike, v: ArrayLike, frame: str) -> Array:
    """Classical acceleration of a frame when a = 0: J̇ v, the sum of φ* η along its path (R86 5.6).

    Parameters
    ----------
    system : System
        The robot.
    q, v : (..., nq), (..., nv)
    frame : str
        Name of a body or of one of ``system.frames``.

    Returns
    -------
    (..., 6) array
        [angular; linear], world orientation, at the frame's origin.

    Examples
    --------
    What is left of an acceleration when J a is taken away:

    >>> from kfdyn.multibody.models import chain
    >>> arm, q, v, a = chain(4), np.ones(4), np.arange(4.0), np.arange(4.0) - 2
    >>> whole = frame_acceleration(arm, q, v, a, "link_3")
    >>> bool(np.allclose(whole - jacobian(arm, q, "link_3") @ a, frame_bias_acceleration(arm, q, v, "link_3")))
    True
    """
    return _motion(system, q, v, None, frame, of_order=2)


def jacobian(system: System, q: ArrayLike, frame: str) -> Array:
    """Jacobian of a frame: V = J v, with columns φ*(k, frame) H*(k) for k on its path.

    Parameters
    ----------
    system : System
        The robot.
    q : (..., nq)
    frame
        Name of a body or of one of ``system.frames``.

    Returns
    -------
    (..., 6, nv) array
        Rows [angular; linear], world orientation, at the frame's origin. Cost O(depth).

    Examples
    --------
    >>> from kfdyn.multibody.models import double_pendulum
    >>> jacobian(double_pendulum(), [0, 0], "lower").round(6)
    array([[ 0.,  0.],
           [ 1.,  1.],
           [ 0.,  0.],
           [-1.,  0.],
           [ 0.,  0.],
           [ 0.,  0.]])
    """
    body, _, position = system.locate(frame)
    if not system.is_tree:
        tree, q_tree = opened(system, q)
        return system._expansion.forces(jacobian(tree, q_tree, frame))  # J X
    return reading(system, "columns", (6, system.nv), q, of=(body, position))


def _motion(
    system: System, q: ArrayLike, v: ArrayLike | None, a: ArrayLike | None, frame: str, of_order: Literal[1, 2]
) -> Array:
    """Velocity (order 1) or classical acceleration (2) of the frame, (..., 6); no v is at rest, no ``a`` is a = 0."""
    from kfdyn.multibody import _kernels

    if not system.is_tree:
        system, q, v, a = opened(system, q, v=v, a=a)
    path, _, position = _path(system, frame)
    v_in = np.zeros(system.nv) if v is None else checked(system, v, (system.nv,), "v")
    a_in = np.zeros(system.nv) if a is None else checked(system, a, (system.nv,), "a")
    lead, (q_flat, v_flat, a_flat) = batch(system, q=(configuration(system, q), 1), v=(v_in, 1), a=(a_in, 1))
    V, A = np.empty((len(q_flat), 6)), np.empty((len(q_flat), 6))
    _kernels.frame_motion(path, position, q_flat, v_flat, a_flat, V, A)
    what, motion = ("acceleration", A) if of_order == 2 else ("velocity", V)
    expect_finite(system, motion, f"the {what} of frame {frame!r}", q=q_flat, v=v_flat, a=a_flat)
    return motion.reshape((*lead, 6))


def _path(system: System, frame: str) -> tuple[Layout, Array, Array]:
    """The layout with only the bodies from the root to the frame's in its order; where the frame is in the last."""
    body, rotation, position = system.locate(frame)
    path = [body]
    while (k := int(system.parent[path[-1]])) >= 0:
        path.append(k)
    order = np.array(path[::-1], dtype=np.int64)
    order.flags.writeable = False  # the type the kernels are compiled for
    return system.layout._replace(order=order), rotation, position
