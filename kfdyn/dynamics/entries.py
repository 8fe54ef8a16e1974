"""Calls into the compiled entries of dynamics.

The ``quick_`` functions take what their public namesakes take and return their answer, or None where they cannot know
one: an argument is no float64 array, or the leading axes differ. Where some rows have none, since an entry is not
finite, or a quaternion is not of unit length, or a hinge has no inertia, they return all others as :class:`Declined`.
The long way then converts, broadcasts and comes back with :class:`States`, or says what is wrong, so that nothing here
needs words. ``out`` is an array of the caller's that the answer goes to; one that compiled code cannot write to as it
stands is no answer either.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy import empty, ndarray
from numpy.typing import NDArray

from kfdyn.dynamics.forest import States
from kfdyn.multibody import System
from kfdyn.multibody.entries import FINE, Later, has_gears, known
from kfdyn.multibody.loop_tables import loop_tables
from kfdyn.multibody.prepared import Model, model_of
from kfdyn.multibody.results import straight

Array = NDArray[np.float64]

_GEARED = "kfdyn.dynamics.recursions.geared"

FORWARD = Later("kfdyn.dynamics.recursions.forward", "FORWARD", geared=_GEARED)
INVERSE = Later("kfdyn.dynamics.recursions.inverse", "INVERSE", geared=_GEARED)
MASS_MATRIX = Later("kfdyn.dynamics.recursions.mass_matrix", "MASS_MATRIX", geared=_GEARED)
TRACE = Later("kfdyn.dynamics.recursions.mass_matrix", "TRACE")
MASS_MATRIX_INVERSE = Later("kfdyn.dynamics.recursions.mass_matrix_inverse", "MASS_MATRIX_INVERSE", geared=_GEARED)
VARIANCES = Later("kfdyn.dynamics.recursions.logdet", "VARIANCES", geared=_GEARED)
LOGDET_GRADIENT = Later("kfdyn.dynamics.recursions.logdet", "LOGDET_GRADIENT")
HYBRID = Later("kfdyn.dynamics.recursions.hybrid", "HYBRID", geared=_GEARED)
COMPLIANCE = Later(
    "kfdyn.dynamics.recursions.compliance", "COMPLIANCE", geared="kfdyn.dynamics.recursions.geared_control"
)
CUT_JOINT = Later("kfdyn.dynamics.recursions.cut_joint", "CUT_JOINT")
LOOP_RESPONSES = Later("kfdyn.dynamics.recursions.cut_joint", "LOOP_RESPONSES")

# Dofs of a system with couplings beyond which n³ costs more than the embedded filter's O(N).
DENSE = 80


def is_swept(system: System) -> bool:
    """Whether compiled recursions know a system: a rigid tree, or one whose couplings leave a small matrix."""
    return system.is_tree or (type(system) is System and has_gears(system) and system.nv <= DENSE)


@dataclass(frozen=True, eq=False)
class Declined:
    """Answers (..., *tail) of an entry that has none in some rows, where they are not finite; the others are right."""

    answers: tuple[Array, ...]

    @classmethod
    def by(cls, status: int, *answers: Array) -> Declined | None:
        """What an entry leaves behind whose status was not fine; None if it did not take the arrays it was given."""
        return None if status < 0 else cls(answers)

    def of(self, states: States) -> tuple[tuple[Array, ...], NDArray[np.bool_]]:
        """The answers (size, *tail) to what the entry was given, now checked, and in which rows it has none."""
        answers = tuple([x.reshape((states.size, *x.shape[len(states.lead) :])) for x in self.answers])
        return answers, unanswered(False, *answers)

    def alone(self, states: States) -> tuple[Array, NDArray[np.bool_]]:
        """The same of an entry that has one answer to each row."""
        (answer,), declined = self.of(states)
        return answer, declined


Quick = Callable[..., Array | Declined | None]


def _rows(shape: tuple[int, ...]) -> int:
    return 1 if not shape else shape[0] if len(shape) == 1 else math.prod(shape)


def _of_states(entry: Later) -> Quick:
    """Forward or inverse dynamics, u being what they take beside q and v."""

    def quick(
        system: System, q: Any, v: Any, u: Any, force: Any, gravity: Any, out: Any = None
    ) -> Array | Declined | None:
        if gravity is None:
            gravity = system.gravity
        nv = system.nv
        if v is None:
            v = np.zeros((*q.shape[:-1], nv)) if type(q) is ndarray else None
        if type(q) is not ndarray or not q.ndim:
            return None
        shape = q.shape[:-1]
        answer = _answer(out, (*shape, nv), q, v, u, force, gravity)
        if answer is None:
            return None
        status = entry(system, _rows(shape), q, v, u, force, gravity, answer)
        return answer if status == FINE else Declined.by(status, answer)

    return quick


def _answer(out: Any, shape: tuple[int, ...], *given: Any) -> Array | None:
    """A new array for the answer, or ``out`` if it can be written to straight away."""
    return empty(shape) if out is None else straight(out, shape, *given)


def _of_configurations(entry: Later) -> Quick:
    """𝓜 or 𝓜⁻¹."""

    def quick(system: System, q: Any, out: Any = None) -> Array | Declined | None:
        if type(q) is not ndarray or not q.ndim:
            return None
        answer = _answer(out, (*q.shape[:-1], system.nv, system.nv), q)
        if answer is None:
            return None
        status = entry(system, _rows(q.shape[:-1]), q, answer)
        return answer if status == FINE else Declined.by(status, answer)

    return quick


#: (system, q, v, tau, external_forces, gravity): accelerations (..., nv), or None.
quick_forward_dynamics = _of_states(FORWARD)

#: (system, q, v, a, external_forces, gravity): generalised forces (..., nv), or None; no ``a`` is a = 0.
quick_inverse_dynamics = _of_states(INVERSE)

#: (system, q): 𝓜 (..., nv, nv), or None.
quick_mass_matrix = _of_configurations(MASS_MATRIX)

#: (system, q): 𝓜⁻¹ (..., nv, nv), or None.
quick_mass_matrix_inverse = _of_configurations(MASS_MATRIX_INVERSE)


def quick_of_dofs(entry: Later, system: System, q: Any) -> Array | Declined | None:
    """A number for each dof (..., nv) in configurations q, or None."""
    if type(q) is not ndarray or not q.ndim:
        return None
    answer = empty((*q.shape[:-1], system.nv))
    status = entry(system, _rows(q.shape[:-1]), q, answer)
    return answer if status == FINE else Declined.by(status, answer)


def quick_hybrid_dynamics(
    system: System, q: Any, v: Any, tau: Any, a: Any, prescribed: NDArray[np.bool_], force: Any, gravity: Any
) -> tuple[Array, Array] | Declined | None:
    """All of tau and of a (..., nv), or None."""
    if type(q) is not ndarray or not q.ndim:
        return None
    shape = (*q.shape[:-1], system.nv)
    out, held, g = (empty(shape), empty(shape)), _held(system, prescribed), gravity
    if v is None:
        v = np.zeros(shape)
    status = HYBRID(system, _rows(shape[:-1]), *held, q, v, tau, a, force, system.gravity if g is None else g, *out)
    return out if status == FINE else Declined.by(status, *out)


def _held(system: System, prescribed: NDArray[np.bool_]) -> tuple[NDArray[np.int64], ...]:
    """What entries of hybrid dynamics want to know of the dofs; with couplings there are no hinges to part."""
    return marks(model_of(system), prescribed) if system.is_tree else (prescribed.astype(np.int64),)


def quick_operational_space_compliance(
    system: System, q: Any, bodies: NDArray[np.int64], positions: Array, out: Any = None
) -> Array | Declined | None:
    """Ω (..., 6 k, 6 k) of frames at ``positions`` (k, 3) on ``bodies`` (k,), or None."""
    if type(q) is not ndarray or not q.ndim:
        return None
    shape, wide = q.shape[:-1], 6 * len(bodies)
    answer = _answer(out, (*shape, wide, wide), q)
    if answer is None:
        return None
    of = _frames(system, bodies, positions)
    status = COMPLIANCE(system, _rows(shape), wide, *of, q, answer)
    return answer if status == FINE else Declined.by(status, answer)


def quick_cut_joint(
    system: System, q: Any, v: Any, tau: Any, force: Any, gravity: Any
) -> tuple[Array, Array, Array] | Declined | None:
    """Accelerations (..., nv), forces (..., Σr) and ranks (...) of a tree with loops, or None."""
    tables = loop_tables(system)
    if type(q) is not ndarray or not q.ndim:
        return None
    shape = q.shape[:-1]
    out = empty((*shape, system.nv)), empty((*shape, tables.of[0])), empty(shape)
    v, g = np.zeros_like(out[0]) if v is None else v, system.gravity if gravity is None else gravity
    given = (*tables.of, q, v, tau, force, g, tables.ends, None, None)
    status = CUT_JOINT(system.open_tree, _rows(shape), *given, *out)
    return out if status == FINE else Declined.by(status, *out)


def quick_geared(entry: Later, system: System, tail: tuple[int, ...], q: Any, *more: Any) -> Array | Declined | None:
    """What an entry answers (..., *tail) for a system with couplings to q and what else it takes, or None."""
    geared: Any = entry.geared
    if geared is None:  # only trees have it
        return None
    found: Array | None = geared.one(system, q, *more)
    if found is not None:  # what loops call
        return found
    if type(system) is not System or not has_gears(system):  # bodies that bend, and functions, go another way
        return None
    if system.is_curved:
        geared = entry.curved
        found = geared.one(system, q, *more)
        if found is not None:
            return found
    if type(q) is not ndarray or not q.ndim:
        return None
    answer = empty((*q.shape[:-1], *tail))
    status = geared(system, _rows(q.shape[:-1]), q, *more, answer)
    return answer if status == FINE else Declined.by(status, answer)


def fused_cut_joint(states: States) -> tuple[Array, Array, Array]:
    """Accelerations (size, nv), forces (size, Σr) and ranks (size,) of a tree with loops; NaN where not decided.

    The loops' rows are filtered as forces and change the innovations before the one scatter (THEORY section 12). Not
    decided are states whose rows are neither clearly dependent nor clearly not, or contradict each other.
    """
    system, tables = states.system, loop_tables(states.system)
    count = tables.of[0]
    out = np.empty((states.size, system.nv)), np.empty((states.size, count)), np.empty(states.size)
    given = [flat(states, name) for name in ("q", "v", "tau", "external_forces", "gravity")]
    results = [as_given(states, x) for x in out]
    given += [tables.ends, None, None]
    fine = known(CUT_JOINT(system.open_tree, states.size, *tables.of, *given, *results))
    out[2][unanswered(fine, *out)] = np.nan  # answers that overflow are none
    return out


def fused_forward_dynamics(states: States) -> tuple[Array, NDArray[np.bool_]]:
    """Accelerations (size, nv) by filter and smoother, and which states (size,) have no answer and are NaN there.

    The same recursions as the engine's, THEORY (2)–(4), in one outward sweep, one gather and one scatter, with
    hinges of any size measured dof by dof (PART). A state has none near an unsound one, or where a hinge has no
    inertia.
    """
    a = np.empty((states.size, states.system.nv))
    given = [flat(states, name) for name in ("q", "v", "tau", "external_forces", "gravity")]
    return a, unanswered(known(FORWARD(states.system, states.size, *given, as_given(states, a))), a)


def fused_inverse_dynamics(states: States) -> Array | None:
    """Generalised forces (size, nv) by Newton–Euler's two sweeps; None if a number is not sound. No ``a`` is a = 0."""
    tau = np.empty((states.size, states.system.nv))
    given = [flat(states, name) for name in ("q", "v", "a", "external_forces", "gravity")]
    return tau if known(INVERSE(states.system, states.size, *given, as_given(states, tau))) else None


