"""Fixed steps in compiled code: whole motions in one loop, or stage by stage where a law is a function of Python's."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kfdyn.dynamics.simulation.feedback import LinearFeedback
from kfdyn.dynamics.simulation.motion import Motion, damped_key
from kfdyn.errors import ShapeError
from kfdyn.multibody import System
from kfdyn.multibody.configuration import REACH_TOLERANCE
from kfdyn.multibody.entries import FINE, Later, known
from kfdyn.multibody.prepared import address_of, model_of

Array = NDArray[np.float64]
Index = NDArray[np.int64]

MARCH = Later("kfdyn.dynamics.recursions.march", "MARCH")
ONE_STAGE = Later("kfdyn.dynamics.recursions.march", "ONE_STAGE")

# Bodies times steps after which Python looks up, some 20 ms: for the bar, and for who interrupts.
_PATIENCE = 100_000


# How far a hinge may be from where its reference is reached: any way, where all that are pulled get there.
_ANYWHERE = 1e300


class Tableau(NamedTuple):
    """A method: c, b and time of each stage, velocities' weights in each move, where moves begin; see the recursion."""

    stages: tuple[tuple[float, float, float], ...]
    moves: tuple[tuple[float, ...], ...]
    bases: tuple[int, ...]
    ahead: int


RUNGE_KUTTA = Tableau(
    ((0.5, 1 / 6, 0.0), (0.5, 1 / 3, 0.5), (1.0, 1 / 3, 0.5), (0.0, 1 / 6, 1.0)),
    (
        (0.5, 0, 0, 0, 0),
        (0, 0.5, 0, 0, 0),
        (-0.5, 0, 1, 0, 0),
        (3 / 12, 2 / 12, 2 / 12, -1 / 12, 0),
        (-1 / 12, 2 / 12, 2 / 12, 3 / 12, 0),
    ),
    (0, 0, 1, 0, 4),
    0,
)
EULER = Tableau(((1.0, 1.0, 0.0),), ((0.0, 1.0),), (0,), 1)

#: Methods that compiled code knows.
TABLEAUX = {"rk4": RUNGE_KUTTA, "euler": EULER, "implicit": EULER}


class Marched(NamedTuple):
    """States (nt, rows, ...) at the times asked for, and the work (nt, rows) done until then.

    ``reached`` (rows,) is the last time up to which a row has an answer, nt − 1 if all went well.
    """

    q: Array
    v: Array
    work: Array
    reached: Index


