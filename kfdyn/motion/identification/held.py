"""The likelihood of logs with their motions held, as a function of the parameters, and its gradient."""

from __future__ import annotations

from typing import Any

import numpy as np

from kfdyn.arrays import Array
from kfdyn.motion.identification.adjoint import inner, slopes_of
from kfdyn.motion.identification.linear import Linear, Log, Motion
from kfdyn.motion.identification.response import MeanChanges, mean_changes

_STEP = 1e-4  # of free numbers without a closed form: leaves 1e-9 of cubic terms and 1e-12 of rounding
_INFORMED = 1e-2  # standard errors: the step in which the gradient is differenced
_LONGEST = 1e-3  # such step of a free number


class Held:
    """The likelihood of the models linearised about motions that are held.

    Parameters
    ----------
    parameters : Parameters
        Which.
    logs : list of Log
        Readings.
    motions : list of Motion
        Where each is linearised.
    """

    def __init__(self, parameters: Any, logs: list[Log], motions: list[Motion]) -> None:
        self.parameters, self.logs, self.motions = parameters, logs, motions

    def lines(self, z: Array) -> list[Linear]:
        """The linearised models."""
        return [Linear(*parts) for parts in zip(self.parameters.models(z), self.logs, self.motions)]

    def llf(self, z: Array) -> float:
        """Log-likelihood, of all logs, and the priors'."""
        return self.llf_of(z, self.lines(z))

    def llf_of(self, z: Array, lines: list[Linear]) -> float:
        """Take that of models that are linearised already."""
        return float(sum(line.llf for line in lines) + self.parameters.prior(z)[0])

    def gradient(self, z: Array) -> Array:
        """Gradient in the free numbers."""
        lines = self.lines(z)
        try:
            return self.gradient_of(z, lines)
        finally:
            for line in lines:
                line.release()

    def gradient_of(self, z: Array, lines: list[Linear]) -> Array:
        """Take that of models that are linearised already."""
        parameters = self.parameters
        g = parameters.prior(z)[1]
        for line, base, changes in zip(lines, parameters.bases, self.changes(z)):
            if parameters.closed.any():
                g += parameters.pull(z, line, base, slopes_of(line))
            for i, change in changes.items():
                g[i] += along(line, change)
        return g

    def changes(self, z: Array) -> list[dict[int, list[Array]]]:
        """Changes of φ, H, Q, R, ξ and T of each log in numbers without a closed form, by central differences."""
        out: list[dict[int, list[Array]]] = [{} for _ in self.logs]
        for i in np.flatnonzero(~self.parameters.closed).tolist():
            e = _STEP * np.eye(z.size)[i]
            if z[i] - _STEP >= self.parameters.lower[i] and z[i] + _STEP <= self.parameters.upper[i]:
                weights = {1: 0.5, -1: -0.5}
            else:
                s = 1 if z[i] + 2 * _STEP <= self.parameters.upper[i] else -1
                weights = {0: -1.5 * s, s: 2.0 * s, 2 * s: -0.5 * s}
            for j, weight in weights.items():
                for found, line in zip(out, self.lines(z + j * e)):
                    parts = [weight / _STEP * part for part in _blocks(line)]
                    found[i] = [a + b for a, b in zip(found[i], parts)] if i in found else parts
        return out

    def responses(self, z: Array, lines: list[Linear]) -> tuple[Array, list[Array]]:
        """Information of the means, and how each motion answers to each free number: (p, batch, N, size)."""
        H, moved = np.zeros((z.size, z.size)), []
        for line, base, differences in zip(lines, self.parameters.bases, self.changes(z)):
            mean = mean_changes(self.parameters, z, line, base) if self.parameters.closed.any() else None
            xi, T = mean or _none(z.size, line)
            for i, change in differences.items():
                xi[i], T[i] = change[4], change[5]
            active = np.flatnonzero(xi.any(axis=1) | T.any(axis=1))
            x = np.zeros((z.size, *line.motion.x.shape[:2], line.problem.size))
            if active.size:
                costate, a, tangent = line.responses(xi[active], T[active])
                seen = np.where(np.isnan(line.state_space[1]), 0.0, T[active])
                H[np.ix_(active, active)] += seen @ a.T - xi[active] @ costate.T
                x[active] = tangent.reshape(active.size, *x.shape[1:])
            moved.append(x)
        return 0.5 * (H + H.T) + self.parameters.prior(z)[2], moved

    def information(self, z: Array, errors: Array) -> Array:
        """Observed information, minus the derivative of the gradient at z: one-sided differences of it.

        A flat prior is taken as one that is wide about the motion, which changes a millionth of it.
        """
        logs = []
        for model, log, motion in zip(self.parameters.models(z), self.logs, self.motions):
            logs.append(log.near(model, motion) if log.prior.flat.any() else log)
        near, columns = Held(self.parameters, logs, self.motions), []
        g = near.gradient(z)
        for i in range(z.size):
            h = min(_INFORMED * errors[i], _LONGEST)
            h = -h if z[i] + h > self.parameters.upper[i] else h
            there = z.copy()
            there[i] += h
            columns.append((g - near.gradient(there)) / h)
        H = np.stack(columns, axis=1)
        return 0.5 * (H + H.T)


def along(line: Linear, change: list[Array]) -> float:
    """Derivative of the log-likelihood along a change of φ, H, Q, R, ξ and T."""
    score = line.score
    own = [score.phi.flat, score.H.flat, score.Q.flat, score.R.flat, np.asarray(score.xi), -np.asarray(score.smooth.a)]
    return sum(inner(s, d) for s, d in zip(own, change))


def _blocks(line: Linear) -> list[Array]:
    ss, T = line.state_space
    return [ss.phi.flat, ss.H.flat, ss.Q.flat, ss.R.flat, np.asarray(ss.xi), np.where(np.isnan(T), 0.0, T)]


def _none(p: int, line: Linear) -> MeanChanges:
    ss, T = line.state_space
    return MeanChanges(np.zeros((p, np.asarray(ss.xi).size)), np.zeros((p, T.size)))
