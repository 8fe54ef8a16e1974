"""Pose, motion and Jacobian of a frame: outward sweeps along its path to the root."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfdyn.arrays import Array
from kfdyn.multibody.calls.arguments import checked, expect_system
from kfdyn.multibody.calls.kernel import Kernel
from kfdyn.multibody.calls.packed_model import frame_of, model_of

if TYPE_CHECKING:
    from kfdyn.multibody.system import System

Index = NDArray[np.int64]


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
    return Pose._make(POSE.solve(system, *frame_of(system, frame), q))


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
    if v is None:  # at rest nothing moves, and somebody has forgotten it
        expect_system(system)
        checked(system, v, (system.nv,), "v")
    length, path, arm, _ = frame_of(system, frame)
    answer: Array = VELOCITY.solve(system, length, path, arm, q, v)
    return answer


def frame_acceleration(system: System, q: ArrayLike, v: ArrayLike | None, a: ArrayLike | None, frame: str) -> Array:
    """Classical acceleration α(k) = φ* α(p) + H* β̇ + η of a frame (R86 5.4-5.5), gravity not included.

    Parameters
    ----------
    system : System
        The robot.
    q : (..., nq)
    v, a : (..., nv) or None
        None is at rest, and a = 0.
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
    length, path, arm, _ = frame_of(system, frame)
    answer: Array = ACCELERATION.solve(system, length, path, arm, q, v, a)
    return answer


def frame_bias_acceleration(system: System, q: ArrayLike, v: ArrayLike | None, frame: str) -> Array:
    """Classical acceleration of a frame when a = 0: J̇ v, the sum of φ* η along its path (R86 5.6).

    Parameters
    ----------
    system : System
        The robot.
    q : (..., nq)
    v : (..., nv) or None
        None is at rest.
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
    return frame_acceleration(system, q, v, None, frame)


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
        Where the answer goes, instead of a new array; returned. It may overlap arguments. After an error its numbers
        mean nothing.

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
    answer: Array = JACOBIAN.solve(system, length, path, arm, q, out)
    return answer


def _of_frame(what: str) -> Callable[..., str]:
    """Name the quantity that overflows, with the frame whose path and place a kernel was given."""

    def meaning(system: System, length: int, path: Index, arm: Array, *_: Any) -> str:
        names = [name for name, found in model_of(system.pattern.open_tree).frames.items() if found[2] is arm]
        return f"the {what} of frame {names[0]!r}" if names else f"the {what} of a frame"

    return meaning


_ROOM = "kfdyn.multibody.recursions.frames"

POSE = Kernel(_ROOM, "POSE", coupled=True, meaning=_of_frame("position"), opened=True)
VELOCITY = Kernel(_ROOM, "VELOCITY", coupled=True, meaning=_of_frame("velocity"), opened=True)
ACCELERATION = Kernel(_ROOM, "ACCELERATION", coupled=True, meaning=_of_frame("acceleration"), opened=True)
JACOBIAN = Kernel(_ROOM, "JACOBIAN", coupled=True, meaning="the Jacobian", opened=True)
