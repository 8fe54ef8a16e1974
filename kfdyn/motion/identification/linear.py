"""A log, and the model linearised about its motion."""

from __future__ import annotations

from copy import copy
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from kfdyn.arrays import Array
from kfdyn.errors import ModelError
from kfdyn.estimation.flat.prior import finite_model
from kfdyn.estimation.inference.filter import kalman_filter
from kfdyn.estimation.inference.score import score_of
from kfdyn.estimation.inference.scored import Score
from kfdyn.estimation.inference.smoother import bryson_frazier
from kfdyn.estimation.nonlinear.trajectory import Linearised, Step, Trajectory
from kfdyn.motion.identification.effects import Rows
from kfdyn.motion.model import MotionModel

WIDE = 1e6  #: variances in place of infinite ones, in those that a filter ends with: a millionth of what is known


class Log:
    """Readings and torques of one run, or of several of one length, as the smoother takes them; checked.

    Parameters
    ----------
    model : MotionModel
        Its sensors and its step.
    readings, tau, prior
        As :func:`kfdyn.identify` takes them.
    """

    def __init__(self, model: MotionModel, readings: Any, tau: Any, prior: Any) -> None:
        self.readings, self.tau, self.given_prior = readings, tau, prior
        self.rows, self.batched = model.check_readings(readings)
        if self.rows.shape[1] < 2:
            raise ModelError("a log of one row has no step; give two rows or more")
        if np.isnan(self.rows).all():
            raise ModelError("the log has no readings: all entries are NaN")
        self.inputs = model.check_inputs(None, len(self.rows), self.rows.shape[1], tau=tau)
        self.prior = model.check_prior(prior)
        if self.batched and self.prior.flat.any():
            raise ModelError(
                "several logs in one array need a prior that is not flat; give prior=(q0, v0, P0) with finite "
                "variances, or lists of models, readings and torques, one a log"
            )

    def same(self, other: Log) -> bool:
        """Compare readings and torques with those of another."""
        pairs = ((self.rows, other.rows), (np.asarray(self.inputs), np.asarray(other.inputs)))
        return all(a.shape == b.shape and np.array_equal(a, b, equal_nan=True) for a, b in pairs)

    def part(self, steps: int) -> Log:
        """Its first steps."""
        out = copy(self)
        out.rows, out.inputs = self.rows[:, :steps], np.asarray(self.inputs)[:, :steps]
        return out

    def near(self, model: MotionModel, motion: Motion, wide: float = WIDE) -> Log:
        """The same with a wide prior about where a motion begins in place of a flat one."""
        prior = self.prior
        assert motion.variances is not None
        P0 = prior.P0 + np.diag(np.where(prior.flat, wide * motion.variances[0], 0.0))
        x0 = motion.x[0, 0]
        if not prior.flat.all():  # what the prior knows stays
            d = np.where(prior.flat, 0.0, np.asarray(model.states.minus(prior.x0[None], x0[None])))
            x0 = np.asarray(model.states.plus(x0[None], d))[0]
        out = copy(self)
        out.prior = prior._replace(x0=x0, P0=P0, flat=np.zeros_like(prior.flat))
        return out

    def problem(self, model: MotionModel) -> Trajectory:
        """The smoothing problem of a model of this log."""
        return Trajectory(model, self.rows, self.inputs, self.prior, None, "block")


class Motion(NamedTuple):
    """States (batch, N, nx), random forces (batch, N−1 or N, p), and typical variances (batch, n) of a filter there."""

    x: Array
    w: Array
    variances: Array | None = None


class Plain(NamedTuple):
    """Entries of readings that add: places among points, and among tangents."""

    points: Any
    tangents: Any


