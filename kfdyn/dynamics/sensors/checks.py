"""Readings held against an estimate: what the sweep of the means left out is run for, and completed by numpy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kfdyn.dynamics.sensors.factor import Factor, NodeFactor
from kfdyn.dynamics.sensors.node_data import node_data
from kfdyn.dynamics.sensors.problem import AT_ONCE
from kfdyn.dynamics.sensors.readings import Group, load_of
from kfdyn.dynamics.sensors.readout import Checks, read_rest
from kfdyn.dynamics.sensors.sensor import Array, Index
from kfdyn.dynamics.sensors.solve import Answer, solve
from kfdyn.dynamics.sensors.swift import Means, clean_readings, run, served, sizes_of

if TYPE_CHECKING:
    from kfdyn.dynamics.sensors.result import DynamicsEstimate


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
