"""Limits C x ≤ d and E u ≤ e by a primal–dual interior point: each step is a robot with heavier rotors and bodies."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kfdyn.arrays import Array
from kfdyn.errors import KfdynError, ModelError, ShapeError
from kfdyn.estimation.control.goals import Rows, Solved, choice_left, solve
from kfdyn.estimation.control.problem import Problem
from kfdyn.estimation.model.blocks import real_array
from kfdyn.estimation.model.state_space import StateSpace

MOST_STEPS = 100
#: Gaps s z, relative to the numbers that make them up, from which on the interior point tells which limits are active;
#: exact rows do the rest, without weights z/s that leave R + B*PB no digits.
READY = 1e-5
#: Multipliers this much larger than the cost's own slopes say that nothing is feasible.
HOPELESS = 1e9
#: Where the interior point ends with limits broken by more than this part of their size, no plan keeps them.
MISSED = 1e-6
#: A limited number of whose variance exact goals leave less than this part is decided by them.
DECIDED = 1e-10
#: A predictor that can go less far than this has lost the middle of the limits.
TIMID = 0.1
#: How often the set of active limits may be corrected.
CORRECTIONS = 12


class Limits(NamedTuple):
    """Rows C(k) x(k) ≤ d(k) and E(k) u(k) ≤ e(k); d and e are infinite where there is no limit.

    Attributes
    ----------
    C, E : array, shape (N, p, n), (N, s, m)
        Coefficients: the unit matrix and its negative for boxes, then the rows that were given.
    d, e : array, shape (N, p), (N, s)
        Right-hand sides.
    """

    C: Array
    E: Array
    d: Array
    e: Array

    def residuals(self, x: Array, u: Array) -> Array:
        """Return what is left to each limit, d − C x and e − E u, one after the other; infinite where there is none."""
        return np.concatenate(
            [
                (self.d - np.einsum("kpn,kn->kp", self.C, x)).ravel(),
                (self.e - np.einsum("ksm,km->ks", self.E, u)).ravel(),
            ]
        )

    def split(self, flat: Array) -> tuple[Array, Array]:
        """Numbers of all limits as those of states and of controls."""
        return flat[: self.d.size].reshape(self.d.shape), flat[self.d.size :].reshape(self.e.shape)

    @property
    def known(self) -> NDArray[np.bool_]:
        """The mask of limits that are there."""
        return np.isfinite(np.concatenate([self.d.ravel(), self.e.ravel()]))

    @property
    def right(self) -> Array:
        """All right-hand sides."""
        return np.concatenate([self.d.ravel(), self.e.ravel()])


def bind_limits(problem: Problem, x_limits: Any, u_limits: Any, x_rows: Any, u_rows: Any) -> Limits | None:
    """Check the limits of :func:`kfdyn.lqr`; None where there are none."""
    if x_limits is None and u_limits is None and x_rows is None and u_rows is None:
        return None
    ss = problem.ss
    n, m = ss.common.n, ss.common.m
    if n is None or m is None:
        raise ShapeError("limits need steps of one size each in states and controls; pad the smaller ones")
    if problem.x0.ndim > 1 or problem.c.ndim > 1 or problem.q.ndim > 1 or problem.r.ndim > 1:
        raise ShapeError("limits are for one problem at a time: each has weights of its own; call lqr for each")
    if np.isnan(problem.r).any():
        raise ModelError("r is NaN, a failed actuator, beside limits; leave that control's column of B out")
    if problem.shift is not None:
        raise ModelError("limits beside cross terms N are not served; add the state of the step before to the state")
    count = len(ss)
    C, d = _side(count, n, x_limits, x_rows, "x")
    E, e = _side(count, m, u_limits, u_rows, "u")
    return Limits(C, E, d, e)


def _side(count: int, size: int, box: Any, rows: Any, name: str) -> tuple[Array, Array]:
    """Rows and right-hand sides of the limits on states or on controls."""
    C, d = [], []
    if box is not None:
        try:
            low, high = box
        except (TypeError, ValueError):
            raise ShapeError(f"{name}_limits must be a pair (lower, upper), of numbers, (size,) or (N, size)") from None
        for sign, side, word in ((1.0, high, "upper"), (-1.0, low, "lower")):
            value = np.inf if side is None else sign * real_array(side, f"{name}_limits")
            try:
                value = np.broadcast_to(value, (count, size))
            except ValueError:
                raise ShapeError(
                    f"the {word} {name}_limits have shape {np.shape(side)}; give a number, ({size},) or "
                    f"({count}, {size})"
                ) from None
            if np.isnan(value).any() or (value == -np.inf).any():
                raise ModelError(f"the {word} {name}_limits have an entry that no number keeps; use ±inf for no limit")
            C.append(np.broadcast_to(sign * np.eye(size), (count, size, size)))
            d.append(value)
        if (d[0] + d[1] < 0).any():
            k, i = np.argwhere(d[0] + d[1] < 0)[0]
            raise ModelError(f"{name}_limits of step {k}, entry {i}: the lower limit is above the upper one")
    if rows is not None:
        try:
            matrix, right = (real_array(part, f"{name}_rows") for part in rows)
            matrix = np.broadcast_to(matrix, (count, *matrix.shape[-2:]))
            right = np.broadcast_to(right, matrix.shape[:2])
        except (TypeError, ValueError):
            raise ShapeError(
                f"{name}_rows must be a pair (C, d) for C {name} ≤ d: C (p, {size}) or (N, p, {size})"
            ) from None
        if matrix.shape[2] != size:
            raise ShapeError(f"{name}_rows: C has {matrix.shape[2]} columns, but {name} has size {size}")
        if not np.isfinite(matrix).all() or np.isnan(right).any() or (right == -np.inf).any():
            raise ModelError(f"{name}_rows have an entry that is not finite; d may be inf for no limit")
        C.append(matrix)
        d.append(right)
    if not C:
        return np.zeros((count, 0, size)), np.zeros((count, 0))
    return np.concatenate(C, axis=1), np.concatenate(d, axis=1)


class Limited(NamedTuple):
    """A plan within limits: solved with the active ones as rows, multipliers of all, and how it was found."""

    solved: Solved
    rows: Rows
    multipliers: Array
    iterations: int
    converged: bool
    message: str
    slack: Array


def solve_within(problem: Problem, goals: Rows, limits: Limits, warm: tuple[Array, Array] | None) -> Limited:
    """Minimise within limits: Mehrotra's predictor and corrector, then the active limits as exact rows.

    A limit on what exact goals decide has no inside to go through. It is looked at once, and left out. ``warm``, slacks
    and multipliers of a like problem, tells which limits to hold at first, and else where to begin.
    """
    ss = problem.ss
    xi, eta, T = problem.inputs
    states, controls = limits.C.shape[2], limits.E.shape[2]
    free = solve(ss, xi, eta, T, goals)
    x, u = _apart(free, len(ss), states, controls)
    left = limits.residuals(x, u)
    if (left[limits.known] >= 0).all():
        return Limited(free, Rows.none(ss), np.zeros(left.size), 0, True, "no limit is active", left)
    scale = _sizes(limits, left)
    decided = _decided(ss, limits, goals, free)
    broken = np.flatnonzero(decided & (left < -MISSED * scale))
    if broken.size:
        raise _not_kept(limits, broken, -left[broken] / scale[broken])
    limits = limits._replace(d=limits.split(np.where(decided, np.inf, limits.right))[0])
    known, right = limits.known, limits.right
    left = np.where(decided, np.inf, left)
    if (left[known] >= 0).all():
        return Limited(free, Rows.none(ss), np.zeros(left.size), 0, True, "no limit is active", left)
    bound = scale[known]
    weight = _slopes(problem, limits, free, left)
    if warm is not None and warm[0].shape == known.shape:
        if (known & (warm[0] == 0.0)).any():
            found = _held(problem, goals, limits, scale, known & (warm[0] == 0.0), 0)
            if found is not None:
                return found
        s, z = np.maximum(warm[0][known], 1e-3 * bound), np.maximum(warm[1][known], 1e-3 * weight)
    else:
        s, z = np.maximum(left[known], bound), np.full(known.sum(), weight)
    right = right[known]
    message = f"not converged in {MOST_STEPS} steps of the interior point"
    kept, ready = free, READY
    for steps in range(1, MOST_STEPS + 1):
        middle = float(s @ z) / s.size
        try:
            heavier = _heavier(ss, limits, _spread(z / s, known))
            aimed, correction = 0.0, np.zeros(s.size)
            for stage in range(2):  # predictor, then corrector with the same weights
                press = z + (aimed - correction) / s - z / s * right
                kept = solve(heavier, *_pressed(limits, xi, eta, T, _spread(press, known)), goals)
                x, u = _apart(kept, len(ss), states, controls)
                ds = limits.residuals(x, u)[known] - s
                dz = (aimed - correction - z * ds) / s - z
                if stage == 0:
                    most = min(_longest(s, ds), _longest(z, dz))
                    ahead = float((s + most * ds) @ (z + most * dz)) / s.size
                    aimed, correction = (ahead / middle) ** 3 * middle, ds * dz
                    if most < TIMID:  # far from the middle of the limits: back to it first
                        aimed, correction = max(aimed, 0.5 * middle), np.zeros(s.size)
        except KfdynError:  # z/s has left R + B*PB, or the goals, no digits
            message = f"not converged: {steps} steps of the interior point have used up the digits of the weights"
            break
        step = min(1.0, 0.995 * _longest(s, ds), 0.995 * _longest(z, dz))
        s, z = s + step * ds, z + step * dz
        if z.max() > HOPELESS * weight:
            break
        gap = float((s * z).max()) / (float(z.max()) * float(bound.max()))
        if gap < ready:
            found = _held(problem, goals, limits, scale, _spread(z, known) > _spread(s, known) * _balance(s, z), steps)
            if found is not None:
                return found
            ready = 0.1 * gap  # not yet clear; asked again when the gap is smaller
    if float((np.abs(ds) / bound).max()) > MISSED:
        raise _not_kept(limits, np.flatnonzero(known), z)
    return Limited(kept, Rows.none(ss), _spread(z, known), steps, False, message, _spread(s, known))


def _not_kept(limits: Limits, places: NDArray[np.int64], z: Array) -> ModelError:
    """An error that names the limits that press most."""
    names = _named(limits, places, z)
    cure = "cannot be kept together; widen one" if " and " in names else "cannot be kept; widen it"
    return ModelError(f"no plan keeps all limits: {names} {cure}, or the goals")


def _decided(ss: StateSpace, limits: Limits, goals: Rows, free: Solved) -> NDArray[np.bool_]:
    """The mask of limits of states on what exact goals leave no choice."""
    out = np.zeros(limits.d.size + limits.e.size, bool)
    if free.responses is not None:
        out[: limits.d.size] = (choice_left(ss, goals, free.responses, limits.C) <= DECIDED).ravel()
    return out & limits.known


def _held(
    problem: Problem, goals: Rows, limits: Limits, scale: Array, active: NDArray[np.bool_], steps: int
) -> Limited | None:
    """Hold the limits that are active, and correct the set until all signs agree; None where they never do.

    A control at its bound is held there, like a locked hinge; other limits become exact rows.
    """
    ss, known = problem.ss, limits.known
    xi, eta, T = problem.inputs
    states, controls = limits.C.shape[2], limits.E.shape[2]
    column, sign = _bounds(limits)
    for _ in range(CORRECTIONS):
        boxed = np.flatnonzero(active & (column >= 0))
        held = np.full(ss.n_outputs, np.nan)
        held[column[boxed]] = sign[boxed] * limits.right[boxed]
        rest = np.flatnonzero(active & (column < 0))
        rows = _rows_of(ss, limits, rest)
        lost = ~np.isnan(held) & (rows.E != 0).any(axis=0)
        if lost.any():  # a held control within a row: both as rows
            boxed = boxed[~lost[column[boxed]]]
            rest = np.setdiff1d(np.flatnonzero(active), boxed)
            held[lost] = np.nan
            rows = _rows_of(ss, limits, rest)
        try:
            solved = solve(ss, xi, eta, T, goals.and_also(rows), held if boxed.size else None)
        except KfdynError:
            return None
        multipliers = np.zeros(known.size)
        multipliers[rest] = solved.multipliers[len(goals.node) :]
        slope = solved.control_slopes(ss.R.stacked(), T)
        multipliers[boxed] = -sign[boxed] * slope[column[boxed]]
        left = limits.residuals(*_apart(solved, len(ss), states, controls))
        broken = known & ~active & (left < -1e-11 * scale)
        pulling = active & (multipliers < -1e-11 * np.abs(multipliers).max(initial=0.0))
        if not (broken.any() or pulling.any()):
            message = f"converged in {steps} steps of the interior point"
            slack = np.where(active, 0.0, np.maximum(left, 1e-11 * scale))
            return Limited(solved, rows, np.maximum(multipliers, 0.0), steps, True, message, slack)
        active = (active | broken) & ~pulling
    return None


def _bounds(limits: Limits) -> tuple[NDArray[np.int64], Array]:
    """Find limits that bound one control by itself: its place among all controls, −1 for the others, and the sign."""
    count, rows, m = limits.E.shape
    single = (np.count_nonzero(limits.E, axis=2) == 1) & (np.abs(limits.E).max(axis=2, initial=0.0) == 1.0)
    place = (
        np.arange(count)[:, None] * m + np.abs(limits.E).argmax(axis=2) if m and rows else np.zeros((count, rows), int)
    )
    column = np.concatenate([np.full(limits.d.size, -1), np.where(single, place, -1).ravel()])
    return column, np.concatenate([np.zeros(limits.d.size), limits.E.sum(axis=2).ravel()])


def _balance(s: Array, z: Array) -> float:
    """The ratio z/s that parts active limits from the others: the middle of the widest gap of log z/s."""
    ratio = np.sort(np.log(z / s))
    if ratio.size < 2:
        return 1.0
    jumps = np.diff(ratio)
    at = int(np.argmax(jumps))
    return float(np.exp(0.5 * (ratio[at] + ratio[at + 1])))


def _spread(values: Array, known: NDArray[np.bool_]) -> Array:
    out = np.zeros(known.size)
    out[known] = values
    return out


def _apart(solved: Solved, count: int, states: int, controls: int) -> tuple[Array, Array]:
    return solved.x.reshape(count, states), solved.a.reshape(count, controls)


def _heavier(ss: StateSpace, limits: Limits, ratio: Array) -> StateSpace:
    """The model with z/s added to the weights."""
    of_x, of_u = limits.split(ratio)
    n, m = limits.C.shape[2], limits.E.shape[2]
    new: dict[str, Any] = {}
    if of_x.size:
        new["Q"] = ss.Q.stacked().reshape(-1, n, n) + np.einsum("kpi,kp,kpj->kij", limits.C, of_x, limits.C)
    if of_u.size:
        new["R"] = ss.R.stacked().reshape(-1, m, m) + np.einsum("kpi,kp,kpj->kij", limits.E, of_u, limits.E)
    return ss.replace(**new)


def _pressed(limits: Limits, xi: Array, eta: Array, T: Array, press: Array) -> tuple[Array, Array, Array]:
    """ξ, η and T with the linear weights of the limits."""
    of_x, of_u = limits.split(press)
    return (
        xi + np.einsum("kpn,kp->kn", limits.C, of_x).ravel(),
        eta,
        T - np.einsum("ksm,ks->km", limits.E, of_u).ravel(),
    )


def _longest(value: Array, change: Array) -> float:
    """Return the longest part of the change, at most 1, that leaves every value positive."""
    falling = change < 0
    return float(min(1.0, (value[falling] / -change[falling]).min(initial=np.inf)))


def _sizes(limits: Limits, left: Array) -> Array:
    """The size of each limit: its value, or that of what it limits in the free plan, if that is larger."""
    with np.errstate(invalid="ignore"):
        own = np.maximum(np.abs(limits.right), np.abs(limits.right - left))
    own[~limits.known] = 0.0
    parts = [np.maximum(part, 1e-3 * part.max(initial=0.0)) for part in limits.split(own)]
    sizes = np.concatenate([part.ravel() for part in parts])
    return np.where(sizes > 0, sizes, 1.0)


def _slopes(problem: Problem, limits: Limits, free: Solved, left: Array) -> float:
    """The size of multipliers: slopes of the cost along the free plan, and what it costs to undo its violations."""
    ss = problem.ss
    states, controls = limits.C.shape[2], limits.E.shape[2]
    x, u = _apart(free, len(ss), states, controls)
    over_x, over_u = limits.split(np.where(limits.known, np.maximum(-left, 0.0), 0.0))
    own = (
        np.einsum("kij,kj->ki", ss.Q.stacked(), x),
        np.einsum("kij,kj->ki", ss.R.stacked(), u),
        problem.q,
        problem.r,
        np.abs(free.filt.P.flat).max(initial=0.0) * over_x,
        np.abs(free.filt.D.flat).max(initial=0.0) * over_u,
    )
    largest = max(float(np.abs(part).max(initial=0.0)) for part in own)
    return largest if largest > 0 else 1.0


def _rows_of(ss: StateSpace, limits: Limits, which: NDArray[np.int64]) -> Rows:
    """Limits as exact rows."""
    p, s, n, m = limits.C.shape[1], limits.E.shape[1], limits.C.shape[2], limits.E.shape[2]
    C, E = np.zeros((which.size, ss.n_states)), np.zeros((which.size, ss.n_outputs))
    nodes, names = [], []
    for j, i in enumerate(which.tolist()):
        if i < limits.d.size:
            k, row = divmod(i, p)
            C[j, k * n : (k + 1) * n] = limits.C[k, row]
        else:
            k, row = divmod(i - limits.d.size, s)
            E[j, k * m : (k + 1) * m] = limits.E[k, row]
        nodes.append(k)
        names.append(_name(limits, i))
    return Rows(nodes, C, E, limits.right[which], names)


def _name(limits: Limits, i: int) -> str:
    """A limit in words."""
    on_x = i < limits.d.size
    matrix, right = (limits.C, limits.d) if on_x else (limits.E, limits.e)
    k, row = divmod(i if on_x else i - limits.d.size, matrix.shape[1])
    letter, c = "x" if on_x else "u", matrix[k, row]
    one = np.flatnonzero(c)
    if one.size == 1 and abs(c[one[0]]) == 1.0:
        sign, value = ("≤", right[k, row]) if c[one[0]] > 0 else ("≥", -right[k, row])
        return f"{letter}[{one[0]}] {sign} {value:.6g} at step {k}"
    return f"row {row} of the limits on {letter} at step {k}"


def _named(limits: Limits, places: NDArray[np.int64], z: Array) -> str:
    """The limits that press most, at most three."""
    most = np.argsort(-z)[:3]
    return " and ".join(_name(limits, int(places[i])) for i in most if z[i] > 1e-3 * z[most[0]])
