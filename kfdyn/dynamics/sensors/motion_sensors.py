"""Sensors of positions and velocities, for :class:`kfdyn.MotionModel` and goals."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.dynamics.sensors.joint_sensors import AtHinges
from kfdyn.dynamics.sensors.sensor import Array, Rows, Sensor, Site
from kfdyn.errors import ModelError, ShapeError
from kfdyn.multibody import LinkTerms, System, center_of_mass, frame_pose, frame_velocity, jacobian
from kfdyn.multibody.energy import centroidal_momentum
from kfdyn.multibody.frame_derivatives import frame_velocity_derivatives
from kfdyn.multibody.tangents import Block, Points
from kfdyn.spatial import matrix_to_quaternion, skew


class Seen(NamedTuple):
    """The reading of a sensor for rows of states, and its derivatives in tangents of q and in v; None is zero."""

    reading: Array
    of_q: Array | None
    of_v: Array | None


class MotionSensor(Sensor):
    """Base of the sensors that see positions and velocities. The covariance is that of the reading's tangent.

    Examples
    --------
    >>> import kfdyn as kf
    >>> isinstance(kf.sensors.Position("bob", 1e-4), MotionSensor)
    True
    """

    def sites(self, system: System) -> list[Site]:
        """None: at one instant positions and velocities are given."""
        raise ModelError(
            f"{self.name} reads positions or velocities, which estimate_dynamics is given; it is for kf.MotionModel, "
            "which estimates them"
        )

    def rows(self, system: System, site: Site, terms: LinkTerms) -> Rows:
        """None, see :meth:`sites`."""
        raise NotImplementedError

    def points(self, system: System) -> Points:
        """The readings, and their tangents."""
        raise NotImplementedError

    def size(self, system: System) -> int:
        """Numbers of a reading."""
        return self.points(system).size

    def see(self, system: System, q: Array, v: Array) -> Seen:
        """Readings of states (rows, nq), (rows, nv), with derivatives."""
        raise NotImplementedError


class _AtHinges(MotionSensor, AtHinges):
    """A sensor that reads some hinges, all of them unless they are named, stacked in that order."""


class JointPosition(_AtHinges):
    """Encoders: the entries of q, of all hinges or of those named.

    A ball reads a quaternion (x, y, z, w) and a free hinge (position, quaternion); their covariances are those of
    tangents, 3 × 3 and 6 × 6, as in v.

    Parameters
    ----------
    cov : float, (m,) or (m, m)
        Covariance of the m tangent entries; 0 is exact.
    hinges : str or sequence of str, optional
        All hinges if not given.
    bias : float or (m,)
        Added by the sensor, where coordinates add.
    name : str, optional
        For messages.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> arm = kf.models.puma560()
    >>> JointPosition(1e-6, hinges="joint_2").see(arm, arm.neutral()[None] + 0.5, np.zeros((1, 6))).reading
    array([[0.5]])
    """

    def points(self, system: System) -> Points:
        """Entries of q, those of the named hinges."""
        every = Points.of(system)
        q, v = self.places(system, of_q=True).tolist(), self.places(system).tolist()
        blocks = []
        for point, tangent in every.blocks:
            if point.start in q:
                i, j = q.index(point.start), v.index(tangent.start)
                blocks.append(Block(slice(i, i + point.stop - point.start), slice(j, j + tangent.stop - tangent.start)))
        return Points(len(q), len(v), blocks)

    def see(self, system: System, q: Array, v: Array) -> Seen:
        """Read q."""
        chosen = np.eye(system.nv)[self.places(system)]
        return Seen(q[:, self.places(system, of_q=True)], np.broadcast_to(chosen, (len(q), *chosen.shape)), None)


class JointVelocity(_AtHinges):
    """Tachometers: the entries of v, of all hinges or of those named.

    Parameters
    ----------
    cov : float, (m,) or (m, m)
        Covariance; 0 is exact.
    hinges : str or sequence of str, optional
        All hinges if not given.
    bias : float or (m,)
        Added by the sensor.
    name : str, optional
        For messages.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> JointVelocity(1e-4).see(kf.models.pendulum(), np.zeros((1, 1)), np.ones((1, 1))).reading
    array([[1.]])
    """

    def points(self, system: System) -> Points:
        """Entries of v."""
        size = self.places(system).size
        return Points(size, size, [])

    def see(self, system: System, q: Array, v: Array) -> Seen:
        """Read v."""
        places = self.places(system)
        chosen = np.eye(system.nv)[places]
        return Seen(v[:, places], None, np.broadcast_to(chosen, (len(q), *chosen.shape)))


class _AtFrame(MotionSensor):
    """A sensor at a body or named frame, whose numbers add."""

    entries = 3

    def __init__(self, frame: str, cov: ArrayLike, bias: ArrayLike = 0.0, name: str | None = None) -> None:
        self.frame = str(frame)
        super().__init__(cov, bias, name, repr(frame))

    def points(self, system: System) -> Points:
        """Numbers that add."""
        system.locate(self.frame)
        return Points(self.entries, self.entries, [])


class Position(_AtFrame):
    """Position of a frame's origin in the world: a marker of motion capture.

    Parameters
    ----------
    frame : str
        Body or named frame.
    cov : float, (3,) or (3, 3)
        Covariance in m²; 0 is exact.
    bias : float or (3,)
        Added by the sensor.
    name : str, optional
        For messages.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> Position("lower", 1e-4).see(kf.models.double_pendulum(), np.zeros((1, 2)), np.zeros((1, 2))).reading + 0.0
    array([[ 0.,  0., -1.]])
    """

    def see(self, system: System, q: Array, v: Array) -> Seen:
        """Read p."""
        return Seen(frame_pose(system, q, self.frame).position, jacobian(system, q, self.frame)[:, 3:], None)


class Velocity(_AtFrame):
    """Velocity [ω; ṗ] of a frame at its origin, world axes.

    Parameters
    ----------
    frame : str
        Body or named frame.
    cov : float, (6,) or (6, 6)
        Covariance; 0 is exact.
    bias : float or (6,)
        Added by the sensor.
    name : str, optional
        For messages.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> arm = kf.models.double_pendulum()
    >>> Velocity("lower", 1e-4).see(arm, np.zeros((1, 2)), np.array([[1.0, 0.0]])).reading.round(9) + 0.0
    array([[ 0.,  1.,  0., -1.,  0.,  0.]])
    """

    entries = 6

    def see(self, system: System, q: Array, v: Array) -> Seen:
        """Read V."""
        return Seen(frame_velocity(system, q, v, self.frame), *frame_velocity_derivatives(system, q, v, self.frame))


class Contact(_AtFrame):
    """A foot that stands: the velocity of a frame's origin is zero; its readings are zeros, NaN while it is in the air.

    Parameters
    ----------
    frame : str
        Body or named frame.
    cov : float, (3,) or (3, 3)
        Covariance of the slip, in (m/s)²; 0 is exact.
    bias : float or (3,)
        Added.
    name : str, optional
        For messages.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> Contact("bob", 1e-6).see(kf.models.pendulum(), np.zeros((1, 1)), np.zeros((1, 1))).reading
    array([[0., 0., 0.]])
    """

    def see(self, system: System, q: Array, v: Array) -> Seen:
        """Read ṗ."""
        of = frame_velocity_derivatives(system, q, v, self.frame)
        return Seen(frame_velocity(system, q, v, self.frame)[:, 3:], of.dV_dq[:, 3:], of.dV_dv[:, 3:])


class Gyroscope(_AtFrame):
    """Angular velocity of a frame in its own axes: y = R*ω.

    Parameters
    ----------
    frame : str
        Body or named frame.
    cov : float, (3,) or (3, 3)
        Covariance in (rad/s)²; 0 is exact.
    bias : float or (3,)
        Added by the sensor.
    name : str, optional
        For messages.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> Gyroscope("bob", 1e-4).see(kf.models.pendulum(), np.zeros((1, 1)), np.ones((1, 1))).reading
    array([[0., 1., 0.]])
    """

    def see(self, system: System, q: Array, v: Array) -> Seen:
        """Read R*ω."""
        back = frame_pose(system, q, self.frame).rotation.swapaxes(1, 2)
        w, of = frame_velocity(system, q, v, self.frame)[:, :3], frame_velocity_derivatives(system, q, v, self.frame)
        Jw = of.dV_dv[:, :3]
        return Seen((back @ w[:, :, None])[:, :, 0], back @ (of.dV_dq[:, :3] + skew(w) @ Jw), back @ Jw)


class Orientation(_AtFrame):
    """Orientation of a frame in the world, a quaternion (x, y, z, w): a filter in an inertial unit, a camera.

    Parameters
    ----------
    frame : str
        Body or named frame.
    cov : float, (3,) or (3, 3)
        Covariance in rad², in the frame's axes; 0 is exact.
    name : str, optional
        For messages.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> Orientation("bob", 1e-4).see(kf.models.pendulum(), np.zeros((1, 1)), np.zeros((1, 1))).reading
    array([[0., 0., 0., 1.]])
    """

    def __init__(self, frame: str, cov: ArrayLike, name: str | None = None) -> None:
        super().__init__(frame, cov, 0.0, name)

    def points(self, system: System) -> Points:
        """Quaternions."""
        system.locate(self.frame)
        return Points(4, 3, [Block(slice(0, 4), slice(0, 3))])

    def see(self, system: System, q: Array, v: Array) -> Seen:
        """Read the quaternion."""
        R = frame_pose(system, q, self.frame).rotation
        return Seen(matrix_to_quaternion(R), R.swapaxes(1, 2) @ jacobian(system, q, self.frame)[:, :3], None)


class Pose(_AtFrame):
    """Pose of a frame in the world: position (3), then a quaternion (x, y, z, w).

    Parameters
    ----------
    frame : str
        Body or named frame.
    cov : float, (6,) or (6, 6)
        Covariance of the twist [angular; linear] that separates reading and truth, in the frame's axes; 0 is exact.
    name : str, optional
        For messages.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> Pose("lower", 1e-4).see(kf.models.double_pendulum(), np.zeros((1, 2)), np.zeros((1, 2))).reading + 0.0
    array([[ 0.,  0., -1.,  0.,  0.,  0.,  1.]])
    """

    def __init__(self, frame: str, cov: ArrayLike, name: str | None = None) -> None:
        super().__init__(frame, cov, 0.0, name)

    def points(self, system: System) -> Points:
        """Poses."""
        system.locate(self.frame)
        return Points(7, 6, [Block(slice(0, 7), slice(0, 6))])

    def see(self, system: System, q: Array, v: Array) -> Seen:
        """Read position and quaternion."""
        at, J = frame_pose(system, q, self.frame), jacobian(system, q, self.frame)
        back = at.rotation.swapaxes(1, 2)
        reading = np.concatenate([at.position, matrix_to_quaternion(at.rotation)], axis=1)
        return Seen(reading, np.concatenate([back @ J[:, :3], back @ J[:, 3:]], axis=1), None)


class CenterOfMass(MotionSensor):
    """Mass centre of the whole system in the world.

    Parameters
    ----------
    cov : float, (3,) or (3, 3)
        Covariance in m²; 0 is exact.
    bias : float or (3,)
        Added by the sensor.
    name : str, optional
        For messages.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> CenterOfMass(1e-4).see(kf.models.pendulum(length=2.0), np.zeros((1, 1)), np.zeros((1, 1))).reading + 0.0
    array([[ 0.,  0., -2.]])
    """

    def points(self, system: System) -> Points:
        """Points of space."""
        return Points(3, 3, [])

    def see(self, system: System, q: Array, v: Array) -> Seen:
        """Read the mass centre, whose velocity is linear momentum over mass."""
        mass = float(sum(body.inertia[5, 5] for body in system.open_tree.bodies))
        if not mass > 0:
            raise ShapeError(f"system {system.name!r} has no mass, so it has no mass centre")
        units = np.eye(system.nv)
        momentum = centroidal_momentum(system, q[:, None, :], units[None])[..., 3:]
        return Seen(center_of_mass(system, q), momentum.swapaxes(1, 2) / mass, None)
