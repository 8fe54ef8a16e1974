"""A system as compiled code finds it: bodies numbered, their frames turned, places handed out; once for each system."""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from kfdyn.multibody.arguments import expect_system
from kfdyn.multibody.hinge import Coordinates
from kfdyn.multibody.layout import Layout
from kfdyn.multibody.system import System

if TYPE_CHECKING:
    from kfdyn.sweeps.special import Specials

Array = NDArray[np.float64]
Index = NDArray[np.int64]

#: Of a rotation's entries: less is rounding.
_NOTHING = 1e-15

#: Bodies outboard of one that are very many: the bound of their moment of inertia, which grows with their number's
#: cube, says little then.
_MANY = 1000

# Numbers that a sweep may want for each body, dof and slot: forward dynamics and what needs less find room enough.
_OF_BODY, _OF_DOF, _OF_SLOT, _LANES = 48, 16, 32, 8

_preparing = Lock()


@dataclass(frozen=True)
class Model:
    """What an :class:`~kfdyn.sweeps.entry.Entry` wants of a system; ``specials`` are its own, if it has any."""

    address: int
    size: int
    tables: dict[str, Any]
    place: Index
    kept: tuple[object, ...]
    frames: dict[str, tuple[int, Index, Array, Array]]
    own_frames: list[Model]
    placed: dict[bytes, tuple[int, Index, Array, Index]]
    left_inverse: Array
    specials: Specials | None


def model_of(system: System) -> Model:
    """The system as entries find it, made when first asked for."""
    if not system.address:
        with _preparing:
            if not system.address:
                made = prepare(system)
                system.keep(made.address, made)
    return cast(Model, system._kept[0])


def in_own_frames(system: System) -> Model:
    """The system with its bodies' frames as they are, no hinge being taken for simpler than any other.

    Slower, and free of the rounding that turned frames bring: what is 0 or 1 by construction is so to the bit.
    """
    model = model_of(system)
    if not model.own_frames:
        with _preparing:
            if not model.own_frames:
                model.own_frames.append(prepare(system, turned=False))
    return model.own_frames[0]


def address_of(system: System) -> int:
    """Where compiled code finds the system: the address of a table of addresses.

    One number instead of a Layout, since each array that Python hands to compiled code costs time. Behind it is what
    the sweeps would otherwise work out of the layout in every call, and room to work in.
    """
    return system.address or model_of(system).address


def prepare(system: System, turned: bool = True) -> Model:
    """Number the bodies, turn their frames, hand out slots, and pack it all (see ``recursions/robot.py``)."""
    from kfdyn.multibody.recursions.robot import INDEX, LINK, ROBOT
    from kfdyn.sweeps.records import address_of
    from kfdyn.sweeps.special import Specials

    layout, n = system.layout, system.n_bodies
    index, entries = _numbered(layout, turned)
    snaps = _close(index)
    slots = _slots(index)
    real = _links(layout, index)
    kinds = INDEX.filled(n + 1, np.int64, **{name: index[name] for name in INDEX.fields})
    links = LINK.filled(n + 1, **real)
    own = np.empty(8 + _LANES * (_OF_BODY * (n + 1) + _OF_DOF * system.nv + _OF_SLOT * (slots + 1)))
    tables: dict[str, Any] = {
        "n": n, "nq": system.nq, "nv": system.nv, "slots": slots, "snaps": snaps, "index": kinds, "real": links,
        "screws": layout.screws, "armature": layout.armature, "entries": entries, "busy": np.zeros(1, np.int64),
        "workspace": address_of(own), "floats": own.size, "gravity": system.gravity,
    }  # fmt: skip
    address, kept = ROBOT.pack(**tables)
    tables["frames"] = real["frame"].reshape(-1, 3, 3)
    place = np.empty(n, np.int64)
    place[index["body"][1:]] = np.arange(1, n + 1)
    specials = Specials(max(n, system.nv), tables) if turned and system.is_specialised else None
    return Model(address, n, tables, place, (own, *kept), {}, [], {}, _left_inverses(layout), specials)


def _left_inverses(layout: Layout) -> Array:
    """Rows (nv, 6) of H^-*, which give back the dv of a twist H* dv."""
    rows = layout.screws.copy()
    for k in np.flatnonzero(layout.coordinates == Coordinates.POSE):
        own = slice(layout.v_start[k], layout.v_start[k + 1])
        rows[own] = np.linalg.pinv(layout.screws[own]).T
    return rows


def frame_of(system: System, frame: str) -> tuple[int, Index, Array, Array]:
    """How long the path from a root to a frame is, its bodies, and the frame's place and turn in the last of them.

    Bodies and frames as they are in the tables, which have turned the bodies' own frames. The system, or its open tree
    if it is none, is prepared then.
    """
    try:
        return system._kept[0].frames[frame]  # type: ignore[attr-defined]
    except (AttributeError, KeyError):  # for the first time, or no tree
        expect_system(system)
        system = system.open_tree
        model = model_of(system)
    known = model.frames.get(frame)
    if known is None:
        body, rotation, position = system.locate(frame)
        path = [body]
        while (k := int(system.parent[path[-1]])) >= 0:
            path.append(k)
        own = model.tables["frames"][model.place[body]]
        known = (len(path), model.place[path[::-1]], own.T @ position, own.T @ rotation)
        model.frames[frame] = known
    return known


