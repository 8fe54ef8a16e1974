"""Sensors as files name them: MJCF's sensor elements, and the sensors of Gazebo's extensions to URDF."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, NamedTuple

from kfdyn.io.source import Source, open_source
from kfdyn.io.xml_reader import read_elements


class SensorData(NamedTuple):
    """A sensor of a file: data for :func:`kfdyn.sensors.from_data`.

    Attributes
    ----------
    kind : str
        "accelerometer", "force", "torque", "imu", "force_torque", "joint_torque"; others are kept by their own names.
    name : str
        The file's.
    place : str
        Frame (site, link) or joint it is at.
    std : float
        Standard deviation of its noise, 0 if the file says none.
    start, size : int
        Where its numbers are in MuJoCo's ``sensordata``; 0 and its size elsewhere.

    Examples
    --------
    >>> text = '<mujoco><worldbody><body name="bob"><joint name="pivot"/><geom size="1"/><site name="tip"/></body>'
    >>> text += '</worldbody><sensor><accelerometer name="acc" site="tip" noise="0.1"/></sensor></mujoco>'
    >>> read_sensors(text)
    (SensorData(kind='accelerometer', name='acc', place='tip', std=0.1, start=0, size=3),)
    """

    kind: str
    name: str
    place: str
    std: float = 0.0
    start: int = 0
    size: int = 0


def read_sensors(source: str | bytes | os.PathLike[str]) -> tuple[SensorData, ...]:
    """List the sensors of an MJCF file or of a URDF with Gazebo's extensions.

    Parameters
    ----------
    source
        As for :func:`kfdyn.load`.

    Returns
    -------
    tuple of SensorData
        In the file's order; kinds that the estimator does not take are among them.

    Examples
    --------
    >>> text = '<robot name="arm"><link name="hand"/><gazebo reference="hand"><sensor name="imu_0" type="imu"/>'
    >>> read_sensors(text + '</gazebo></robot>')
    (SensorData(kind='imu', name='imu_0', place='hand', std=0.0, start=0, size=6),)
    """
    opened = open_source(source)
    if opened.root().tag == "mujoco":
        from kfdyn.io.mjcf.load_mjcf import compile_mjcf

        return tuple(_of_model(compile_mjcf(opened)[0]))
    return tuple(_of_urdf(opened))


def _of_model(model: Any) -> Iterator[SensorData]:
    import mujoco

    kinds = {
        mujoco.mjtSensor.mjSENS_ACCELEROMETER: "accelerometer",
        mujoco.mjtSensor.mjSENS_FORCE: "force",
        mujoco.mjtSensor.mjSENS_TORQUE: "torque",
        mujoco.mjtSensor.mjSENS_JOINTACTFRC: "joint_torque",
    }
    objects = {mujoco.mjtObj.mjOBJ_SITE, mujoco.mjtObj.mjOBJ_JOINT, mujoco.mjtObj.mjOBJ_BODY}
    for i in range(model.nsensor):
        one, type_, at = model.sensor(i), model.sensor_type[i], model.sensor_objid[i]
        object_ = mujoco.mjtObj(int(model.sensor_objtype[i]))
        place = mujoco.mj_id2name(model, object_, at) if object_ in objects else ""
        kind = kinds.get(
            mujoco.mjtSensor(int(type_)), mujoco.mjtSensor(int(type_)).name.removeprefix("mjSENS_").lower()
        )
        start, size = int(model.sensor_adr[i]), int(model.sensor_dim[i])
        yield SensorData(kind, one.name, place or "", float(model.sensor_noise[i]), start, size)


def _of_urdf(source: Source) -> Iterator[SensorData]:
    sizes = {"imu": 6, "force_torque": 6, "accelerometer": 3}
    for element in read_elements(source.data, source.name, lambda tag: tag == "sensor", source.encoding):
        if element.tag != "gazebo":
            continue
        for child in element.children:
            kind = child.attributes.get("type", "")
            place = element.attributes.get("reference", "")
            yield SensorData(kind, child.attributes.get("name", ""), place, 0.0, 0, sizes.get(kind, 0))
