"""The most probable motion of a log, from a motion nearby or from the readings alone."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np

from kfdyn.arrays import Array
from kfdyn.dynamics.sensors.motion_sensors import JointPosition
from kfdyn.errors import KfdynError
from kfdyn.estimation.nonlinear.smoother import iterated_kalman_smoother
from kfdyn.estimation.nonlinear.trajectory import Step
from kfdyn.motion.identification.linear import Linear, Log, Motion
from kfdyn.motion.model import MotionModel
from kfdyn.motion.step import Stepper

_ITERATIONS = 8  # whole steps before the smoother with a line search is asked
_TOLERANCE = 1e-7  # of steps, in standard deviations
_STALLED = 1e-5  # a step that no longer shrinks is rounding if it is shorter than this


def smooth(model: MotionModel, log: Log, motion: Motion) -> Linear:
    """The model linearised about its own most probable motion, by whole Gauss–Newton steps."""
    before, given = np.inf, motion
    for _ in range(_ITERATIONS):
        line = Linear(model, log, motion)
        step = _step(line)
        variances = _variances(step)
        size = float((np.abs(step.d).max(axis=1) / (np.sqrt(variances) + 1e-300)).max(initial=0.0))
        if size <= _TOLERANCE or (size < _STALLED and size > 0.5 * before):
            if motion.variances is not None:
                return line
            line.release()
            return Linear(model, log, motion._replace(variances=variances), line.point)
        line.release()
        if not size < 2.0 * before:
            break
        before = size
        motion = Motion(moved(model, motion.x, step.d), step.w, variances)
    found = iterated_kalman_smoother(
        model, log.readings, tau=log.tau, prior=log.given_prior, start=given.x, covariances=False
    )
    x, w = (part if log.batched else part[None] for part in (found.x, found.noise))
    motion = Motion(x, w)
    line = Linear(model, log, motion)
    variances = _variances(_step(line))
    line.release()
    return Linear(model, log, motion._replace(variances=variances), line.point)


def _variances(step: Step) -> Array:
    """Return typical variances of the states, (batch, n): medians over some sixty of them."""
    return np.asarray(np.median(step.after[:, :: max(1, step.after.shape[1] // 64)], axis=1))


def _step(line: Linear) -> Step:
    """The Gauss–Newton step.

    A flat prior is taken as a wide one about the present motion: what such steps end at is the same, and a compiled
    call takes them.
    """
    problem, point, motion = line.problem, line.point, line.motion
    if problem.prior.flat.any() and motion.variances is not None and not problem.carried:
        problem = line.log.near(line.model, motion).problem(line.model)
        point = problem.linearise(motion.x, motion.w)
    return problem.quick_step(point, None) or line.step


def moved(model: MotionModel, x: Array, d: Array) -> Array:
    """States x ⊕ d (batch, N, nx)."""
    rows = model.states.plus(x.reshape(-1, x.shape[2]), d.reshape(-1, d.shape[2]))
    return np.asarray(rows).reshape(x.shape)


class _Free(Stepper):
    """A robot whose accelerations are its inputs: motions without dynamics."""

    def acceleration(self, q: Array, v: Array, tau: Array, wrench: Array | None = None) -> Array:
        """The input."""
        return tau

    def linear_acceleration(
        self, q: Array, v: Array, tau: Array, wrench: Array | None = None
    ) -> tuple[Array, Array, Array, Array, Array | None]:
        """The input, and derivatives of it."""
        nv = v.shape[1]
        none = np.zeros((len(q), nv, nv))
        pushed = np.zeros((len(q), nv, 6 * len(self.wrenches))) if self.wrenches else None
        return tau, none, none, np.broadcast_to(np.eye(nv), none.shape), pushed


def free_motion(model: MotionModel, log: Log) -> Any:
    """Smooth the readings under accelerations of any size: what a log tells without a robot's masses.

    Accelerations are independent, with variances from the readings' own; the result is a start, and what torques are
    regressed on. None where it cannot be had, as where no sensor sees where the robot is.
    """
    free, nv = copy(model), model.system.nv
    old = model.stepper
    free.stepper = _Free(model.system, old.dt, "euler", gravity=old.gravity, wrenches=old.wrenches)
    x = _seen(model, log)
    free.Q = np.array(model.Q if model.Q.ndim == 2 else model.Q[0])
    free.Q[:nv, :nv] = np.diag(_spread(model, log, x))
    try:
        found = iterated_kalman_smoother(
            free, log.readings, tau=np.zeros((log.rows.shape[1], nv)), prior=log.given_prior, start=x, tolerance=1e-4
        )
    except KfdynError:
        return None
    return found if np.isfinite(found.x).all() else None


def _seen(model: MotionModel, log: Log) -> Array:
    """First states (batch, N, nx): encoders, interpolated over gaps, and their differences; the prior elsewhere."""
    batch, N = log.rows.shape[:2]
    x = np.tile(log.prior.x0, (batch, N, 1))
    t = np.arange(N)
    nq, dt, points = model.system.nq, model.dt, model.stepper.points
    for sensor, own in zip(model.seen.sensors, model.seen.points_of):
        if not isinstance(sensor, JointPosition):
            continue
        rows = (log.rows[:, :, own] - model.seen.bias[own]) / model.seen.point_factors[own]
        names = model.system.hinge_names if sensor.hinges is None else sensor.hinges
        places = np.concatenate([np.arange(nq)[model.system.q_slice(name)] for name in names])
        for one, given in zip(x, rows):
            for place, column in zip(places, given.T):
                known = ~np.isnan(column)
                if known.any():
                    one[:, place] = np.interp(t, t[known], column[known])
    for point, _ in points.blocks:
        turn = x[:, :, point][:, :, -4:]
        x[:, :, point.stop - 4 : point.stop] = turn / np.linalg.norm(turn, axis=2, keepdims=True)
    for one in x:
        rate = points.minus(one[1:, :nq], one[:-1, :nq]) / dt
        one[1:, nq : nq + model.system.nv] = rate
        one[:1, nq : nq + model.system.nv] = rate[:1]
    return x


def _spread(model: MotionModel, log: Log, x: Array) -> Array:
    """Variances of accelerations: those of the model at rest under the torques, and of its random force."""
    nq, nv = model.system.nq, model.system.nv
    q = np.ascontiguousarray(x[..., :nq].reshape(-1, nq))
    few = q[:: max(1, len(q) // 200)]
    tau = np.asarray(log.inputs).reshape(-1, nv)[:: max(1, len(q) // 200)]
    wrench = np.zeros((len(few), 6 * len(model.wrench_places)))
    a, _, _, Minv, _ = model.stepper.linear_acceleration(
        few, np.zeros((len(few), nv)), np.ascontiguousarray(tau), wrench
    )
    W = model.Q[..., :nv, :nv] if model.Q.ndim == 2 else model.Q[0, :nv, :nv]
    random = np.einsum("rij,jk,rik->i", Minv, W, Minv, optimize=True) / len(few)
    return np.asarray((a**2).mean(axis=0) + random + 1e-6)
