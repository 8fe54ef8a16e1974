"""A system as compiled code finds it: bodies numbered, their frames turned, places handed out; once for each system."""

from __future__ import annotations

from dataclasses import dataclass, replace
from threading import Lock
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from kfdyn.arrays import Array
from kfdyn.multibody.calls.arguments import expect_system
from kfdyn.multibody.calls.layout import Layout
from kfdyn.multibody.calls.link_table import link_table, own_numbers
from kfdyn.multibody.parts.hinge import Coordinates

if TYPE_CHECKING:
    from kfdyn.multibody.system import System
    from kfdyn.multibody.system_batch import SystemBatch
    from kfdyn.sweeps.specialise import Specials

Index = NDArray[np.int64]


def numbered(layout: Layout, turned: bool) -> tuple[dict[str, Index], Index]:
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
    """Return the kind of each hinge: REVOLUTE, SLIDE, SCREWS, BALL or POSE."""
    single = np.diff(layout.v_start) == 1
    first = np.minimum(layout.v_start[:-1], max(len(layout.screws) - 1, 0))
    screws = layout.screws[first] if len(layout.screws) else np.zeros((len(single), 6))
    turns, slides = screws[:, :3].any(axis=1), screws[:, 3:].any(axis=1)
    kind = np.where(single & ~turns, 1, np.where(single & ~slides, 0, 2))
    return np.where(
        layout.coordinates == Coordinates.SCREWS, kind, np.where(layout.coordinates == Coordinates.POSE, 4, 3)
    ).astype(np.int64)


def close_branches(index: dict[str, Index]) -> int:
    """Return where the outboard bodies of each body end, where branches are kept, and the number of columns kept."""
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


def hand_out_slots(index: dict[str, Index]) -> int:
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


# Numbers that a sweep may want for each body, dof and slot: forward dynamics and what needs less find room enough.
_OF_BODY, _OF_DOF, _OF_SLOT, _LANES = 48, 16, 32, 8
# The same for each pair of dofs of a tree with couplings, whose matrices are kept beside those they are made of.
_OF_PAIR = 4

_preparing = Lock()


@dataclass(frozen=True)
class Model:
    """The arrays of a system for an :class:`~kfdyn.sweeps.entry.Entry`; ``specials`` are its own, if it has any."""

    address: int
    size: int
    tables: dict[str, Any]
    place: Index
    kept: Any
    frames: dict[str, tuple[int, Index, Array, Array]]
    own_frames: list[Model]
    placed: dict[bytes, tuple[int, Index, Array, Index]]
    left_inverse: Array
    specials: Specials | None


def model_of(system: System) -> Model:
    """The system as entries find it, made when first asked for: behind one address a table of addresses.

    One number instead of a Layout, since each array that Python hands to compiled code costs time. Behind it is what
    the sweeps would otherwise work out of the layout in every call, and room to work in.
    """
    if not system.address:
        if system.robots:
            return varied_of(cast("SystemBatch", system))
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


def gears_of(system: System) -> Model:
    """A system with couplings as entries find it: its open tree, and X. It is found behind ``system.gears``.

    Where hinges follow polynomials, behind ``system.cams``.
    """
    if not (system.gears or system.cams):
        tree, coordinates = model_of(system.open_tree), model_of(system.coordinates)
        with _preparing:
            if not (system.gears or system.cams):
                made = prepare_gears(system, tree, coordinates)
                system.keep(made.address, made)
    return cast(Model, system._kept[0])


#: How the tables of each kind that compiled code knows are had.
MODELS = {"tree": model_of, "geared": gears_of, "curved": gears_of}


def prepare_gears(system: System, tree: Model, coordinates: Model) -> Model:
    """Pack X row by row beside the tables of the tree (``recursions/variants/geared.py``), and give it room of its own.

    ``left_inverse`` of what it makes is that of its own coordinates.
    """
    from kfdyn.multibody.recursions.variants.geared import CAMS, GEARED
    from kfdyn.sweeps.records import address_of
    from kfdyn.sweeps.specialise import Specials

    nv, table = tree.tables["nv"], CAMS if system.is_curved else GEARED
    own = np.empty(tree.tables["floats"] + _LANES * _OF_PAIR * nv * nv)
    tables = {name: tree.tables[name] for name in table.fields if name in tree.tables}
    tables |= {"busy": np.zeros(1, np.int64), "workspace": address_of(own), "floats": own.size}
    tables |= system._expansion.rows()._asdict()
    if system.is_curved:
        tables |= system._expansion.polynomials()._asdict()
    tables |= {f"own_{name}": coordinates.tables[name] for name in ("n", "index", "real", "screws")}
    specials = None if tree.specials is None else Specials(tree.specials.size, tables)
    return replace(
        tree, address=table.packed(**tables), tables=tables, kept=(own, tree), own_frames=[], specials=specials,
        left_inverse=coordinates.left_inverse,
    )  # fmt: skip


