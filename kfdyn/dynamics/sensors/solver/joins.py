"""Couplings and loops: unknowns that several nodes share, each carried inward and joined where the last one arrives.

A coupling has q̈ = Xβ at its hinges and reads X*(H f + R q̈), so that the multipliers there are X m; a hinge knows its
own q̈ and m alone, and passes them on. A loop is a flat force ν between two bodies, and an exact reading that they do
not accelerate against each other, with multiplier μ; each end knows its own copy. All meet at the nearest common
ancestor, the world if there is none, which is then a node of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from kfdyn.dynamics.sensors.sensor import Array, Index, Sensor
from kfdyn.errors import ModelError
from kfdyn.estimation import Tree
from kfdyn.multibody import LinkTerms, System
from kfdyn.multibody.loops.closure import Ranked
from kfdyn.multibody.loops.relative_motion import Moving, both_ends, relative_rows
from kfdyn.multibody.parts.coupling import told

#: Names an unknown: ("q", dof of the open tree), ("row", body), ("nu" or "mu", loop, end, i), ("beta", coupling, j),
#: ("m", coupling, i), ("nu" or "mu", loop, i); anything else is decided wherever it can be.
Tag = tuple[Any, ...]


class Join(NamedTuple):
    """At a node, ``old`` unknowns are T times ``new`` ones; ``inner`` is what Γ has of the new ones beside.

    ``rows`` and ``info`` are the pieces of readings that belong to a coupling, each with the places of its multipliers
    (of its accelerations) among the new unknowns.
    """

    old: tuple[Tag, ...]
    new: tuple[Tag, ...]
    T: Array
    inner: Array
    rows: tuple[tuple[Any, Index], ...] = ()
    info: tuple[tuple[Any, Index], ...] = ()


class End(NamedTuple):
    """One end of a loop at a body: which loop, which of its frames, and which of its rows are independent."""

    loop: int
    side: str
    rows: tuple[int, ...]


def coupled_hinges(system: System) -> dict[int, int]:
    """Body of every coupled hinge, and its coupling."""
    return {system.hinge_index(name): c for c, coupling in enumerate(system.couplings) for name in coupling.hinges}


def meeting_place(system: System, bodies: Sequence[int]) -> int:
    """Nearest common ancestor of some bodies, n_bodies for the world."""
    tree, n = Tree(system.parent), system.n_bodies
    common = bodies[0]
    for k in bodies[1:]:
        if common < 0 or k < 0:
            return n
        found = tree.nearest_common_ancestor(common, k)
        common = -1 if found is None else int(found)
    return n if common < 0 else common


def join_coupling(system: System, sensors: tuple[Sensor, ...], c: int, rows: list[Any], info: list[Any]) -> Join:
    """A coupling whose readings are the pieces ``rows`` and ``info``."""
    coupling, tree = system.couplings[c], system.open_tree
    if coupling.curves:
        raise ModelError(
            f"the coupling of {told(coupling.hinges)} is by functions, and estimates from sensors are for couplings "
            "with a constant X; estimate with system.open_tree at system.expand(q) and system.expansion(q) @ v, where "
            "every hinge is free to accelerate"
        )
    bodies = [system.hinge_index(name) for name in coupling.hinges]
    dofs = [int(tree.layout.v_start[k]) for k in bodies]
    X, r = coupling.X, coupling.X.shape[1]
    rotors = X.T @ (tree.armature[dofs][:, None] * X)
    factors = {i: sensors[i].factors(system) for i in {piece.sensor for piece in rows}}
    geared = any(strain.any() for strain, _, _ in factors.values())
    old: list[Tag] = [("q", d) for d in dofs] + [("row", k) for k in bodies] * geared
    count = sum(len(piece.seen) for piece in rows)
    new: list[Tag] = [("beta", c, j) for j in range(r)] + [("m", c, i) for i in range(count)]
    T, inner = np.zeros((len(old), len(new))), np.zeros((len(new), len(new)))
    T[: len(dofs), :r] = X
    at, placed, known = r, [], []
    for piece in rows:
        places = np.arange(at, at + len(piece.seen))
        strain, rotor, moved = (part[piece.seen] for part in factors[piece.sensor])
        for i, (place, j) in enumerate(zip(places, coordinates(system, c, piece))):
            T[len(dofs) :, place] = strain[i] * X[:, j] if geared else 0.0
            inner[place, :r] = (rotor[i] - strain[i]) * rotors[j]  # the hinges' own rows have their rotors
            inner[place, j] += moved[i]
        inner[np.ix_(places, places)] = -piece.R
        placed.append((piece, places))
        at += len(places)
    inner[:r, r:] = inner[r:, :r].T
    for piece in info:
        places = np.array(coordinates(system, c, piece))
        inner[np.ix_(places, places)] += piece.weight
        known.append((piece, places))
    return Join(tuple(old), tuple(new), T, inner, tuple(placed), tuple(known))


def coordinates(system: System, c: int, piece: Any) -> list[int]:
    """Return which coordinates of a coupling a piece reads."""
    name = system.hinge_names[piece.site.k]
    return [system.couplings[c].named.index(name)] * len(piece.seen)


@lru_cache(maxsize=64)
def coordinate_maps(system: System) -> tuple[Array, Array] | None:
    """X (nv_tree, nv) of couplings, and L with L X = 1, which reads coordinates off the open tree; None without."""
    if not system.couplings:
        return None
    X: Array = system._expansion.X
    return X, np.asarray(np.linalg.pinv(X), np.float64)


def join_loop(loop: int, count: int, sides: Sequence[str]) -> Join:
    """Both ends of a loop have the same force and the same multiplier."""
    kinds = [(kind, i) for kind in ("nu", "mu") for i in range(count)]
    old = tuple((kind, loop, side, i) for side in sides for kind, i in kinds)
    T = np.tile(np.eye(2 * count), (len(sides), 1))
    return Join(old, tuple((kind, loop, i) for kind, i in kinds), T, np.zeros((2 * count, 2 * count)))


def joined(joins: Sequence[Join], names: list[Tag]) -> tuple[Array, Array, list[Tag]]:
    """T (arriving, left) of all joins at a node, what they add to Γ, and the names that are left: new ones last."""
    gone = {tag for join in joins for tag in join.old}
    rest = [i for i, name in enumerate(names) if name not in gone]
    count = len(rest) + sum(len(join.new) for join in joins)
    T, inner = np.zeros((len(names), count)), np.zeros((count, count))
    T[rest, range(len(rest))] = 1.0
    left, at = [names[i] for i in rest], len(rest)
    for join in joins:
        here = slice(at, at + len(join.new))
        T[[names.index(tag) for tag in join.old], here] = join.T
        inner[here, here] = join.inner
        left, at = [*left, *join.new], here.stop
    return T, inner, left


@lru_cache(maxsize=64)
def independent_rows(system: System, q: bytes) -> tuple[tuple[int, ...], ...]:
    """Choose the rows of each loop that do not follow from others at a configuration, by pivoted orthogonalisation."""
    from scipy.linalg import qr

    found = Ranked.at(system, np.frombuffer(q)[None])
    k = len(found.s[0])
    order = qr((found.U[0, :, :k] * found.s[0]).T, pivoting=True, mode="economic")[2]
    kept = set(order[: int(found.rank[0])].tolist())
    out, at = [], 0
    for loop in system.loops:
        out.append(tuple(i for i in range(len(loop.rows)) if at + i in kept))
        at += len(loop.rows)
    return tuple(out)


def loop_terms(system: System, terms: LinkTerms, gravity: Array, loop: int) -> tuple[dict[str, Array], Array]:
    """Rows K (B, r, 6) of a loop on the accelerations of the bodies at its ends, and the drift (B, r) beside.

    Σ K α + drift = 0, α less gravity, at the bodies' origins; the force on a body is K*ν.
    """
    one, moving, places = system.loops[loop], {}, {}
    for side, name in (("a", one.frame_a), ("b", one.frame_b)):
        if name is None:
            continue
        (c, R, p), k = system.locate(name), system.locate(one.moves_with(name))[0]
        lever, turning = terms.rotation[:, c] @ p, None
        at, V, w = terms.position[:, c] + lever, terms.velocity[:, k].copy(), terms.velocity[:, k, :3]
        away = np.cross(w, lever)  # velocity of the end against the body's origin
        if k != c:  # the body rolls, and the end goes on with what carries it
            turning = terms.velocity[:, c, :3]
            away = terms.velocity[:, c, 3:] + np.cross(turning, lever) - V[:, 3:]
            lever = at - terms.position[:, k]
        V[:, 3:] += np.cross(w, lever)
        moving[side] = Moving(terms.rotation[:, c] @ R, at, V, turning)
        places[side] = (lever, np.cross(w, away) + gravity)
    rows = relative_rows(one, *both_ends(one, moving.get("a"), moving.get("b")))
    drift, out = rows.drift.copy(), {}
    for side, of in (("a", rows.of_a), ("b", rows.of_b)):
        if side not in places:
            continue
        lever, brought = places[side]
        drift += np.einsum("bri,bi->br", of[..., 3:], brought)
        K = np.broadcast_to(of, (len(lever), *of.shape[-2:])).copy()
        K[..., :3] += np.cross(lever[:, None], of[..., 3:])  # f·(a + α × lever) = f·a + (lever × f)·α
        out[side] = K
    return out, drift
