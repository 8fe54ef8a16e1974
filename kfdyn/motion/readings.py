"""Predict the readings of sensors along a motion, with derivatives in the state and in the disturbance."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.arrays import Array
from kfdyn.dynamics.sensors.body_sensors import Accelerometer, AngularAcceleration, ForceTorque, Imu
from kfdyn.dynamics.sensors.joint_sensors import JointAcceleration, JointTorque
from kfdyn.dynamics.sensors.motion_sensors import JointPosition, JointVelocity, MotionSensor
from kfdyn.dynamics.sensors.sensor import Sensor
from kfdyn.errors import ModelError, ShapeError
from kfdyn.estimation.model.blocks import real_array
from kfdyn.estimation.nonlinear.manifold import Manifold
from kfdyn.motion.force_torque import Carried, CutHinge, Pushes
from kfdyn.multibody import System, frame_acceleration, frame_acceleration_derivatives, frame_pose
from kfdyn.multibody.tangents import Block, Points
from kfdyn.spatial import skew


class Felt(NamedTuple):
    """The reading of a sensor of accelerations for rows of (q, v, a), and its derivatives."""

    reading: Array
    of_q: Array
    of_v: Array
    of_a: Array


def _at_frame(sensor: Any, system: System, q: Array, v: Array, a: Array, g: Array, parts: tuple[str, ...]) -> Felt:
    """R*ω̇ and R*(p̈ − g) of a frame, whichever are asked for."""
    R = frame_pose(system, q, sensor.frame).rotation
    back = R.swapaxes(1, 2)
    A = frame_acceleration(system, q, v, a, sensor.frame)
    of = frame_acceleration_derivatives(system, q, v, a, sensor.frame)
    Jw = of.dA_da[:, :3]
    rows: list[list[Array]] = [[], [], [], []]
    for part in parts:
        own = slice(0, 3) if part == "angular" else slice(3, 6)
        x = A[:, own] if part == "angular" else A[:, own] - g
        rows[0].append((back @ x[:, :, None])[:, :, 0])
        rows[1].append(back @ (of.dA_dq[:, own] + skew(x) @ Jw))  # R* turns with the frame
        rows[2].append(back @ of.dA_dv[:, own])
        rows[3].append(back @ of.dA_da[:, own])
    return Felt(*(np.concatenate(part, axis=1) for part in rows))


def _joint_acceleration(sensor: Any, system: System, q: Array, v: Array, a: Array, g: Array) -> Felt:
    places = sensor.places(system)
    zero = np.zeros((len(q), places.size, system.nv))
    return Felt(a[:, places], zero, zero, np.broadcast_to(np.eye(system.nv)[places], zero.shape))


FEELS: dict[type[Sensor], Callable[..., Felt]] = {
    Accelerometer: partial(_at_frame, parts=("linear",)),
    AngularAcceleration: partial(_at_frame, parts=("angular",)),
    Imu: partial(_at_frame, parts=("angular", "linear")),
    JointAcceleration: _joint_acceleration,
}


class ReadPoints(Manifold):
    """Readings of which some are quaternions or poses: their Jacobians are small blocks.

    Parameters
    ----------
    points : Points
        The readings and their tangents.
    """

    def __init__(self, points: Points) -> None:
        super().__init__(points.plus, points.minus, points.right_jacobian, "y")
        self.points = points

    def turn(self, y: Array, x: Array, H: Array) -> Array:
        """J(x ⊖ y)⁻¹ H, block by block."""
        out = np.array(H)
        d = self.minus(np.where(np.isnan(y), x, y), x)
        for own, _, J in self.points.turns(-d):
            out[:, own] = np.linalg.solve(J, out[:, own])
        return out


class Readings:
    """The sensors of a motion as one stacked reading.

    Parameters
    ----------
    system : System
        The robot.
    sensors : sequence of Sensor
        Those of ``kf.sensors`` that see positions and velocities, accelerometers, joint accelerations and torques.
    scales : mapping from a sensor's name to a factor or one an entry, optional
        y = s h + bias.
    """

    def __init__(
        self, system: System, sensors: Sequence[Sensor], scales: Mapping[str, ArrayLike] | None = None
    ) -> None:
        from scipy.linalg import block_diag

        if isinstance(sensors, Sensor):
            raise ModelError(f"sensors must be a list; write [{sensors.name}]")
        if not isinstance(sensors, Sequence):
            raise ModelError(f"sensors must be a list of those of kf.sensors, got {type(sensors).__name__}")
        self.system, self.sensors = system, tuple(sensors)
        for sensor in self.sensors:
            if not isinstance(sensor, Sensor):
                raise ModelError(f"sensors must be those of kf.sensors, got {type(sensor).__name__}")
            if not isinstance(sensor, (MotionSensor, JointTorque, ForceTorque, *FEELS)):
                raise ModelError(
                    f"{sensor.name} has no place in a motion; sensors in time are positions, velocities, poses, "
                    "gyroscopes, contacts, accelerometers, joint accelerations, joint torques and force–torque sensors"
                )
        self.sees_noise = any(not isinstance(sensor, MotionSensor) for sensor in self.sensors)
        blocks: list[Block] = []
        self.points_of: list[slice] = []
        self.tangents_of: list[slice] = []
        at = size = 0
        noise, biases = [], []
        for sensor in self.sensors:
            own = self._points(sensor)
            self.points_of.append(slice(at, at + own.size))
            self.tangents_of.append(slice(size, size + own.tangent_size))
            for point, tangent in own.blocks:
                blocks.append(
                    Block(slice(point.start + at, point.stop + at), slice(tangent.start + size, tangent.stop + size))
                )
            noise.append(sensor.matrix(own.tangent_size))
            biases.append(_bias(sensor, own))
            at, size = at + own.size, size + own.tangent_size
        self.points = Points(at, size, blocks)
        self.R = block_diag(*noise) if noise else np.zeros((0, 0))
        self.bias = np.concatenate(biases) if biases else np.zeros(0)
        self.scales = dict(scales or {})
        self.factors = self._factors()  # in tangents
        self.point_factors = np.ones(at)
        self.point_factors[self.points._points] = self.factors[self.points._tangents]
        self._number()

    def _factors(self) -> Array:
        out = np.ones(self.points.tangent_size)
        unknown = set(self.scales) - {sensor.name for sensor in self.sensors}
        if unknown:
            names = ", ".join(repr(sensor.name) for sensor in self.sensors)
            raise ModelError(f"scales name {sorted(unknown)}, which no sensor is called; there are {names}")
        for sensor, point, own in zip(self.sensors, self.points_of, self.tangents_of):
            if sensor.name not in self.scales:
                continue
            factor, size = np.asarray(self.scales[sensor.name], np.float64), own.stop - own.start
            if point.stop - point.start != size:
                raise ModelError(f"{sensor.name}: a factor of what does not add (a quaternion) has no meaning")
            if factor.shape not in ((), (size,)) or not np.isfinite(factor).all():
                raise ShapeError(f"{sensor.name} reads {size} numbers; its scale must be a number or ({size},)")
            out[own] = factor
        return out

    def _points(self, sensor: Sensor) -> Points:
        if isinstance(sensor, MotionSensor):
            return sensor.points(self.system)
        if isinstance(sensor, JointTorque | JointAcceleration):
            size = sensor.places(self.system).size
        elif isinstance(sensor, ForceTorque):
            sensor.sites(self.system)
            size = 6
        else:
            self.system.locate(sensor.frame)  # type: ignore[attr-defined]
            size = sensor.entries  # type: ignore[attr-defined]
        return Points(size, size, [])

    def _number(self) -> None:
        """Note which sensors pick entries of (q, v), and which: what they read of numbered coordinates says it."""
        nq, nv = self.system.nq, self.system.nv
        numbers = np.arange(nq + nv, dtype=np.float64)[None]
        self.picks = np.zeros(self.points.size, np.intp)
        self.H_picks = np.zeros((1, self.points.tangent_size, 2 * nv))
        self._others: list[tuple[Sensor | CutHinge, slice, slice]] = []
        for sensor, point, own in zip(self.sensors, self.points_of, self.tangents_of):
            if not isinstance(sensor, JointPosition | JointVelocity):
                felt = CutHinge(self.system, sensor) if isinstance(sensor, ForceTorque) else sensor
                self._others.append((felt, point, own))
                continue
            seen = sensor.see(self.system, numbers[:, :nq], numbers[:, nq:])
            self.picks[point] = seen.reading[0]
            for part, columns in ((seen.of_q, slice(0, nv)), (seen.of_v, slice(nv, 2 * nv))):
                if part is not None:
                    self.H_picks[:, own, columns] = part
        self._scaled, self._biased = bool((self.factors != 1.0).any()), bool(self.bias.any())
        self.only_picks = not self._others and not self._scaled

    def predict(self, q: Array, v: Array, a: Array | None, tau: Array | None, g: Array, pushes: Pushes = ()) -> Array:
        """Readings (rows, size) of rows of states; a and all forces where sensors feel them."""
        out = self._picked(q, v)
        for sensor, own, _ in self._others:
            if isinstance(sensor, MotionSensor):
                out[:, own] = sensor.see(self.system, q, v).reading
            elif isinstance(sensor, JointTorque):
                out[:, own] = tau[:, sensor.places(self.system)]  # type: ignore[index]
            elif isinstance(sensor, CutHinge):
                out[:, own] = sensor.reading(q, v, a, g, pushes)  # type: ignore[arg-type]
            else:
                out[:, own] = FEELS[type(sensor)](sensor, self.system, q, v, a, g).reading
        return self._shown(out)

    def _shown(self, h: Array) -> Array:
        """Return the readings of sensors from the motion that they see."""
        if self._scaled:
            h = h * self.point_factors
        return h + self.bias if self._biased else h

    def _picked(self, q: Array, v: Array) -> Array:
        """Readings of sensors that pick entries of the state, room for the others."""
        return np.asarray(np.concatenate([q, v], axis=1).take(self.picks, axis=1))

    def linear(
        self,
        q: Array,
        v: Array,
        a: tuple[Array, Array, Array, Array, Array | None] | None,
        tau: Array | None,
        g: Array,
        pushes: Pushes = (),
    ) -> tuple[Array, Array, Array | None]:
        """Readings, and their Jacobians in (q, v) and in the generalised force (and wrenches), in tangents.

        ``a`` is what :meth:`Stepper.linear_acceleration` returns.
        """
        nv, rows, m = self.system.nv, len(q), self.points.tangent_size
        h, H, H_w = self._picked(q, v), self.H_picks, None
        if self.only_picks:
            H = H if rows == 1 else np.broadcast_to(H, (rows, m, 2 * nv))
            return h + self.bias if self._biased else h, H, None
        H = np.repeat(H, rows, axis=0)
        if a is not None:
            inputs = a[3] if a[4] is None else np.concatenate([a[3], a[4]], axis=2)
            H_w = np.zeros((rows, m, inputs.shape[2]))
        for sensor, point, own in self._others:
            if isinstance(sensor, MotionSensor):
                seen = sensor.see(self.system, q, v)
                h[:, point] = seen.reading
                for part, columns in ((seen.of_q, slice(0, nv)), (seen.of_v, slice(nv, 2 * nv))):
                    if part is not None:
                        H[:, own, columns] = part
            elif isinstance(sensor, JointTorque):
                places = sensor.places(self.system)
                h[:, point] = tau[:, places]  # type: ignore[index]
                H_w[:, own, :nv] = np.eye(nv)[places]  # type: ignore[index]
            else:
                assert a is not None and H_w is not None
                felt: Felt | Carried
                if isinstance(sensor, CutHinge):
                    felt = sensor.linear(q, v, a[0], g, pushes)
                    H_w[:, own, nv:] = felt.of_pushes
                else:
                    felt = FEELS[type(sensor)](sensor, self.system, q, v, a[0], g)
                h[:, point] = felt.reading
                H[:, own, :nv] = felt.of_q + felt.of_a @ a[1]
                H[:, own, nv:] = felt.of_v + felt.of_a @ a[2]
                H_w[:, own] += felt.of_a @ inputs
        if self._scaled:
            H = H * self.factors[:, None]
            H_w = None if H_w is None else H_w * self.factors[:, None]
        return self._shown(h), H, H_w

    def stacked(self, given: Any) -> tuple[Array, bool]:
        """Readings as (batch, N, size), and whether a batch was given; None is a sensor that reads nothing."""
        if not self.sensors:
            raise ModelError("the model has no sensors, so there is nothing to read; give MotionModel some")
        if isinstance(given, Mapping):
            names = ", ".join(sensor.name for sensor in self.sensors)
            raise ShapeError(f"readings must be a list in the order of the sensors ({names}), not a dict")
        if isinstance(given, np.ndarray) and len(self.sensors) != 1:
            raise ShapeError(
                f"readings must be a list with one array (N, size) for each of the {len(self.sensors)} sensors"
            )
        if isinstance(given, str) or not np.iterable(given):
            raise ShapeError("readings must be a list with one array (N, size) a sensor")
        parts = [given] if isinstance(given, np.ndarray) else list(given)
        if len(parts) != len(self.sensors):
            raise ShapeError(
                f"there are {len(parts)} readings for {len(self.sensors)} sensors; give one a sensor, or None"
            )
        arrays: list[Array | None] = []
        for sensor, own, part in zip(self.sensors, self.points_of, parts):
            size = own.stop - own.start
            if part is None:
                arrays.append(None)
                continue
            array = real_array(part, f"{sensor.name}: its readings")
            if array.ndim == 1 and size == 1:
                array = array[:, None]
            if array.ndim not in (2, 3) or array.shape[-1] != size:
                raise ShapeError(f"{sensor.name}: its readings must be (N, {size}), got shape {array.shape}")
            if np.isinf(array).any():
                raise ModelError(f"{sensor.name} has an infinite reading; mark a missing one by NaN")
            arrays.append(array)
        known = [array for array in arrays if array is not None]
        if not known:
            raise ShapeError("no sensor has readings; give at least one array (N, size)")
        steps = {array.shape[-2] for array in known}
        if len(steps) > 1:
            raise ShapeError(
                f"sensors have {sorted(steps)} rows; all have one row a step: fill the steps without a reading with NaN"
            )
        N = steps.pop()
        if N == 0:
            raise ShapeError("readings have no rows; a motion has at least one step")
        lead = np.broadcast_shapes(*(array.shape[:-2] for array in known))
        out = np.full((*(lead or (1,)), N, self.points.size), np.nan)
        for own, given_rows in zip(self.points_of, arrays):
            if given_rows is not None:
                out[..., own] = given_rows
        for point, _ in self.points.blocks:
            turn = out[..., point][..., -4:]
            length = np.linalg.norm(turn, axis=-1)
            if (np.abs(length - 1.0) > 1e-6).any():
                raise ModelError("a quaternion among the readings is not of unit length; normalise it, (x, y, z, w)")
        return out, bool(lead)


def _bias(sensor: Sensor, own: Points) -> Array:
    bias = np.asarray(sensor.bias, np.float64)
    if bias.any() and own.blocks:
        raise ModelError(f"{sensor.name}: a bias of what does not add (a quaternion) has no meaning here")
    if bias.shape not in ((), (own.size,)):
        raise ShapeError(f"{sensor.name} reads {own.size} numbers; its bias must be a number or ({own.size},)")
    return np.broadcast_to(bias, (own.size,))