class Linear:
    """A model linearised about a motion that is held.

    Parameters
    ----------
    model : MotionModel
        The model.
    log : Log
        Its readings.
    motion : Motion
        Where.
    point : Linearised, optional
        The Jacobians, where they are known: covariances do not change them.
    """

    def __init__(self, model: MotionModel, log: Log, motion: Motion, point: Linearised | None = None) -> None:
        self.model, self.log, self.motion = model, log, motion
        self.problem = log.problem(model)
        self.point = self.problem.linearise(motion.x, motion.w) if point is None else point

    @cached_property
    def state_space(self) -> tuple[Any, Array]:
        """The engine's model and its measurements."""
        ss, T = self.problem._state_space(self.point, None, None)
        if ss.flat is not None and self.motion.variances is not None:  # known, so that the engine need not look for it
            s = np.zeros((self.problem.N, self.problem.size))
            s[0, : self.problem.n] = np.where(self.log.prior.flat, np.sqrt(self.motion.variances[0]), 0.0)
            ss._cache["flat"] = finite_model(ss, s.ravel())
        return ss, T

    @cached_property
    def smooth(self) -> Any:
        """The engine's smoother."""
        ss, T = self.state_space
        return bryson_frazier(kalman_filter(ss, T), covariances=False)

    @property
    def llf(self) -> float:
        """Log-likelihood, of all runs."""
        return float(np.sum(self.smooth.filt.llf))

    @cached_property
    def score(self) -> Score:
        """The engine's score."""
        return score_of(self.smooth)

    @property
    def step(self) -> Step:
        """The Gauss–Newton step from here."""
        return self.problem.step_of(self.point, self.smooth)

    def release(self) -> None:
        """Forget the engine's covariances, which refer back to the model."""
        if "state_space" in self.__dict__:
            self.state_space[0]._cache.clear()

    def responses(self, xi: Array, T: Array) -> tuple[Array, Array, Array]:
        """λ, a and the motion's tangent for several right-hand sides (p, Σn), (p, Σm)."""
        ss, measured = self.state_space
        seen = np.where(np.isnan(measured), np.nan, T)
        smooth = bryson_frazier(kalman_filter(ss, seen, xi), covariances=False)
        return smooth.costate.flat, np.asarray(smooth.a), smooth.x.flat

    # --- along the motion, all rows

    @cached_property
    def _apart(self) -> tuple[Array, Array, Array]:
        return self.model._apart(self.motion.x.reshape(-1, self.motion.x.shape[2]))

    @property
    def q(self) -> Array:
        """Configurations (rows, nq)."""
        return self._apart[0]

    @property
    def v(self) -> Array:
        """Velocities (rows, nv)."""
        return self._apart[1]

    @cached_property
    def w(self) -> Array:
        """Random forces of all steps (batch, N, p), 0 at the last where it has none."""
        w, N = self.motion.w, self.problem.N
        if w.shape[1] == N:
            return w
        return np.concatenate([w, np.zeros((len(w), 1, w.shape[2]))], axis=1)

    @cached_property
    def wrench(self) -> Array:
        """External forces (rows, 6 each)."""
        rest = self._apart[2]
        return rest[:, rest.shape[1] - 6 * len(self.model.wrench_places) :]

    @cached_property
    def acceleration(self) -> tuple[Array, Array, Array, Array, Array | None]:
        """a, a_q, a_v, 𝓜⁻¹ and ∂a/∂wrench of all rows."""
        tau = self.model._forces(self.w.reshape(-1, self.w.shape[2]), self._torques())
        return self.model.stepper.linear_acceleration(self.q, self.v, tau, self.wrench)

    def _torques(self) -> Array:
        return np.asarray(self.log.inputs).reshape(-1, self.model.system.nv)

    @property
    def rows(self) -> Rows:
        """States and accelerations, for effects."""
        return Rows(self.model.stepper, self.q, self.v, self.acceleration[0], self.model.g)

    @cached_property
    def edge_rows(self) -> Any:
        """Rows that a step leaves from."""
        problem = self.problem
        return np.arange(problem.batch * problem.N).reshape(problem.batch, -1)[:, :-1].ravel()

    @property
    def defects(self) -> Array:
        """Defects of all steps, (edges, n)."""
        return self.point.at.defects.reshape(-1, self.problem.n)

    @cached_property
    def plain(self) -> Plain:
        """Entries of readings that add."""
        points = self.model.seen.points
        return Plain(points._points, points._tangents)

    @property
    def biased(self) -> Array:
        """Sum of the biases of the readings, constant and walking, (rows, my)."""
        model = self.model
        out = np.zeros((len(self.q), model.seen.points.size))
        x = self.motion.x.reshape(len(out), -1)
        return model._biased(out, x) + model.seen.bias
