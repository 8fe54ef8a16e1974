"""Goals of a plan: what a sensor shall read, and when."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.arrays import Array
from kfdyn.dynamics.sensors.motion_sensors import MotionSensor, Orientation, Pose, Position
from kfdyn.errors import ModelError, ShapeError
from kfdyn.multibody import System
from kfdyn.multibody.kinematics import Pose as PoseOfFrame
from kfdyn.spatial.quaternion import matrix_to_quaternion

#: What numbers of a reading are, where that is not plain.
_MEANT = {
    Pose: ", a position, then a quaternion (x, y, z, w), or a pose as of kf.frame_pose",
    Orientation: ", a quaternion (x, y, z, w), or a pose as of kf.frame_pose",
}


class Goal(NamedTuple):
    """A goal of a plan: a sensor, the value it shall read, and when.

    Parameters
    ----------
    sensor : Sensor
        ``JointPosition``, ``JointVelocity``, ``Position``, ``Velocity``, ``Pose``, ``Orientation``, ``Gyroscope``,
        ``CenterOfMass`` or ``Contact`` of ``kf.sensors``. Its covariance is the weight: deviations of its root cost ½
        each, so that (0.01)² is "to a centimetre"; 0 is exact.
    value : array, shape (size,), or (steps + 1, size) for "always"
        The reading; of a ``Pose`` a position, then a quaternion (x, y, z, w). ``Pose``, ``Position`` and
        ``Orientation`` also take a pose as of :func:`kfdyn.frame_pose`. In a batch of plans it may have one axis more
        before these.
    at : int or "always"
        The step, 0 … steps, negative from the end; "always" is every step after the start.

    Examples
    --------
    >>> import kfdyn as kf
    >>> Goal(kf.sensors.JointPosition(0.0), [1.0], at=50).at
    50
    """

    sensor: Any
    value: ArrayLike
    at: int | str = -1

    def size(self, system: System) -> int:
        """Numbers of a reading of the sensor, which must be one of positions or velocities."""
        if not isinstance(self.sensor, MotionSensor):
            raise ModelError(
                f"a goal needs a sensor of positions or velocities, got {getattr(self.sensor, 'name', self.sensor)!r}"
            )
        return self.sensor.size(system)

    def number(self) -> Array:
        """The value as finite numbers."""
        value, name = self.value, getattr(self.sensor, "name", self.sensor)
        if isinstance(value, PoseOfFrame) and isinstance(self.sensor, Pose | Position | Orientation):
            turn = matrix_to_quaternion(value.rotation)
            parts = {Pose: (value.position, turn), Position: (value.position,), Orientation: (turn,)}
            value = np.concatenate(parts[type(self.sensor)], axis=-1)
        try:
            value = np.asarray(value, np.float64)
        except (TypeError, ValueError):
            meant = _MEANT.get(type(self.sensor), "")
            given = repr(value) if value is None or isinstance(value, str) else f"a {type(value).__name__}"
            raise ShapeError(f"goal {name}: its value must be an array of numbers{meant}, got {given}") from None
        if not np.isfinite(value).all():
            raise ModelError(f"goal {name}: its value has entries that are not finite")
        return value

    def readings(self, system: System, steps: int) -> Array:
        """The goal as readings (..., steps + 1, size), NaN where there is none."""
        value, size, meant = self.number(), self.size(system), _MEANT.get(type(self.sensor), "")
        name = self.sensor.name
        always = self.at == "always"
        if not always and (not isinstance(self.at, int | np.integer) or not -steps - 1 <= self.at <= steps):
            raise ShapeError(f"goal {name}: at must be 'always' or a step 0 to {steps}, got {self.at!r}")
        each = always and value.ndim > 1
        tail = (steps + 1, size) if each else (size,)
        lead = value.shape[: value.ndim - len(tail)]
        if value.shape != (*lead, *tail) or len(lead) > 1:
            both = f"({size},) or ({steps + 1}, {size})" if always else f"({size},)"
            raise ShapeError(f"goal {name}: its value must be {both}{meant}, got shape {value.shape}")
        out = np.full((*lead, steps + 1, size), np.nan)
        if always:
            out[..., 1:, :] = value[..., 1:, :] if each else value[..., None, :]
            return out
        k = int(self.at) % (steps + 1)
        if k == 0:
            raise ModelError(f"goal {name}: step 0 is the start, which is given; goals begin at step 1")
        out[..., k, :] = value
        return out


def listed(goals: Any) -> list[Goal]:
    """Goals as a list, checked to be some."""
    if goals is None or isinstance(goals, str) or not np.iterable(goals):
        raise ModelError(f"goals must be a list of kf.Goal(sensor, value, at=...), got {type(goals).__name__}")
    found = [goals] if isinstance(goals, Goal) else list(goals)
    for goal in found:
        if not isinstance(goal, Goal):
            raise ModelError(f"goals must be kf.Goal(sensor, value, at=...), got {type(goal).__name__}")
    return found
