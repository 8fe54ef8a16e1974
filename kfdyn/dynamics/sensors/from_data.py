"""Sensors of a file as sensors of the estimator, and MuJoCo's sensordata as their readings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.dynamics.sensors.body_sensors import Accelerometer, ForceTorque, Imu
from kfdyn.dynamics.sensors.joint_sensors import JointTorque
from kfdyn.dynamics.sensors.sensor import Array, Sensor
from kfdyn.errors import ModelError
from kfdyn.multibody import System


class Listed(Protocol):
    """A sensor as a file describes it, like :class:`kfdyn.io.SensorData`."""

    @property
    def kind(self) -> str: ...  # noqa: D102
    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def place(self) -> str: ...  # noqa: D102
    @property
    def std(self) -> float: ...  # noqa: D102
    @property
    def start(self) -> int: ...  # noqa: D102
    @property
    def size(self) -> int: ...  # noqa: D102


class FromData(NamedTuple):
    """Sensors, and ``readings(sensordata)``, which picks their readings out of MuJoCo's (..., nsensordata).

    Examples
    --------
    >>> import kfdyn as kf
    >>> text = '<mujoco><worldbody><body name="bob"><joint name="pivot"/><geom size="1"/><site name="tip"/></body>'
    >>> text += '</worldbody><sensor><accelerometer name="acc" site="tip" noise="0.1"/></sensor></mujoco>'
    >>> made = from_data(kf.load(text), kf.io.read_sensors(text))
    >>> made.sensors, made.readings(np.arange(3.0))
    ((acc,), [array([0., 1., 2.])])
    """

    sensors: tuple[Sensor, ...]
    readings: Callable[[ArrayLike], list[Array]]


def from_data(
    system: System,
    data: Iterable[Listed],
    cov: float | Mapping[str, ArrayLike] | None = None,
) -> FromData:
    """Make sensors of what a file lists.

    Parameters
    ----------
    system : System
        The robot of the same file.
    data : iterable of SensorData
        From :func:`kfdyn.io.read_sensors`. "force" and "torque" at one site become one force–torque sensor; kinds that
        say nothing of accelerations or forces (gyroscopes, positions) are left out.
    cov : float or mapping from sensor's name, optional
        Covariances; the square of the file's noise if not given.

    Returns
    -------
    FromData
        ``sensors`` and ``readings``.

    Examples
    --------
    >>> import kfdyn as kf
    >>> text = '<robot name="arm"><link name="base"/><link name="hand"><inertial><mass value="1"/><inertia ixx="1" '
    >>> text += 'iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link><joint name="j" type="continuous">'
    >>> text += '<parent link="base"/><child link="hand"/></joint><gazebo reference="hand"><sensor name="imu_0" '
    >>> text += 'type="imu"/></gazebo></robot>'
    >>> from_data(kf.load(text), kf.io.read_sensors(text), cov=0.01).sensors
    (imu_0,)
    """
    listed = list(data)
    made: list[Sensor] = []
    picks: list[list[tuple[slice, slice]]] = []
    wrists: dict[str, int] = {}
    for one in listed:
        variance = one.std**2 if cov is None else cov.get(one.name, one.std**2) if isinstance(cov, Mapping) else cov
        whole = slice(one.start, one.start + one.size)
        if one.kind in ("accelerometer", "imu"):
            made.append(
                (Accelerometer if one.kind == "accelerometer" else Imu)(one.place, variance, name=one.name or None)
            )
            picks.append([(whole, slice(0, one.size))])
        elif one.kind == "joint_torque":
            made.append(JointTorque(variance, one.place, name=one.name or None))
            picks.append([(whole, slice(0, one.size))])
        elif one.kind == "force_torque":
            made.append(ForceTorque(one.place, variance, name=one.name or None))
            picks.append([(whole, slice(0, 6))])
        elif one.kind in ("force", "torque"):
            part = slice(3, 6) if one.kind == "force" else slice(0, 3)
            if one.place in wrists:
                i = wrists[one.place]
                made[i] = _widened(made[i], part, variance)
                picks[i].append((whole, part))
                continue
            wrists[one.place] = len(made)
            body = system.body_names[system.locate(one.place)[0]]
            # MuJoCo's convention: the force of the parent on the child, at the site
            made.append(ForceTorque(body, np.full(6, variance), one.place, "parent_to_child", name=one.place))
            picks.append([(whole, part)])

    def readings(sensordata: ArrayLike) -> list[Array]:
        numbers = np.asarray(sensordata, float)
        out = []
        for sensor, parts in zip(made, picks):
            y = np.full((*numbers.shape[:-1], sensor.size(system)), np.nan)
            for there, here in parts:
                if there.stop > numbers.shape[-1]:
                    raise ModelError(f"{sensor}: sensordata has {numbers.shape[-1]} numbers, too few for its reading")
                y[..., here] = numbers[..., there]
            out.append(y)
        return out

    return FromData(tuple(made), readings)


def _widened(sensor: Sensor, part: slice, variance: ArrayLike) -> Sensor:
    cov = np.array(sensor.cov)
    cov[part] = variance
    return sensor.replace(cov=cov)
