"""Robots of which torques alone are read: their accelerations are those of forward dynamics, which must have digits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.dynamics.forward import forward_dynamics
from kfdyn.dynamics.sensors.joint_sensors import JointTorque
from kfdyn.dynamics.sensors.sensor import Sensor
from kfdyn.dynamics.solving.forest import States
from kfdyn.errors import SingularError, UnobservableError
from kfdyn.multibody import System


def expect_inertia(system: System, q: ArrayLike, sensors: Sequence[Sensor]) -> None:
    """Refuse robots of which torques alone are read where their mass matrix is singular in double precision.

    Their accelerations are those of forward dynamics, whose bound on rounding decides here too: pivots of the
    elimination do not tell rounding from inertia.
    """
    if not all(isinstance(sensor, JointTorque) for sensor in sensors):
        return
    try:
        if system.couplings:
            q = np.asarray(q, np.float64)
            States(system, q.shape[:-1], {"q": q.reshape(-1, system.nq)}).expect_invertible()
        elif type(system) is System and system.is_tree and system.nv:
            forward_dynamics(system, q, None, np.zeros(system.nv))
    except SingularError as error:
        raise UnobservableError(f"the sensors leave undetermined: {error}") from None


def without_inertia(system: System, q: np.ndarray, sensors: Sequence[Sensor]) -> Iterator[tuple[int, str]]:
    """Yield which of the states (B, nq) are refused, and in which words."""
    try:
        expect_inertia(system, q, sensors)
    except UnobservableError:
        for i, one in enumerate(q):
            try:
                expect_inertia(system, one, sensors)
            except UnobservableError as error:
                yield i, str(error)
