"""Means by the compiled sweep, where its program serves; what it leaves is checked and completed from its answers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from kfdyn.dynamics.sensors.gather import Factor, NodeFactor, node_data
from kfdyn.dynamics.sensors.layout import Layout, make_layout
from kfdyn.dynamics.sensors.problem import AT_ONCE, Problem, make_problem
from kfdyn.dynamics.sensors.program import Program, make_program
from kfdyn.dynamics.sensors.readings import Group, load_of
from kfdyn.dynamics.sensors.readout import Checks, read_rest
from kfdyn.dynamics.sensors.sensor import Array, Index, Sensor
from kfdyn.dynamics.sensors.solve import Answer, solve
from kfdyn.multibody import System
from kfdyn.multibody.entries import FINE, Later

if TYPE_CHECKING:
    from kfdyn.dynamics.sensors.result import DynamicsEstimate

SENSE = Later("kfdyn.dynamics.recursions.sensing", "SENSE")


class Swift(NamedTuple):
    """What the sweep answered beside the means, for all states (B, ·) of a result; NaN where it had no answer."""

    lam: Array
    m: Array
    pivot: Array


def program_of(problem: Problem, group: Group) -> Program | None:
    """The program of a group's layout, made with the first state that was ever factored for it."""
    layout = problem.layout(group)
    if not layout.programs:
        _, factor = next(problem.parts_of(group, group.members[:1]))
        layout.programs.append(make_program(layout, factor))
    return layout.programs[0]


def run(system: System, program: Program, q: Array, v: Array, y: Array, g: Array) -> tuple[bool, list[Array]]:
    """Run the sweep over rows (B, ·): whether all have an answer, and a, tau, α, λ, f, x, m, pivots."""
    size, n = len(y), system.n_bodies
    out = [np.empty((size, system.nv)) for _ in range(2)]
    out += [np.empty((size, n, 6)) for _ in range(4)]
    out += [np.empty((size, program.n_rows)), np.empty((size, program.n_unknowns))]
    return SENSE(system, size, *program.parameters, q, v, y, g, *out) == FINE, out


def means(problem: Problem, out: DynamicsEstimate) -> list[tuple[Group, Index]]:
    """Fill the means by the sweep; the states that are left, by group. One group at most is served."""
    if len(problem.groups) != 1 or not problem.size or not problem.system.nv:
        return [(group, group.members) for group in problem.groups]
    (group,) = problem.groups
    program = program_of(problem, group)
    if program is None:
        return [(group, group.members)]
    bias = _bias(problem.system, problem.sensors)
    y = np.nan_to_num(np.concatenate(problem.readings, axis=1)) - bias
    fine, answers = run(problem.system, program, problem.q, problem.v, y, problem.gravity)
    a, tau, alpha, lam, f, x, m, pivot = answers
    alpha[:, :, 3:] += problem.gravity[:, None]
    for key, value in zip(("a", "tau", "body_accelerations", "hinge_forces", "external_forces"), (a, tau, alpha, f, x)):
        out.flat(getattr(out, key))[:] = value
    out._swift = Swift(lam, m, pivot)
    left = np.flatnonzero(np.isnan(a).any(1)) if not fine else group.members[:0]
    return [(group, left)] if left.size else []


def at_once(
    system: System, q: Any, v: Any, sensors: Sequence[Sensor], readings: Sequence[Any], gravity: Any
) -> DynamicsEstimate | None:
    """One state, or a plain batch, whose layout is known: straight into the sweep. None where anything is unusual."""
    from kfdyn.dynamics.sensors.result import DynamicsEstimate

    known = _known(system, tuple(sensors)) if type(q) is np.ndarray and q.ndim and v is not None else None
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
    program = known.layout.programs[0]
    if q.ndim > 2 or q.dtype != np.float64 or y.dtype != np.float64 or y.shape != (len(q), len(known.bias)):
        return None
    if len(v) != len(q) or q.shape[1] != system.nq:
        return None
    fine, (a, tau, alpha, lam, f, x, m, pivot) = run(system, program, q, v, y, system.gravity)
    if not fine:
        return None
    alpha[:, :, 3:] += system.gravity
    found = (a, tau, alpha, f, x) if lead else (a[0], tau[0], alpha[0], f[0], x[0])
    given = q if lead else q[0], v if lead else v[0]
    return DynamicsEstimate(lambda: make_problem(system, *given, sensors, readings, None), found, Swift(lam, m, pivot))


