"""Constraint embedding: the bodies of a gear or a loop become one node, and the theory stays as it is.

With E the φ's inside S, φ_S = (I − E)⁻¹ and X the rates of all hinges in S for unit rates of the independent ones,
node S has (SKO "embedding", THEORY section 12)

    Q' = blkdiag(M_i),   H' = X*H_Sφ_S,   φ'(p,S) = [φ(p,i)],   R' = X*R_SX,   η' = φ_S*(η + H_S*Ẋβ),   ξ' = ξ

To the filter it is one more node, of 6 s states (and the modes of bodies that bend), whose sensors report only sums:
T' = X*T.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.arrays import Array
from kfdyn.dynamics.loops.aggregation import Node, Plan, plan
from kfdyn.dynamics.loops.constraint_nullspace import Freedom, Rows, freedom
from kfdyn.dynamics.solving.blocks import Blocks, body_blocks
from kfdyn.errors import ModelError, ShapeError
from kfdyn.estimation import StateSpace, Tree
from kfdyn.multibody import System


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
    rotors : tuple of (B, d, d) arrays
        R of each node's dofs before they were coupled.
    """

    system: System
    lead: tuple[int, ...]
    ss: StateSpace
    plan: Plan
    freedoms: tuple[Freedom, ...]
    rotors: tuple[Array, ...]

    def stack(self, tau: ArrayLike) -> Array:
        """Generalised forces (..., nv) as those of independent coordinates X*(tau − RẊβ), node by node: (B Σf,)."""
        shape = (*self.lead, self.system.nv)
        try:
            flat = np.broadcast_to(np.asarray(tau, float), shape).reshape(-1, shape[-1])
        except ValueError:
            raise ShapeError(f"an array of shape {np.shape(tau)} does not broadcast to {shape}, the forest's") from None
        parts = [
            free.forces(flat[:, node.own] - rotor_forces(node, free, R))
            for node, free, R in zip(self.plan.nodes, self.freedoms, self.rotors)
        ]
        return np.concatenate(parts, axis=1).reshape(-1)

    def by_dof(self, stacked: Array) -> Array:
        """Accelerations a = X a_independent + Ẋβ (..., nv) of what :meth:`stack` orders."""
        out = np.empty((math.prod(self.lead), self.system.nv))
        flat, at = stacked.reshape(len(out), sum(free.size for free in self.freedoms)), 0
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
    lead, blocks = body_blocks(system, q, v, gravity, external_forces)
    size, nodes = math.prod(lead), plan(system)
    here = np.broadcast_to(np.asarray(q, float), (*lead, system.nq)).reshape(size, system.nq)
    rate = None if v is None else np.broadcast_to(np.asarray(v, float), (*lead, system.nv)).reshape(size, system.nv)
    at = system._expansion.at(here)
    nodes = nodes._replace(nodes=tuple(node.at(at, rate) for node in nodes.nodes))
    read = Rows(system, here, rate)
    phi, H, Q, R, xi, eta, freedoms, rotors = [], [], [], [], [], [], [], []
    for node in nodes.nodes:
        own = [blocks[k] for k in node.bodies]
        free = freedom(system, node, size, read, named)
        XX = node.X @ free.X  # rates of the dofs without couplings
        XXt, noise = np.swapaxes(XX, -1, -2), diagonal([b.R for b in own])
        H.append(XXt @ hinge_rows(node, own))
        Q.append(diagonal([b.Q for b in own]))
        R.append(np.broadcast_to(XXt @ noise @ XX, (size, free.size, free.size)))
        xi.append(np.concatenate([b.xi for b in own], axis=1))
        eta.append(outward(node, own, node.accelerations(free.drift)))
        if node.parent >= 0:
            phi.append(_transition(node, [blocks[k] for k in nodes.nodes[node.parent].bodies], own))
        freedoms.append(free)
        rotors.append(noise)
    states = np.array([x.shape[1] for x in xi])
    m = np.array([free.size for free in freedoms])
    parent = np.array([node.parent for node in nodes.nodes])
    first = len(states) * np.arange(size)[:, None]
    tree = Tree(np.where(parent >= 0, parent + first, -1).reshape(-1), nodes.names if size == 1 else None)

    def joined(parts: list[Array]) -> Array:
        flat = [part.reshape(size, math.prod(part.shape[1:])) for part in parts]
        return np.concatenate([np.zeros((size, 0)), *flat], axis=1).reshape(-1)

    ss = StateSpace.trusted(
        tree, np.tile(states, size), np.tile(m, size), *(joined(x) for x in (phi, H, Q, R, xi, eta)),
        vectors=np.tile([all(blocks[k].Q.shape[-1] == 6 for k in node.bodies) for node in nodes.nodes], size),
    )  # fmt: skip
    return EmbeddedForest(system, lead, ss, nodes, tuple(freedoms), tuple(rotors))


