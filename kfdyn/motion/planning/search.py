"""The search for a plan: Newton's method (DDP, iLQR), each step a linear-quadratic problem and a rollout of its law."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kfdyn.arrays import Array
from kfdyn.errors import ModelError
from kfdyn.estimation.control.goals import Rows
from kfdyn.estimation.control.solution import LinearPlan
from kfdyn.estimation.nonlinear.trajectory import squares
from kfdyn.motion.planning.quadratic import (
    NotConvex,
    Quadratic,
    Step,
    Unsettled,
    by_engine,
    by_interior_point,
    minimise,
)
from kfdyn.motion.planning.shooting import Linear, Point, Shooting

Index = NDArray[np.intp]

#: Lengths of steps that are tried together when the whole one does not do.
WHOLE, SHORTER = np.ones(1), 0.5 ** np.arange(1, 13)
#: Part of the promised decrease that a step must bring, and what rounding is of a cost.
SUFFICIENT, ROUNDING = 1e-4, 1e-12
#: Gauss–Newton is slow where a step brings less than this part of the cost, or only so much of it can be taken.
SLOW, SHORT = 0.1, 0.2
#: Weight of the step itself, relative to that of torques, where no length of it helps; beyond ``MOST`` the search ends.
FIRST, HEAVIER, MOST = 1e-2, 10.0, 1e8
#: An exact goal is also pulled at by so many times the stiffness that it meets: so the law leads there on the way, too.
STIFFER = 1e5
#: Steps in a row in which exact goals are out of reach before the search ends.
PULLED = 60


class Found(NamedTuple):
    """Plans as a search leaves them: points, what holds them there, and how it ended.

    Attributes
    ----------
    point : Point
        States, controls, cost.
    costate, multipliers : array
        Of steps (P, N, n), and of the rows of exact goals, (P, rows) of several plans.
    laws : array, shape (P, N, p, n)
        Gains of the last linear-quadratic problem.
    converged : ndarray of bool, shape (P,)
        Which have.
    message : list of str
        How each has ended, in words.
    iterations : ndarray of int, shape (P,)
        Steps taken.
    step : Step or None
        The last linear-quadratic problem, with its solution; None of several plans that ended at different times.
    """

    point: Point
    costate: Array
    multipliers: Array
    laws: Array
    converged: NDArray[np.bool_]
    message: list[str]
    iterations: NDArray[np.int64]
    step: Step | None

    @property
    def gains(self) -> Array:
        """The feedback law, (P, N, p, n), exact goals included."""
        engine = None if self.step is None else self.step.plan
        return self.laws if engine is None else engine.gains[None]

    @property
    def linear(self) -> LinearPlan:
        """The last linear-quadratic problem."""
        step = self.step
        if step is None:
            raise ModelError(
                "the linear-quadratic problems of a batch are not kept; plan this one alone, with start= it"
            )
        plan = step.plan or by_engine(step.problem, step.active).plan
        assert plan is not None
        return plan

    def only(self, which: Any) -> Found:
        """Some of the plans, a slice or an index array."""
        names = [self.message[i] for i in np.arange(len(self.message))[which]]
        point = Point(*(part[which] for part in self.point))
        rows = self.multipliers if self.multipliers.ndim == 1 else self.multipliers[which]
        return Found(
            point, self.costate[which], rows, self.laws[which], self.converged[which], names, self.iterations[which],
            self.step,
        )  # fmt: skip


def merged(parts: Sequence[tuple[Index, Found]]) -> Found:
    """All plans in their order, from parts and which plans these are."""
    if len(parts) == 1 and len(parts[0][0]) == 1:
        return parts[0][1]
    order = np.argsort(np.concatenate([which for which, _ in parts]))
    found = [one for _, one in parts]

    def joined(arrays: Sequence[Any]) -> Any:
        return np.concatenate(list(arrays))[order]

    rows = [one.multipliers.reshape(len(one.message), -1) for one in found]
    names = [name for one in found for name in one.message]
    return Found(
        Point(*(joined(part) for part in zip(*(one.point for one in found)))), joined([one.costate for one in found]),
        joined(rows), joined([one.gains for one in found]), joined([one.converged for one in found]),
        [names[i] for i in order], joined([one.iterations for one in found]), None,
    )  # fmt: skip


class Search:
    """One run; ``newton`` False leaves curvature out: Gauss–Newton."""

    def __init__(self, shooting: Shooting, iterations: int, tolerance: float, newton: bool = True) -> None:
        self.of, self.iterations, self.tolerance = shooting, iterations, tolerance
        self.newton = newton
        plans, p = shooting.plans, shooting.p
        self.curved = np.zeros(plans, bool)  # whether curvature counts: once Gauss–Newton has become slow
        self.damping = np.zeros(plans)
        self.elsewhere = "or begin from another motion (start=), of which it may not be so"
        self.taken = 0  # steps of all
        self.pulled = 0  # steps in a row in which exact goals were out of reach
        self.stiffness: Array | None = None if shooting.exact.any() else np.zeros(0)
        self.costate: Array | None = None
        self.pull = np.zeros((plans, len(shooting.at), len(shooting.exact)))  # multipliers of exact goals
        self.active = np.zeros((plans, shooting.steps, p), np.int8)
        self.warm: tuple[Array, Array] | None = None  # slacks and multipliers of limits, of the last interior point
        self._kept: tuple[Array, Array | None, Array, Array] | None = None
        none = np.zeros((0, shooting.steps * shooting.n)), np.zeros((0, shooting.steps * p))
        self._no_rows = Rows([], *none, np.zeros(0), [])
        self.alive = np.arange(plans)  # which plans of all that it began with
        self.weight = np.zeros(plans)  # of gaps and goals that are missed
        self.exact = [(int(g), int(i)) for g, i in np.argwhere(shooting.seen[0] & shooting.exact)]

    def run(self, point: Point) -> Found:
        """Iterate from a point; plans that have ended leave the others."""
        if not np.isfinite(point.cost).all():
            raise ModelError("where the search begins, the cost is not finite; check the units of q0, v0 and start")
        parts: list[tuple[Index, Found]] = []
        linear, before = self.of.linear(point), np.full(self.of.plans, np.inf)
        while True:
            step = self.step(point, linear)
            size = np.abs(step.u).max(axis=(1, 2), initial=0.0)
            with np.errstate(invalid="ignore", divide="ignore"):
                rate = np.minimum(size / before, 0.999)
            left = size * np.maximum(rate / (1.0 - rate), 0.1)  # what all further steps add up to, at this rate
            near = (left <= self.tolerance) & (self.damping == 0.0) & step.settled
            before, why, costates = size, "", step.costate if self.costate is None else self.costate
            if self.taken == self.iterations or self.pulled > PULLED:
                if self.pulled > PULLED:
                    self.refuse(point)
                    why = "its exact goals stay out of reach"
                done = near & self._is_met(point) & (not why)
                ended = np.ones(len(done), bool)
            else:
                old, (point, moved) = point, self._advance(point, linear, step, near)
                self.taken += 1
                done = near & self._is_met(point)
                if not moved.all():
                    stuck = self._promised(old, linear, step)[1] <= ROUNDING * (1.0 + np.abs(old.cost))
                    done |= ~moved & stuck & self._is_met(point)
                    heavier = np.maximum(self.damping * HEAVIER, FIRST)
                    self.damping = np.where(moved | done, self.damping, heavier)
                ended = done | (self.damping > MOST)
                if self.pulled and (ended & ~done).any():
                    self.refuse(point)
                why = "no step, however short, makes it better"
                costates = np.where(moved[:, None, None], step.costate, costates)
                if moved.any():
                    self.costate = costates
                    self._remember(step, moved)
            if ended.any():
                told = [self._message(bool(one), float(far), why) for one, far in zip(done, size)]
                taken = np.full(len(done), self.taken)
                found = Found(point, costates, step.multipliers, step.gains, done, told, taken, step)
                if ended.all():
                    parts.append((self.alive, found))
                    return merged(parts)
                parts.append((self.alive[ended], found._replace(step=None).only(ended)))
                point, before = self._without(ended, point), before[~ended]
            if ended.any() or moved.any():
                linear = self.of.linear(point)

    def _without(self, ended: NDArray[np.bool_], point: Point) -> Point:
        """Plans that have not ended go on alone."""
        left = np.flatnonzero(~ended)
        self.of, self.alive, self._kept = self.of.only(left), self.alive[left], None
        for name in ("curved", "damping", "costate", "pull", "active", "weight"):
            old = getattr(self, name)
            setattr(self, name, None if old is None else old[left])
        return Point(*(part[left] for part in point))

    # --- one step

    def step(self, point: Point, linear: Linear) -> Step:
        """Solve the linear-quadratic problem, with curvature where it leaves a minimum."""
        curved = self.curved & self.newton & (self.costate is not None)
        xx = sx = None
        if curved.any():
            assert self.costate is not None
            xx, sx = self.of.curvature(point, self.costate, self._pulls(point), curved)
        while True:
            problem = self._problem(point, linear, xx, sx)
            try:
                step = self._minimised(problem, point, linear, xx is not None)
            except NotConvex as error:
                straighten = error.plans & curved  # Gauss–Newton's step always exists
                if xx is not None and sx is not None and straighten.any():
                    curved[straighten], xx[straighten], sx[straighten] = False, 0.0, 0.0
                    continue
                if self.pulled:
                    self.refuse(point)
                raise ModelError(
                    "the plan's linear-quadratic problem has lost its digits; give goals and torques covariances "
                    "that differ less, or make soft goals exact"
                ) from None
            if self.stiffness is not None:
                return step
            self._stiffen(step)

    def _minimised(self, problem: Quadratic, point: Point, linear: Linear, curved: bool) -> Step:
        """The minimum; where limits and exact goals leave none that is found, what leads nearer."""
        try:
            step = minimise(problem, self.active)
        except Unsettled as error:
            if self.of.on_states:
                return self._within(point, linear, error.step)
            if self.stiffness is None:  # how stiff goals are, torques without limits tell, too
                return minimise(problem._replace(u_limits=None), 0 * self.active)
            if self.exact:
                return self._pulled(problem, point, linear)
            return error.guess  # the rollout keeps torques within
        except ModelError:
            if self.stiffness is None or not (self.of.on_torques or curved):
                raise
            return self._pulled(problem, point, linear)
        self.pulled = 0 if self.stiffness is not None else self.pulled
        return step

    def _pulled(self, problem: Quadratic, point: Point, linear: Linear) -> Step:
        """The step where exact goals are out of reach for now: they pull by their multipliers and stiffness alone."""
        assert self.stiffness is not None
        q = problem.q.copy()
        for g, i in self.exact:
            q[0, self.of.at[g] - 1] += self.pull[0, g, i] * linear.C[0, g, i]
        try:
            step = minimise(problem._replace(rows=self._no_rows, q=q), self.active)
        except Unsettled as error:
            step = error.guess
        missed = [linear.C[0, g, i] @ step.x[0, self.of.at[g] - 1] - point.T[0, g, i] for g, i in self.exact]
        pulls = [self.pull[0, g, i] + k * miss for (g, i), k, miss in zip(self.exact, self.stiffness, missed)]
        self.pulled += 1
        return step._replace(multipliers=np.array(pulls), settled=False)

    def refuse(self, point: Point) -> None:
        """An error that names the limits that leave exact goals out of reach, if it is so to first order."""
        self.stiffness = np.zeros(len(self.exact))
        try:
            by_interior_point(self._problem(point, self.of.linear(point), None, None))
        except ModelError as error:
            raise self._unkept(error) from None

    def _within(self, point: Point, linear: Linear, guess: Step | None) -> Step:
        """The step by the interior point, without curvature, under the law of a guess."""
        stiffness, self.stiffness = self.stiffness, np.zeros(len(self.exact))
        try:
            step = by_interior_point(self._problem(point, linear, None, None), self.warm)
        except ModelError as error:
            raise self._unkept(error) from None
        finally:
            self.stiffness = stiffness
        assert step.plan is not None
        self.warm = step.plan.warm
        if guess is None:
            return step
        return step.under(np.where(step.active[..., None] != 0, 0.0, guess.gains))

    def _unkept(self, error: ModelError) -> ModelError:
        """Return the error of a linear problem in words of the motion, which hold near this motion alone."""
        return ModelError(
            f"the motion, linearised after {self.taken} step{'s' * (self.taken != 1)} of the search: "
            f"{self._in_words(str(error))}, {self.elsewhere}"
        )

    def _in_words(self, text: str) -> str:
        """Limits of the linear problem, x[i] and u[i], by the names and values that they have."""
        model, bounds = self.of.model, self.of.bounds
        nv, hinges = model.system.nv, np.argmax(self.of.root, axis=0)

        def told(found: re.Match[str]) -> str:
            kind, i, sign, k = found[1], int(found[2]), found[3], int(found[4])
            if kind == "u":
                name = model.state_names[hinges[i]][2:-1]
                return f"torque of {name} {sign} {bounds.torque[int(sign == '≤')][hinges[i]]:.6g} at step {k}"
            name, side = model.state_names[i], bounds.position if i < nv else bounds.velocity
            return f"{name} {sign} {side[int(sign == '≤')][i % nv]:.6g} at step {k + 1}"

        return re.sub(r"([xu])\[(\d+)\] ([≤≥]) \S+ at step (\d+)", told, text)

    def _stiffen(self, step: Step) -> None:
        """Return the stiffness of exact goals by themselves: pulling at one moves it by its response."""
        assert step.plan is not None
        answers = step.plan.solved.responses
        response = np.zeros(0) if answers is None else (answers.eps * answers.nu).sum(axis=-1)
        self.stiffness = STIFFER / np.where(response > 0.0, response, np.inf)

    def _pulls(self, point: Point) -> Array:
        """Return the pull of residuals: soft ones by their weight, exact ones by multipliers."""
        pull = self.of.weight**2 * point.T - self.pull
        if self.stiffness is not None:
            for j, (g, i) in enumerate(self.exact):
                pull[0, g, i] += self.stiffness[j] * point.T[0, g, i]
        return np.asarray(pull)

    def _problem(self, point: Point, linear: Linear, xx: Array | None, sx: Array | None) -> Quadratic:
        of = self.of
        plans, N, n, _ = linear.B.shape
        back, Q = self._pulled_back(linear)
        q = np.zeros((plans, N, n))
        q[:, of.at - 1] = -(back @ point.T[..., None])[..., 0]
        M = None
        if xx is not None and sx is not None:
            Q = Q + xx[:, 1:]
            M = sx.copy()
            M[:, 0] = 0.0
        x_limits = None
        if of.on_states:
            left = of.bounds.left(point.x[0, 1:], of.model.system.nv)
            x_limits = -left[0], left[1]
        u_limits = (of.low - point.s, of.high - point.s) if of.on_torques else None
        return Quadratic(
            linear.F, linear.B, Q, q, 1.0 + self.damping, point.s, M, point.gaps, self._rows(point, linear), u_limits,
            x_limits,
        )  # fmt: skip

    def _pulled_back(self, linear: Linear) -> tuple[Array, Array]:
        """C* by the weights of goals (P, G, n, m), and their Hessian Q (P, N, n, n): kept while neither changes."""
        kept = self._kept
        if kept is None or kept[0] is not linear.C or kept[1] is not self.stiffness:
            of, (plans, N, n, _) = self.of, linear.B.shape
            weight = np.tile(of.weight**2, (plans, len(of.at), 1))
            if self.stiffness is not None and self.stiffness.size:
                for j, (g, i) in enumerate(self.exact):
                    weight[0, g, i] = self.stiffness[j]
            back, Q = np.swapaxes(linear.C, 2, 3) * weight[:, :, None, :], np.zeros((plans, N, n, n))
            Q[:, of.at - 1] = back @ linear.C
            self._kept = kept = linear.C, self.stiffness, back, Q
        return kept[2:]

    def _rows(self, point: Point, linear: Linear) -> Rows:
        """Exact goals, linear in the states."""
        of = self.of
        if not self.exact:
            return self._no_rows
        C = np.zeros((len(self.exact), of.steps * of.n))
        nodes, names = [], []
        for j, (g, i) in enumerate(self.exact):
            k = int(of.at[g]) - 1
            C[j, k * of.n : (k + 1) * of.n] = linear.C[0, g, i]
            nodes.append(k)
            sensor = next(m for m, own in enumerate(of.model.seen.tangents_of) if own.start <= i < own.stop)
            row = i - of.model.seen.tangents_of[sensor].start
            names.append(f"goals[{sensor}] {of.model.seen.sensors[sensor].name}, entry {row},")
        value = np.array([point.T[0, g, i] for g, i in self.exact])
        size, softer = 1.0 + float(np.abs(point.x).max()), 1.0 if self.stiffness is None else STIFFER
        return Rows(nodes, C, np.zeros((len(nodes), of.steps * of.p)), value, names, size, softer)

    # --- how far to go

    def _advance(self, point: Point, linear: Linear, step: Step, near: Any) -> tuple[Point, NDArray[np.bool_]]:
        """The next point, and which plans have moved."""
        of, plans = self.of, self.of.plans
        self._weigh(step)
        here, promised, falls = self._promised(point, linear, step)
        slack = np.where(near, 1e4 * ROUNDING, ROUNDING) * (1.0 + np.abs(here))
        new, left = point, np.arange(plans)
        for alphas in (WHOLE, SHORTER):
            which, alpha = np.repeat(left, len(alphas)), np.tile(alphas, left.size)
            x, s, gaps = of.rollout(point, which, alpha, step.shift, step.gains)
            with np.errstate(all="ignore"):
                T = of.residuals(x, which)
                trial = Point(x, s, of._cost(s, T), gaps, T)
                gain = here[which] - trial.cost - self.weight[which] * self._violation(trial)
                enough = SUFFICIENT * (alpha * promised[which] - 0.5 * alpha**2 * falls[which])
                good = (gain >= np.maximum(enough, 0.0) - slack[which]).reshape(left.size, -1)
            mine, ahead = np.arange(left.size) * len(alphas) + good.argmax(axis=1), good.any(axis=1)
            who, mine = left[ahead], mine[ahead]  # the longest of each that will do
            self.curved[who] = (gain[mine] < SLOW * np.abs(here[who])) | (alpha[mine] < SHORT)
            self.damping[who] = np.where(self.damping[who] < FIRST, 0.0, self.damping[who] / HEAVIER)
            if mine.size == plans == len(which):
                return trial, np.asarray(ahead)
            new = Point(*(part.copy() for part in point)) if new is point else new
            for whole, part in zip(new, trial):
                whole[who] = part[mine]
            left = left[~ahead]
            if not left.size:
                break
        return new, ~np.isin(np.arange(plans), left)

    def _weigh(self, step: Step) -> None:
        """Weight of what ought to vanish: twice the largest multiplier, which makes the penalty exact."""
        largest = np.abs(step.costate).max(axis=(1, 2), initial=0.0)
        largest = np.maximum(largest, np.abs(step.multipliers).max(initial=0.0))
        self.weight = np.maximum(2.0 * np.maximum(largest, step.pressure), 0.5 * self.weight)

    def _violation(self, point: Point) -> Array:
        """Gaps, exact goals that are missed, and limits of states that are not kept, (rows,)."""
        of = self.of
        total = np.abs(point.gaps).sum(axis=(1, 2))
        if self.exact:
            total = total + np.abs(point.T[..., of.exact]).sum(axis=(1, 2))
        if of.on_states:
            low, high = of.bounds.left(point.x[:, 1:], of.model.system.nv)
            total = total + np.maximum(-low, 0.0).sum(axis=(1, 2)) + np.maximum(-high, 0.0).sum(axis=(1, 2))
        return np.asarray(total)

    def _promised(self, point: Point, linear: Linear, step: Step) -> tuple[Array, Array, Array]:
        """The merit, what it falls by to first order, and the curvature that takes some of it back; all (P,)."""
        of = self.of
        change = of.weight * (linear.C @ step.x[:, of.at - 1, :, None])[..., 0]
        slope, bend = _dots(point.s, step.u) - _dots(of.weight * point.T, change), squares(step.u) + squares(change)
        missed = self.weight * self._violation(point)
        return point.cost + missed, missed - slope, np.minimum(bend, np.abs(slope))

    # --- the end

    def _remember(self, step: Step, moved: NDArray[np.bool_]) -> None:
        self.active = np.where(moved[:, None, None], step.active, self.active)
        for j, (g, i) in enumerate(self.exact):
            self.pull[0, g, i] = step.multipliers[j]

    def _is_met(self, point: Point) -> NDArray[np.bool_]:
        """Tell whether exact goals and gaps are as small as rounding, relative to what states are."""
        size = 1.0 + np.abs(point.x).max(axis=(1, 2))
        return np.asarray(self._violation(point) <= 1e-8 * size)

    def _message(self, done: bool, size: float, why: str) -> str:
        steps = f"{self.taken} step{'s' * (self.taken != 1)}"
        if done:
            return f"converged in {steps}"
        return (
            f"not converged: {why or f'stopped after {steps}'}; the next step would be {size:.2g} standard "
            "deviations of torque; raise iterations, begin nearer (start=), or give more time"
        )


def _dots(a: Array, b: Array) -> Array:
    """Σ a b of each plan, (P,)."""
    return np.asarray(np.einsum("pi,pi->p", a.reshape(len(a), -1), b.reshape(len(b), -1)))
