"""A robot, its state, its sensors and their readings in other units of length and mass; and the answers back again."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

import kfdyn as kf
import kfdyn.multibody as mb
from kfdyn.multibody.parts.hinge import Coordinates

S = kf.sensors


class Units(NamedTuple):
    """So many new units of length and of mass are one old."""

    length: float = 1.0
    mass: float = 1.0

    @property
    def wrench(self):
        """[moment; force]."""
        return self.mass * self.length * np.repeat([self.length, 1.0], 3)

    @property
    def motion(self):
        """[angular; linear]."""
        return np.repeat([1.0, self.length], 3)


def of_dofs(system, units):
    """Units of v (nv,): a length where a dof turns nothing."""
    turns = [bool(screw[:3].any()) for body in system.bodies for screw in body.hinge.screws]
    return np.where(turns, 1.0, units.length)


def of_torques(system, units):
    """Units of tau (nv,)."""
    return units.mass * units.length**2 / of_dofs(system, units)


def robot(system, units):
    """The same robot."""
    move, bodies = np.repeat([units.length, 1.0], 3), []
    for body in system.bodies:
        screws = body.hinge.screws.copy()
        turning = screws[:, :3].any(axis=1)
        screws[turning, 3:] *= units.length
        rate = np.where(turning, 1.0, units.length)
        bodies.append(
            mb.Body(
                body.name,
                units.mass * np.outer(move, move) * body.inertia,
                replace(body.hinge, screws=screws),
                body.parent,
                body.rotation,
                units.length * np.asarray(body.position),
                body.hinge_name,
                units.mass * (units.length / rate) ** 2 * body.armature,
            )
        )
    frames = {
        name: mb.Frame(frame.body, frame.rotation, units.length * np.asarray(frame.position))
        for name, frame in system.frames.items()
    }
    return mb.System(bodies, units.length * system.gravity, frames, system.name)


def configuration(system, q, units):
    """q (..., nq) of it."""
    out = []
    for body in system.bodies:
        if body.hinge.coordinates is Coordinates.SCREWS:
            out += [1.0 if screw[:3].any() else units.length for screw in body.hinge.screws]
        else:
            out += [units.length] * (body.hinge.nq - 4) + [1.0] * 4
    return q * np.array(out)


def of_reading(system, sensor, units):
    """Units of what a sensor reads (size,)."""
    if isinstance(sensor, S.MotorCurrent):
        return np.ones(sensor.size(system))
    if isinstance(sensor, S.JointTorque | S.JointAcceleration):
        every = of_torques(system, units) if isinstance(sensor, S.JointTorque) else of_dofs(system, units)
        hinges = system.hinge_names if sensor.hinges is None else sensor.hinges
        return np.concatenate([every[system.v_slice(hinge)] for hinge in hinges])
    if isinstance(sensor, S.ForceTorque | S.ExternalForce):
        return units.wrench[-sensor.size(system) :]
    if isinstance(sensor, S.Imu):
        return units.motion
    return units.motion[3:] if isinstance(sensor, S.Accelerometer) else units.motion[:3]


def sensor_of(system, sensor, units):
    """The same sensor."""
    if isinstance(sensor, S.MotorCurrent):
        hinges = system.hinge_names if sensor.hinges is None else sensor.hinges
        torque = np.concatenate([of_torques(system, units)[system.v_slice(hinge)] for hinge in hinges])
        return S.MotorCurrent(sensor.cov, sensor.per_ampere * torque, 1.0, sensor.hinges, sensor.bias, sensor.name)
    unit = of_reading(system, sensor, units)
    return sensor.replace(sensor.covariance(system) * np.outer(unit, unit), sensor.biases(system) * unit)


def of_quantities(system, units):
    """Units of the five quantities of an estimate."""
    wrenches = np.tile(units.wrench, (system.n_bodies, 1))
    return {
        "a": of_dofs(system, units),
        "tau": of_torques(system, units),
        "body_accelerations": np.tile(units.motion, (system.n_bodies, 1)),
        "hinge_forces": wrenches,
        "external_forces": wrenches,
    }


def in_other_units(system, q, v, sensors, readings, units):
    """All arguments of ``estimate_dynamics``."""
    return (
        robot(system, units),
        configuration(system, q, units),
        v * of_dofs(system, units),
        [sensor_of(system, sensor, units) for sensor in sensors],
        [None if y is None else y * of_reading(system, sensor, units) for sensor, y in zip(sensors, readings)],
    )