def fused_mass_matrix(states: States) -> Array | None:
    """Mass matrices (size, nv, nv) by composite bodies and walks to the root; None if a number is not sound."""
    out = _matrices(states, states.system.nv)
    fine = known(MASS_MATRIX(states.system, states.size, flat(states, "q"), as_given(states, out)))
    return out if fine else None


def fused_mass_matrix_inverse(states: States) -> tuple[Array, NDArray[np.bool_]]:
    """Inverse mass matrices (size, nv, nv), and which states (size,) are flagged as in forward dynamics."""
    out = _matrices(states, states.system.nv)
    fine = known(MASS_MATRIX_INVERSE(states.system, states.size, flat(states, "q"), as_given(states, out)))
    return out, unanswered(fine, out)


def fused_hybrid_dynamics(
    states: States, prescribed: NDArray[np.bool_]
) -> tuple[tuple[Array, Array], NDArray[np.bool_]]:
    """All forces and accelerations (size, nv), given ``a`` where prescribed (nv,) and ``tau`` elsewhere.

    Flagged as in forward dynamics, hinges that are free being looked at. What is not given is not looked at.
    """
    tau, a = (np.empty((states.size, states.system.nv)) for _ in range(2))
    given = [flat(states, name) for name in ("q", "v", "tau", "a", "external_forces", "gravity")]
    held, out = _held(states.system, prescribed), [as_given(states, x) for x in (tau, a)]
    fine = known(HYBRID(states.system, states.size, *held, *given, *out))
    return (tau, a), unanswered(fine, tau, a)