def _numbered(layout: Layout, turned: bool) -> tuple[dict[str, Index], Index]:
    """Count bodies, each followed by all that is outboard of it, and their dofs; note what each hinge is."""
    n = layout.parent.size
    index = {
        name: np.zeros(n + 1, np.int64)
        for name in (
            "parent", "kind", "twisted", "q", "v", "v_end", "body", "arrives", "base", "leaves", "loose", "end",
            "column", "own_end", "column_end", "snap", "looks_at",
        )
    }  # fmt: skip
    children: list[list[int]] = [[] for _ in range(n + 1)]
    for k in layout.order.tolist():
        children[int(layout.parent[k]) + 1].append(k)
    parent, v_start, q_start = layout.parent.tolist(), layout.v_start.tolist(), layout.q_start.tolist()
    kinds, place = _kinds(layout), [0] * (n + 1)
    if not turned:
        kinds = np.where(kinds == 0, 2, kinds)  # a revolute hinge is a hinge of one screw
    kinds = kinds.tolist()
    entries: list[int] = []
    index["looks_at"][:] = -1
    waiting, t = children[0][:], 0
    while waiting:
        k = waiting.pop()
        t += 1
        place[k + 1] = t
        up = place[parent[k] + 1]
        index["body"][t], index["parent"][t], index["kind"][t] = k, up, kinds[k]
        index["q"][t], index["v"][t], index["v_end"][t] = q_start[k], v_start[k], v_start[k + 1]
        if index["looks_at"][up] < 0 and kinds[k] == 0:
            index["looks_at"][up] = k
        index["column"][t] = len(entries)
        entries.extend(range(v_start[k], v_start[k + 1]))
        index["own_end"][t] = len(entries)
        waiting.extend(children[k + 1])
    return index, np.array(entries, np.int64)


def _kinds(layout: Layout) -> Index:
    """What each hinge is: REVOLUTE, SLIDE, SCREWS, BALL or POSE."""
    single = np.diff(layout.v_start) == 1
    first = np.minimum(layout.v_start[:-1], max(len(layout.screws) - 1, 0))
    screws = layout.screws[first] if len(layout.screws) else np.zeros((len(single), 6))
    turns, slides = screws[:, :3].any(axis=1), screws[:, 3:].any(axis=1)
    kind = np.where(single & ~turns, 1, np.where(single & ~slides, 0, 2))
    return np.where(
        layout.coordinates == Coordinates.SCREWS, kind, np.where(layout.coordinates == Coordinates.POSE, 4, 3)
    ).astype(np.int64)


def _close(index: dict[str, Index]) -> int:
    """Where what is outboard of each body ends, and where branches are kept; how many columns are kept in all."""
    n = len(index["parent"]) - 1
    end, column_end = np.arange(1, n + 2), index["own_end"].copy()
    for t in range(n, 0, -1):
        up = index["parent"][t]
        end[up], column_end[up] = max(end[up], end[t]), max(column_end[up], column_end[t])
    snaps = 0
    for t in range(1, n + 1):
        index["snap"][t] = -1
        if end[t] > t + 1 and end[t + 1] < end[t]:  # more than one child
            index["snap"][t] = snaps
            snaps += int(column_end[t] - index["own_end"][t])
    index["end"], index["column_end"] = end, column_end
    return snaps


def _slots(index: dict[str, Index]) -> int:
    """Hand a body's slot on to its parent, so that a chain needs one and a tree as many as branches are open."""
    n = len(index["parent"]) - 1
    parent, slot, used = index["parent"].tolist(), [0] * (n + 1), 1
    free: list[int] = []
    for t in range(n, 0, -1):
        p, own = parent[t], slot[t]
        index["arrives"][t] = own
        if p > 0 and slot[p] == 0:
            if own == 0 and free:
                own = free.pop()
            elif own == 0:
                own, used = used, used + 1
            slot[p] = own
            index["leaves"][t] = own
        else:
            index["base"][t] = index["leaves"][t] = slot[p]
            if own > 0:
                free.append(own)
    return used


