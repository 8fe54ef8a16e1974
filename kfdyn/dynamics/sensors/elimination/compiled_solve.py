"""Means, and readings held against them, by the compiled sweep where its program serves; by NumPy where not."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from kfdyn.dynamics.sensors.elimination.elimination_plan import Program, make_program
from kfdyn.dynamics.sensors.elimination.factor import Factor, NodeFactor, node_data
from kfdyn.dynamics.sensors.elimination.gather import in_general_position
from kfdyn.dynamics.sensors.elimination.layout import Pattern
from kfdyn.dynamics.sensors.elimination.loop_unknowns import coordinate_maps
from kfdyn.dynamics.sensors.elimination.problem import AT_ONCE, Group, Problem
from kfdyn.dynamics.sensors.elimination.readout import QUANTITIES, Checks, read_rest
from kfdyn.dynamics.sensors.elimination.solve import Answer, load_of, solve
from kfdyn.dynamics.sensors.joint_sensors import JointTorque
from kfdyn.dynamics.sensors.sensor import Array, Index, Sensor
from kfdyn.multibody import FlexibleSystem, System
from kfdyn.multibody.calls.kernel import FINE, Kernel

if TYPE_CHECKING:
    from kfdyn.dynamics.sensors.result import DynamicsEstimate

SENSE = Kernel("kfdyn.dynamics.recursions.sensing.means", "SENSE")
SENSE_CARRIED = Kernel("kfdyn.dynamics.recursions.sensing.carried", "SENSE_CARRIED")
DEVIATE = Kernel("kfdyn.dynamics.recursions.sensing.deviations", "DEVIATE")


# Nodes of all programs that are kept, of which readings missing in many patterns need many: about a kilobyte each.
NODES = 50_000
# Rounding of a pseudo-inverse of couplings.
ROUNDING = 1e-14


class Means(NamedTuple):
    """What the sweep answers for B states: the five means; λ, multipliers and pivots, empty where not asked for."""

    a: Array
    tau: Array
    alpha: Array
    f: Array
    x: Array
    lam: Array
    m: Array
    pivot: Array

    @property
    def five(self) -> tuple[Array, Array, Array, Array, Array]:
        """The quantities of an estimate."""
        return self[:5]


def program_of(problem: Problem, group: Group) -> Program | None:
    """The program of a group's layout, made in general position; None if it does not serve."""
    system = problem.system
    if isinstance(system, FlexibleSystem) or system.loops or not system.nv:
        return None
    key = system, problem.sensors, group.pattern
    if key not in _programs:
        if len(_programs) * (system.n_bodies + 1) > NODES:
            _programs.clear()
        layout = problem.layout(group)
        factor = in_general_position(layout)
        _programs[key] = None if factor is None else make_program(layout, factor)
    return _programs[key]


_programs: dict[tuple[System, tuple[Sensor, ...], Pattern], Program | None] = {}


def run(
    system: System, program: Program, q: Array, v: Array, y: Array, g: Array, checks: bool = False
) -> tuple[bool, Means]:
    """Run the sweep over rows (B, ·): whether all have an answer, and what; with ``checks``, all that these need."""
    size, n, tree, maps = len(y), system.n_bodies, system.open_tree, _shares(system)
    if maps is not None:
        q, v = system.expand(q), maps[0].times(v)
    told = (n if program.pushed else 0, *((n, program.n_rows, program.n_unknowns) if checks else (0, 0, 0)))
    dofs, bodies = (size, tree.nv), (size, n, 6)
    shapes = [dofs, dofs, bodies, bodies, (size, told[0], 6), (size, told[1], 6), (size, told[2]), (size, told[3])]
    out = Means(*together(shapes))
    if program.carries:
        y = np.concatenate([y, np.zeros((size, 1))], axis=1)
    entry = SENSE_CARRIED if program.carries else SENSE
    fine = entry(tree, size, *program.parameters, *told, q, v, y, g, *out) == FINE
    if maps is not None:
        out = out._replace(a=maps[1].times(out.a), tau=maps[2].times(out.tau))
    return fine, out if program.pushed else out._replace(x=np.zeros(bodies))


