"""The translation for bodies that bend: a node has its modes and the six components of the force at its hinge.

With V_m = [η̇; V] and Π the map from the modes of a parent to the velocity of the frame that carries a child::

    Φ*(p,k) = [[0, 0], [φ*(c,k) Π, φ*(p,k)]]     H_m* = blkdiag(1, H*)     M_m = Σ m_i J_i* J_i       THEORY section 17
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.arrays import Array
from kfdyn.dynamics.assembly import Forest
from kfdyn.dynamics.solving.blocks import Blocks
from kfdyn.estimation import StateSpace, Tree
from kfdyn.multibody import FlexibleBody, FlexibleSystem, LinkTerms, link_terms
from kfdyn.spatial import skew


def flexible_forest(
    system: FlexibleSystem,
    q: ArrayLike,
    v: ArrayLike | None = None,
    gravity: ArrayLike | None = None,
    external_forces: ArrayLike | None = None,
    named: bool = False,
) -> Forest:
    """Read states of a flexible system as one estimation problem: node b·n_bodies + k is body k of state b.

    The states of a node are its modes, then [moment; force]; its outputs the dofs of the hinge, then the modes.

    Parameters
    ----------
    system : FlexibleSystem
        The robot.
    q, v : (..., nq), (..., nv)
        States; at rest without v.
    gravity : (3,), optional
        ``system.gravity`` if not given.
    external_forces : (..., n_bodies, 6), optional
        [moment; force] on each body, world orientation, at its hinge point; rows after those of the bodies, if there
        are any, are of the attachments, in the order of ``system.attached``.
    named : bool
        Whether nodes bear the hinges' names (for one state).

    Returns
    -------
    Forest
        Elastic forces Kη + Cη̇ are part of ξ, so that the measurements are tau.
    """
    lead, nodes = flexible_blocks(system, q, v, gravity, external_forces)
    B = math.prod(lead)
    first = system.n_bodies * np.arange(B)[:, None]
    parent = np.where(system.parent >= 0, system.parent + first, -1).reshape(-1)
    tree = Tree(parent, system.hinge_names if named and B == 1 else None)

    def flat(blocks: list[Array]) -> Array:
        return np.concatenate([block.reshape(B, math.prod(block.shape[1:])) for block in blocks], axis=1).reshape(-1)

    ss = StateSpace.trusted(
        tree,
        np.tile(system.modes + 6, B),
        np.tile(np.diff(system.v_start), B),
        flat([node.phi for node in nodes if node.phi is not None]) if (system.parent >= 0).any() else np.zeros(0),
        flat([node.H for node in nodes]),
        flat([node.Q for node in nodes]),
        flat([node.R for node in nodes]),
        flat([node.xi for node in nodes]),
        flat([node.eta for node in nodes]),
        vectors=np.tile(system.modes == 0, B),
    )
    return Forest(system, lead, ss)


def blocks(
    system: FlexibleSystem,
    q: ArrayLike,
    v: ArrayLike | None = None,
    gravity: ArrayLike | None = None,
    external_forces: ArrayLike | None = None,
) -> tuple[tuple[int, ...], list[Blocks]]:
    """The same without couplings and loops, at a state of the system with them."""
    e, own = system._expansion, system.checked(q, system.nq, "q")
    rate = None if v is None else e.at(own).rates(system.checked(v, system.nv, "v"))
    return flexible_blocks(system.uncoupled, e.positions(own), rate, gravity, external_forces)


def flexible_blocks(
    system: FlexibleSystem,
    q: ArrayLike,
    v: ArrayLike | None = None,
    gravity: ArrayLike | None = None,
    external_forces: ArrayLike | None = None,
) -> tuple[tuple[int, ...], list[Blocks]]:
    """Leading axes, and the blocks of every body; as for :func:`flexible_forest`."""
    here = system.checked(q, system.nq, "q")
    rate = np.zeros(system.nv) if v is None else system.checked(v, system.nv, "v")
    force = np.zeros((system.n_bodies, 6)) if external_forces is None else system.with_attachments(external_forces)
    lead = np.broadcast_shapes(here.shape[:-1], rate.shape[:-1], force.shape[:-2])
    B = math.prod(lead)
    here, rate = (np.broadcast_to(x, (*lead, x.shape[-1])).reshape(B, x.shape[-1]) for x in (here, rate))
    force = np.broadcast_to(force, (*lead, *force.shape[-2:])).reshape(B, force.shape[-2], 6)
    X, drift = system.expansion(here), system.drift(here, rate)
    tree_rate = np.einsum("bij,bj->bi", X, rate)
    terms = link_terms(system.tree, system.expand(here), tree_rate, gravity=gravity)
    return lead, [_blocks(system, k, here, rate, X, drift, terms, force) for k in range(system.n_bodies)]


def _blocks(
    system: FlexibleSystem,
    k: int,
    q: Array,
    v: Array,
    X: Array,
    drift: Array,
    terms: LinkTerms,
    force: Array,
) -> Blocks:
    B, n = len(q), int(system.modes[k])
    layout = system.tree.layout
    hinge = slice(int(layout.v_start[k]), int(layout.v_start[k + 1]))
    m = hinge.stop - hinge.start
    own = slice(int(system.v_start[k]), int(system.v_start[k + 1]))
    H = np.zeros((B, m + n, n + 6))
    H[:, :m, n:] = terms.H[:, hinge]
    H[:, m + np.arange(n), np.arange(n)] = 1.0
    R = np.diag(system.armature[own])
    if system.noise is not None:
        R = R + system.noise[own, own]
    name = system.body_names[k]
    if n:
        modes = system.modal(q, name, False), system.modal(v, name, True)
        Q, xi = elastic_terms(system.flexible[name], *modes, terms, k, system.is_slack)
        for c in system.attachments(k):
            if c < force.shape[1]:  # a load where something may be attached
                xi -= np.einsum("bji,bj->bi", reach(system, c, X, terms), force[:, c])
    else:
        Q, xi = terms.inertia[:, k], terms.xi[:, k].copy()
    xi[:, n:] -= force[:, k]
    eta = np.zeros((B, n + 6))
    eta[:, n:], shift = _carried(system, k, X, drift, terms)
    phi = None
    if shift is not None:  # only the force at the hinge reaches the parent
        phi = np.zeros((B, shift.shape[2], n + 6))
        phi[:, :, n:] = np.swapaxes(shift, 1, 2)
    return Blocks(phi, H, Q, np.broadcast_to(R, (B, m + n, m + n)), xi, eta)


def _carried(system: FlexibleSystem, k: int, X: Array, drift: Array, terms: LinkTerms) -> tuple[Array, Array | None]:
    """η of the hinge with its attachment, and Φ* (B, 6, n_parent): the parent's [η̇; V] to the velocity at the hinge."""
    p = int(system.parent[k])
    if p < 0:
        return terms.eta[:, k], None
    down = _shift(terms.l[:, k])
    if not system.modes[p]:
        return terms.eta[:, k], down
    c = int(system.tree.parent[k])  # the attachment, a body of the tree without mass
    six = slice(int(system.tree.layout.v_start[c]), int(system.tree.layout.v_start[c + 1]))
    pushed = terms.eta[:, c] + np.einsum("bji,bj->bi", terms.H[:, six], drift[:, six])
    eta = terms.eta[:, k] + np.einsum("bij,bj->bi", down, pushed)
    return eta, down @ reach(system, c, X, terms)


