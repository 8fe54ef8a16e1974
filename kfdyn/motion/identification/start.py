"""Start of the search: motions without dynamics, and torques regressed on them."""

from __future__ import annotations

from typing import Any

import numpy as np

from kfdyn.arrays import Array
from kfdyn.dynamics import inverse_dynamics, mass_matrix
from kfdyn.motion.identification.effects import Rows, combined, effects
from kfdyn.motion.identification.linear import Log, Motion
from kfdyn.motion.identification.parameters.groups import ROBOT
from kfdyn.motion.identification.smoothing import free_motion
from kfdyn.motion.model import MotionModel

_HELD = 1.0  # deviation of free numbers from their first values: holds what the torques hardly tell
_DAMPINGS = 10.0 ** np.arange(-8, 9)  # of Levenberg and Marquardt, in units of the information
_STEPS = 40


class Start:
    """Motions of all logs without dynamics, and what torques they ask for.

    Parameters
    ----------
    models : list of MotionModel
        At the first values.
    logs : list of Log
        Readings and torques.
    """

    def __init__(self, models: list[MotionModel], logs: list[Log]) -> None:
        self.models, self.logs = models, logs
        self.found = [free_motion(model, log) for model, log in zip(models, logs)]

    @property
    def known(self) -> bool:
        """True if all logs told their motions."""
        return all(found is not None for found in self.found)

    def _edges(self, model: MotionModel, log: Log, found: Any) -> tuple[Rows, Array, Array, Array]:
        """States and accelerations of all steps that lead somewhere, covariances of these, torques and wrenches."""
        x, a, cov = (
            part if log.batched else part[None] for part in (found.x, found.noise, found.noise_cov)
        )  # fmt: skip
        nv, N = model.system.nv, x.shape[1]
        q, v, rest = model._apart(x[:, :-1].reshape(-1, x.shape[2]))
        a = np.ascontiguousarray(a[:, : N - 1, :nv].reshape(-1, nv))
        wrench = rest[:, rest.shape[1] - 6 * len(model.wrench_places) :]
        tau = np.asarray(log.inputs)[:, :-1].reshape(-1, nv)
        return Rows(model.stepper, q, v, a, model.g), cov[:, : N - 1, :nv, :nv].reshape(-1, nv, nv), tau, wrench

    def motions(self, models: list[MotionModel]) -> list[Motion]:
        """Motions of models, with the random forces that these accelerations ask for."""
        out = []
        for model, log, found in zip(models, self.logs, self.found):
            x = found.x if log.batched else found.x[None]
            rows, _, tau, wrench = self._edges(model, log, found)
            noises = x.shape[1] if model.carries_noise else x.shape[1] - 1
            w = np.zeros((x.shape[0], noises, model.p))
            nv = model.system.nv
            w[:, : x.shape[1] - 1, :nv] = (-_left(rows, tau, wrench)).reshape(x.shape[0], -1, nv)
            out.append(Motion(x, w))
        return out

    def regressed(self, parameters: Any) -> Array:
        """Free numbers for which the torques are nearest to those ordered, weighted by what is not known of them.

        Least squares in the numbers of the robot, which enter linearly; steps of Levenberg and Marquardt in the free
        ones. The others keep their first values.
        """
        z = parameters.start.copy()
        chosen = [
            (group, own) for group, own in zip(parameters.groups, parameters.places)
            if group.block[0] in ROBOT and parameters.closed[own.start]
        ]  # fmt: skip
        if not chosen:
            return z
        A, b = self._normal(parameters, chosen)
        free = np.concatenate([np.arange(own.start, own.stop) for _, own in chosen])
        first = np.concatenate([group.values(z[own]) for group, own in chosen])

        def change(z: Array) -> Array:
            return np.concatenate([group.values(z[own]) for group, own in chosen]) - first

        def cost(z: Array) -> float:
            d, away = change(z), (z - parameters.start) / _HELD
            return float(0.5 * d @ A @ d - b @ d + 0.5 * away @ away) - parameters.prior(z)[0]

        here = cost(z)
        for _ in range(_STEPS):
            S = np.zeros((first.size, z.size))
            at = 0
            for group, own in chosen:
                slope = group.slope(z[own], group.values)
                S[at : at + len(slope), own] = slope
                at += len(slope)
            _, pull, H = parameters.prior(z)
            g = (S.T @ (b - A @ change(z)) + pull - (z - parameters.start) / _HELD**2)[free]
            H = (S.T @ A @ S + H)[np.ix_(free, free)] + np.eye(free.size) / _HELD**2
            scale = np.diag(H)
            for damping in _DAMPINGS:
                there = z.copy()
                there[free] += np.clip(np.linalg.solve(H + np.diag(damping * scale), g), -1.0, 1.0)
                there = np.clip(there, parameters.lower, parameters.upper)
                value = cost(there)
                if value < here:
                    break
            else:
                break
            small = here - value < 1e-6 * (1.0 + abs(here))
            z, here = there, value
            if small:
                break
        return z

    def _normal(self, parameters: Any, chosen: Any) -> tuple[Array, Array]:
        """Normal equations in the values of the blocks, at their first values, of two-stage least squares.

        A random force moves the acceleration it is regressed on, so that every mass would come out too light. What
        enters is therefore seen through what ordered torques alone would do, which no random force knows of.
        """
        size = sum(group.values(parameters.start[own]).size for group, own in chosen)
        A, b = np.zeros((size, size)), np.zeros(size)
        for model, log, found in zip(self.models, self.logs, self.found):
            rows, cov, tau, wrench = self._edges(model, log, found)
            nv = model.system.nv
            M = mass_matrix(model.stepper.moved, rows.q)
            W = model.Q[..., :nv, :nv] if model.Q.ndim == 2 else model.Q[:1, :nv, :nv].mean(axis=0)
            noise = W + M @ cov @ M.swapaxes(1, 2)
            noise += 1e-12 * np.trace(noise.mean(axis=0)) * np.eye(nv)
            back = np.linalg.inv(np.linalg.cholesky(noise))
            left = _left(rows, tau, wrench)
            ordered = rows._replace(a=rows.a + np.linalg.solve(M, left[..., None])[..., 0])

            def whitened(rows: Rows, back: Array = back) -> Array:
                columns = []
                for group, _ in chosen:
                    r = np.stack([one.r for one in effects(group.block, rows, parameters.masses, False)])
                    columns.append(combined(r) if group.block[0] == "body" else r)
                return np.einsum("rij,prj->pri", back, np.concatenate(columns), optimize=True).reshape(size, -1)

            X, Z = whitened(rows), whitened(ordered)
            e = (back @ left[..., None])[..., 0].ravel()
            seen = X @ Z.T @ np.linalg.pinv(Z @ Z.T, rcond=1e-12, hermitian=True)
            A += seen @ Z @ X.T
            b += seen @ (Z @ e)
        return A, b


def _left(rows: Rows, tau: Array, wrench: Array) -> Array:
    """Torques that were ordered, less those that the accelerations ask for."""
    stepper = rows.stepper
    asked = inverse_dynamics(stepper.moved, rows.q, rows.v, rows.a, gravity=rows.g)
    return np.asarray(stepper._forces(rows.q, rows.v, np.ascontiguousarray(tau), wrench) - asked)