def _links(layout: Layout, index: dict[str, Index]) -> dict[str, Array]:
    """Choose the bodies' frames, describe the bodies in them, and bound what is outboard of each."""
    n, body = len(index["parent"]) - 1, index["body"][1:]
    S = np.concatenate([np.eye(3)[None], _frames(layout, index)])
    own, up = S[1:], S[index["parent"][1:]]
    R = up.transpose(0, 2, 1) @ layout.rotation[body] @ own
    J = own.transpose(0, 2, 1) @ layout.J[body] @ own
    m = layout.mass[body]
    p = (own.transpose(0, 2, 1) @ layout.com[body][:, :, None])[:, :, 0]
    position = (up.transpose(0, 2, 1) @ layout.position[body][:, :, None])[:, :, 0]
    # R = Rz(a) Rx(alpha) Rz(b) of revolute hinges
    revolute = index["kind"][1:] == 0
    twisted = revolute & (np.abs(R[:, 0, 2]) > _NOTHING)
    index["twisted"][1:] = twisted
    r = np.where(twisted, np.hypot(R[:, 0, 2], R[:, 1, 2]), 1.0)
    c, s = np.where(twisted, -R[:, 1, 2] / r, 1.0), np.where(twisted, R[:, 0, 2] / r, 0.0)
    offset = np.arctan2(-(c * R[:, 0, 1] + s * R[:, 1, 1]), c * R[:, 0, 0] + s * R[:, 1, 0])
    armature = np.zeros(n)
    moves = index["v_end"][1:] > index["v"][1:]
    armature[moves] = layout.armature[index["v"][1:][moves]]
    upper = np.stack([J[:, 0, 0], J[:, 0, 1], J[:, 0, 2], J[:, 1, 1], J[:, 1, 2], J[:, 2, 2]], axis=1)
    # J = j + x g* + g x* + y h* + h y* with j = J_zz, g = (., J_xy, J_xz), h = (0, ., J_yz): cheap to turn
    split = upper.copy()
    split[:, 0], split[:, 3] = 0.5 * (upper[:, 0] - upper[:, 5]), 0.5 * (upper[:, 3] - upper[:, 5])
    moment = np.abs(upper[:, [0, 3, 5]]).sum(axis=1)
    all_mass, all_moment = _bounds(layout, index, m, moment, position)
    tilt = np.stack([R[:, 2, 2], s * R[:, 0, 2] - c * R[:, 1, 2]], axis=1)
    below = {
        "rotation": R.reshape(n, 9), "twist": np.stack([c, s], axis=1), "tilt": tilt, "offset": offset,
        "position": position, "moment": upper, "first": m[:, None] * p, "mass": m, "split": split,
        "armature": armature, "all_mass": all_mass, "all_moment": all_moment,
    }  # fmt: skip
    links = {name: np.concatenate([np.zeros((1, *value.shape[1:])), value]) for name, value in below.items()}
    return {**links, "frame": S.reshape(n + 1, 9)}


def _frames(layout: Layout, index: dict[str, Index]) -> Array:
    """The bodies' frames in the layout's: z the axis, x the common normal with the axis of the child looked at."""
    body, looks = index["body"][1:], index["looks_at"][1:]
    n, revolute = len(body), index["kind"][1:] == 0
    frames = np.tile(np.eye(3), (n, 1, 1))
    if not revolute.any():
        return frames
    k, child = body[revolute], looks[revolute]
    z = layout.screws[layout.v_start[k], :3]
    z = z / np.sqrt((z * z).sum(axis=1, keepdims=True))
    has = child >= 0
    axis = layout.screws[np.where(has, layout.v_start[child], 0), :3]
    other = (layout.rotation[child] @ axis[:, :, None])[:, :, 0]
    x = np.where(has[:, None], np.cross(z, other), 0.0)
    vague = (x * x).sum(axis=1) < _NOTHING * _NOTHING  # parallel axes, or none: any x will do
    x = np.where(vague[:, None], np.where(np.abs(z[:, :1]) < 0.7, [[1.0, 0.0, 0.0]], [[0.0, 1.0, 0.0]]), x)
    for _ in range(2):  # twice is enough, even if x was made of rounding
        x = x / np.sqrt((x * x).sum(axis=1, keepdims=True))
        x = x - (x * z).sum(axis=1, keepdims=True) * z
    x = x / np.sqrt((x * x).sum(axis=1, keepdims=True))
    frames[revolute] = np.stack([x, np.cross(z, x), z], axis=2)
    return frames


def _bounds(
    layout: Layout, index: dict[str, Index], mass: Array, moment: Array, position: Array
) -> tuple[Array, Array]:
    """Mass outboard, and a bound of its moment of inertia about the hinge point; loose where slides change it."""
    n = len(mass)
    masses, moments = [0.0, *mass.tolist()], [0.0, *moment.tolist()]
    reach = [0.0, *(position * position).sum(axis=1).tolist()]
    parent, kind, end = index["parent"].tolist(), index["kind"].tolist(), index["end"].tolist()
    loose = [0] * (n + 1)
    slides = np.concatenate([[0], np.cumsum(layout.screws[:, 3:].any(axis=1))])
    first, last = index["v"].tolist(), index["v_end"].tolist()
    for t in range(n, 0, -1):
        p, away = parent[t], masses[t] * reach[t]
        masses[p] += masses[t]
        moments[p] += moments[t] + 2.0 * (moments[t] * away) ** 0.5 + away
        moved = kind[t] == 4 or loose[t] > 0 or (1 <= kind[t] <= 2 and slides[last[t]] > slides[first[t]])
        if end[t] - t > _MANY:
            loose[p] = 2
        elif moved and loose[p] == 0:
            loose[p] = 1
    index["loose"] = np.array(loose)
    return np.array(masses[1:]), np.array(moments[1:])
