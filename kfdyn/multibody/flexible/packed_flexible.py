"""A system with bodies that bend, as compiled code finds it: its stiff tree, and the numbers of its modes."""

from __future__ import annotations

from dataclasses import replace
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kfdyn.arrays import Array
from kfdyn.multibody.calls.packed_model import Model, prepare
from kfdyn.multibody.flexible.system import FlexibleSystem

# Numbers that a sweep may want for each body, dof and slot, and lanes.
_OF_BODY, _OF_DOF, _OF_SLOT, _LANES = 48, 16, 32, 8

_preparing = Lock()


def flexible_model_of(system: FlexibleSystem) -> Model:
    """The system as entries find it, made when first asked for."""
    if system.model is None:
        with _preparing:
            if system.model is None:
                system.keep(_prepare(system))
    model: Model = system.model
    return model


def _prepare(system: FlexibleSystem) -> Model:
    """The stiff tree's tables with places in q and v of the system, and attachments that have no dofs of their own."""
    from kfdyn.multibody.recursions.flexible_bodies import FLEXIBLE
    from kfdyn.multibody.recursions.robot import INDEX
    from kfdyn.sweeps.records import address_of

    made = prepare(system.stiff_tree)
    tables, index = dict(made.tables), made.tables["index"].copy()
    n, body = system.tree.n_bodies, index[1:, INDEX.place("body")]
    columns = {key: index[1:, INDEX.place(key)] for key in ("q", "v", "v_end", "kind")}
    attached = body >= system.n_bodies
    rigid = np.where(attached, 0, body)
    for key, value in (
        ("q", system.q_start[rigid]),
        ("v", system.v_start[rigid]),
        ("v_end", system.v_start[rigid] + system.hinge_v[rigid]),
        ("kind", columns["kind"]),
    ):
        columns[key][:] = np.where(attached, 2 if key == "kind" else 0, value)
    own = system.v_of_hinges
    screws, armature = np.zeros((system.nv, 6)), system.armature.copy()
    screws[own] = tables["screws"][: len(own)]
    links, extra = tables["real"].copy(), np.zeros(system.nv) if system.noise is None else np.diag(system.noise)
    armature[own] += extra[own]
    _first_rotor(links, index, armature)
    flex, numbers, rows = _modes(system, made, body)
    most = int(system.modes.max(initial=0))
    size = _OF_BODY * (n + 1) + _OF_DOF * system.nv + _OF_SLOT * (tables["slots"] + 1) + 5 * most + rows
    workspace = np.empty(8 + _LANES * size)
    del tables["frames"]
    tables |= {
        "nq": system.nq, "nv": system.nv, "index": index, "real": links, "screws": screws, "armature": armature,
        "busy": np.zeros(1, np.int64), "workspace": address_of(workspace), "floats": workspace.size,
        "flex": flex, "numbers": numbers, "most": most, "rows": rows,
    }  # fmt: skip
    return replace(made, address=FLEXIBLE.packed(**tables), tables=tables, kept=workspace)


def _first_rotor(links: Array, index: NDArray[np.int64], armature: Array) -> None:
    """Rotors of first dofs, where a sweep finds them with the other numbers of a body."""
    from kfdyn.multibody.recursions.robot import INDEX, LINK

    first, last = index[1:, INDEX.place("v")], index[1:, INDEX.place("v_end")]
    moves = last > first
    links[1:, LINK.place("armature")][moves] = armature[first[moves]]


def _modes(system: FlexibleSystem, made: Model, body: NDArray[np.int64]) -> tuple[NDArray[np.int64], Array, int]:
    """Rows of FLEX (n + 1), the numbers they point to, and how many numbers are kept in the workspace."""
    from kfdyn.multibody.recursions.flexible_bodies import ATTACHED, BENT, FLEX, OWN

    table = np.zeros((len(body) + 1, FLEX.width), np.int64)
    numbers: list[Array] = [np.zeros(1)]
    count, kept = 1, 0

    def add(*parts: Any) -> int:
        nonlocal count
        flat = [np.asarray(part, float).ravel() for part in parts]
        numbers.extend(flat)
        start, count = count, count + sum(map(len, flat))
        return start

    on = list(system.attached.values())
    for t, k in enumerate(body.tolist(), start=1):
        owner, shape = (k, None) if k < system.n_bodies else on[k - system.n_bodies]
        name, n = system.body_names[owner], int(system.modes[owner])
        if not n:
            continue
        flexible = system.flexible[name]
        back = made.tables["frames"][made.place[owner]].T  # to the axes of the tables
        q, v = system.mode_slice(name).start, system.mode_slice(name, True).start
        put = {"modes": n, "q": q, "v": v}
        if shape is None:
            R = np.zeros((n, n)) if system.noise is None else system.noise[v : v + n, v : v + n]
            points = flexible.condensed
            r, psi = points.points @ back.T, np.einsum("ab,jbn->jna", back, points.shapes)
            parts = [points.weight[:, None], r, psi.reshape(len(r), 3 * n)]
            if points.bends is not None:
                parts.append(np.einsum("ab,jbnm->jnma", back, points.bends).reshape(len(r), 3 * n * n))
            put |= {"form": BENT, "points": len(r), "bends": int(points.bends is not None), "rows": kept}
            put["numbers"] = add(np.concatenate(parts, axis=1))
            own = np.zeros((2, n, n)) if system.is_slack else np.stack([flexible.stiffness, flexible.damping])
            put["matrices"] = add(own, R)
            kept += n * (n + 6) + n + OWN.width + n
        else:
            bends = bool(shape.bend.any())
            place, shift, turn = back @ shape.place, back @ shape.shift, back @ shape.turn
            curved = [np.einsum("ab,bnm->nma", back, shape.bend)] if bends else []
            put |= {"form": ATTACHED, "bends": int(bends), "map": kept}
            put["numbers"] = add(place, shift.T, *curved, turn.T)
            kept += 6 * n
        for key, value in put.items():
            table[t, FLEX.place(key)] = value
    for t, k in enumerate(body.tolist(), start=1):  # an attachment knows the rows of the body it is on
        if k >= system.n_bodies:
            up = made.place[on[k - system.n_bodies][0]]
            table[t, FLEX.place("rows")] = table[up, FLEX.place("rows")]
    return table, np.concatenate(numbers), kept
