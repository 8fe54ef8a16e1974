"""The problem behind a plan: torques in, states by the robot's own step, what they cost, and how all of it bends."""

from __future__ import annotations

from copy import copy
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kfdyn.arrays import Array
from kfdyn.errors import ShapeError
from kfdyn.estimation.nonlinear.functions import finite
from kfdyn.estimation.nonlinear.trajectory import squares
from kfdyn.motion.model import MotionModel
from kfdyn.motion.planning.limits import Bounds
from kfdyn.motion.planning.recursions.curvature import accelerations_pulled
from kfdyn.multibody import System
from kfdyn.multibody.calls.kernel import Kernel
from kfdyn.multibody.calls.packed_model import model_of
from kfdyn.multibody.coordinates.configuration import REACH_TOLERANCE

Index = NDArray[np.intp]

ROLLOUT = Kernel("kfdyn.motion.planning.recursions.rollout", "ROLLOUT")

#: Step of the differences by which derivatives are differentiated: their error slows the last steps, it is not in the
#: plan, whose conditions of optimality have exact derivatives.
NUDGE = 1e-6
#: A variance below this part of a sensor's largest is exact.
EXACT = 1e-14
#: A state beyond this is that of a motion that has exploded; such a row stays where it was, and its cost tells.
FAR = 1e6


class Point(NamedTuple):
    """Plans somewhere on the way: states (P, N + 1, nx), controls (P, N, p), and what these lead to.

    Attributes
    ----------
    x, s : array
        States, and controls: torques in units of their deviations, τ = L s.
    cost : array, shape (P,)
        ½ Σ s*s + ½ Σ soft residuals, whitened, squared.
    gaps : array, shape (P, N, n)
        f(x(k), s(k)) ⊖ x(k + 1); 0 for a motion.
    T : array, shape (P, G, m)
        Residuals goal ⊖ reading along the principal axes of the covariances, at the steps that have goals, 0 where
        there is none.
    """

    x: Array
    s: Array
    cost: Array
    gaps: Array
    T: Array


class Linear(NamedTuple):
    """Derivatives at a point: F, B of steps in (x, s), C of residuals with a minus; and where the steps lead."""

    F: Array
    B: Array
    C: Array
    ahead: Array


