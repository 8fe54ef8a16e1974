"""The loops of a system as compiled code finds them: tables of loops and rows, and where the frames of the ends are."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kfdyn.arrays import Array
from kfdyn.multibody.calls.arguments import configuration, overflow
from kfdyn.multibody.calls.kernel import Kernel, known
from kfdyn.multibody.calls.packed_model import Model, model_of
from kfdyn.multibody.loops.loop import Loop

if TYPE_CHECKING:
    from kfdyn.multibody.system import System

Index = NDArray[np.int64]

# Of a system's size: a loop that is smaller is a point, and its lengths are nothing but rounding.
TINY = 1e-9

LOOP_ROWS = Kernel("kfdyn.multibody.recursions.loops.loop_readings", "LOOP_ROWS")


class LoopReadings(NamedTuple):
    """Readings of the rows of all loops at some states.

    Attributes
    ----------
    J : (..., Σr, nv)
        Rates of the rows are J v.
    made_of : (..., Σr, nv_tree)
        What the squares of J of the open tree are made of before anything cancels, levers as long as their loop: to
        that, a zero is zero.
    drift : (..., Σr)
        J̇v.
    gap : (..., Σr)
        How far the rows are from closed, metres and radians; NaN where axes are opposite.
    forces : (..., Σr, 12)
        A unit force of each row as it acts on the bodies of frame_a and frame_b, at their origins.
    """

    J: Array
    made_of: Array
    drift: Array
    gap: Array
    forces: Array


class LoopTables(NamedTuple):
    """Arguments of entries with loops: rows, loops, ``loop_table``, ``row_table``; and ``ends`` (..., loops, 26).

    ``units`` (Σr,) are what rates of rows are large or small to: a radian, or the size of their loop.
    """

    of: tuple[int, int, Index, Index]
    ends: Array
    units: Array


@lru_cache(maxsize=64)
def loop_tables(system: System) -> LoopTables:
    """Tables of the loops of a system, in its open tree; anchors of a batch of states give ``ends`` a leading axis."""
    tree, model = system.open_tree, model_of(system.open_tree)
    loops, rows, ends, units, at = [], [], [], [np.zeros(0)], 0
    for loop in system.loops:
        names = (loop.frame_a, loop.frame_b)
        held = [None if name is None else loop.moves_with(name) for name in names]
        places = [0 if name is None else int(model.place[tree.locate(name)[0]]) for name in (*held, *names)]
        third = min({0, 1, 2} - set(loop.angular), default=0)
        loops.append((*places, at, at + len(loop.rows), int(loop.holds_positions), len(loop.angular), third))
        at += len(loop.rows)
        rows += [_row(loop, row) for row in loop.rows]
        size = _size(tree, loop)
        ends += [_end(tree, model, loop, name, size) for name in names]
        units.append(np.where(np.asarray(loop.rows) < 3, 1.0, size))
    lead = np.broadcast_shapes(*(end.shape[:-1] for end in ends))
    table = np.moveaxis(np.array([np.broadcast_to(end, (*lead, 13)) for end in ends]).reshape(-1, *lead, 13), 0, -2)
    of = (at, len(loops), np.array(loops, np.int64).reshape(-1), np.array(rows, np.int64).reshape(-1))
    return LoopTables(of, np.ascontiguousarray(table.reshape(*lead, len(loops), 26)), np.concatenate(units))


def _row(loop: Loop, row: int) -> tuple[int, int, int, int]:
    """Kind and axes: one angular row alone keeps two axes at a right angle."""
    from kfdyn.multibody.recursions.loops.loop_rows import ACROSS, ANGULAR, LINEAR

    i = row % 3
    kind = LINEAR if row >= 3 else ACROSS if len(loop.angular) == 1 and loop.holds_positions else ANGULAR
    return kind, i, (i + 1) % 3, (i + 2) % 3


def _size(tree: System, loop: Loop) -> float:
    """Return the size of a loop: its longest link, or the farthest mass of one; without any, that of its system.

    Where the loop begins in the body (or the world) that carries all of it does not count.
    """
    ways = []
    for end in (loop.frame_a, loop.frame_b):
        k, way = -1 if end is None else tree.locate(loop.moves_with(end))[0], []
        while k >= 0:
            way.append(k)
            k = int(tree.parent[k])
        ways.append(way)
    own = [k for way, other in (ways, ways[::-1]) for k in way if k not in other]
    inner = [tree.bodies[k] for k in own if tree.parent[k] in own]
    arms = [tree.locate(end)[2] for end in (loop.frame_a, loop.frame_b) if end is not None]
    sizes = [*(_length(body.position) for body in inner), *map(_length, arms), *(_spread(tree, k) for k in own)]
    size, whole = max(sizes, default=0.0), _whole(tree) or 1.0
    return size if size > TINY * whole else whole


@lru_cache(maxsize=64)
def _whole(tree: System) -> float:
    """The size of a whole system: its longest link, or the farthest mass of one."""
    return max(max(_length(body.position), _spread(tree, k)) for k, body in enumerate(tree.bodies))


def _length(x: Array) -> float:
    return float(np.linalg.norm(x))


def _spread(tree: System, k: int) -> float:
    """Return the mean distance of a body's mass from its hinge."""
    inertia = np.asarray(tree.bodies[k].inertia)
    mass = float(inertia[5, 5])
    return math.sqrt(0.5 * float(np.trace(inertia[:3, :3])) / mass) if mass > 0 else 0.0


def _end(tree: System, model: Model, loop: Loop, name: str | None, size: float) -> Array:
    """Turn, place and size (..., 13) of an end in its body, whose frame the tables have turned; or of the anchor."""
    if name is None:
        turn, arm = (np.eye(3), np.zeros(3)) if loop.anchor is None else loop.anchor
    else:
        body, rotation, position = tree.locate(name)
        own = model.tables["frames"][model.place[body]]
        turn, arm = own.T @ rotation, own.T @ position
    sizes = np.full((*arm.shape[:-1], 1), size)
    return np.concatenate([turn.reshape(*turn.shape[:-2], 9), arm, sizes], axis=-1)


def loop_readings(system: System, q: Array, v: Array | None = None) -> LoopReadings:
    """Read the rows of all loops in states (..., nq), (..., nv); no v is at rest. O(depth) a row."""
    tables, given, base = loop_tables(system), q, system.without_loops
    tree, q, v, a = base.opened(q, v=v, a=None)
    q = np.ascontiguousarray(q, dtype=float)
    if tables.ends.ndim > 2 and q.ndim == 1:
        q = np.tile(q, (len(tables.ends), 1))
    lead, rows = q.shape[:-1], tables.of[0]
    v = np.zeros((*lead, tree.nv)) if v is None else np.array(np.broadcast_to(v, (*lead, tree.nv)), order="C")
    tails = ((rows, tree.nv), (rows, tree.nv), (rows,), (rows,), (rows, 12))
    out = LoopReadings(*(np.empty((*lead, *tail)) for tail in tails))
    if not known(LOOP_ROWS(tree, math.prod(lead), *tables.of, q, v, tables.ends, *out)):
        configuration(tree, q)  # says what is wrong with it
        raise overflow(tree, "the rates of its loops", q=q, v=v)
    drift = out.drift if a is None else out.drift + (out.J @ a[..., None])[..., 0]  # attachments to what bends: Ẋv
    return out._replace(J=base.narrowed(given, out.J), drift=drift)
