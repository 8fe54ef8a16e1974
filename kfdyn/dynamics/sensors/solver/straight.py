"""One state, or a plain batch, of sensors that were there before: straight into the sweep."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from kfdyn.dynamics.sensors.joint_sensors import JointTorque
from kfdyn.dynamics.sensors.sensor import Array, Sensor
from kfdyn.dynamics.sensors.solver.problem import Problem
from kfdyn.dynamics.sensors.solver.program import Program
from kfdyn.dynamics.sensors.solver.programs import is_swept, program_of
from kfdyn.dynamics.sensors.solver.sweeps import make_states, run
from kfdyn.multibody import System


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
    fine, found = run(system, known.program, make_states(system, known.program, q, v, system.gravity), y)
    if not fine:
        return None
    return known.program, q, v, found.five if lead else tuple([x[0] for x in found.five])


class _Known(NamedTuple):
    program: Program
    sizes: tuple[int, ...]
    bias: Array
    kept: tuple[object, ...]  # what the identities of the key belong to


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
    program = program_of(problem, group) if is_swept(problem) else None
    if program is not None:
        if len(_ready) >= 64:
            _ready.clear()
        known = _Known(program, tuple(y.shape[1] for y in problem.readings), problem.bias, (system, sensors))
        _ready[(id(system), *map(id, sensors))] = known