def fused_operational_space_compliance(
    states: States, bodies: NDArray[np.int64], positions: Array
) -> tuple[Array, NDArray[np.bool_]]:
    """Ω (size, 6 k, 6 k) of frames at ``positions`` (k, 3) on ``bodies`` (k,), flagged as in forward dynamics."""
    wide = 6 * len(bodies)
    out, of = _matrices(states, wide), _frames(states.system, bodies, positions)
    fine = known(COMPLIANCE(states.system, states.size, wide, *of, flat(states, "q"), as_given(states, out)))
    return out, unanswered(fine, out)


def fused_of_dofs(entry: Later, states: States) -> tuple[Array, NDArray[np.bool_]]:
    """A number for each dof (size, nv), flagged as in forward dynamics."""
    out = np.empty((states.size, states.system.nv))
    return out, unanswered(known(entry(states.system, states.size, flat(states, "q"), as_given(states, out))), out)


def marks(model: Model, prescribed: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Dofs that are prescribed, and bodies of whose hinge's dofs some are."""
    index = model.tables["index"]
    counted = np.concatenate([[0], np.cumsum(prescribed)])
    first, last = index[:, 4], index[:, 5]
    return prescribed.astype(np.int64), (counted[last] > counted[first]).astype(np.int64)


def _frames(system: System, bodies: NDArray[np.int64], positions: Array) -> tuple[Any, ...]:
    """What entries of the compliance want to know of frames; with couplings, where they are."""
    found = _placed(model_of(system.open_tree), system, bodies, positions)
    return found if system.is_tree else found[1:3]


def _placed(
    model: Model, system: System, bodies: NDArray[np.int64], positions: Array
) -> tuple[int, NDArray[np.int64], Array, NDArray[np.int64]]:
    """How many bodies are kept; where frames are, how far from their bodies; kept bodies, numbered from 1.

    Kept are bodies with frames, and bodies where branches with frames meet; the others are 0.
    """
    key = bodies.tobytes() + positions.tobytes()
    found = model.placed.get(key)
    if found is not None:
        return found
    place = model.place[bodies]
    parent = model.tables["index"][:, 0].tolist()
    rank, branches = np.zeros(system.n_bodies + 1, np.int64), [0] * (system.n_bodies + 1)
    rank[place] = 1
    for t in range(system.n_bodies, 0, -1):
        if branches[t] > 1:
            rank[t] = 1
        if rank[t] or branches[t]:
            branches[parent[t]] += 1
    kept = np.flatnonzero(rank[1:]) + 1
    rank[kept] = np.arange(1, len(kept) + 1)
    arms = np.einsum("kji,kj->ki", model.tables["frames"][place], positions)  # the tables have turned the frames
    if len(model.placed) > 100:  # frames that somebody moves about
        model.placed.clear()
    found = model.placed[key] = (len(kept), place, np.ascontiguousarray(arms), rank)
    return found


def _matrices(states: States, wide: int) -> Array:
    return np.empty((states.size, wide, wide))


def unanswered(fine: bool, *answers: Array) -> NDArray[np.bool_]:
    """In which rows (size,) an entry has no answer; it has none to look for if its status was fine."""
    lost = np.zeros(len(answers[0]), dtype=bool)
    for x in () if fine else answers:
        lost |= ~np.isfinite(x).all(axis=tuple(range(1, x.ndim)))
    return lost


def as_given(states: States, array: Array) -> Array:
    """An array (size, ...), or its only row where the caller gave no leading axes: one state is no batch of one."""
    return array if states.lead else array.reshape(array.shape[1:])


def flat(states: States, name: str) -> Array | None:
    """An argument with its leading axes made one; where not given, what stands for it."""
    if name in states.arrays:
        return as_given(states, states[name])
    if name == "gravity":
        return states.system.gravity
    return as_given(states, np.zeros((states.size, states.system.nv))) if name == "v" else None
