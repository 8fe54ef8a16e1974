"""DynamicsEstimate: what the sensors say, with how surely they say it."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kfdyn.dynamics.sensors.covariances import covariance, normalised_residuals, standard_deviations
from kfdyn.dynamics.sensors.gradient import SensorGradient, gradient
from kfdyn.dynamics.sensors.sensor import Array, Index
from kfdyn.dynamics.sensors.solver.answers import QUANTITIES, Checks, Declined
from kfdyn.dynamics.sensors.solver.problem import Problem, make_problem
from kfdyn.dynamics.sensors.solver.swept import solver_of
from kfdyn.dynamics.sensors.solver.unobservable import undetermined
from kfdyn.errors import ModelError

if TYPE_CHECKING:
    from kfdyn.dynamics.sensors.solver.program import Program
    from kfdyn.multibody import System

Part = str | tuple[str, str]


class DynamicsEstimate:
    """Posterior of the dynamics given readings; made by :func:`estimate_dynamics`.

    The means are there at once, the rest when it is asked for.

    Attributes
    ----------
    a, tau : (..., nv)
        Joint accelerations, and generalised forces H f + R_rotor a.
    body_accelerations : (..., n_bodies, 6)
        Classical accelerations of the bodies' origins, world axes, gravity not included, as ``frame_acceleration``.
    hinge_forces : (..., n_bodies, 6)
        [moment; force] of the parent on each body at its hinge point, world axes.
    external_forces : (..., n_bodies, 6)
        [moment; force] on each body at its origin, world axes, as the dynamics take them.
    problem : Problem
        States, sensors and readings it is of.

    Examples
    --------
    >>> import kfdyn as kf
    >>> arm = kf.models.double_pendulum()
    >>> sensors = [kf.sensors.JointTorque(0.01), kf.sensors.Imu("lower", 0.04)]
    >>> est = kf.estimate_dynamics(arm, [0.3, 0.2], [0.0, 0.0], sensors, [np.zeros(2), np.r_[np.zeros(5), 9.0]])
    >>> est.a.shape, int(est.dof), est.std("tau").round(3)
    ((2,), 6, array([0.094, 0.057]))
    """

    a: Array
    tau: Array
    body_accelerations: Array
    hinge_forces: Array
    external_forces: Array

    def __init__(self, problem: Problem | Any, means: tuple[Array, ...]) -> None:
        self._problem = problem  # or what makes it: a single state is answered before its arguments are looked at twice
        self.a, self.tau, self.body_accelerations, self.hinge_forces, self.external_forces = means
        self._straight: tuple[System, Program, Array] | None = None
        self._std: dict[str, Array] = {}

    @classmethod
    def of(cls, problem: Problem) -> DynamicsEstimate:
        """Estimate every state of a problem, group by group."""
        lead, system = problem.lead, problem.system
        by_dof = [np.empty((*lead, system.nv)) for _ in range(2)]
        out = cls(problem, (*by_dof, *(np.empty((*lead, system.n_bodies, 6)) for _ in range(3))))
        try:
            for group in problem.groups:
                for members, found in solver_of(problem).means(problem, group):
                    for key, value in zip(QUANTITIES, found):
                        out.flat(getattr(out, key))[members] = value
        except Declined as declined:
            raise undetermined(problem, declined.group, declined.i).error() from None
        return out

    @cached_property
    def problem(self) -> Problem:
        """States, sensors and readings."""
        return self._problem if isinstance(self._problem, Problem) else self._problem()

    def flat(self, array: NDArray[Any]) -> NDArray[Any]:
        """View of one of its arrays with the leading axes as one."""
        return array.reshape(self.problem.size, *array.shape[len(self.problem.lead) :])

    @cached_property
    def checks(self) -> Checks:
        """Readings held against the estimate, with the leading axes as one; O(N) a state, when first asked for."""
        problem, out = self.problem, Checks.empty(self.problem)
        for group in problem.groups:
            for solved in solver_of(problem).solutions(problem, group):
                out.fill(problem, group, solved)
        return out

    def _shaped(self, array: NDArray[Any]) -> NDArray[Any]:
        return array.reshape((*self.problem.lead, *array.shape[1:]))

    @property
    def predicted(self) -> list[Array]:
        """Predict each sensor's reading, (..., size), missing entries too; for an external force, its estimate."""
        return [self._shaped(array) for array in self.checks.predicted]

    @property
    def residuals(self) -> list[Array]:
        """Reading less prediction, (..., size) a sensor, NaN where it is missing."""
        return [self._shaped(array) for array in self.checks.residuals]

    @property
    def multipliers(self) -> list[Array]:
        """−R⁻¹ residual, (..., size) a sensor, also for R = 0: the gradient of ``llf`` with respect to the reading."""
        return [self._shaped(array) for array in self.checks.multipliers]

    @property
    def nis(self) -> Array:
        """Normalised innovations squared (...): Σ residual* R⁻¹ residual, priors included; χ² with ``dof``."""
        return self._shaped(self.checks.nis)

    @property
    def dof(self) -> Index:
        """Degrees of freedom (...) of NIS: readings and priors less unknowns."""
        return self._shaped(self.checks.dof)

    @property
    def llf(self) -> Array:
        """Log-likelihood (...) of the readings; flat unknowns add no constant (Durbin and Koopman)."""
        return self._shaped(self.checks.llf)

    @property
    def p_value(self) -> Array:
        """Probability (...) of a larger NIS if the model is right; 1 where nothing is left to check."""
        from scipy.stats import chi2

        checked = self.dof > 0
        return np.where(checked, chi2.sf(self.nis, np.where(checked, self.dof, 1)), 1.0)

    def std(self, what: str) -> Array:
        """Marginal standard deviations, of the shape of the quantity named: "a", "tau", ... ; O(N) for all at once."""
        if what not in QUANTITIES:
            raise ModelError(f"no standard deviation of {what!r}; there are {', '.join(QUANTITIES)}")
        if what not in self._std:
            self._std.update(standard_deviations(self))
        return self._std[what]

    def cov(self, what: Part, other: Part | None = None) -> Array:
        """Posterior covariance of a quantity, or cross-covariance of two: (..., m, n).

        Parameters
        ----------
        what, other
            A name as for :meth:`std`, all of whose entries are meant, flattened; or a pair of it and a hinge ("a",
            "tau") or body (the others): ``est.cov(("external_forces", "hand"))`` is (..., 6, 6).

        Returns
        -------
        (..., m, n) array
            One pair of sweeps a row: O(nv N) for "a".
        """
        return covariance(self, what, what if other is None else other)

    @property
    def normalised_residuals(self) -> list[Array]:
        """Residuals over their standard deviations, (..., size) a sensor: N(0, 1) each if the model is right.

        Computed from the multipliers, −m / std(m), so exact readings have them too; NaN where a reading is missing,
        0 where nothing else checks it.
        """
        return normalised_residuals(self)

    def draw(self, rng: np.random.Generator | int | None = None, n: int = 1) -> dict[str, Array]:
        """Draw n times from the posterior: the five quantities by name, (n, ..., shape), jointly and exactly.

        The error of an estimate depends on neither truth nor readings, so it is, with its sign changed, what noise
        moves when it is added to the readings. Cost n estimates.
        """
        problem, readings, rng = self.problem, [], np.random.default_rng(rng)
        for sensor, y in zip(problem.sensors, problem.readings):
            cov = sensor.covariance(problem.system)
            values, vectors = np.linalg.eigh(np.where(np.isfinite(cov), cov, 0.0))
            readings.append(y + rng.normal(size=(n, *y.shape)) @ (vectors * np.sqrt(np.maximum(values, 0.0))).T)
        states = problem.system, problem.q, problem.v, problem.sensors
        moved = DynamicsEstimate.of(make_problem(*states, readings, problem.gravity))
        every = {key: getattr(self, key) for key in QUANTITIES}
        return {key: 2.0 * x - getattr(moved, key).reshape(n, *x.shape) for key, x in every.items()}

    def gradient(self) -> SensorGradient:
        """Gradient of the log-likelihood with respect to covariances, biases, readings and inertias; O(N)."""
        return gradient(self)
