"""Choose the programs of a problem: one made in general position, a more careful one, then those of single states.

The elimination that is best in general position loses digits in some states, where what it eliminates early is nearly
singular. These go to a program that carries on, from where something is carried at all, whatever is not well above the
rounding; and what even that does not suit is decided state by state, or refused by name. So which program answers a
state depends on that state alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np

from kfdyn.dynamics.sensors.dofs import dofs_of
from kfdyn.dynamics.sensors.sensor import Index, Mask
from kfdyn.dynamics.sensors.solver.answers import Declined
from kfdyn.dynamics.sensors.solver.order import Order, find_order, in_general_position
from kfdyn.dynamics.sensors.solver.problem import Group, Problem
from kfdyn.dynamics.sensors.solver.program import Program, make_program
from kfdyn.dynamics.sensors.solver.sweeps import States, make_states

# Nodes of all programs that are kept, of which readings missing in many patterns need many: about a kilobyte each.
NODES = 50_000

Found = TypeVar("Found")

_programs: dict[tuple[Any, ...], Program | None] = {}


def program_of(problem: Problem, group: Group, general: bool = False, careful: bool = False) -> Program | None:
    """The program of a group's layout, made in general position; None where that leaves something undetermined."""
    key = problem.system, problem.sensors, group.pattern, problem.loop_rows, general, careful
    if key not in _programs:
        if len(_programs) * (problem.system.n_bodies + 1) > NODES:
            _programs.clear()
        layout = problem.layout(group)
        order = in_general_position(layout, careful)
        _programs[key] = None if order is None else make_program(layout, order, general)
    return _programs[key]


def by_sweeps(
    problem: Problem,
    group: Group,
    sweep: Callable[[Program, Index], tuple[Found, Mask]],
    general: bool = False,
    alone: bool = True,
) -> Iterator[tuple[Index, Program, Found, Mask]]:
    """Run ``sweep(program, members)``, which returns what it found and which of them have an answer, until all have.

    Yields the members that were asked about, the program, what was found, and the mask. Unless ``alone``, states that
    need a program of their own are left without an answer.
    """
    members = group.members
    for careful in (False, True):
        program = program_of(problem, group, general, careful) if members.size else None
        if program is not None:
            found, good = sweep(program, members)
            yield members, program, found, good
            members = members[~good]
    for i in range(len(members) if alone else 0):
        order = own_order(problem, group, int(members[i]))
        program = make_program(problem.layout(group), order, general, own=True)
        found, good = sweep(program, members[i : i + 1])
        if not good.all():
            raise Declined(group, int(members[i]))
        yield members[i : i + 1], program, found, good


def own_order(problem: Problem, group: Group, i: int) -> Order:
    """The order of state i alone, or that it is declined."""
    order = find_order(problem.layout(group), problem.terms(np.array([i])))
    if not order.suits:
        raise Declined(group, i)
    return order


def is_swept(problem: Problem) -> bool:
    """Tell whether sweeps serve a system: bodies that bend, and robots without dofs, have the dense estimate."""
    return dofs_of(problem.system).width == 6 and problem.system.nv > 0


def states_of(problem: Problem, program: Program, members: Index) -> States:
    """Some states of a problem, as the sweeps take them."""
    q, v, gravity = problem.q[members], problem.v[members], problem.gravity[members]
    return make_states(problem.system, program, q, v, gravity)
