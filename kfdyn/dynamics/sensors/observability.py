"""What a set of sensors could tell, before anything is read: standard deviations, and what stays undetermined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.dynamics.sensors.covariances import deviations_of, standard_deviations_of
from kfdyn.dynamics.sensors.dofs import expect_served
from kfdyn.dynamics.sensors.elimination.gather import gather, unsuited
from kfdyn.dynamics.sensors.elimination.layout import Layout
from kfdyn.dynamics.sensors.elimination.problem import Problem, check_sensors, make_problem
from kfdyn.dynamics.sensors.elimination.readout import QUANTITIES
from kfdyn.dynamics.sensors.elimination.unobservable import Undetermined, undetermined
from kfdyn.dynamics.sensors.sensor import Array, Sensor
from kfdyn.dynamics.sensors.torques_alone import without_inertia
from kfdyn.errors import ModelError
from kfdyn.multibody import System
from kfdyn.multibody.calls.arguments import expect_system

# Relative change of a variance by which one that follows an undetermined direction is told from one that does not.
FOLLOWS = 1e-6

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
    O(N) for each state. An undetermined direction is pinned by a unit of information, and what follows it has an
    infinite standard deviation.

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
    for members, found in deviations_of(problem, group, alone=False):
        left[members] = False
        for key, value in found.items():
            std[key][members] = value
    for i in np.flatnonzero(left).tolist():
        own, missed = _one_by_one(problem, problem.layout(group), i)
        if missed is not None:
            lost[i] = missed.unseen, missed.repeated, missed.text
        for key, value in own.items():
            std[key][i] = value
    for i, text in without_inertia(system, problem.q, sensors):  # forward dynamics has no digits there
        for key in ("a", "body_accelerations", "hinge_forces"):
            std[key][i] = np.inf
        unseen = tuple(f"hinge {name!r}" for name in system.hinge_names if repr(name) in text)
        lost[i] = (unseen,), (), text
    determined = np.ones(size, bool)
    determined[list(lost)] = False
    told = lost[min(lost)] if lost else ((), (), "")
    shaped = {key: value.reshape(*problem.lead, *value.shape[1:]) for key, value in std.items()}
    return Observability(problem, determined.reshape(problem.lead), *told, shaped)


def _one_by_one(problem: Problem, layout: Layout, i: int) -> tuple[dict[str, Array], Undetermined | None]:
    """One state with choices of its own: its standard deviations, and what is undetermined if anything is."""
    terms = problem.terms(np.array([i]))
    factor = gather(layout, terms)
    if not unsuited(factor)[0]:
        return {key: value[0] for key, value in standard_deviations_of(factor).items()}, None
    lost = undetermined(layout, terms, problem.lead, i)
    light, heavy = (
        standard_deviations_of(gather(layout, terms, pins={k: weight * pin for k, pin in lost.pins.items()}))
        for weight in (1.0, 0.25)
    )
    out = {}
    for key, value in light.items():
        follows = np.abs(heavy[key] - value) > FOLLOWS * (np.abs(value) + np.abs(heavy[key]).max() * FOLLOWS)
        out[key] = np.where(follows, np.inf, value)[0]
    return out, lost
