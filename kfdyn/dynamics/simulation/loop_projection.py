"""Marching on loops: where a motion may begin, where its contacts are anchored, and the way back after every step."""

from __future__ import annotations

import math

import numpy as np

from kfdyn.arrays import Array
from kfdyn.dynamics.loops.assemble import project
from kfdyn.dynamics.loops.cut_joint import Cut
from kfdyn.errors import ModelError
from kfdyn.multibody import System, frame_pose
from kfdyn.multibody.loops.closure import LEFT_OPEN, gap_units, warn_left_open, worst_gap
from kfdyn.multibody.loops.loop import Loop


def onto_loops(system: System, q: Array, v: Array) -> tuple[System, Array, Array]:
    """The system with its contacts anchored at q (..., nq), and the state moved onto the loops, if it is near them."""
    flat_q, flat_v = q.reshape(-1, system.nq), v.reshape(-1, system.nv)
    where = flat_q if q.ndim > 1 else q
    loops = tuple(_anchored(system, loop, where) for loop in system.loops)
    held = system.without_loops.with_loops(loops)
    cut, unit = Cut(held, flat_q, flat_v), gap_units(held, flat_q)
    if (np.abs(cut.gap()) > LEFT_OPEN * unit).any():
        name, off = worst_gap(held, flat_q)
        raise ModelError(
            f"loop {name} is open by {off:.3g} (m or rad) where the motion is to begin; close it first: "
            "q = kf.assemble(system, q)"
        )
    rates, made_of = np.abs(cut.of_rates(flat_v)), (np.abs(cut.J) @ np.abs(flat_v)[..., None])[..., 0]
    if (rates > LEFT_OPEN * (unit + made_of)).any():
        raise ModelError(
            f"the velocities where the motion is to begin open the loops at {rates.max():.3g} (m/s or rad/s); bring "
            "them onto the loops first: v = kf.impact(system, q, v).v"
        )
    q, v = back_onto_loops(held, q, v)
    warn_left_open(held, q.reshape(-1, system.nq), level=4)
    return held, q, v


def back_onto_loops(system: System, q: Array, v: Array) -> tuple[Array, Array]:
    """Positions and velocities (...) of a state near the loops, on them."""
    if not np.isfinite(q).all() or not np.isfinite(v).all():
        return q, v  # told by the march
    size = math.prod(q.shape[:-1])
    q_new, v_new = project(system, q.reshape(size, system.nq), v.reshape(size, system.nv))
    return q_new.reshape(q.shape), v_new.reshape(v.shape)


def _anchored(system: System, loop: Loop, q: Array) -> Loop:
    """A contact that holds rates alone, with an anchor where q puts it, if its rows are rates of positions at all."""
    if loop.holds_positions or not integrable(loop):
        return loop
    name = loop.frame_a or loop.frame_b
    assert name is not None
    pose = frame_pose(system, q, name)
    rotation = (
        pose.rotation if loop.frame_a is not None or loop.angular else np.broadcast_to(np.eye(3), pose.rotation.shape)
    )
    return loop.anchored(rotation, pose.position)


def integrable(loop: Loop) -> bool:
    """Whether the rates that a contact with the world holds are rates of positions.

    All three rows of a kind are. Some linear rows along axes that turn with the frame are not (a skate, a wheel); along
    the world's axes they are. One or two angular rows never are.
    """
    if loop.rolling is not None:
        return False
    linear = len(loop.rows) - len(loop.angular)
    if len(loop.angular) not in (0, 3):
        return False
    return linear in (0, 3) or (loop.frame_a is None and not loop.angular)
