"""A robot whose coordinates, and optionally parameters, are symbols: its SKO model in link frames.

Every hinge made of several screws becomes as many nodes with mass-less bodies between them (PART section 2), so that H
is constant everywhere. Spatial accelerations are derivatives seen from the body: a = V × H*β, b = V ×* MV.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from kfdyn.multibody import System
from kfdyn.multibody.calls.arguments import expect_system
from kfdyn.multibody.kinds import expect_rigid
from kfdyn.multibody.parts.hinge import Coordinates
from kfdyn.symbolic.tape import Tape, Term, cosine, sine
from kfdyn.textbook.algebra import block, cross, tilde
from kfdyn.textbook.sko.sko_model import Model, scatter

# Entries of a rotation this close to 0 or ±1 are meant to be 0 or ±1: cos(π/2) is 6e-17 in floats.
SNAP = 1e-15


class Inputs(NamedTuple):
    """Names of the symbols, in the order of the exported function's arguments."""

    q: tuple[str, ...]
    v: tuple[str, ...]
    tau: tuple[str, ...]
    parameters: dict[str, float]


class Robot(NamedTuple):
    """The model, its tape, and the symbols."""

    tape: Tape
    model: Model
    inputs: Inputs


def robot(system: System, *, moving: bool, forced: bool = False, parameters: bool = False) -> Robot:
    """Put the system on a tape; ``moving`` writes its biases too, ``parameters`` makes letters of its constants."""
    expect_system(system)
    expect_rigid(system, "a formula in symbols")
    tape = Tape()
    known: dict[str, float] = {}

    def number(value: float, name: str) -> Any:
        if value == 0 or not parameters:
            return int(value) if value == int(value) else float(value)
        known[name] = float(value)
        return tape.leaf(name)

    q = [tape.leaf(f"q{i}") for i in range(system.nq)]
    v = [tape.leaf(f"v{i}") for i in range(system.nv)] if moving else []
    parts: list[list[Any]] = [[] for _ in range(6)]  # parent, A, H, M, R, own twist of the joint
    last: dict[int, int] = {}  # the node that carries a body, for its children
    for k in map(int, system.layout.order):
        body, name = system.bodies[k], f"{k + 1}"
        q_at, v_at = int(system.layout.q_start[k]), int(system.layout.v_start[k])
        inner = last[int(system.parent[k])] if system.parent[k] >= 0 else -1
        place = np.array([number(x, f"l{name}{'xyz'[i]}") for i, x in enumerate(body.position)], dtype=object)
        turn = _exact(body.rotation)
        for H, rotation, position, dofs in _steps(body.hinge, q[q_at:], v_at):
            step = turn @ rotation
            parts[0].append(inner)
            parts[1].append(_shift(step, place + turn @ position))
            parts[2].append(H)
            parts[3].append(np.zeros((6, 6), dtype=object))
            rotor = np.diag(np.array([number(body.armature[i - v_at], f"r{i + 1}") for i in dofs], dtype=object))
            parts[4].append(rotor.astype(object).reshape(len(dofs), len(dofs)))
            parts[5].append(list(dofs))
            inner, place, turn = len(parts[0]) - 1, np.zeros(3, dtype=object), np.eye(3, dtype=object) * 1
        last[k] = inner
        parts[3][inner] = _inertia(body.inertia, number, name)
    names = [f"q{i}" for i in range(system.nq)], [f"v{i}" for i in range(len(v))]
    force = tuple(f"tau{i}" for i in range(system.nv)) if forced else ()
    model = _with_biases(parts, v, system.gravity, number)
    return Robot(tape, _stacked_as_v(model, parts[5]), Inputs(tuple(names[0]), tuple(names[1]), force, known))


