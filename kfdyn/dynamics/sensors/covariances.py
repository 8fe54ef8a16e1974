"""Marginal standard deviations, full covariances column by column, and normalised residuals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kfdyn.dynamics.sensors.dofs import dof_slice
from kfdyn.dynamics.sensors.sensor import Array, Index
from kfdyn.dynamics.sensors.solver.answers import QUANTITIES
from kfdyn.dynamics.sensors.solver.sweeps import deviations_in, make_states
from kfdyn.dynamics.sensors.solver.swept import solver_of
from kfdyn.errors import ModelError

if TYPE_CHECKING:
    from kfdyn.dynamics.sensors.result import DynamicsEstimate, Part

# A variance is a difference of two; what is left of it below this share of the first is rounding.
NOTHING = 1e-13


def standard_deviations(est: DynamicsEstimate) -> dict[str, Array]:
    """All five quantities' marginal standard deviations."""
    if est._straight is not None:
        system, program, q = est._straight
        if not system.couplings:
            states = make_states(system, program, q, np.zeros((len(q), system.nv)), system.gravity)
            fine, spread = deviations_in(system, program, states)
            if fine:
                return {key: value.reshape(getattr(est, key).shape) for key, value in zip(QUANTITIES, spread)}
    out = {key: np.empty_like(getattr(est, key)) for key in QUANTITIES}
    for group in est.problem.groups:
        for members, found in solver_of(est.problem).deviations(est.problem, group):
            for key, value in found.items():
                est.flat(out[key])[members] = value
    return out


def covariance(est: DynamicsEstimate, what: Part, other: Part) -> Array:
    """Cross-covariance of two quantities, each all of it or at one hinge or body."""
    (key, rows), (of, columns) = _entries(est, what), _entries(est, other)
    lead, count = est.problem.lead, len(columns)
    out = np.empty((*lead, len(rows), count))
    if not out.size:
        return out
    for group in est.problem.groups:
        for members, answer in solver_of(est.problem).respond(est.problem, group, of, columns):
            est.flat(out)[members] = answer[key].reshape(len(members), -1, count)[:, rows]
    return out


def _entries(est: DynamicsEstimate, what: Part) -> tuple[str, Index]:
    """Name of a quantity, and which of its entries, flattened."""
    key, at = (what, None) if isinstance(what, str) else what
    if key not in QUANTITIES:
        raise ModelError(f"no covariance of {key!r}; there are {', '.join(QUANTITIES)}")
    system = est.problem.system
    total = np.arange(est.flat(getattr(est, key))[:1].size if est.problem.size else 0)
    if at is None:
        return key, total
    if key in ("a", "tau"):
        return key, total[dof_slice(system, at)]
    k = system.body_index(at)
    return key, total[6 * k : 6 * k + 6]


def normalised_residuals(est: DynamicsEstimate) -> list[Array]:
    """−m / std(m) for every reading; 0 where nothing else checks it, so that both are rounding."""
    problem = est.problem
    out = [np.where(np.isnan(r), np.nan, 0.0) for r in est.residuals]
    noise = [sensor.variances(sensor.size(problem.system)) for sensor in problem.sensors]
    for group in problem.groups:
        for solved in solver_of(problem).solutions(problem, group, spreads=True):
            for i, seen, cov in solved.few:
                m = est.flat(est.multipliers[i])[np.ix_(solved.members, seen)]
                variance, R = np.diagonal(cov, axis1=-2, axis2=-1), noise[i][seen]
                size = variance * solved.sizes[i][seen] ** 2
                good = size > 1e3 * NOTHING * np.abs(size).max(-1, keepdims=True, initial=0.0)
                good &= (variance * R > NOTHING) | (R == 0)  # of a noisy reading the share that the others leave
                value = np.where(good, -m / np.sqrt(np.where(good, variance, 1.0)), 0.0)
                est.flat(out[i])[np.ix_(solved.members, seen)] = value
    return out
