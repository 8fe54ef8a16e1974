"""Observability of a set of sensors, before anything is read: standard deviations, and what stays undetermined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.dynamics.sensors.dofs import expect_served
from kfdyn.dynamics.sensors.sensor import Array, Sensor
from kfdyn.dynamics.sensors.solver.answers import QUANTITIES, Declined
from kfdyn.dynamics.sensors.solver.problem import Problem, check_sensors, make_problem
from kfdyn.dynamics.sensors.solver.swept import solver_of
from kfdyn.dynamics.sensors.solver.unobservable import undetermined
from kfdyn.dynamics.sensors.torques_alone import without_inertia
from kfdyn.errors import ModelError
from kfdyn.multibody import System
from kfdyn.multibody.calls.arguments import expect_system

_Lost = tuple[tuple[tuple[str, ...], ...], tuple[tuple[str, ...], ...], str]


@dataclass(frozen=True, eq=False)
class Observability:
    """Posterior standard deviations that a layout of sensors promises; made by :func:`observability`.

    Attributes
    ----------
    problem : Problem
        States and sensors it is of.
    determined : (...) of bool
        Whether everything is determined, and no exact readings repeat each other.
    unseen, repeated : tuple of tuples of str
        For the first state that is not: directions that no sensor sees, and exact readings that say the same.
    text : str
        The same as a sentence, with the cure; empty where all is well.

    Examples
    --------
    One accelerometer on the lower link tells of both hinges, but not of a force that may push there:

    >>> import kfdyn as kf
    >>> arm, imu = kf.models.double_pendulum(), kf.sensors.Imu("lower", 0.01)
    >>> observability(arm, [0.3, 0.4], [imu]).std("a").round(3)
    array([0.1  , 0.141])
    >>> pushed = observability(arm, [0.3, 0.4], [imu, kf.sensors.ExternalForce("lower", np.inf)])
    >>> bool(pushed.determined), pushed.std("a").round(3), pushed.std("tau")
    (False, array([0.1  , 0.141]), array([inf, inf]))
    """

    problem: Problem
    determined: Array
    unseen: tuple[tuple[str, ...], ...]
    repeated: tuple[tuple[str, ...], ...]
    text: str
    _std: dict[str, Array] = field(default_factory=dict, repr=False)

    def std(self, what: str) -> Array:
        """Standard deviations of the quantity named, of its shape; infinite where it is undetermined."""
        if what not in self._std:
            raise ModelError(f"no standard deviation of {what!r}; there are {', '.join(self._std)}")
        return self._std[what]

    def __str__(self) -> str:
        return self.text or "the sensors determine everything"


def observability(
    system: System,
    q: ArrayLike,
    sensors: Sequence[Sensor],
    v: ArrayLike | None = None,
    *,
    gravity: ArrayLike | None = None,
) -> Observability:
    """Say how well a set of sensors determines the dynamics; covariances do not depend on readings.

    Parameters
    ----------
    system : System or FlexibleSystem
        The robot.
    q : (..., nq)
        Configurations.
    sensors : sequence of kf.sensors
        The layout; every reading counts as present.
    v : (..., nv), optional
        Velocities, which change no covariance; at rest if not given.
    gravity : (..., 3), optional
        ``system.gravity`` if not given.

    Returns
    -------
    Observability
        Standard deviations of accelerations, torques, forces; and by name what is undetermined.

    Notes
    -----
    O(N) for each state that is determined. Of one that is not, null vectors of a dense matrix tell what follows an
    undetermined direction, and has an infinite standard deviation; of systems of more than 400 dofs, what follows a
    wide prior.

    Examples
    --------
    Nothing reads the elbow:

    >>> import kfdyn as kf
    >>> seen = observability(kf.models.double_pendulum(), [0.3, 0.4], [kf.sensors.JointAcceleration(0.1, "shoulder")])
    >>> seen.unseen, seen.std("a").round(3)
    ((("hinge 'elbow'",),), array([0.316,   inf]))
    """
    expect_system(system)
    expect_served(system)
    sensors = check_sensors(sensors)
    blank = [np.zeros(sensor.size(system)) for sensor in sensors]
    problem = make_problem(system, q, v, sensors, blank, gravity)
    system, size = problem.system, problem.size
    shapes = [(system.nv,), (system.nv,), *[(system.n_bodies, 6)] * 3]
    std = {key: np.empty((size, *shape)) for key, shape in zip(QUANTITIES, shapes)}
    left, lost = np.ones(size, bool), dict[int, _Lost]()
    (group,) = problem.groups
    solver = solver_of(problem)
    for members, found in solver.deviations(problem, group, alone=False):
        left[members] = False
        for key, value in found.items():
            std[key][members] = value
    for i in np.flatnonzero(left).tolist():
        here = np.array([i])
        try:
            alone = list(solver.deviations(problem, group._replace(members=here)))
        except Declined:
            missed = undetermined(problem, group, i)
            lost[i], alone = (missed.unseen, missed.repeated, missed.text), [(here, missed.std)]
        for members, found in alone:
            for key, value in found.items():
                std[key][members] = value
    for i, text in without_inertia(system, problem.q, sensors):  # forward dynamics has no digits there
        for key in ("a", "body_accelerations", "hinge_forces"):
            std[key][i] = np.inf
        unseen = tuple(f"hinge {name!r}" for name in system.hinge_names if repr(name) in text)
        lost[i] = (unseen,), (), text
    determined = np.ones(size, bool)
    determined[list(lost)] = False
    first = lost[min(lost)] if lost else ((), (), "")
    shaped = {key: value.reshape(*problem.lead, *value.shape[1:]) for key, value in std.items()}
    return Observability(problem, determined.reshape(problem.lead), *first, shaped)