def reach(system: FlexibleSystem, c: int, X: Array, terms: LinkTerms) -> Array:
    """[Π, φ*] (B, 6, n + 6): [η̇; V] of a body that bends to the velocity of the attachment c on it."""
    six = slice(int(system.tree.layout.v_start[c]), int(system.tree.layout.v_start[c + 1]))
    modes = system.mode_slice(system.body_names[int(system.tree.parent[c])], True)
    moved = np.swapaxes(terms.H[:, six], 1, 2) @ X[:, six, modes]
    return np.concatenate([moved, _shift(terms.l[:, c])], axis=2)


def _shift(l: Array) -> Array:
    """φ* = [[1, 0], [−l~, 1]], (B, 6, 6)."""
    out = np.zeros((len(l), 6, 6))
    out[:, range(6), range(6)] = 1.0
    out[:, 3:, :3] = -skew(l)
    return out


def elastic_terms(
    body: FlexibleBody, eta: Array, rate: Array, terms: LinkTerms, k: int, slack: bool
) -> tuple[Array, Array]:
    """M_m and ξ of a flexible body, world orientation: sums over its points in its own frame, then turned."""
    B, n = eta.shape
    turn = terms.rotation[:, k]
    omega = np.einsum("bji,bj->bi", turn, terms.velocity[:, k, :3])[:, None]
    few = body.condensed
    shapes = np.broadcast_to(few.shapes, (B, *few.shapes.shape))
    s = few.points + np.einsum("iaj,bj->bia", few.shapes, eta)
    bent = np.zeros_like(s)
    if few.bends is not None:
        quadratic = np.einsum("iajl,bl->biaj", few.bends, eta)
        s = s + 0.5 * np.einsum("biaj,bj->bia", quadratic, eta)
        shapes = shapes + quadratic
        bent = np.einsum("iajl,bj,bl->bia", few.bends, rate, rate)
    moved = np.einsum("biaj,bj->bia", shapes, rate)
    gamma = np.cross(omega, np.cross(omega, s)) + 2 * np.cross(omega, moved) + bent
    along = np.broadcast_to(few.weight[:, None, None] * np.eye(3), (*s.shape[:2], 3, 3))
    J = np.concatenate([shapes, -skew(s), along], axis=3)
    Q = np.einsum("biak,bial->bkl", J, J, optimize=True)
    xi = np.einsum("biak,bia->bk", J, gamma, optimize=True)
    if not slack:
        xi[:, :n] += eta @ body.stiffness + rate @ body.damping
    T = np.zeros((B, n + 6, n + 6))
    T[:, range(n), range(n)] = 1.0
    T[:, n : n + 3, n : n + 3] = T[:, n + 3 :, n + 3 :] = turn
    Q = T @ Q @ np.swapaxes(T, 1, 2)
    return 0.5 * (Q + np.swapaxes(Q, 1, 2)), np.einsum("bij,bj->bi", T, xi)
