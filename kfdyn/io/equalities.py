"""Mimic joints and MuJoCo's equality constraints as couplings and loops."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kfdyn.errors import ModelError
from kfdyn.io.loaded import Mimic, listed
from kfdyn.io.mjcf_bodies import W_LAST, MjBodies, MjNames
from kfdyn.multibody import Coupling, Frame, Loop, Pose
from kfdyn.spatial import quaternion_to_matrix

Array = NDArray[np.float64]

NO_EQUALITIES = 1 << 0 | 1 << 1  # mjtDisableBit: all constraints, or equalities alone


def check_choice(mimic: str) -> None:
    """Refuse a word that load does not know."""
    if mimic not in ("obey", "free"):
        raise ModelError(f"mimic must be 'obey' or 'free', got {mimic!r}")


def couplings_of(
    mimics: Iterable[Mimic], movable: Collection[str], locked: Collection[str] = ()
) -> tuple[tuple[Coupling, ...], list[str]]:
    """One coupling for each hinge that others follow, through chains of followers; and notes on what is left free.

    ``movable`` are hinges of one dof; ``locked`` are fixed ones, whose followers stand still at their offset.
    """
    rule = {mimic.hinge: mimic for mimic in mimics if mimic.hinge in movable}
    groups: dict[str | None, list[tuple[str, float, float]]] = {}
    lost = []
    for name in rule:
        of, factor, offset, seen = name, 1.0, 0.0, [name]
        while of in rule:  # q(name) = factor · q(of) + offset
            step = rule[of]
            factor, offset, of = factor * step.multiplier, factor * step.offset + offset, step.of
            if of in seen:
                loop = " -> ".join([*seen[seen.index(of) :], of])
                raise ModelError(f"mimic joints follow each other in a circle: {loop}; let one of them be free")
            seen.append(of)
        if of in movable:
            groups.setdefault(of, []).append((name, factor, offset))
        elif of in locked:
            groups.setdefault(None, []).append((name, factor, offset))
        else:
            lost.append(name)
    couplings = []
    for driver, followers in groups.items():
        names, factors, offsets = zip(*followers)
        if driver is None:
            couplings.append(Coupling(names, np.zeros((len(names), 0)), offsets))
        else:
            couplings.append(Coupling([driver, *names], [1.0, *factors], [0.0, *offsets]))
    notes = [f"mimic joints move freely, what they follow has not one dof: {listed(lost)}"] if lost else []
    return tuple(couplings), notes


class MjEqualities(NamedTuple):
    """What of a MuJoCo model's equality constraints a System has a place for."""

    mimics: tuple[Mimic, ...]
    loops: tuple[Loop, ...]
    frames: dict[str, Frame]
    left: list[str]


def read_equalities(
    model: Any, names: MjNames, reader: MjBodies, frames: Mapping[str, Frame], world: Mapping[str, Pose]
) -> MjEqualities:
    """Linear joint equalities as mimics, ``connect`` and ``weld`` as loops; the rest is counted among ``left``."""
    mimics, loops, added, left = [], [], {}, []
    taken = {*frames, *world, *names.body}
    CONNECT, WELD, JOINT = 0, 1, 2  # mjtEq
    switched_off = model.opt.disableflags & NO_EQUALITIES
    for e in range(model.neq):
        kind, data = int(model.eq_type[e]), np.array(model.eq_data[e], float)
        one, two = int(model.eq_obj1id[e]), int(model.eq_obj2id[e])
        if switched_off or not model.eq_active0[e]:
            left.append(f"equality {e}, which is not active")
        elif kind == JOINT and not data[2:5].any() and two >= 0:
            mimics.append(Mimic(names.joint[one], names.joint[two], float(data[1]), float(data[0])))
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