class Shares(NamedTuple):
    """A matrix of couplings by its rows: those that copy one coordinate, and the others term by term."""

    plain: Index
    source: Index
    mixed: list[tuple[int, list[tuple[int, float]]]]

    @staticmethod
    def of(A: Array) -> Shares:
        """Of a matrix; what rounding has left of zeros and ones is taken off."""
        A = np.where(np.abs(A) < ROUNDING, 0.0, np.where(np.abs(A - 1) < ROUNDING, 1.0, A))
        copied = (np.count_nonzero(A, axis=1) == 1) & (A.sum(1) == 1)
        plain = np.flatnonzero(copied)
        mixed = [(int(r), [(int(i), float(A[r, i])) for i in np.flatnonzero(A[r])]) for r in np.flatnonzero(~copied)]
        return Shares(plain, A[plain].argmax(1), mixed)

    def times(self, x: Array) -> Array:
        """xA*, x (B, n): the same bits in any batch, which BLAS does not promise."""
        out = np.zeros((len(x), len(self.plain) + len(self.mixed)))
        out[:, self.plain] = x[:, self.source]
        for r, terms in self.mixed:
            for i, factor in terms:
                out[:, r] += factor * x[:, i]
        return out


@lru_cache(maxsize=64)
def _shares(system: System) -> tuple[Shares, Shares, Shares] | None:
    """Of X, which gives the open tree's rates; of what reads coordinates off these; and of X*, which gives forces."""
    maps = coordinate_maps(system)
    return None if maps is None else (Shares.of(maps[0]), Shares.of(maps[1]), Shares.of(maps[0].T))


def deviations(system: System, program: Program, q: Array) -> tuple[bool, dict[str, Array]]:
    """Marginal standard deviations (B, ·) of the five quantities: whether all states have them, and what."""
    size, n = len(q), system.n_bodies
    dofs, bodies, pushed = (size, system.nv), (size, n, 6), n if program.pushed else 0
    out = together([dofs, dofs, bodies, bodies, (size, pushed, 6)])
    fine = DEVIATE(system, size, *program.parameters, pushed, q, *out) == FINE
    return fine, dict(zip(QUANTITIES, out if pushed else [*out[:4], np.zeros(bodies)]))


def together(shapes: list[tuple[int, ...]]) -> list[Array]:
    """Arrays of these shapes in one piece of memory: large ones apart are mapped anew in every call, page by page."""
    if shapes[0][0] < 8:
        return [np.empty(shape) for shape in shapes]
    ends = np.cumsum([math.prod(shape) for shape in shapes]).tolist()
    block = np.empty(ends[-1])
    return [block[end - math.prod(shape) : end].reshape(shape) for end, shape in zip(ends, shapes)]


def means(problem: Problem, out: DynamicsEstimate) -> list[tuple[Group, Index]]:
    """Fill the means by the sweep; the states that are left, by group."""
    if not problem.size:
        return []
    y, rest, served_all = clean_readings(problem), [], True
    for group in problem.groups:
        program, members = program_of(problem, group), group.members
        if program is None:
            rest.append((group, members))
            served_all = False
            continue
        at = slice(None) if len(problem.groups) == 1 else members
        fine, found = run(problem.system, program, problem.q[at], problem.v[at], y[at], problem.gravity[at])
        for key, value in zip(QUANTITIES, found.five):
            out.flat(getattr(out, key))[at] = value
        if not fine:
            rest.append((group, members[np.isnan(found.a).any(1)]))
    out._swift = served_all and len(problem.groups) == 1
    return rest


def served(problem: Problem) -> tuple[Group, Program] | None:
    """The group and the program, if there is one group and all sweeps serve it."""
    if len(problem.groups) != 1 or not problem.size:
        return None
    (group,) = problem.groups
    program = program_of(problem, group)
    return None if program is None or program.carries else (group, program)


def clean_readings(problem: Problem) -> Array:
    """All readings (B, ·) less biases, zero where missing."""
    return np.nan_to_num(np.concatenate(problem.readings, axis=1)) - _bias(problem.system, problem.sensors)


def at_once(
    system: System, q: Any, v: Any, sensors: Sequence[Sensor], readings: Sequence[Any], gravity: Any
) -> tuple[Program, Array, Array, tuple[Array, ...]] | None:
    """One state, or a plain batch, whose layout is known: straight into the sweep. None where anything is unusual.

    Returns its program, the states (B, ·), and the five quantities of the shape of the arguments.
    """
    known = _known(system, sensors) if type(q) is np.ndarray and q.ndim and v is not None else None
    if known is None or len(readings) != len(known.sizes) or gravity is not None:
        return None
    lead = q.shape[:-1]
    if not lead:
        q = q[None]
    try:
        if lead:
            y = np.concatenate([np.broadcast_to(r, (*lead, n)) for r, n in zip(readings, known.sizes)], axis=-1)
        else:
            y = np.concatenate(readings)[None]
        y = y - known.bias
        v = np.asarray(v, float).reshape(q.shape[0] if len(lead) < 2 else -1, system.nv)
    except (ValueError, TypeError):
        return None
    if q.ndim > 2 or q.dtype != np.float64 or y.dtype != np.float64 or y.shape != (len(q), len(known.bias)):
        return None
    if len(v) != len(q) or q.shape[1] != system.nq:
        return None
    fine, found = run(system, known.program, q, v, y, system.gravity)
    if not fine:
        return None
    return known.program, q, v, found.five if lead else tuple([x[0] for x in found.five])


