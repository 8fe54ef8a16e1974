"""Robots from files: URDF and MJCF to a System, back to URDF, and state to and from other tools."""

from kfdyn.io.describe import describe
from kfdyn.io.load import load, read
from kfdyn.io.load_result import Loaded, LoadWarning, Mimic
from kfdyn.io.mjcf.load_mjcf import from_mujoco_model
from kfdyn.io.sensor_data import SensorData, read_sensors
from kfdyn.io.states.mujoco_state import from_mujoco, from_mujoco_q, to_mujoco, to_mujoco_q
from kfdyn.io.states.peer_coordinates import State
from kfdyn.io.states.pinocchio_state import from_pinocchio, to_pinocchio
from kfdyn.io.urdf.save_urdf import save_urdf

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
