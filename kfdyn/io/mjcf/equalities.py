"""MuJoCo's equality constraints as couplings and loops."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from kfdyn.arrays import Array
from kfdyn.io.load_result import Mimic
from kfdyn.io.mimics import NOTHING
from kfdyn.io.mjcf.mjcf_bodies import W_LAST, MjBodies, MjNames
from kfdyn.multibody import Frame, Loop, Pose
from kfdyn.spatial import quaternion_to_matrix

NO_EQUALITIES = 1 << 0 | 1 << 1  # mjtDisableBit: all constraints, or equalities alone


class MjEqualities(NamedTuple):
    """Equality constraints of a MuJoCo model that a System can represent."""

    mimics: tuple[Mimic, ...]
    loops: tuple[Loop, ...]
    frames: dict[str, Frame]
    left: list[str]


def read_equalities(
    model: Any, names: MjNames, reader: MjBodies, frames: Mapping[str, Frame], world: Mapping[str, Pose]
) -> MjEqualities:
    """Joint equalities as mimics, ``connect`` and ``weld`` as loops; the rest is counted among ``left``."""
    mimics, loops, added, left = [], [], {}, []
    taken = {*frames, *world, *names.body}
    CONNECT, WELD, JOINT = 0, 1, 2  # mjtEq
    switched_off = model.opt.disableflags & NO_EQUALITIES
    for e in range(model.neq):
        kind, data = int(model.eq_type[e]), np.array(model.eq_data[e], float)
        one, two = int(model.eq_obj1id[e]), int(model.eq_obj2id[e])
        if switched_off or not model.eq_active0[e]:
            left.append(f"equality {e}, which is not active")
        elif kind == JOINT:
            c = data[:5].tolist() if two >= 0 else [float(data[0]), 0.0]  # without a second joint: locked
            curve = tuple(c[2:]) if any(c[2:]) else ()
            mimics.append(Mimic(names.joint[one], names.joint[two] if two >= 0 else NOTHING, c[1], c[0], curve))
        elif kind in (CONNECT, WELD):
            places = _places(model, e, kind == WELD, one, two, data)
            ends: list[str | None] = []
            anchor = None
            for i, (body, R, p) in enumerate(places):
                host = _host(reader, frames, world, names, body)
                if isinstance(host, Pose):
                    ends.append(None)
                    anchor = (host.rotation @ R, host.position + host.rotation @ p)
                    continue
                label = f"equality{e}:{'ab'[i]}"
                while label in taken:
                    label += "_"
                taken.add(label)
                added[label] = Frame(host.body, np.asarray(host.rotation) @ R, _at(host, p))
                ends.append(label)
            if any(ends):
                loops.append(Loop(ends[0], ends[1], "pose" if kind == WELD else "point", anchor, f"equality {e}"))
        else:
            left.append(f"equality {e}")
    return MjEqualities(tuple(mimics), tuple(loops), added, left)


def _at(host: Frame, p: Array) -> Array:
    return np.asarray(host.position) + np.asarray(host.rotation) @ p


def _places(model: Any, e: int, weld: bool, one: int, two: int, data: Array) -> list[tuple[int, Array, Array]]:
    """MuJoCo body, rotation and position of both ends."""
    site = 6  # mjOBJ_SITE
    if int(model.eq_objtype[e]) == site:
        return [
            (int(model.site_bodyid[s]), quaternion_to_matrix(model.site_quat[s][W_LAST]), np.array(model.site_pos[s]))
            for s in (one, two)
        ]
    if not weld:
        return [(one, np.eye(3), data[:3]), (two, np.eye(3), data[3:6])]
    # the anchor of body 2 is where relpose puts it in body 1
    return [(one, quaternion_to_matrix(data[6:10][W_LAST]), data[3:6]), (two, np.eye(3), data[:3])]


def _host(
    reader: MjBodies, frames: Mapping[str, Frame], world: Mapping[str, Pose], names: MjNames, body: int
) -> Frame | Pose:
    """The frame of a MuJoCo body on a body of ours, or its pose in the world."""
    if body == 0:
        return Pose(np.eye(3), np.zeros(3))
    carrier = reader.carrier[body]
    assert carrier is not None
    shift = -reader.shift[body]
    if carrier in world:
        pose = world[carrier]
        return Pose(pose.rotation, pose.position + pose.rotation @ shift)
    if carrier in frames:
        host = frames[carrier]
        return Frame(host.body, host.rotation, _at(host, shift))
    return Frame(carrier, np.eye(3), shift)