class _Known(NamedTuple):
    program: Program
    sizes: tuple[int, ...]
    bias: Array
    kept: tuple[object, ...]  # what the identities of the key belong to


@lru_cache(maxsize=64)
def sizes_of(system: System, sensors: tuple[Sensor, ...]) -> tuple[int, ...]:
    """How many numbers each sensor reads."""
    return tuple(sensor.size(system) for sensor in sensors)


@lru_cache(maxsize=64)
def _bias(system: System, sensors: tuple[Sensor, ...]) -> Array:
    return np.concatenate([sensor.biases(system) for sensor in sensors]) if sensors else np.zeros(0)


_ready: dict[tuple[int, ...], _Known] = {}


def _known(system: System, sensors: Sequence[Sensor]) -> _Known | None:
    """A layout with all its readings there, if its program serves; of these very objects."""
    return _ready.get((id(system), *map(id, sensors)))


def remember(problem: Problem) -> None:
    """Let the next call with the same sensors go straight into the sweep."""
    if len(problem.groups) != 1 or not problem.sensors or problem.system.loops:
        return
    (group,) = problem.groups
    if not all(all(part) for part in group.pattern):
        return
    system, sensors = problem.system, problem.sensors
    if system.couplings and all(isinstance(sensor, JointTorque) for sensor in sensors):
        return  # each state is asked whether its mass matrix is singular
    program = program_of(problem, group)
    if program is not None:
        if len(_ready) >= 64:
            _ready.clear()
        known = _Known(program, sizes_of(system, sensors), _bias(system, sensors), (system, sensors))
        _ready[(id(system), *map(id, sensors))] = known


def hold_against(est: DynamicsEstimate) -> Checks:
    """Predictions, residuals, multipliers, NIS and log-likelihood of all states."""
    problem, size = est.problem, est.problem.size
    sizes = sizes_of(problem.system, problem.sensors)

    def by_sensor() -> list[Array]:
        return [np.empty((size, n)) for n in sizes]

    scalars = np.empty(size), np.empty(size, np.int64), np.empty(size)
    out = Checks(by_sensor(), by_sensor(), by_sensor(), *scalars)
    known = served(problem) if est._swift else None
    for group in problem.groups:
        left = group.members
        if known is not None:
            states = problem.q, problem.v, clean_readings(problem), problem.gravity
            found = run(problem.system, known[1], *states, checks=True)[1]
            answered = np.isfinite(found.a).all(1)
            for at in range(0, int(answered.sum()), AT_ONCE):
                members = group.members[answered][at : at + AT_ONCE]
                factor, answer = _completed(est, group, members, found)
                read_rest(factor, [y[members] for y in problem.readings], answer, out, members)
            left = group.members[~answered]
        for members, factor in problem.parts_of(group, left):
            own = [y[members] for y in problem.readings]
            read_rest(factor, own, solve(factor, load_of(factor, own, problem.gravity[members])), out, members)
    return out


def _completed(est: DynamicsEstimate, group: Group, members: Index, found: Means) -> tuple[Factor, Answer]:
    """What the sweep answered, as the solver would have given it; of the factor only what is read."""
    problem = est.problem
    layout, terms = problem.layout(group), problem.terms(members)
    nodes: dict[int, NodeFactor] = {}
    empty = np.zeros((0, 0))
    m_of, at = {}, 0
    for k, node in enumerate(layout.nodes):
        data = node_data(layout, node, terms)
        nodes[k] = NodeFactor(
            data, empty, empty, np.zeros(0, np.int64), np.zeros(0, np.int64), empty, empty, empty, empty, empty
        )
        m_of[k] = found.m[members, at : at + node.n_rows, None]
        at += node.n_rows
    log_det = np.log(np.abs(found.pivot[members])).sum(-1)
    alpha = found.alpha[members]
    alpha[:, :, 3:] -= problem.gravity[members, None]
    alpha, lam, f, q = (x[..., None] for x in (alpha, found.lam[members], found.f[members], found.a[members]))
    none = np.zeros(len(members))
    return Factor(layout, terms, nodes, log_det, none, none, {}), Answer(alpha, lam, f, q, m_of, {}, {})
