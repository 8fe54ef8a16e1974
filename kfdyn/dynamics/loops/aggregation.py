"""Group bodies that become one node when couplings and loops are embedded; shared parts of their nodes."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kfdyn.arrays import Array
from kfdyn.dynamics.solving.forest import told_place
from kfdyn.errors import SingularError
from kfdyn.estimation import Tree
from kfdyn.multibody import System
from kfdyn.multibody.coordinates.expansion import Expansion
from kfdyn.multibody.kinds import expect_coordinates
from kfdyn.multibody.parts.coupling import told

Index = NDArray[np.int64]


class Node(NamedTuple):
    """Bodies S that form one node, parents first; their common ancestor p is outside.

    Attributes
    ----------
    bodies : (s,)
        Indices of the bodies.
    above : (s,)
        Place of each body's parent among ``bodies``, −1 where that is p.
    dofs : (d,)
        Dofs of the system without couplings that S has, body by body.
    own : (m,)
        Coordinates of the system (without loops) that move S.
    X : (d, m) or (B, d, m)
        Rates of the dofs for rates of the coordinates; those of B states where hinges follow curves (:func:`at`).
    drift : (B, d) or None
        Ẋv of those hinges.
    closes : tuple of int
        The loops that are closed inside S.
    parent, carrier : int
        Node of p, −1 at a root, and the place of p among that node's bodies.
    """

    bodies: Index
    above: Index
    dofs: Index
    own: Index
    X: Array
    closes: tuple[int, ...]
    parent: int
    carrier: int
    drift: Array | None = None

    def at(self, here: Expansion, v: Array | None) -> Node:
        """The same in states whose expansion is known: as it is where X is constant."""
        if not here.curves:
            return self
        drift = None if v is None else here.accelerations(v, None)
        X = here.X[:, self.dofs][:, :, self.own]
        return self._replace(X=X, drift=None if drift is None else drift[:, self.dofs])

    def rates(self, x: Array) -> Array:
        """X x (B, d) of rates of the coordinates (B, m)."""
        return x @ self.X.T if self.X.ndim == 2 else (self.X @ x[..., None])[..., 0]

    def accelerations(self, x: Array) -> Array:
        """X x + Ẋv (B, d) of accelerations of the coordinates (B, m)."""
        return self.rates(x) if self.drift is None else self.rates(x) + self.drift

    def forces(self, x: Array) -> Array:
        """X*x (B, m) of forces of the dofs (B, d)."""
        return x @ self.X if self.X.ndim == 2 else (x[:, None] @ self.X)[:, 0]


class Plan(NamedTuple):
    """All nodes of an embedded system, in the order of their first bodies, and their names."""

    nodes: tuple[Node, ...]
    names: tuple[str, ...]


@lru_cache(maxsize=32)
def plan(system: System) -> Plan:
    """Aggregate the bodies of every coupling and loop, with all bodies between them and their common ancestor.

    What shares a body is one node (SKO "embedding"). The nodes form a tree again: p of a node lies in one node only,
    and nothing outboard of S lies between p and S.
    """
    tree = Tree(system.parent)
    groups = [
        _between(system, tree, [system.hinge_index(name) for name in coupling.hinges], hinges=True)
        for coupling in system.couplings
    ]
    of_loop = []
    for loop in system.loops:
        ends = [system.carrier(loop.moves_with(end)) if end is not None else -1 for end in (loop.frame_a, loop.frame_b)]
        of_loop.append(_between(system, tree, ends, hinges=False))
    root = _joined(system.n_bodies, [*groups, *of_loop])
    members: dict[int, list[int]] = {}
    for k in system.open_tree.layout.order.tolist():
        if k < system.n_bodies:  # behind them are attachments to bodies that bend
            members.setdefault(root[k], []).append(k)
    ordered = sorted(members.values(), key=min)
    node_of = {k: i for i, bodies in enumerate(ordered) for k in bodies}
    loops: dict[int, list[int]] = {}
    for index, bodies in enumerate(of_loop):
        if bodies:
            loops.setdefault(node_of[bodies[0]], []).append(index)
    nodes = [_node(system, bodies, node_of, ordered, tuple(loops.get(i, ()))) for i, bodies in enumerate(ordered)]
    names = [
        system.hinge_names[node.bodies[0]]
        if len(node.bodies) == 1
        else "+".join([system.hinge_names[k] for k in node.bodies[:4]] + ["..."] * (len(node.bodies) > 4))
        for node in nodes
    ]
    return Plan(tuple(nodes), tuple(names))


def _between(system: System, tree: Tree, bodies: list[int], hinges: bool) -> list[int]:
    """Bodies on the paths up to the nearest common ancestor, which is left out; −1 is the world."""
    starts = [int(system.parent[k]) for k in bodies] if hinges else bodies
    common: int | None = starts[0]
    for k in starts[1:]:
        common = None if common is None or common < 0 or k < 0 else tree.nearest_common_ancestor(common, k)
    stop = -1 if common is None else common
    found: list[int] = []
    for k in bodies:
        while k not in (-1, stop):
            found.append(k)
            k = int(system.parent[k])
    return list(dict.fromkeys(found))


def _joined(n: int, groups: list[list[int]]) -> list[int]:
    """A representative for every body, the same for all that share a group (union–find)."""
    root = list(range(n))

    def find(k: int) -> int:
        while root[k] != k:
            root[k] = root[root[k]]
            k = root[k]
        return k

    for group in groups:
        for k in group[1:]:
            root[find(k)] = find(group[0])
    return [find(k) for k in range(n)]


def _node(
    system: System, bodies: list[int], node_of: dict[int, int], ordered: list[list[int]], loops: tuple[int, ...]
) -> Node:
    start, place = system.uncoupled.places.v_start, {k: i for i, k in enumerate(bodies)}
    above = [place.get(int(system.parent[k]), -1) for k in bodies]
    dofs = np.concatenate([np.arange(start[k], start[k + 1]) for k in bodies])
    e = system._expansion
    own = np.concatenate([np.arange(e.v_start[k], e.v_start[k + 1]) for k in sorted(bodies)])
    X = e.part(dofs, own)  # where it depends on q Node.at knows better
    outside = [int(system.parent[k]) for k, i in zip(bodies, above) if i < 0]
    p = outside[0]
    carrier = ordered[node_of[p]].index(p) if p >= 0 else -1
    return Node(np.array(bodies), np.array(above), dofs, own, X, loops, node_of[p] if p >= 0 else -1, carrier)


def described(system: System, node: Node) -> str:
    """A node in words of mechanics."""
    names = [system.hinge_names[k] for k in node.bodies]
    return f"hinges {told(names)}" if len(names) > 1 else f"hinge {names[0]!r}"


def singular_node(system: System, node: int, output: int, where: tuple[int, ...]) -> SingularError:
    """Name the hinges of a node that have nothing to move."""
    nodes = plan(system).nodes
    return without_inertia(system, described(system, nodes[node % len(nodes)]), where)


def without_inertia(system: System, hinges: str, where: tuple[int, ...] = ()) -> SingularError:
    """The reduced mass matrix is singular, in words."""
    several = not hinges.startswith("hinge ")
    left = "move no inertia that is left to their independent coordinates" if several else "moves no inertia left to it"
    return SingularError(
        f"system {system.name!r}{told_place(where)}: {hinges} {left}, so that the innovation variance is 0; give what "
        f"is carried a mass or the {'hinges' if several else 'hinge'} an armature"
    )


def mass_matrix_sparsity(system: System) -> NDArray[np.bool_]:
    """Mark where X*𝓜X may differ from 0: between nodes of which one carries the other."""
    expect_coordinates(system, "mass_matrix_sparsity", "mass_matrix")
    nodes = plan(system).nodes
    related = np.eye(len(nodes), dtype=bool)
    out = np.zeros((system.nv, system.nv), dtype=bool)
    for k, node in enumerate(nodes):
        up = node.parent
        while up >= 0:
            related[k, up] = True
            up = nodes[up].parent
    for i, j in zip(*np.nonzero(related | related.T)):
        out[np.ix_(nodes[i].own, nodes[j].own)] = True
    return out
