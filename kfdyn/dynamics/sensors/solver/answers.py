"""Readings held against an estimate: predictions, residuals, multipliers, NIS and log-likelihood of every state."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from kfdyn.dynamics.sensors.sensor import Array, Index, Sensor
from kfdyn.dynamics.sensors.solver.problem import Group, Problem
from kfdyn.errors import UnobservableError
from kfdyn.multibody import LinkTerms, System

QUANTITIES = ("a", "tau", "body_accelerations", "hinge_forces", "external_forces")


class Few(NamedTuple):
    """Covariance (B, ·, ·) of the multipliers of some entries of a sensor's reading."""

    sensor: int
    seen: Index
    cov: Array

    @staticmethod
    def of_weight(one: Any, predicted: Array) -> Few:
        """From the covariance of a prediction, where a reading or a force has a weight."""
        return Few(one.sensor, one.seen, one.weight - one.weight @ predicted @ one.weight)


class Solved(NamedTuple):
    """Some states of a problem: which; what each sensor should have read and its multipliers, (B, size) a sensor.

    ``log_det`` (B,) is that of the whole matrix, but for constants of flat unknowns; ``few`` are covariances of
    multipliers, ``sizes`` the natural scale of each reading. Of rigid systems α (B, n, 6) less gravity, λ, their
    covariances Z (B, n, 12, 12) and the terms are there, for the gradient.
    """

    members: Index
    predicted: list[Array]
    multipliers: list[Array]
    log_det: Array
    few: tuple[Few, ...]
    sizes: list[Array]
    alpha: Array
    lam: Array
    Z: Array
    terms: LinkTerms


class Declined(UnobservableError):
    """State ``i`` of a group has no answer; :mod:`.unobservable` says why."""

    def __init__(self, group: Group, i: int) -> None:
        super().__init__("the equations are singular to working precision; rescale the covariances")
        self.group, self.i = group, i


class Solver(NamedTuple):
    """The solver of a group of states, some at a time: the sweeps, or the dense estimate.

    ``deviations`` leaves out states without an answer unless it is told ``alone``; the others raise :class:`Declined`.
    """

    means: Callable[[Problem, Group], Iterator[tuple[Index, tuple[Array, ...]]]]
    deviations: Callable[..., Iterator[tuple[Index, dict[str, Array]]]]
    respond: Callable[[Problem, Group, str, Index], Iterator[tuple[Index, dict[str, Array]]]]
    solutions: Callable[..., Iterator[Solved]]


class Checks(NamedTuple):
    """Readings held against the estimate, for B states: lists (B, size) a sensor; NIS, its dof and llf (B,)."""

    predicted: list[Array]
    residuals: list[Array]
    multipliers: list[Array]
    nis: Array
    dof: Index
    llf: Array

    @classmethod
    def empty(cls, problem: Problem) -> Checks:
        """Room for those of a problem."""
        size, sizes = problem.size, [reading.shape[1] for reading in problem.readings]
        one, two, three = ([np.empty((size, n)) for n in sizes] for _ in range(3))
        return cls(one, two, three, np.empty(size), np.empty(size, np.int64), np.empty(size))

    def fill(self, problem: Problem, group: Group, solved: Solved) -> None:
        """Write those of some states into their places."""
        members, nis = solved.members, np.zeros(len(solved.members))
        n_rows, n_data = 0, 0
        for i, (sensor, present) in enumerate(zip(problem.sensors, group.pattern)):
            multiplier, reading = solved.multipliers[i], problem.readings[i][members]
            residual = np.zeros_like(multiplier)
            for site, R in zip(sensor.sites(problem.system), sensor.blocks(problem.system)):
                residual[:, site.rows] = -(multiplier[:, site.rows] @ np.where(np.isfinite(R), R, 0.0))
            self.predicted[i][members], self.multipliers[i][members] = solved.predicted[i], multiplier
            self.residuals[i][members] = np.where(np.isnan(reading), np.nan, residual)
            nis -= (multiplier * residual).sum(-1)
            if sensor.is_force:  # its finite entries are unknowns as well as rows
                n_rows -= int(np.isinf(sensor.variances(len(present))).sum())
            else:
                n_rows, n_data = n_rows + sum(present), n_data + (0 if sensor.prior else sum(present))
        self.nis[members], self.dof[members] = nis, n_rows - problem.system.nv
        self.llf[members] = -0.5 * (n_data * np.log(2 * np.pi) + nis + solved.log_det)


def predicted_at_hinges(sensor: Sensor, system: System, a: Array, tau: Array, rotor: Array) -> Array:
    """Predict readings of dofs (B, size, c) from accelerations, torques and the rotors' part of them (B, nv, c)."""
    entries = sensor.entries(system)  # type: ignore[attr-defined]
    of_strain, of_rotor, of_a = (part[:, None] for part in sensor.factors(system))  # type: ignore[attr-defined]
    strain = tau[:, entries] - rotor[:, entries]
    return np.asarray(of_strain * strain + of_rotor * rotor[:, entries] + of_a * a[:, entries])