class Shooting:
    """Plans of one robot from states ``x0`` (P, nx) to readings ``y`` (P, N + 1, m), NaN where there is no goal.

    Parameters
    ----------
    model : MotionModel
        The robot, its step, and the sensors of the goals.
    y, x0 : array
        Goals and starts.
    root : array, shape (nv, p)
        L with L L* = W: a hinge without a motor has a row of zeros.
    bounds : Bounds
        Limits.
    batched : bool
        Whether callers think of them as several, though there may be one.
    """

    def __init__(
        self, model: MotionModel, y: Array, x0: Array, root: Array, bounds: Bounds, batched: bool = False
    ) -> None:
        self.model, self.x0, self.root, self.bounds = model, x0, np.ascontiguousarray(root), bounds
        self.batched = batched
        self.low, self.high = bounds.controls(self.root)
        self.on_torques, self.on_states = bounds.on_torques, bounds.on_states
        self.plans, self.steps = y.shape[0], y.shape[1] - 1
        self.n, self.nx, self.p = model.n, x0.shape[1], root.shape[1]
        self.at: Index = np.flatnonzero(~np.isnan(y).all(axis=(0, 2)))
        self.y = y[:, self.at]
        self.axes, variance = _principal(model)
        self.exact, self.turned = variance == 0.0, bool((self.axes != np.eye(len(self.axes))).any())
        self.weight = np.where(self.exact, 0.0, 1.0 / np.sqrt(np.where(self.exact, 1.0, variance)))
        start = np.broadcast_to(x0[:, None], (self.plans, len(self.at), self.nx)).reshape(-1, self.nx)
        T = model.residual(self._rows(self.y), self._read(start), self._k(self.at, self.plans))
        seen = ~np.isnan(T).reshape(self.plans, len(self.at), -1)
        self.seen = np.abs(self.axes.T) @ np.swapaxes(seen, 1, 2) > 0.5
        self.seen = np.swapaxes(self.seen, 1, 2)
        self.bends = bool(model.seen.points.blocks) or not model.seen.only_picks
        self.straight = None if self.bends else self._slopes_of_goals(start)
        diagonal = self.n == 2 * self.p and not np.count_nonzero(self.root - np.diag(np.diag(self.root)))
        self.scale = np.diag(self.root).copy() if diagonal else None  # all of L, where it is diagonal

    def only(self, which: Index) -> Shooting:
        """Some of the plans."""
        part = copy(self)
        part.x0, part.y, part.seen, part.plans = self.x0[which], self.y[which], self.seen[which], len(which)
        part.straight = None if self.straight is None else self.straight[which]
        return part

    # --- rows: all plans and steps at once

    @staticmethod
    def _rows(x: Array) -> Array:
        return np.ascontiguousarray(x.reshape(-1, x.shape[-1]))

    @staticmethod
    def _k(steps: Index, times: int) -> Any:
        return np.tile(np.asarray(steps, np.int64), times)

    def _read(self, rows: Array) -> Array:
        none = np.zeros((len(rows), self.model.p))
        return np.asarray(self.model.read(rows, none, None, np.zeros(len(rows), np.int64)))

    def torques(self, s: Array) -> Array:
        """τ = L s."""
        return np.asarray(s @ self.root.T if self.scale is None else s * self.scale)

    def advance(self, x: Array, s: Array) -> Array:
        """States after a step, rows."""
        return np.asarray(self.model.advance(x, self.torques(s), None, np.zeros(len(x), np.int64)))

    def controls_along(self, x: Array) -> Array:
        """Controls that come nearest to moving along states, whose gaps they leave where no motor can close them."""
        rows = len(x) * self.steps
        none = np.zeros((rows, self.p))
        at, ahead = self._rows(x[:, :-1]), self._rows(x[:, 1:])
        drift, _, B = self.model.linear_step(at, self.torques(none), none @ self.root.T, np.zeros(rows, np.int64))
        nv = self.model.system.nv
        away = np.asarray(self.model.states.minus(ahead, drift))[:, nv:, None]
        s = np.linalg.pinv(B[:, nv:, :nv] @ self.root) @ away
        return np.asarray(s.reshape(len(x), self.steps, self.p))

    # --- a point

    def point(self, x: Array, s: Array, gaps: Array | None = None) -> Point:
        """Evaluate states and controls; compute the gaps if they are not known."""
        if gaps is None:
            gaps = self.gaps(x, self.advance(self._rows(x[:, :-1]), self._rows(s)))
        T = self.residuals(x)
        return Point(x, s, self._cost(s, T), gaps, T)

    def residuals(self, x: Array, which: Any = slice(None)) -> Array:
        """T along the principal axes, (plans, G, m), of the plans ``which``."""
        at, y, seen = x[:, self.at], self.y[which], self.seen[which]
        if self.bends:
            T = self.model.residual(self._rows(y), self._read(self._rows(at)), self._k(self.at, len(x)))
            T = T.reshape(y.shape[0], len(self.at), -1)
        else:
            T = y - at.take(self.model.seen.picks, axis=2) - self.model.seen.bias
        return np.where(seen, np.nan_to_num(T) @ self.axes if self.turned else T, 0.0)

    def _cost(self, s: Array, T: Array) -> Array:
        return 0.5 * (squares(s) + squares(self.weight * T))

    def linear(self, point: Point) -> Linear:
        """Derivatives of steps and residuals."""
        x, N, n = point.x, self.steps, self.n
        rows, tau = self._rows(x[:, :-1]), self.torques(self._rows(point.s))
        ahead, F, B = self.model.linear_step(rows, tau, None, np.zeros(len(rows), np.int64))
        B = self._by_controls(B)
        C = self.straight
        if C is None:
            C = self._slopes_of_goals(self._rows(x[:, self.at]))
        return Linear(F.reshape(-1, N, n, n), B.reshape(-1, N, n, self.p), C, ahead)

    def _by_controls(self, B: Array) -> Array:
        """Derivatives in controls, of those in torques: B L."""
        if self.scale is None:
            return B @ self.root
        return B * self.scale

    def gaps(self, x: Array, ahead: Array) -> Array:
        """Return the gaps, steps ⊖ the states that follow, (plans, N, n)."""
        gaps = np.asarray(self.model.states.minus(ahead, self._rows(x[:, 1:])))
        return gaps.reshape(len(x), self.steps, self.n)

    def _slopes(self, x: Array, y: Array) -> Array:
        """−∂T/∂x along the principal axes, rows."""
        none, k = np.zeros((len(x), self.model.p)), np.zeros(len(x), np.int64)
        h, H, _ = self.model.linear_read(x, none, None, k)
        return np.asarray(self.axes.T @ self.model.readings.turn(y, h, H))

    def _slopes_of_goals(self, x: Array) -> Array:
        """The same (P, G, m, n) at states (P G, nx) of steps with goals, 0 where there is none."""
        C = self._slopes(x, self._rows(self.y))
        return np.asarray(C.reshape(*self.seen.shape, self.n) * self.seen[..., None])

    # --- curvature

    def curvature(self, point: Point, costate: Array, pull: Array, curved: NDArray[np.bool_]) -> tuple[Array, Array]:
        """Second derivatives of Σ p(k+1)·f(x, s) − pull·T: in x twice (P, N + 1, n, n), in s and x (P, N, p, n).

        Those of the plans that are ``curved``, 0 for the others. Derivatives of the derivatives by differences,
        symmetrised: on a manifold what is left is the second derivative along the exponential map. ``costate`` is p
        (P, N, n) of steps 1 … N, ``pull`` (P, G, m) what residuals pull by.
        """
        N, n, p, times = self.steps, self.n, self.p, self.n + 1
        xx, sx = np.zeros((self.plans, N + 1, n, n)), np.zeros((self.plans, N, p, n))
        for i in np.flatnonzero(curved):
            x, tau = self._nudged(point.x[i, :-1]), np.repeat(self.torques(point.s[i]), times, axis=0)
            bent = _differences(self._steps_pulled(x, tau, costate[i]), times)
            xx[i, :-1], sx[i] = bent[..., :n], np.swapaxes(bent[..., n:], 1, 2)
            if self.bends:
                C = self._slopes(self._nudged(point.x[i, self.at]), np.repeat(self.y[i], times, axis=0))
                pulls = np.repeat(pull[i] * self.seen[i], times, axis=0)[:, None]
                xx[i, self.at] -= _differences((pulls @ C)[:, 0], times)
        return 0.5 * (xx + np.swapaxes(xx, 2, 3)), sx

    def _nudged(self, x: Array) -> Array:
        """Each row as it is, and moved along each tangent axis, (rows (n + 1), nx)."""
        nudges = np.concatenate([np.zeros((1, self.n)), NUDGE * np.eye(self.n)])
        rows = np.repeat(x, len(nudges), axis=0)
        return np.ascontiguousarray(self.model.states.plus(rows, np.tile(nudges, (len(x), 1))))

    def _steps_pulled(self, x: Array, tau: Array, costate: Array) -> Array:
        """p*[F, B] of rows of states, as many for each p (steps, n): but for what is the same in all of these."""
        stepper, nv, times = self.model.stepper, self.model.system.nv, len(x) // len(costate)
        if stepper.method == "rk4" or stepper.points.blocks:
            _, F, B = self.model.linear_step(x, tau, None, np.zeros(len(x), np.int64))
            costates = np.repeat(costate, times, axis=0)[:, None]
            return np.concatenate([(costates @ F)[:, 0], (costates @ B)[:, 0] @ self.root], axis=1)
        q, v = (np.ascontiguousarray(part) for part in (x[:, :nv], x[:, nv:]))
        _, *slopes, _ = stepper.linear_acceleration(q, v, tau)
        pulls = stepper.dt * (stepper.dt * costate[:, :nv] + costate[:, nv:])  # on accelerations
        out = np.empty((len(x), 3 * nv))
        accelerations_pulled(*(part.ravel() for part in (*slopes, pulls)), out.reshape(-1), nv, times, len(costate))
        return np.concatenate([out[:, : 2 * nv], out[:, 2 * nv :] @ self.root], axis=1)

    # --- motions without a search, and under a feedback law

    def moved(self, point: Point, dx: Array, ds: Array) -> tuple[Array, Array]:
        """States and controls a step further."""
        x = point.x.copy()
        x[:, 1:] = self.model.states.plus(self._rows(x[:, 1:]), self._rows(dx)).reshape(x[:, 1:].shape)
        return x, np.clip(point.s + ds, self.low, self.high)

    def rollout(
        self, point: Point, which: Index, alpha: Array, shift: Array, gains: Array
    ) -> tuple[Array, Array, Array]:
        """Motions from the start under s = s̄ + α shift + K (x ⊖ x̄), within the limits of torques; gaps shrink by 1 − α.

        ``which`` (rows,) says which plan a row is of, with its ``alpha``; returns states, controls and gaps.
        """
        gaps = (1.0 - alpha)[:, None, None] * point.gaps[which]
        if self._compiles:
            x, s = self._compiled_rollout(point, which, alpha, shift, gains)
        else:
            x, s = self._rollout(point, which, alpha, shift, gains, gaps)
        if not (np.abs(x).max() < FAR and finite(s)):
            lost = ~((np.abs(x) < FAR).all(axis=(1, 2)) & np.isfinite(s).all(axis=(1, 2)))
            x[lost], s[lost] = point.x[which[lost]], np.inf
        return x, s, gaps

    @cached_property
    def _compiles(self) -> bool:
        """True if the robot and its step are those of compiled rollouts."""
        stepper = self.model.stepper
        simple = stepper.method != "rk4" and not (stepper.K.any() or stepper.mu.any() or stepper.wrenches)
        return simple and stepper.moved.kind == "tree"

    @cached_property
    def _for_rollouts(self) -> tuple[System, list[Array], Array]:
        """The tree that moves, what stays of a compiled rollout's arguments, and gravity."""
        stepper, nv = self.model.stepper, self.model.system.nv
        tree, drag = stepper.moved, np.zeros(nv) if stepper.drag is None else stepper.drag
        reach = model_of(tree).left_inverse, np.array([REACH_TOLERANCE])
        known = [np.array([self.model.dt]), drag, self.root, self.low, self.high, *reach]
        return tree, known, np.ascontiguousarray(self.model.g, np.float64)

    def _compiled_rollout(
        self, point: Point, which: Index, alpha: Array, shift: Array, gains: Array
    ) -> tuple[Array, Array]:
        """Roll out by Euler steps of robots without couplings."""
        (nq, nv), N, rows = (self.model.system.nq, self.model.system.nv), self.steps, len(which)
        split = (*gains.shape[:-1], 2, nv)
        law: Any = point.x[:, :-1], point.s, shift, gains.reshape(split), point.gaps.reshape(-1, N, 2, nv)
        if self.plans == 1:  # one plan's law stands for all its rows
            law = [part[0] for part in law]
        elif rows != self.plans or (which != np.arange(rows)).any():
            law = [part[which] for part in law]
        law = [np.ascontiguousarray(part) for part in law]
        x0 = self.x0[which]
        start = np.ascontiguousarray(x0[:, :nq]), np.ascontiguousarray(x0[:, nq:])
        x, s = np.empty((rows, N + 1, self.nx)), np.empty((rows, N, self.p))
        tree, known, gravity = self._for_rollouts
        status = ROLLOUT(
            tree, rows, N, N + 1, self.nx, self.p, *known, *start, alpha, *law, None, gravity, x, s, effort=N
        )
        if status < 0:
            raise ShapeError("a rollout's arrays do not fit; this is a bug")
        return x, s

    def _rollout(
        self, point: Point, which: Index, alpha: Array, shift: Array, gains: Array, gaps: Array
    ) -> tuple[Array, Array]:
        """Roll out by steps of all kinds."""
        rows = len(which)
        x, s = np.empty((rows, self.steps + 1, self.nx)), np.empty((rows, self.steps, self.p))
        x[:, 0] = self.x0[which]
        states, left = self.model.states, np.abs(gaps).max(axis=(0, 2), initial=0.0) > 0.0
        lost = np.zeros(rows, bool)
        with np.errstate(all="ignore"):
            for k in range(self.steps):
                away = states.minus(x[:, k], point.x[which, k])
                moved = point.s[which, k] + alpha[:, None] * shift[which, k]
                s[:, k] = np.clip(moved + (gains[which, k] @ away[:, :, None])[:, :, 0], self.low, self.high)
                ahead = self.advance(np.ascontiguousarray(x[:, k]), s[:, k])
                x[:, k + 1] = states.plus(ahead, -gaps[:, k]) if left[k] else ahead
                lost |= ~(np.abs(x[:, k + 1]) < FAR).all(axis=1)
                x[lost, k + 1] = x[lost, k]
        s[lost] = np.inf
        return x, s


def _differences(rows: Array, times: int) -> Array:
    """Derivatives of rows (steps times, ·) along the nudges of all but the first of each step."""
    each = rows.reshape(-1, times, rows.shape[-1])
    return np.asarray((each[:, 1:] - each[:, :1]) / NUDGE)


def _principal(model: MotionModel) -> tuple[Array, Array]:
    """Principal axes of the sensors' covariances, (m, m), a block a sensor, and the variances along them."""
    axes, variance = np.eye(len(model.R)), np.diag(model.R).copy()
    for own in model.seen.tangents_of:
        block = model.R[own, own]
        if np.count_nonzero(block - np.diag(np.diag(block))):
            values, axes[own, own] = np.linalg.eigh(block)
            variance[own] = np.where(values > EXACT * values.max(), values, 0.0)
    return axes, variance