class _Known(NamedTuple):
    layout: Layout
    sizes: tuple[int, ...]
    bias: Array


@lru_cache(maxsize=64)
def _sizes(system: System, sensors: tuple[Sensor, ...]) -> tuple[int, ...]:
    return tuple(sensor.size(system) for sensor in sensors)


@lru_cache(maxsize=64)
def _bias(system: System, sensors: tuple[Sensor, ...]) -> Array:
    return np.concatenate([sensor.biases(system) for sensor in sensors]) if sensors else np.zeros(0)


_ready: dict[tuple[System, tuple[Sensor, ...]], _Known] = {}


def _known(system: System, sensors: tuple[Sensor, ...]) -> _Known | None:
    """A layout with all its readings there, if its program has been made and serves."""
    return _ready.get((system, sensors))


def remember(problem: Problem) -> None:
    """Let the next call with the same sensors go straight into the sweep."""
    if len(problem.groups) != 1 or not problem.sensors:
        return
    (group,) = problem.groups
    if not all(all(part) for part in group.pattern):
        return
    layout = make_layout(problem.system, problem.sensors, group.pattern)
    if layout.programs and layout.programs[0] is not None:
        if len(_ready) >= 64:
            _ready.clear()
        sizes = _sizes(problem.system, problem.sensors)
        _ready[problem.system, problem.sensors] = _Known(layout, sizes, _bias(problem.system, problem.sensors))


def hold_against(est: DynamicsEstimate) -> Checks:
    """Predictions, residuals, multipliers, NIS and log-likelihood of all states."""
    problem, size = est.problem, est.problem.size
    sizes = _sizes(problem.system, problem.sensors)

    def by_sensor() -> list[Array]:
        return [np.empty((size, n)) for n in sizes]

    scalars = np.empty(size), np.empty(size, np.int64), np.empty(size)
    out = Checks(by_sensor(), by_sensor(), by_sensor(), *scalars)
    for group in problem.groups:
        left = group.members
        if est._swift is not None:
            answered = np.isfinite(est._swift.lam[group.members]).all((1, 2))
            for at in range(0, int(answered.sum()), AT_ONCE):
                members = group.members[answered][at : at + AT_ONCE]
                factor, answer = _completed(est, group, members)
                read_rest(factor, [y[members] for y in problem.readings], answer, out, members)
            left = group.members[~answered]
        for members, factor in problem.parts_of(group, left):
            own = [y[members] for y in problem.readings]
            read_rest(factor, own, solve(factor, load_of(factor, own)), out, members)
    return out


def _completed(est: DynamicsEstimate, group: Group, members: Index) -> tuple[Factor, Answer]:
    """What the sweep answered, as the solver would have given it; of the factor only what is read."""
    problem, swift = est.problem, est._swift
    assert swift is not None
    layout = problem.layout(group)
    terms = problem.terms(members)
    nodes: dict[int, NodeFactor] = {}
    none = np.zeros((0, 0))
    m_of, at = {}, 0
    for k, node in enumerate(layout.nodes):
        data = node_data(layout, node, terms)
        nodes[k] = NodeFactor(
            data, none, none, np.zeros(0, np.int64), np.zeros(0, np.int64), none, none, none, none, none
        )
        m_of[k] = swift.m[members, at : at + node.n_rows, None]
        at += node.n_rows
    log_det = np.log(np.abs(swift.pivot[members])).sum(-1)
    alpha = est.flat(est.body_accelerations)[members].copy()
    alpha[:, :, 3:] -= problem.gravity[members, None]
    f, q = est.flat(est.hinge_forces)[members], est.flat(est.a)[members]
    answer = Answer(alpha[..., None], swift.lam[members, ..., None], f[..., None], q[..., None], m_of, {})
    return Factor(layout, terms, nodes, log_det, np.zeros(len(members)), {}), answer