def _steps(hinge: Any, q: list[Any], v_at: int) -> Any:
    """Return (H, rotation, position, dofs) of the successive one-dof motions of a hinge, or of its one pose."""
    none = np.zeros(3, dtype=object)
    if hinge.coordinates is Coordinates.SCREWS:
        if hinge.nv == 0:
            yield np.zeros((0, 6), dtype=object), np.eye(3, dtype=object) * 1, none, []
        for i, screw in enumerate(hinge.screws):
            axis, along = _exact(screw[:3]), _exact(screw[3:])
            H = np.concatenate([axis, along])[None, :]
            if not screw[:3].any():
                yield H, np.eye(3, dtype=object) * 1, along * q[i], [v_at + i]
                continue
            c, s = cosine(q[i]), sine(q[i])
            along_axis = np.outer(axis, axis)
            R = along_axis + (np.eye(3, dtype=object) * 1 - along_axis) * c + tilde(axis) * s  # constants folded
            # the screw's displacement: its pitch along the axis, and the turn about a point off the origin
            pitch = _exact(np.array([screw[:3] @ screw[3:]]))[0]
            centre = _exact(np.cross(screw[:3], screw[3:]))
            yield H, R, centre - R @ centre + axis * (pitch * q[i]), [v_at + i]
        return
    m = hinge.nv
    at = 3 if hinge.coordinates is Coordinates.POSE else 0
    position = np.array(q[:3], dtype=object) if at else none
    x, y, z, w = q[at : at + 4]
    e = np.array([x, y, z], dtype=object)
    R = np.eye(3, dtype=object) * (w * w - x * x - y * y - z * z) + 2 * np.outer(e, e) + 2 * w * tilde(e)
    yield _exact(hinge.screws), R, position, [v_at + i for i in range(m)]


def _with_biases(parts: list[list[Any]], v: list[Any], gravity: Any, number: Any) -> Model:
    """Add the biases a = V × H*β with −g at the roots, b = V ×* MV."""
    parent, A, H, M, R, dofs = parts
    zero = [np.zeros(6, dtype=object) for _ in parent]
    roots = {k for k, p in enumerate(parent) if p < 0}
    model = Model(list(parent), [None if k in roots else x for k, x in enumerate(A)], H, M, R, list(zero), list(zero))
    if not v:
        return model
    own = [h.T @ np.array([v[i] for i in d], dtype=object) if d else np.zeros(6, dtype=object) for h, d in zip(H, dofs)]
    V = scatter(model, own)
    for k, (velocity, joint) in enumerate(zip(V, own)):
        omega, speed = velocity[:3], velocity[3:]
        model.a[k] = np.concatenate([cross(omega, joint[:3]), cross(omega, joint[3:]) + cross(speed, joint[:3])])
        if k in roots:
            down = np.array([number(g, f"g{'xyz'[i]}") for i, g in enumerate(gravity)], dtype=object)
            model.a[k] = model.a[k] - A[k].T @ np.concatenate([np.zeros(3, dtype=object), down])
        moment = M[k] @ velocity
        model.b[k] = np.concatenate([cross(omega, moment[:3]) + cross(speed, moment[3:]), cross(omega, moment[3:])])
    return model


def _stacked_as_v(model: Model, dofs: list[list[int]]) -> Model:
    """Renumber the nodes so that their outputs are stacked as v is."""
    order = sorted(range(len(dofs)), key=lambda k: (dofs[k][0] if dofs[k] else len(dofs) * 6, k))
    new = {old: k for k, old in enumerate(order)}
    parent = [new[model.parent[k]] if model.parent[k] >= 0 else -1 for k in order]
    return Model(parent, *([part[k] for k in order] for part in model[1:]))


def _inertia(inertia: Any, number: Any, name: str) -> Any:
    """Return the spatial inertia with letters J, m, and c = m p for its entries, or with its numbers."""
    m = number(inertia[5, 5], f"m{name}")
    mp = [inertia[2, 4], inertia[0, 5], inertia[1, 3]]
    c = tilde(np.array([number(x, f"c{name}{'xyz'[i]}") for i, x in enumerate(mp)], dtype=object))
    J = np.array(
        [
            [number(inertia[min(i, j), max(i, j)], f"J{name}{'xyz'[min(i, j)]}{'xyz'[max(i, j)]}") for j in range(3)]
            for i in range(3)
        ],
        dtype=object,
    )
    return block([[J, c], [-c, np.eye(3, dtype=object) * m]])


def _shift(rotation: Any, l: Any) -> Any:
    """Return φ(p,k) = [[R, l~R], [0, R]]: a force of the child in the parent's frame, at its origin."""
    return block([[rotation, tilde(l) @ rotation], [0 * np.eye(3, dtype=object), rotation]])


def _exact(array: Any) -> Any:
    """Return floats as objects; those that are 0 or ±1 but for rounding become integers."""
    out = np.empty(np.shape(array), dtype=object)
    for at, x in np.ndenumerate(np.asarray(array, float)):
        near = round(float(x))
        out[at] = near if abs(near) <= 1 and abs(x - near) <= SNAP else float(x)
    return out


def values(array: Any) -> list[Any]:
    """Return the entries of an array in order: terms, or plain numbers."""
    return [x if isinstance(x, Term) else float(x) for x in np.asarray(array, dtype=object).ravel()]
