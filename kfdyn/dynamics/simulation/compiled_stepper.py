"""Fixed steps in compiled code: whole motions in one loop, or stage by stage where a law is a function of Python's."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kfdyn.arrays import Array
from kfdyn.dynamics.simulation.equation import Motion, damped_key, not_of_the_states
from kfdyn.dynamics.simulation.feedback import LinearFeedback
from kfdyn.dynamics.solving.forest import DENSE
from kfdyn.multibody import System
from kfdyn.multibody.calls.kernel import FINE, Kernel, known
from kfdyn.multibody.calls.packed_model import model_of
from kfdyn.multibody.coordinates.configuration import REACH_TOLERANCE

Index = NDArray[np.int64]

_GEARED = "kfdyn.dynamics.recursions.coupled.geared_march"
MARCH = Kernel("kfdyn.dynamics.recursions.steps.march", "MARCH", coupled=_GEARED, most=DENSE)
ONE_STAGE = Kernel("kfdyn.dynamics.recursions.steps.march", "ONE_STAGE", coupled=_GEARED)

# Bodies times steps after which Python looks up, some 20 ms: for the bar, and for who interrupts.
_PATIENCE = 100_000

# Bodies times motions that are marched together, some 500 arms: what is theirs then stays in the cache from step to
# step. Motions of fewer steps are not worth the trouble.
_TOGETHER, _FEW, _LANES = 4_000, 32, 8

# Steps of Python's after which the bar moves.
_PATIENT = 50


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
    """A motion of a tree, with or without couplings, as compiled code takes it; ``lead`` are the axes of the states."""

    driven: Motion
    method: str
    substeps: int
    lead: tuple[int, ...]

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
        """The number of motions."""
        return math.prod(self.lead)

    @property
    def is_known(self) -> bool:
        """True if compiled code knows all forces; else Python must be asked at every stage."""
        driven = self.driven
        known = self.law is not None or not callable(driven.torque)
        return known and not callable(driven.external_forces) and driven.hinges is None

    def common(self, h: float) -> tuple[Any, ...]:
        """Return the arguments that both entries take first, for steps of size h."""
        t, law, driven = self.tableau, self.law, self.driven
        feedback = law is not None and any(gain.any() for gain in law.gains)
        held, springs = law is not None and law.held, driven.stiffness.any()
        plan = [len(t.stages), len(t.moves), t.ahead, self.substeps, feedback, self._dense, held, springs, *t.bases]
        tolerance = _ANYWHERE if law is not None and law.reaches_all else REACH_TOLERANCE
        return (
            np.array(plan, np.int64), np.array(t.stages), np.array(t.moves, np.float64), driven.rest,
            model_of(driven.system.pattern.coordinates).left_inverse, np.array([tolerance]),
        )  # fmt: skip

    def hinges(self, h: float) -> Array:
        """Stiffness, drag and damping of all hinges (..., nv, 3) in steps of size h, one for each row or for all."""
        driven = self.driven
        drag = driven.damping + (h * driven.stiffness if self.method == "implicit" else 0.0)
        together = np.broadcast_arrays(driven.stiffness, drag, driven.damping)
        return self._per_row(np.stack(together, axis=-1), 2, "damping")

    @cached_property
    def of_hinges(self) -> tuple[Array, ...]:
        """The left inverse of all hinges, for their springs."""
        return (model_of(self.driven.system.pattern.open_tree).left_inverse,)

    @cached_property
    def _dense(self) -> bool:
        return self.law is not None and max(gain.ndim for gain in self.law.gains) == 2

    def system(self, h: float) -> System:
        """The system that moves: with implicit steps, dampers and springs of its hinges are noise."""
        return self.driven.damped(h) if self.method == "implicit" else self.driven.system

    def in_blocks(self, q: Array, v: Array, times: Array, advance: Callable[[float], None]) -> Marched:
        """March from q (..., nq), v (..., nv) to the end, a block of motions after the other."""
        most = max(_LANES, _TOGETHER // max(1, self.driven.system.n_bodies) // _LANES * _LANES)
        starts = range(0, self.rows, most)
        if len(starts) < 2 or times.size * self.substeps < _FEW:
            return self.whole(q, v, times, advance)
        begun, whole, parts = float(times[0]), float(times[-1] - times[0]), []
        for k, first in enumerate(starts):
            rows = np.arange(first, min(first + most, self.rows))
            where = np.unravel_index(rows, self.lead)
            block = replace(self, driven=self.driven.of_row(where, self.lead), lead=rows.shape)

            def told(t: float, done: float = k * whole) -> None:
                advance(begun + (done + t - begun) / len(starts))

            parts.append(block.whole(q[where], v[where], times, told))
        q_all, v_all, work = (np.concatenate(every, axis=1) for every in list(zip(*parts))[:3])
        return Marched(q_all, v_all, work, np.concatenate([part.reached for part in parts]))

    def whole(self, q: Array, v: Array, times: Array, advance: Callable[[float], None]) -> Marched:
        """The same, all motions together."""
        system, rows, nt = self.driven.system, self.rows, times.size
        q_all, v_all, work = (np.empty((nt, rows, *tail)) for tail in ((system.nq,), (system.nv,), ()))
        q_all[0], v_all[0], work[0] = q.reshape(rows, system.nq), v.reshape(rows, system.nv), 0.0
        reached, driving, forces = np.full(rows, nt - 1), self._driving(), self._forces()
        state = q_all[0], v_all[0], work[0]
        for first, last, begin, end in self._pieces(times):
            n, h = last - first + 1, float(times[first + 1] - times[first]) / self.substeps
            part = tuple(np.empty((rows, n, *tail)) for tail in ((system.nq,), (system.nv,), ()))
            fate, law = np.empty(rows), (begin, end, n, times[first : last + 1], *driving[:3], *self.of_hinges)
            given = (*state, *driving[3:], self.hinges(h), *forces)
            effort = (n - 1) * (end - begin)
            if not known(MARCH(self.system(h), rows, *self.common(h), *law, *given, *part, fate, effort=effort)):
                # a row that failed before is not one of numbers any more: from here on all go step by step
                reached = np.minimum(reached, first)
                break
            state = part[0][:, -1].copy(), part[1][:, -1].copy(), part[2][:, -1].copy()
            if end == self.substeps:  # else the states are between two times
                for whole, piece in zip((q_all, v_all, work), part):
                    whole[first + 1 : last + 1] = np.moveaxis(piece, 1, 0)[1:]
            reached = np.where(fate < 0, reached, np.minimum(reached, first + fate.astype(np.int64)))
            advance(float(times[last]) if end == self.substeps else float(times[first]) + end * h)
        return Marched(q_all, v_all, work, reached)

    def _pieces(self, times: Array) -> Iterator[tuple[int, int, int, int]]:
        """Times first … last to be marched in one call, and of each interval which of its steps.

        Not too many steps, and implicit ones all of one size.
        """
        steps = max(1, _PATIENCE // max(1, self.rows * self.driven.system.n_bodies))
        most = max(1, steps // self.substeps)
        sizes = (np.diff(times) / self.substeps).tolist() if self.method == "implicit" else [1.0] * (times.size - 1)
        keys = [damped_key(h) for h in sizes] if self.method == "implicit" else sizes
        ends = [
            i for i in range(1, times.size)
            if i == times.size - 1 or i % most == 0 or keys[i] != keys[i - 1]
        ]  # fmt: skip
        for first, last in zip([0, *ends], ends):
            for begin in range(0, self.substeps, steps if last == first + 1 else self.substeps):
                yield first, last, begin, min(begin + steps, self.substeps) if last == first + 1 else self.substeps

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
            raise not_of_the_states(what, x.shape[: x.ndim - tail], self.lead) from None

    def by_stages(
        self, q: Array, v: Array, times: Array, advance: Callable[[float], None]
    ) -> tuple[Marched, Array | None]:
        """The same where a law is a function of Python's: one call of it for every stage, and nothing else.

        With the torques (nt, ..., nv), or None where the march did not come to its end or hinges have forces, too.
        """
        driven, substeps, parts = self.driven, self.substeps, [part for _, _, part in self.tableau.stages]
        law = driven.torque if callable(driven.torque) and not callable(driven.external_forces) else None
        law = law if driven.hinges is None else None
        pushed = (
            np.ascontiguousarray(driven.external(0.0, q, v)) if law and driven.external_forces is not None else None
        )
        block, ticks, taus, stages, h = self._first_block(q, v), times.tolist(), [], Stages(self), 0.0
        blocks = [block]
        for i in range(1, times.size):
            start, before = ticks[i - 1], h
            h = (ticks[i] - start) / substeps
            if h != before:
                stages.set(h)
            for j in range(substeps):
                here = driven.beginning(start + j * h)
                for m, part in enumerate(parts):
                    t = start + (j + part) * h
                    tau, force = here.asked(t, q, v) if law is None else (law(t, q, v), pushed)
                    made = stages.calls[m](block, tau, stages.hinges, force, stages.gravity)
                    if made is None:  # a number where there should be an array, or a motion that has no answer
                        tau = driven.fitted(tau, v)
                        made = stages.checked[m](block, tau, stages.hinges, force, stages.gravity)
                        if made is None:
                            return self._marched(blocks, times.size, i - 1), None
                    if j == m == 0:
                        taus.append(np.array(tau))
                    block, q, v = made
            blocks.append(block)
            if i % _PATIENT == 0:
                advance(ticks[i])
        advance(ticks[-1])
        if driven.hinges is not None:  # what the motors gave of these is told apart later
            return self._marched(blocks, times.size, times.size - 1), None
        taus.append(driven.driving(ticks[-1], q, v))
        return self._marched(blocks, times.size, times.size - 1), np.concatenate(taus).reshape((times.size, *v.shape))

    def _marched(self, blocks: list[Array], nt: int, reached: int) -> Marched:
        """States and work at the times so far, out of what the last stage of each step handed on."""
        nq, nv = self.driven.system.nq, self.driven.system.nv
        every, lead = np.zeros((nt, *self.lead, blocks[0].shape[-1])), len(blocks)
        every[:lead] = np.concatenate(blocks).reshape((lead, *every.shape[1:]))
        at = 1 + (len(self.tableau.stages) + 2) * nv
        q, v = every[..., at : at + nq].copy(), every[..., 1 + nv : 1 + 2 * nv].copy()
        return Marched(q, v, every[..., 0].copy(), np.asarray(reached))

    def _first_block(self, q: Array, v: Array) -> Array:
        """Return the input of the first stage: the state, and no work done."""
        nq, nv, t = self.driven.system.nq, self.driven.system.nv, self.tableau
        block = np.zeros((*self.lead, 1 + (len(t.stages) + 2) * nv + (len(t.moves) + 1) * nq))
        block[..., 1 + nv : 1 + 2 * nv] = v
        at = 1 + (len(t.stages) + 2) * nv
        block[..., at : at + nq] = q
        return block


class Stages:
    """The compiled stages of a step of a march: ``calls[m](block, tau, hinges, force, gravity)`` hands on these.

    Or None, where it has no answer. For one motion there is nothing around compiled code; ``checked[m]`` takes arrays
    that are not contiguous, too.
    """

    calls: list[Callable[..., Any]]
    checked: list[Callable[..., Any]]

    def __init__(self, march: March) -> None:
        self.march, self.step, self.calls = march, np.zeros(1), []
        g, lead = march.driven.gravity, march.lead
        self.gravity = np.ascontiguousarray(np.broadcast_to(g, (*lead, 3)) if g.ndim > 1 else g)
        self.hinges = np.zeros(0)
        self.sizes = (*lead, self._width), (*lead, march.driven.system.nq), (*lead, march.driven.system.nv)

    @property
    def _width(self) -> int:
        system, tableau = self.march.driven.system, self.march.tableau
        return 1 + (len(tableau.stages) + 2) * system.nv + (len(tableau.moves) + 1) * system.nq

    def set(self, h: float) -> None:
        """Make the steps so long. But for implicit ones nothing else depends on it."""
        self.step[0] = h
        march = self.march
        if self.calls and march.method != "implicit":
            return
        hinges = march.hinges(h)
        self.hinges = hinges if hinges.ndim == 2 else hinges.reshape(*march.lead, *hinges.shape[1:])
        system, stages = march.system(h), range(len(march.tableau.stages))
        common = (system, *march.common(h), self._width)
        self.checked = [partial(self._many, *common, m, self.step, *march.of_hinges) for m in stages]
        one = None if march.lead else ONE_STAGE.ready(system)
        self.calls = (
            self.checked if one is None else [partial(one, *common, m, self.step, *march.of_hinges) for m in stages]
        )

    def _many(self, system: System, *given: Any) -> tuple[Array, ...] | None:
        """One stage of many motions."""
        made = tuple(np.empty(size) for size in self.sizes)
        return made if ONE_STAGE(system, self.march.rows, *given, *made) == FINE else None
