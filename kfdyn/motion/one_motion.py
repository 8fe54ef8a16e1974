"""Halves of a filter's step for one motion at a time: the compiled recursions with as little as can be in between.

They are those of :mod:`kfdyn.estimation.nonlinear` for the robots that are followed online most: coordinates that add,
Euler's step, sensors that pick entries of the state. Whatever else a model has goes the general way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from kfdyn.arrays import Array
from kfdyn.estimation.nonlinear.extended import Belief, Corrected, Extended, joint, steps
from kfdyn.estimation.nonlinear.functions import expect_finite_rows, finite
from kfdyn.estimation.nonlinear.recursions.halves import linearly_corrected
from kfdyn.estimation.nonlinear.unscented import SigmaPoints, Unscented, gathered
from kfdyn.estimation.nonlinear.update import Update, cancelled, singular
from kfdyn.motion import recursions

if TYPE_CHECKING:
    from kfdyn.motion.model import MotionModel


class Picked:
    """Updates by sensors that pick entries of x, for one belief."""

    def __init__(self, model: MotionModel) -> None:
        seen = model.seen
        self.picks, self.bias = seen.picks, seen.bias if seen.bias.any() else None
        self.n, self.m = n, m = model.n, seen.points.tangent_size
        self.rooms = np.empty(n * m), np.empty(m * m), np.empty(n * m)
        self.H, self.R = seen.H_picks.reshape(-1), np.ascontiguousarray(model.R).ravel()
        self.no_noise = np.zeros((1, model.p))

    def correct(self, prior: Belief, y: Array, k: int) -> Corrected | None:
        """Take the reading y (1, m) of step k; None for several beliefs, and where digits have cancelled."""
        x, P = prior
        if len(x) > 1:
            return None
        n, m = self.n, self.m
        T = y[0] - x[0].take(self.picks)
        if self.bias is not None:
            T -= self.bias
        seen = T == T
        found, P_plus, D = np.empty((1, n + 2 * m + 2)), np.empty((1, n, n)), np.empty((1, m, m))
        C, L, work = self.rooms
        given = (P.ravel(), self.H, self.R, 0, C, D.reshape(-1), T, seen)
        failed = linearly_corrected(*given, found[0], P_plus.reshape(-1), L, work, n, m, 1)
        if failed >= 0:
            raise singular(D, seen[None], failed, k)
        if cancelled(P, P_plus):
            return None
        step = Update(found, P_plus, D, seen[None])
        return Corrected(Belief(x + found[:, :n], P_plus), self.no_noise, P_plus, step)


def serves(model: MotionModel) -> bool:
    """Tell whether a model is one of these robots."""
    stepper = model.stepper
    adds = not stepper.points.blocks and stepper.method != "rk4"
    return adds and model.seen.only_picks and model.n == 2 * model.p and model.Q.ndim == 2


class OneExtended(Extended):
    """The extended filter's halves."""

    def __init__(self, model: MotionModel) -> None:
        self._picked, self._Q = Picked(model), np.ascontiguousarray(model.Q).reshape(-1)
        self._n, self._nv, self._work = model.n, model.p, np.empty(8 * model.n * model.p)

    def correct(self, model: Any, prior: Belief, y: Array, u: Array | None, k: int) -> Corrected:
        """Take the reading y of step k."""
        found = self._picked.correct(prior, y, k)
        return super().correct(model, prior, y, u, k) if found is None else found

    def predict(self, model: Any, now: Corrected, u: Array | None, k: int) -> Belief:
        """From step k to k + 1."""
        x, P = now.belief
        if len(x) > 1:
            return super().predict(model, now, u, k)
        stepper, n, nv = model.stepper, self._n, self._nv
        flat = x[0]
        a, a_q, a_v, a_in = stepper.linear_acceleration_of_one(flat[:nv], flat[nv:], u[0])  # type: ignore[index]
        x_next, P_next, work = np.empty((1, n)), np.empty((1, n, n)), self._work
        slopes = (a, a_q.ravel(), a_v.ravel(), a_in.ravel())
        before, after = (P.ravel(), self._Q), (x_next[0], P_next.reshape(-1), work)
        if not recursions.euler_predicted(flat, *slopes, *before, *after, stepper.dt, nv, nv):
            expect_finite_rows(x_next, "step", x, steps(k, 1))
        return Belief(x_next, P_next)


class OneUnscented(Unscented):
    """The unscented filter's halves: where readings are linear, sigma points give the moments that matrices give."""

    def __init__(self, model: MotionModel, points: SigmaPoints) -> None:
        super().__init__(points)
        self._picked, self._n, self._nv = Picked(model), model.n, model.p
        d = model.n + model.p
        self._size, self._weights = 2 * d + 1, points.weights(d)
        self._joint, self._zero = joint(np.zeros((1, model.n, model.n)), model.Q), np.zeros((model.n, model.n))

    def correct(self, model: Any, prior: Belief, y: Array, u: Array | None, k: int) -> Corrected:
        """Take the reading y of step k."""
        found = self._picked.correct(prior, y, k)
        return super().correct(model, prior, y, u, k) if found is None else found

    def predict(self, model: Any, now: Corrected, u: Array | None, k: int) -> Belief:
        """From step k to k + 1."""
        x, P = now.belief
        if len(x) > 1 or u is None:
            return super().predict(model, now, u, k)
        stepper, n, nv, size = model.stepper, self._n, self._nv, self._size
        both = self._joint
        both[:, :n, :n] = P
        q, v, tau = np.empty((3, size, nv))
        flat = (q.reshape(-1), v.reshape(-1), tau.reshape(-1))
        recursions.spread_states(x[0], u[0], self.points.offsets(both).reshape(-1), *flat, nv, size)
        a, f = stepper.acceleration(q, v, tau), np.empty((1, size, n))
        recursions.euler_states(*flat[:2], a.reshape(-1), stepper.dt, f.reshape(-1), nv, size)
        if not finite(f):
            expect_finite_rows(f[0], "step", np.concatenate([q, v], axis=1), steps(k, size))
        mean, _, P_next = gathered(f, self._weights, model.states, self._zero)
        return Belief(mean, P_next)
