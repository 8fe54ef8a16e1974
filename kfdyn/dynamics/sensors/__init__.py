"""Sensors of a robot, and its dynamics estimated from their readings.

The kinds are to be had as ``kf.sensors.JointTorque`` and so on; :func:`estimate_dynamics`, :func:`observability` and
:func:`place_sensors` as ``kf.estimate_dynamics``.
"""

from kfdyn.dynamics.sensors.body_sensors import Accelerometer, AngularAcceleration, ExternalForce, ForceTorque, Imu
from kfdyn.dynamics.sensors.estimate import estimate_dynamics
from kfdyn.dynamics.sensors.from_data import FromData, from_data
from kfdyn.dynamics.sensors.gradient import SensorGradient
from kfdyn.dynamics.sensors.joint_sensors import (
    JointAcceleration,
    JointPrior,
    JointTorque,
    ModalForce,
    MotorCurrent,
)
from kfdyn.dynamics.sensors.motion_sensors import (
    CenterOfMass,
    Contact,
    Gyroscope,
    JointPosition,
    JointVelocity,
    MotionSensor,
    Orientation,
    Pose,
    Position,
    Velocity,
)
from kfdyn.dynamics.sensors.observability import Observability, observability
from kfdyn.dynamics.sensors.placement import Placement, place_sensors
from kfdyn.dynamics.sensors.result import DynamicsEstimate
from kfdyn.dynamics.sensors.sensor import Sensor

__all__ = [
    "Accelerometer",
    "AngularAcceleration",
    "CenterOfMass",
    "Contact",
    "DynamicsEstimate",
    "ExternalForce",
    "ForceTorque",
    "FromData",
    "Gyroscope",
    "Imu",
    "JointAcceleration",
    "JointPosition",
    "JointPrior",
    "JointTorque",
    "JointVelocity",
    "ModalForce",
    "MotionSensor",
    "MotorCurrent",
    "Observability",
    "Orientation",
    "Placement",
    "Pose",
    "Position",
    "Sensor",
    "SensorGradient",
    "Velocity",
    "estimate_dynamics",
    "from_data",
    "observability",
    "place_sensors",
]