forest = embedded_forest


def output_rates(system: System, q: ArrayLike) -> Array:
    """Rates of all dofs without couplings (nv, f) for unit rates of the outputs of ``as_estimation(system, q)``."""
    forest = embedded_forest(system, q, named=True)
    out, at = np.zeros((system.uncoupled.nv, int(forest.ss.m.sum()))), 0
    for node, free in zip(forest.plan.nodes, forest.freedoms):
        out[node.dofs, at : at + free.size] = (node.X @ free.X)[0]
        at += free.size
    return out


def rotor_forces(node: Node, free: Freedom, R: Array) -> Array:
    """R Ẋβ (B, m): what the rotors take of the acceleration that loops and curves ask for."""
    return node.forces((R @ node.accelerations(free.drift)[..., None])[..., 0])


def node_of_body(system: System, body: int) -> int:
    """Return the node of ``as_estimation(system, q)`` that a body is part of."""
    return next(i for i, node in enumerate(plan(system).nodes) if body in node.bodies)


def output_forces(system: System, q: ArrayLike, v: ArrayLike | None, tau: Array) -> Array:
    """X*(tau − RẊβ) (..., f): generalised forces (..., nv) as outputs of ``as_estimation(system, q, v)``."""
    if not np.isfinite(tau).all():
        raise ModelError(
            f"tau has entries that are not finite; system {system.name!r} has {system.constraints}, so that a dof "
            "cannot be locked by leaving its measurement out"
        )
    forest = embedded_forest(system, q, v, named=True)
    parts = [
        (tau[..., node.own] - rotor_forces(node, free, R)[0]) @ free.X[0]
        for node, free, R in zip(forest.plan.nodes, forest.freedoms, forest.rotors)
    ]
    return np.concatenate(parts, axis=-1)


def hinge_rows(node: Node, own: Sequence[Blocks]) -> Array:
    """H_Sφ_S (B, d, n_S): every dof as the bodies that it moves see it; from body to body outward by φ."""
    size, d, at = len(own[0].xi), len(node.dofs), 0
    out: list[Array] = []
    for b, i in zip(own, node.above):
        rows = np.zeros((size, d, b.xi.shape[1]))
        if i >= 0:
            assert b.phi is not None
            rows[:, :at] = out[i][:, :at] @ b.phi
        rows[:, at : at + b.H.shape[1]] = b.H
        at += b.H.shape[1]
        out.append(rows)
    return np.concatenate(out, axis=2)


def outward(node: Node, own: Sequence[Blocks], extra: Array) -> Array:
    """φ_S*(η + H_S* extra) (B, n_S), ``extra`` (B, d) being accelerations of the dofs; p does not accelerate."""
    out: list[Array] = []
    at = 0
    for b, i in zip(own, node.above):
        m = b.H.shape[1]
        eta = b.eta + (extra[:, None, at : at + m] @ b.H)[:, 0]
        if i >= 0:
            assert b.phi is not None
            eta = eta + (out[i][:, None] @ b.phi)[:, 0]
        at += m
        out.append(eta)
    return np.concatenate(out, axis=1)


def diagonal(blocks: Sequence[Array]) -> Array:
    """A block-diagonal matrix (B, Σn, Σn)."""
    n = sum(block.shape[1] for block in blocks)
    out, at = np.zeros((len(blocks[0]), n, n)), 0
    for block in blocks:
        end = at + block.shape[1]
        out[:, at:end, at:end] = block
        at = end
    return out


def _transition(node: Node, parent: Sequence[Blocks], own: Sequence[Blocks]) -> Array:
    """φ'(p,S) = Bφ_S: every body of S hands its force to p, which is one body of the parent's node."""
    handed: list[Array] = []
    for b, i in zip(own, node.above):
        assert b.phi is not None
        handed.append(b.phi if i < 0 else handed[i] @ b.phi)
    sizes = [b.xi.shape[1] for b in parent]
    first = sum(sizes[: node.carrier])
    out = np.zeros((len(handed[0]), sum(sizes), sum(b.xi.shape[1] for b in own)))
    out[:, first : first + sizes[node.carrier]] = np.concatenate(handed, axis=2)
    return out