@dataclass(frozen=True, eq=False)
class March:
    """A motion of a tree, as compiled code takes it; ``lead`` are the leading axes of the states."""

    driven: Motion
    method: str
    substeps: int
    lead: tuple[int, ...]
    _calls: dict[float, Callable[..., int]] = field(default_factory=dict, repr=False)

    @cached_property
    def tableau(self) -> Tableau:
        """The method."""
        return TABLEAUX[self.method]

    @cached_property
    def law(self) -> LinearFeedback | None:
        """The law, if it is one that compiled code knows."""
        torque = self.driven.torque
        return torque if isinstance(torque, LinearFeedback) else None

    @cached_property
    def rows(self) -> int:
        """How many motions there are."""
        return math.prod(self.lead)

    @property
    def is_known(self) -> bool:
        """Whether compiled code knows all forces; else Python must be asked at every stage."""
        return (self.law is not None or not callable(self.driven.torque)) and not callable(self.driven.external_forces)

    def common(self, h: float) -> tuple[Any, ...]:
        """What both entries take first, for steps of size h."""
        t, law, driven = self.tableau, self.law, self.driven
        feedback = law is not None and any(gain.any() for gain in law.gains)
        held, springs = law is not None and law.held, driven.stiffness.any()
        plan = [len(t.stages), len(t.moves), t.ahead, self.substeps, feedback, self._dense, held, springs, *t.bases]
        drag = driven.damping + (h * driven.stiffness if self.method == "implicit" else 0.0)
        hinges = np.stack([driven.stiffness, drag, driven.damping], axis=1)
        tolerance = _ANYWHERE if law is not None and law.reaches_all else REACH_TOLERANCE
        return (
            np.array(plan, np.int64), np.array(t.stages), np.array(t.moves, np.float64), hinges, driven.rest,
            model_of(driven.system).left_inverse, np.array([tolerance]),
        )  # fmt: skip

    @cached_property
    def _dense(self) -> bool:
        return self.law is not None and max(gain.ndim for gain in self.law.gains) == 2

    def system(self, h: float) -> System:
        """What moves: with implicit steps, hinges whose dampers and springs are noise."""
        return self.driven.damped(h) if self.method == "implicit" else self.driven.system

    def whole(self, q: Array, v: Array, times: Array, advance: Callable[[float], None]) -> Marched:
        """March from q (..., nq), v (..., nv) to the end in compiled code."""
        system, rows, nt = self.driven.system, self.rows, times.size
        q_all, v_all, work = (np.empty((nt, rows, *tail)) for tail in ((system.nq,), (system.nv,), ()))
        q_all[0], v_all[0], work[0] = q.reshape(rows, system.nq), v.reshape(rows, system.nv), 0.0
        reached, driving, forces = np.full(rows, nt - 1), self._driving(), self._forces()
        for first, last in self._pieces(times):
            n, h = last - first + 1, float(times[first + 1] - times[first]) / self.substeps
            part = tuple(np.empty((rows, n, *tail)) for tail in ((system.nq,), (system.nv,), ()))
            fate, law = np.empty(rows), (n, times[first : last + 1], *driving[:3])
            given = (q_all[first], v_all[first], *driving[3:], *forces)
            effort = (n - 1) * self.substeps
            if not known(MARCH(self.system(h), rows, *self.common(h), *law, *given, *part, fate, effort=effort)):
                break  # a row that failed before is not one of numbers any more
            q_all[first + 1 : last + 1] = np.moveaxis(part[0], 1, 0)[1:]
            v_all[first + 1 : last + 1] = np.moveaxis(part[1], 1, 0)[1:]
            work[first + 1 : last + 1] = work[first] + part[2].T[1:]
            reached = np.where(fate < 0, reached, np.minimum(reached, first + fate.astype(np.int64)))
            advance(float(times[last]))
        return Marched(q_all, v_all, work, reached)

    def _pieces(self, times: Array) -> list[tuple[int, int]]:
        """Times first … last to be marched in one call: not too many steps, and implicit ones all of one size."""
        most = max(1, _PATIENCE // (max(1, self.rows * self.driven.system.n_bodies) * self.substeps))
        sizes = (np.diff(times) / self.substeps).tolist() if self.method == "implicit" else [1.0] * (times.size - 1)
        keys = [damped_key(h) for h in sizes] if self.method == "implicit" else sizes
        ends = [
            i for i in range(1, times.size)
            if i == times.size - 1 or i % most == 0 or keys[i] != keys[i - 1]
        ]  # fmt: skip
        return list(zip([0, *ends], ends))

    def _driving(self) -> tuple[Any, ...]:
        """Knots, their times, gains; references of τ, q, the way between them, and v."""
        system, torque, law = self.driven.system, self.driven.torque, self.law
        if law is not None:
            gains = np.stack([np.diag(g) if self._dense and g.ndim == 1 else g for g in law.gains])
            q, way, v, tau = (self._per_row(x, 2, f"{name} of the law") for name, x in law.references._asdict().items())
            return law.times.size, law.times, gains, tau, q, way, v
        still = np.zeros((1, system.nv))
        tau = still if torque is None else self._per_row(np.asarray(torque)[..., None, :], 2, "torque")
        return 1, np.zeros(1), np.zeros((2, system.nv)), tau, system.neutral()[None], still, still

    def _forces(self) -> tuple[Array | None, Array]:
        """External forces and gravity."""
        force, g = self.driven.external_forces, self.driven.gravity
        pushed = None if force is None else self._per_row(np.asarray(force), 2, "external_forces", shared=False)
        return pushed, self._per_row(g, 1, "gravity")

    def _per_row(self, x: Array, tail: int, what: str, shared: bool = True) -> Array:
        """One for each row, or one for all if it has no leading axes."""
        own = x.shape[x.ndim - tail :]
        if x.ndim == tail and shared:
            return np.ascontiguousarray(x)
        try:
            return np.ascontiguousarray(np.broadcast_to(x, self.lead + own)).reshape((self.rows, *own))
        except ValueError:
            raise ShapeError(
                f"{what} has leading axes {x.shape[: x.ndim - tail]}, but the state has {self.lead}; it must "
                "broadcast to them"
            ) from None

    def by_stages(
        self, q: Array, v: Array, times: Array, advance: Callable[[float], None]
    ) -> tuple[Marched, Array | None]:
        """The same where a law is a function of Python's: one call of it for every stage, and nothing else.

        With the torques (nt, ..., nv), or None where the march did not come to its end.
        """
        driven, lead, nt, nv = self.driven, self.lead, times.size, self.driven.system.nv
        q_all, v_all, work = (np.zeros((nt, *lead, *tail)) for tail in (q.shape[len(lead) :], v.shape[len(lead) :], ()))
        tau_all, before = np.empty(v_all.shape), self._first_block(q, v)
        after, size = np.empty_like(before), before.shape[-1]
        q_all[0], v_all[0] = q, v
        for i in range(1, nt):
            start, h = float(times[i - 1]), float(times[i] - times[i - 1]) / self.substeps
            call = self._stage_call(h)
            for j in range(self.substeps):
                for m, (_, _, part) in enumerate(self.tableau.stages):
                    t = start + (j + part) * h
                    tau, external = driven.asked(t, q, v)
                    if j == m == 0:
                        tau_all[i - 1] = tau
                    q, v = np.empty((*lead, driven.system.nq)), np.empty((*lead, nv))
                    if call(size, m, before, tau, external, after, q, v) != FINE:
                        return Marched(q_all, v_all, work, np.asarray(i - 1)), None
                    before, after = after, before
            q_all[i], v_all[i], work[i] = q, v, before[..., 0]
            advance(float(times[i]))
        tau_all[-1] = driven.driving(float(times[-1]), q, v)
        return Marched(q_all, v_all, work, np.asarray(nt - 1)), tau_all

    def _first_block(self, q: Array, v: Array) -> Array:
        """What the first stage is handed: the state, and no work done."""
        nq, nv, t = self.driven.system.nq, self.driven.system.nv, self.tableau
        block = np.zeros((*self.lead, 1 + (len(t.stages) + 2) * nv + (len(t.moves) + 1) * nq))
        block[..., 1 + nv : 1 + 2 * nv] = v
        at = 1 + (len(t.stages) + 2) * nv
        block[..., at : at + nq] = q
        return block

    def _stage_call(self, h: float) -> Callable[..., int]:
        """The compiled stage for steps of size h: without anything around it for one motion."""
        kept = self._calls.get(h)
        if kept is not None:
            return kept
        common, step, system, rows = self.common(h), np.array([h]), self.system(h), self.rows
        gravity = np.ascontiguousarray(
            np.broadcast_to(g, (*self.lead, 3)) if (g := self.driven.gravity).ndim > 1 else g
        )
        one, address = ONE_STAGE.one, address_of(system)

        def alone(size: int, m: int, before: Array, tau: Array, force: Array | None, *out: Array) -> int:
            if one(address, 0, *common, size, m, step, before, tau, force, gravity, *out) == FINE:
                return FINE
            return many(size, m, before, tau, force, *out)

        def many(size: int, m: int, before: Array, tau: Array, force: Array | None, *out: Array) -> int:
            return ONE_STAGE(system, rows, *common, size, m, step, before, tau, force, gravity, *out)

        if len(self._calls) > 8:
            self._calls.clear()
        self._calls[h] = many if self.lead else alone
        return self._calls[h]
