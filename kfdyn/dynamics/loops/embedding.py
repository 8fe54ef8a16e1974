"""Constraint embedding: the bodies of a gear or a loop become one node, and the theory stays as it is.

With E the φ's inside S, φ_S = (I − E)⁻¹ and X the rates of all hinges in S for unit rates of the independent ones,
node S has (SKO "embedding", THEORY section 12)

    Q' = blkdiag(M_i),   H' = X*H_Sφ_S,   φ'(p,S) = [φ(p,i)],   R' = X*R_SX,   η' = φ_S*(η + H_S*Ẋβ),   ξ' = ξ

To the filter it is one more node, of 6 s states, whose sensors report only sums: T' = X*T.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfdyn.dynamics.loops.aggregation import Node, Plan, plan
from kfdyn.dynamics.loops.freedom import Freedom, freedom
from kfdyn.errors import ModelError, ShapeError
from kfdyn.estimation import StateSpace, Tree
from kfdyn.multibody import LinkTerms, System
from kfdyn.multibody.links import open_terms

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class EmbeddedForest:
    """B configurations of a system with couplings or loops as one model: B copies of its aggregated tree.

    The counterpart of :class:`kfdyn.dynamics.Forest`; outputs are independent coordinates, node by node.

    Attributes
    ----------
    system : System
        The robot.
    lead : tuple of int
        Leading axes of q and v, B = their product.
    ss : StateSpace
        Node b·N + k is node k of configuration b.
    plan : Plan
        Which bodies each node has.
    freedoms : tuple of Freedom
        How each node's coordinates move: X (B, m, f) and the acceleration Ẋβ (B, m).
    """

    system: System
    lead: tuple[int, ...]
    ss: StateSpace
    plan: Plan
    freedoms: tuple[Freedom, ...]

    def stack(self, tau: ArrayLike) -> Array:
        """Generalised forces (..., nv) as those of independent coordinates X*(tau − RẊβ), node by node: (B Σf,)."""
        shape = (*self.lead, self.system.nv)
        try:
            flat = np.broadcast_to(np.asarray(tau, float), shape).reshape(-1, shape[-1])
        except ValueError:
            raise ShapeError(f"an array of shape {np.shape(tau)} does not broadcast to {shape}, the forest's") from None
        rotors = self.system.open_tree.armature
        parts = [
            free.forces(flat[:, node.own] - rotor_forces(node, free, rotors))
            for node, free in zip(self.plan.nodes, self.freedoms)
        ]
        return np.concatenate(parts, axis=1).reshape(-1)

    def by_dof(self, stacked: Array) -> Array:
        """Accelerations a = X a_independent + Ẋβ (..., nv) of what :meth:`stack` orders."""
        out = np.empty((math.prod(self.lead), self.system.nv))
        flat, at = stacked.reshape(len(out), -1), 0
        for node, free in zip(self.plan.nodes, self.freedoms):
            out[:, node.own] = free.accelerations(flat[:, at : at + free.size])
            at += free.size
        return out.reshape(*self.lead, self.system.nv)


def embedded_forest(
    system: System,
    q: ArrayLike,
    v: ArrayLike | None = None,
    gravity: ArrayLike | None = None,
    external_forces: ArrayLike | None = None,
    named: bool = False,
) -> EmbeddedForest:
    """Read configurations of a system with couplings or loops as one estimation problem; O(B N) where loops are local.

    ``named`` takes coordinates of the system as the independent ones, else any basis of the free rates will do.
    """
    terms = open_terms(system, q, v, external_forces, gravity)
    lead = terms.l.shape[:-2]
    flat = LinkTerms(*(x.reshape(-1, *x.shape[len(lead) :]) for x in terms))
    g = np.asarray(system.gravity if gravity is None else gravity, float)
    g = np.broadcast_to(g, (*lead, 3)).reshape(-1, 3)
    nodes, states_q = plan(system), np.broadcast_to(np.asarray(q, float), (*lead, system.nq)).reshape(-1, system.nq)
    size, rotors = math.prod(lead), system.open_tree.armature
    phi, H, Q, R, xi, eta, freedoms = [], [], [], [], [], [], []
    for node in nodes.nodes:
        rows = hinge_rows(node, flat)
        free = freedom(system, node, states_q, flat, rows, g, named)
        XX = node.X @ free.X  # rates of the tree's dofs
        XXt, n = np.swapaxes(XX, -1, -2), 6 * len(node.bodies)
        H.append((XXt @ rows.reshape(size, len(node.dofs), n)).reshape(size, free.size * n))
        Q.append(_diagonal_blocks(flat.inertia[:, node.bodies]))
        noise = XXt @ (rotors[node.dofs, None] * XX)
        R.append(np.broadcast_to(noise, (size, free.size, free.size)).reshape(size, free.size**2))
        xi.append(flat.xi[:, node.bodies].reshape(size, -1))
        eta.append(outward(node, flat, free.drift @ node.X.T).reshape(size, -1))
        if node.parent >= 0:
            phi.append(_transition(node, nodes.nodes[node.parent], flat))
        freedoms.append(free)
    states = np.array([6 * len(node.bodies) for node in nodes.nodes])
    m = np.array([free.size for free in freedoms])
    parent = np.array([node.parent for node in nodes.nodes])
    first = len(states) * np.arange(size)[:, None]
    tree = Tree(np.where(parent >= 0, parent + first, -1).reshape(-1), nodes.names if size == 1 else None)
    joined = (np.concatenate([np.zeros((size, 0)), *x], axis=1).reshape(-1) for x in (phi, H, Q, R, xi, eta))
    ss = StateSpace.trusted(tree, np.tile(states, size), np.tile(m, size), *joined)
    return EmbeddedForest(system, lead, ss, nodes, tuple(freedoms))


def output_rates(system: System, q: ArrayLike) -> Array:
    """Rates of all dofs of the open tree (nv_tree, f) for unit rates of the outputs of ``as_estimation(system, q)``."""
    forest = embedded_forest(system, q, named=True)
    out, at = np.zeros((system.open_tree.nv, int(forest.ss.m.sum()))), 0
    for node, free in zip(forest.plan.nodes, forest.freedoms):
        out[node.dofs, at : at + free.size] = node.X @ free.X[0]
        at += free.size
    return out


def rotor_forces(node: Node, free: Freedom, rotors: Array) -> Array:
    """R Ẋβ (B, m): what the rotors take of the acceleration that the loops ask for."""
    return (rotors[node.dofs] * (free.drift @ node.X.T)) @ node.X


def output_forces(system: System, q: ArrayLike, v: ArrayLike | None, tau: Array) -> Array:
    """X*(tau − RẊβ) (..., f): generalised forces (..., nv) as outputs of ``as_estimation(system, q, v)``."""
    if not np.isfinite(tau).all():
        raise ModelError(
            f"tau has entries that are not finite; system {system.name!r} has {system.constraints}, so that a dof "
            "cannot be locked by leaving its measurement out"
        )
    forest = embedded_forest(system, q, v, named=True)
    rotors = system.open_tree.armature
    parts = [
        (tau[..., node.own] - rotor_forces(node, free, rotors)[0]) @ free.X[0]
        for node, free in zip(forest.plan.nodes, forest.freedoms)
    ]
    return np.concatenate(parts, axis=-1)


def hinge_rows(node: Node, terms: LinkTerms) -> Array:
    """H_Sφ_S (B, d, s, 6): the row of hinge i, [ω; v], seen by body j outboard is [ω; v + ω × (p_j − p_i)]."""
    row, p = terms.H[:, node.dofs], terms.position[:, node.bodies]
    lever = p[:, None] - p[:, node.owner, None]
    out = np.empty((len(row), len(node.dofs), len(node.bodies), 6))
    out[..., :3] = row[:, :, None, :3]
    out[..., 3:] = row[:, :, None, 3:] + np.cross(row[:, :, None, :3], lever)
    out *= node.inboard[node.owner][None, :, :, None]
    return out


def outward(node: Node, terms: LinkTerms, extra: Array | None = None) -> Array:
    """φ_S*(η + H_S* extra) (B, s, 6), ``extra`` (B, d) being accelerations of the dofs; p does not accelerate."""
    own = terms.eta[:, node.bodies].copy()
    if extra is not None and extra.any():
        moved = terms.H[:, node.dofs] * extra[..., None]
        for d, j in enumerate(node.owner):
            own[:, j] += moved[:, d]
    p = terms.position[:, node.bodies]
    for j, i in enumerate(node.above):
        if i >= 0:
            own[:, j] += own[:, i]
            own[:, j, 3:] += np.cross(own[:, i, :3], p[:, j] - p[:, i])
    return own


def _diagonal_blocks(blocks: Array) -> Array:
    size, s = blocks.shape[:2]
    out = np.zeros((size, s, 6, s, 6))
    out[:, range(s), :, range(s)] = np.swapaxes(blocks, 0, 1)
    return out.reshape(size, -1)


def _transition(node: Node, parent: Node, terms: LinkTerms) -> Array:
    """φ'(p,S): every body of S hands its force to p, which is one body of the parent's node."""
    lever = terms.position[:, node.bodies] - terms.position[:, parent.bodies[node.carrier], None]
    size, s = lever.shape[:2]
    out = np.zeros((size, len(parent.bodies), 6, s, 6))
    block = out[:, node.carrier]
    block[:, range(6), :, range(6)] = 1.0
    for i, j, along in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        block[:, i, :, 3 + j] = -lever[..., along]
        block[:, j, :, 3 + i] = lever[..., along]
    return out.reshape(size, -1)
