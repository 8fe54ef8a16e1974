"""Where a frame is, how it moves, and its Jacobian: outward sweeps along its path to the root."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfdyn.multibody.entries import ACCELERATION, JACOBIAN, POSE, VELOCITY, reading
from kfdyn.multibody.prepared import frame_of
from kfdyn.multibody.results import filled
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
    of = length, path, arm, turn = frame_of(system, frame)
    one = POSE.one
    answer = one(system, length, path, arm, turn, q)
    if answer is not None:  # what loops call
        return Pose._make(answer)
    answer = POSE.constrained(system, *of, q)
    if answer is not None:
        return Pose._make(answer)
    system, q = system.rigid_state(q)
    return Pose(*reading(system, POSE, ((3, 3), (3,)), f"the position of frame {frame!r}", q, of=of))


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


def jacobian(system: System, q: ArrayLike, frame: str, *, out: Array | None = None) -> Array:
    """Jacobian of a frame: V = J v, with columns φ*(k, frame) H*(k) for k on its path.

    Parameters
    ----------
    system : System
        The robot.
    q : (..., nq)
    frame
        Name of a body or of one of ``system.frames``.
    out : (..., 6, nv) array of float64, optional
        Where the answer goes, instead of a new array; returned. It may overlap arguments.

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
    length, path, arm, _ = frame_of(system, frame)
    one = JACOBIAN.one
    answer = one(system, length, path, arm, q) if out is None else None
    if answer is not None:  # what loops call
        return answer
    of = (length, path, arm)
    answer = JACOBIAN.constrained(system, *of, q) if out is None else None
    if answer is not None:
        return answer
    rigid, q_rigid = system.rigid_state(q)
    if rigid is not system:
        return filled(out, system.narrowed(q, jacobian(rigid, q_rigid, frame)))
    return filled(out, reading(system, JACOBIAN, ((6, system.nv),), "the Jacobian", q, of=of, out=out)[0])


def _motion(
    system: System, q: ArrayLike, v: ArrayLike | None, a: ArrayLike | None, frame: str, of_order: Literal[1, 2]
) -> Array:
    """Velocity (order 1) or classical acceleration (2) of the frame, (..., 6); no v is at rest, no ``a`` is a = 0."""
    length, path, arm, _ = frame_of(system, frame)
    entry = VELOCITY if of_order == 1 else ACCELERATION
    one = entry.one
    answer = one(system, length, path, arm, q, v) if of_order == 1 else one(system, length, path, arm, q, v, a)
    if answer is not None:  # what loops call
        return answer
    of, more = (length, path, arm), (v,) if of_order == 1 else (v, a)
    answer = entry.constrained(system, *of, q, *more)
    if answer is not None:
        return answer
    system, q, v, a = system.rigid_state(q, v=v, a=a)
    v = np.zeros(system.nv) if v is None else v
    more, word = ((v,), "velocity") if of_order == 1 else ((v, a), "acceleration")
    return reading(system, entry, ((6,),), f"the {word} of frame {frame!r}", q, *more, of=of)[0]
