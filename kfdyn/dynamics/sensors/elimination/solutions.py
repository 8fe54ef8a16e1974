"""Every state of a problem with what it was solved to: by the sweeps, or by NumPy where no program serves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kfdyn.dynamics.sensors.compiled.order_of_elimination import by_sweeps, states_of
from kfdyn.dynamics.sensors.compiled.program import Program
from kfdyn.dynamics.sensors.compiled.sweeps import Means, Spread, answered, deviations, rates_of_tree, run
from kfdyn.dynamics.sensors.elimination.factor import Factor, NodeFactor, node_data
from kfdyn.dynamics.sensors.elimination.layout import is_served
from kfdyn.dynamics.sensors.elimination.marginals import Local, marginals
from kfdyn.dynamics.sensors.elimination.problem import Problem
from kfdyn.dynamics.sensors.elimination.readout import QUANTITIES, read_out
from kfdyn.dynamics.sensors.elimination.solve import Answer, load_of, solve
from kfdyn.dynamics.sensors.sensor import Index, Mask

if TYPE_CHECKING:
    from kfdyn.dynamics.sensors.result import DynamicsEstimate

# States whose matrices are held at once.
AT_ONCE = 1024
UPPER = np.triu_indices(6)


class Solved(NamedTuple):
    """Some states of a problem: which, what is read there, where F is stationary, and each node's covariances."""

    members: Index
    factor: Factor
    answer: Answer
    locals: Iterator[Local]


def means(problem: Problem, out: DynamicsEstimate) -> None:
    """Write the means of all states into their places of a result."""
    y = problem.clean_readings
    for group in problem.groups:
        if not is_served(problem.system, problem.sensors):
            for members, factor in problem.parts_of(group):
                own = [reading[members] for reading in problem.readings]
                answer = solve(factor, load_of(factor, own, problem.gravity[members]))
                read_out(factor, own, answer, out, members)
            continue

        def sweep(program: Program, members: Index) -> tuple[Means, Mask]:
            fine, found = run(problem.system, program, states_of(problem, program, members), y[members])
            return found, answered(fine, found.a)

        for members, _, found, _ in by_sweeps(problem, group, sweep):
            for key, value in zip(QUANTITIES, found.five):
                out.flat(getattr(out, key))[members] = value


def solutions(problem: Problem, spreads: bool = False) -> Iterator[Solved]:
    """Over all states, some at a time; covariances if ``spreads``."""
    y = problem.clean_readings

    def sweep(program: Program, members: Index) -> tuple[tuple[Means, Spread | None], Mask]:
        states, spread = states_of(problem, program, members), None
        fine, found = run(problem.system, program, states, y[members], checks=True)
        good = answered(fine, found.a)
        if spreads:
            fine, spread = deviations(problem.system, program, states, blocks=True)
            good &= answered(fine, spread.a)
        return (found, spread), good

    for group in problem.groups:
        if not is_served(problem.system, problem.sensors):
            for members, factor in problem.parts_of(group):
                own = [reading[members] for reading in problem.readings]
                answer = solve(factor, load_of(factor, own, problem.gravity[members]))
                yield Solved(members, factor, answer, marginals(factor) if spreads else iter(()))
            continue
        for first in range(0, len(group.members), AT_ONCE):
            few = group._replace(members=group.members[first : first + AT_ONCE])
            for members, program, (found, spread), good in by_sweeps(problem, few, sweep):
                if good.any():
                    yield _completed(problem, program, members[good], found.only(good), spread, good)


def _completed(
    problem: Problem, program: Program, members: Index, found: Means, spread: Spread | None, good: Mask
) -> Solved:
    """What the sweeps answered, as the solver of NumPy would have given it; of the factor only what is read."""
    system, layout, terms, size = problem.system, program.layout, problem.terms(members), len(members)
    nodes: dict[int, NodeFactor] = {}
    empty = np.zeros((0, 0))
    m_of, u_of, joined, at = {}, {}, {}, 0
    for k, node in enumerate(layout.nodes):
        data = node_data(layout, node, terms)
        nodes[k] = NodeFactor(
            data, empty, empty, np.zeros(0, np.int64), np.zeros(0, np.int64), empty, empty, empty, empty, empty
        )
        m_of[k] = found.m[:, at : at + node.n_rows, None]
        at += node.n_rows
        if k in program.places and (node.n_loose or node.joins):
            first, left = program.places[k], program.left[k]
            u = found.w[:, first : first + left, None]
            joined[k] = u[:, left - sum(len(join.new) for join in node.joins) :]
            u_of[k] = (program.joined[k] @ u if k in program.joined else u)[:, : node.n_loose]
    log_det = np.log(np.abs(found.pivot)).sum(-1) - program.log_scale
    n, bodies = len(layout.nodes), system.n_bodies
    alpha, lam, f = np.zeros((3, size, n, 6, 1))
    alpha[:, :bodies, :, 0], lam[:, :bodies, :, 0], f[:, :bodies, :, 0] = found.alpha, found.lam, found.f
    alpha[:, :bodies, 3:, 0] -= problem.gravity[members, None]
    q, none = rates_of_tree(system, found.a)[..., None], np.zeros(size)
    factor = Factor(layout, terms, nodes, log_det, none, none, {})
    answer = Answer(alpha, lam, f, q, m_of, u_of, joined)
    every = iter(()) if spread is None else _locals(program, spread, good)
    return Solved(members, factor, answer, every)


def _locals(program: Program, spread: Spread, good: Mask) -> Iterator[Local]:
    for k, (node, left) in enumerate(zip(program.layout.nodes, program.left)):
        own, count = slice(program.joint[k], program.joint[k + 1]), left + node.n_dofs + node.n_rows
        V = spread.V[good, own].reshape(int(good.sum()), count, count)
        z = np.zeros((len(V), 12 + left, 12 + left))
        if k < program.layout.system.n_bodies:
            Z = spread.Z[good, k]
            for at, part in ((0, Z[:, :21]), (6, Z[:, 57:])):
                z[:, at + UPPER[0], at + UPPER[1]] = z[:, at + UPPER[1], at + UPPER[0]] = part
            z[:, :6, 6:12] = Z[:, 21:57].reshape(-1, 6, 6)
            z[:, 6:12, :6] = z[:, :6, 6:12].swapaxes(1, 2)
        z[:, 12:, 12:] = V[:, :left, :left]
        dofs = slice(left, left + node.n_dofs)
        yield Local(k, V[:, dofs, dofs], -V[:, dofs.stop :, dofs.stop :], z)
