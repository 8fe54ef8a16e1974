"""Plans within limits: a sequence of linear-quadratic problems, each solved by :func:`kfdyn.lqr`."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kfdyn.arrays import Array
from kfdyn.errors import ModelError, ShapeError
from kfdyn.estimation.control.lqr import lqr
from kfdyn.estimation.control.solution import LinearPlan
from kfdyn.motion.model import MotionModel
from kfdyn.multibody import System

_HALVINGS = 12


class Bounds(NamedTuple):
    """Lower and upper limits of torques, velocities and positions, (nv,) each; ±inf for none."""

    torque: tuple[Array, Array]
    velocity: tuple[Array, Array]
    position: tuple[Array, Array]

    @classmethod
    def of(cls, system: System, torque: Any, velocity: Any, position: Any) -> Bounds | None:
        """Limits as :func:`kfdyn.plan_motion` takes them; None where there are none."""
        if all(given is None or given is False for given in (torque, velocity, position)):
            return None
        nv = system.nv
        own = {
            "torque": lambda: (-np.asarray(system.effort), np.asarray(system.effort)),
            "velocity": lambda: (-np.asarray(system.speed), np.asarray(system.speed)),
            "position": lambda: (np.asarray(system.lower), np.asarray(system.upper)),
        }
        parts = []
        for name, given in (("torque", torque), ("velocity", velocity), ("position", position)):
            if given is None or given is False:
                parts.append((np.full(nv, -np.inf), np.full(nv, np.inf)))
                continue
            pair = own[name]() if given is True else given
            if not isinstance(pair, tuple | list) or len(pair) != 2:
                pair = (-np.asarray(pair, np.float64), pair)
            try:
                low, high = (np.broadcast_to(np.asarray(side, np.float64), (nv,)) for side in pair)
            except (TypeError, ValueError):
                raise ShapeError(
                    f"{name}_limits must be True, a number, ({nv},), or a pair (lower, upper) of such"
                ) from None
            if np.isnan(low).any() or np.isnan(high).any() or (low > high).any():
                raise ModelError(f"{name}_limits: a lower limit is above its upper one, or not a number")
            parts.append((low, high))
        if system.nq != nv and np.isfinite(np.concatenate(parts[2])).any():
            raise ModelError("position_limits are for angles and slides; a ball or free hinge has none")
        return cls(*parts)


class Found(NamedTuple):
    """A plan within limits: states, torques, residuals, costates, the last linear problem, and how it was found."""

    x: Array
    w: Array
    readings: Array
    residuals: Array
    costate: Array
    linear: LinearPlan
    cost: list[float]
    converged: bool
    message: str
    iterations: int


def search(
    model: MotionModel, y: Array, x: Array, w: Array, bounds: Bounds, root: Array, most: int, tolerance: float
) -> Found:
    """Minimise within limits from states x (N, ·) and torques w (N − 1, nv); ``root`` is a diagonal factor of W."""
    nv, n, steps = model.system.nv, model.n, len(w)
    motors = np.flatnonzero(root.any(axis=0))
    L = root[:, motors]
    scale = L.max(axis=0)
    R, k = model.R, np.arange(steps + 1)
    exact = np.diag(R) == 0.0
    none, zero = np.zeros_like(w), np.zeros((steps + 1, model.p))
    seen = ~np.isnan(model.residual(y, model.read(x, zero, None, k), k))
    whiten = [_inverse(R, seen[i] & ~exact) for i in range(steps + 1)]

    def look(x: Array, w: Array) -> tuple[float, Array, Array, Array]:
        """Cost, defects, residuals and readings of a trajectory."""
        f = model.advance(x[:-1], w, none, k[:-1])
        h = model.read(x, zero, None, k)
        T = model.residual(y, h, k)
        s = w[:, _rows(L)] / scale
        cost = 0.5 * float((s * s).sum()) + 0.5 * float(
            sum(np.nan_to_num(T[i]) @ whiten[i] @ np.nan_to_num(T[i]) for i in range(steps + 1))
        )
        return cost, np.asarray(model.states.minus(f, x[1:])), T, h

    def violation(x: Array, T: Array) -> float:
        """How far exact goals and limits of states are missed."""
        missed = float(np.abs(np.where(seen & exact, np.nan_to_num(T), 0.0)).sum())
        v = x[1:, model.system.nq :]
        over = np.maximum(bounds.velocity[0] - v, 0).sum() + np.maximum(v - bounds.velocity[1], 0).sum()
        if model.system.nq == nv:
            q = x[1:, :nv]
            over += np.maximum(bounds.position[0] - q, 0).sum() + np.maximum(q - bounds.position[1], 0).sum()
        return missed + float(over)

    w = np.clip(w, *bounds.torque) * root.any(axis=1)
    cost, defects, T, h = look(x, w)
    costs, penalty, last = [cost], 0.0, None
    converged, message, taken = False, f"not converged: stopped after {most} steps", 0
    for taken in range(1, most + 1):
        _, F, B = model.linear_step(x[:-1], w, none, k[:-1])
        h, H, _ = model.linear_read(x, zero, None, k)
        if not model.readings.adds:
            H = np.nan_to_num(model.readings.minus_jacobian(np.where(np.isnan(y), h, y), h)) @ H
        Q, q, goals = np.zeros((steps, n, n)), np.zeros((steps, n)), []
        for i in range(steps):
            part = whiten[i + 1] @ H[i + 1]
            Q[i], q[i] = H[i + 1].T @ part, -part.T @ np.nan_to_num(T[i + 1])
            held = seen[i + 1] & exact
            if held.any():
                goals.append((i, H[i + 1][held], T[i + 1][held]))
        low = np.concatenate([bounds.position[0], bounds.velocity[0]])
        high = np.concatenate([bounds.position[1], bounds.velocity[1]])
        position = x[1:, :nv] if model.system.nq == nv else np.zeros((steps, nv))
        at = np.concatenate([position, x[1:, model.system.nq :]], axis=1)
        box_x = (low - at, high - at) if np.isfinite(low).any() or np.isfinite(high).any() else None
        rows = _rows(L)
        sides = [side[rows] / scale for side in bounds.torque]
        box_u = tuple(sides) if np.isfinite(sides).any() else None
        c = defects - np.einsum("kij,kj->ki", B, w)
        try:
            last = lqr(
                F, B @ L, 0.5 * (Q + Q.swapaxes(1, 2)), np.eye(len(motors)), np.zeros(n), c=c, q=q, goals=goals,
                x_limits=box_x, u_limits=box_u,
                start=last if last is not None and last.warm is not None else None,
            )  # fmt: skip
        except ModelError as error:
            raise ModelError(
                f"the motion, linearised at step {taken} of the search: {error} (x is the deviation of (q, v), u the "
                "torques in units of their deviations; more time, wider limits or another start may help)"
            ) from None
        d, s = last.x, last.u
        aim = s @ L.T
        penalty = max(penalty, 2.0 * float(np.abs(last.costate).max(initial=0.0)), _largest(last))
        size = float(np.abs(d).max(initial=0.0) + np.abs(aim - w).max(initial=0.0) / scale.max())
        here = cost + penalty * (float(np.abs(defects).sum()) + violation(x, T))
        alpha, accepted = 1.0, False
        for _ in range(_HALVINGS):
            moved = x.copy()
            moved[1:] = model.states.plus(x[1:], alpha * d)
            trial = w + alpha * (aim - w)
            with np.errstate(all="ignore"):
                new = look(moved, trial)
                there = new[0] + penalty * (float(np.abs(new[1]).sum()) + violation(moved, new[2]))
            if np.isfinite(there) and there <= here + 1e-10 * (1.0 + abs(here)):
                accepted = True
                break
            alpha *= 0.5
        if not accepted:
            message = (
                f"not converged: no shorter step helps after {taken} steps; begin nearer (start=) or give more time"
            )
            break
        x, w = moved, trial
        cost, defects, T, h = new
        costs.append(cost)
        if size < tolerance:
            converged, message = last.converged, f"converged in {taken} steps"
            break
    assert last is not None
    costate = np.concatenate([np.zeros((1, n)), last.costate])
    return Found(x, w, h, T, costate, last, costs, converged, message, taken)


def _rows(L: Array) -> NDArray[np.intp]:
    """Which torque each control of the linear problem is."""
    return np.argmax(L, axis=0)


def _largest(plan: LinearPlan) -> float:
    """Twice the largest multiplier of goals and limits of states."""
    parts = [np.abs(plan.goal_multipliers).max(initial=0.0)]
    parts += [np.abs(side).max(initial=0.0) for side in plan.limit_multipliers.get("x_limits", ())]
    return 2.0 * float(max(parts))


def _inverse(R: Array, rows: NDArray[np.bool_]) -> Array:
    """R⁻¹ of some rows, 0 for the others."""
    out = np.zeros_like(R)
    if rows.any():
        out[np.ix_(rows, rows)] = np.linalg.inv(R[np.ix_(rows, rows)])
    return out