def varied_of(batch: SystemBatch) -> Model:
    """Robots of one topology as entries find them: the tables of one, and the numbers of all."""
    if not batch.kept:
        pattern = batch.pattern
        model, tree = MODELS[pattern.kind](pattern), model_of(pattern.open_tree)
        with _preparing:
            if not batch.kept:
                batch.kept.append(prepare_varied(batch, model, tree))
    return batch.kept[0]


def prepare_varied(batch: SystemBatch, model: Model, tree: Model) -> Model:
    """Pack a row of numbers for each robot beside the tables of their pattern, and give it room for those in lanes."""
    from kfdyn.multibody.recursions.robot import INDEX, OWN, ROBOT
    from kfdyn.multibody.recursions.variants.geared import CAMS, GEARED
    from kfdyn.multibody.recursions.variants.varied import side_by_side, table_of
    from kfdyn.sweeps.records import address_of

    n = batch.pattern.n_bodies
    table = {"tree": ROBOT, "geared": GEARED, "curved": CAMS}[batch.pattern.kind]
    index = dict(zip(INDEX.fields, tree.tables["index"].T))
    found = own_numbers(batch.numbers, index, tree.tables["frames"])
    links = np.zeros((batch.size, n + 1, OWN.width))
    for name, (first, count, _) in OWN.fields.items():
        links[:, 1:, first : first + count] = found[name].reshape(batch.size, n, count)
    numbers = np.concatenate([links.reshape(batch.size, -1), batch.armature], axis=1)
    own = np.empty(model.tables["floats"] + _LANES * numbers.shape[1])
    tables = {**model.tables, "busy": np.zeros(1, np.int64), "workspace": address_of(own), "floats": own.size}
    tables |= {"robots": batch.size, "numbers": side_by_side(numbers)}
    address = table_of(table).packed(**{name: tables[name] for name in (*table.fields, "robots", "numbers")})
    return replace(model, address=address, tables=tables, kept=(own, model), own_frames=[], specials=None)


def prepare(system: System, turned: bool = True) -> Model:
    """Number the bodies, turn their frames, hand out slots, and pack it all (see ``recursions/robot.py``)."""
    from kfdyn.multibody.recursions.robot import INDEX, LINK, ROBOT
    from kfdyn.sweeps.records import address_of
    from kfdyn.sweeps.specialise import Specials

    layout, n = system.layout, system.n_bodies
    index, entries = numbered(layout, turned)
    snaps = close_branches(index)
    slots = hand_out_slots(index)
    real = link_table(layout, index)
    kinds = INDEX.filled(n + 1, np.int64, **{name: index[name] for name in INDEX.fields})
    links = LINK.filled(n + 1, **real)
    own = np.empty(8 + _LANES * (_OF_BODY * (n + 1) + _OF_DOF * system.nv + _OF_SLOT * (slots + 1)))
    tables: dict[str, Any] = {
        "n": n, "nq": system.nq, "nv": system.nv, "slots": slots, "snaps": snaps, "index": kinds, "real": links,
        "screws": layout.screws, "armature": layout.armature, "entries": entries, "busy": np.zeros(1, np.int64),
        "workspace": address_of(own), "floats": own.size, "gravity": system.gravity,
    }  # fmt: skip
    address = ROBOT.packed(**tables)
    tables["frames"] = real["frame"].reshape(-1, 3, 3)
    place = np.empty(n, np.int64)
    place[index["body"][1:]] = np.arange(1, n + 1)
    specials = Specials(max(n, system.nv), tables) if turned and system.is_specialised else None
    return Model(address, n, tables, place, own, {}, [], {}, _left_inverses(layout), specials)


def _left_inverses(layout: Layout) -> Array:
    """Rows (nv, 6) of H^-*, which give back the dv of a twist H* dv."""
    rows = layout.screws.copy()
    for k in np.flatnonzero(layout.coordinates == Coordinates.POSE):
        own = slice(layout.v_start[k], layout.v_start[k + 1])
        rows[own] = np.linalg.pinv(layout.screws[own]).T
    return rows


def frame_of(system: System, frame: str) -> tuple[int, Index, Array, Array]:
    """Return the path from a root to a frame, its length and bodies, and the frame's place and turn in the last.

    Bodies and frames as they are in the tables, which have turned the bodies' own frames. The system, or its open tree
    if it is none, is prepared then.
    """
    try:
        return system._kept[0].frames[frame]  # type: ignore[attr-defined]
    except (AttributeError, KeyError, TypeError):  # for the first time, or no tree, or no name
        expect_system(system)
        system = system.pattern.open_tree
        model = model_of(system)
    known = model.frames.get(frame) if isinstance(frame, str) else None
    if known is None:
        body, rotation, position = system.locate(frame)
        path = [body]
        while (k := int(system.parent[path[-1]])) >= 0:
            path.append(k)
        own = model.tables["frames"][model.place[body]]
        known = (len(path), model.place[path[::-1]], own.T @ position, own.T @ rotation)
        model.frames[frame] = known
    return known
