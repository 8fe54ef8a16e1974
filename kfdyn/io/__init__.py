"""Robots from files: URDF and MJCF to a System, back to URDF, and state to and from other tools."""

from kfdyn.io.coordinates import State
from kfdyn.io.describe import describe
from kfdyn.io.load import load, read
from kfdyn.io.loaded import Loaded, LoadWarning, Mimic
from kfdyn.io.mjcf import from_mujoco_model
from kfdyn.io.mujoco_state import from_mujoco, from_mujoco_q, to_mujoco, to_mujoco_q
from kfdyn.io.pinocchio_state import from_pinocchio, to_pinocchio
from kfdyn.io.save import save_urdf
from kfdyn.io.sensor_data import SensorData, read_sensors

__all__ = [
    "LoadWarning",
    "Loaded",
    "Mimic",
    "SensorData",
    "State",
    "describe",
    "from_mujoco",
    "from_mujoco_model",
    "from_mujoco_q",
    "from_pinocchio",
    "load",
    "read",
    "read_sensors",
    "save_urdf",
    "to_mujoco",
    "to_mujoco_q",
    "to_pinocchio",
]
