"""Blocks of a body in the estimation problem, for many states at once: what nodes of several bodies are made of."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfdyn.multibody import FlexibleSystem, LinkTerms, System
from kfdyn.multibody.links import open_terms
from kfdyn.spatial import skew

Array = NDArray[np.float64]


class Blocks(NamedTuple):
    """Blocks of one body in B states.

    Attributes
    ----------
    phi : (B, n_parent, n) or None
        To its parent; None at a root.
    H, Q, R : (B, m, n), (B, n, n), (B, m, m)
        Hinge map, inertia, rotors.
    xi, eta : (B, n)
        Bias force and bias acceleration.
    """

    phi: Array | None
    H: Array
    Q: Array
    R: Array
    xi: Array
    eta: Array


def body_blocks(
    system: System | FlexibleSystem,
    q: ArrayLike,
    v: ArrayLike | None = None,
    gravity: ArrayLike | None = None,
    external_forces: ArrayLike | None = None,
) -> tuple[tuple[int, ...], list[Blocks]]:
    """Leading axes, and the blocks of every body without couplings and loops, at a state of the system with them."""
    if isinstance(system, FlexibleSystem):
        from kfdyn.dynamics.flexible.assembly import flexible_blocks

        e = system._expansion
        own = system.checked(q, system.nq, "q")
        here = e.positions(own)
        rate = None if v is None else e.at(own).rates(system.checked(v, system.nv, "v"))
        return flexible_blocks(system.uncoupled, here, rate, gravity, external_forces)
    terms = open_terms(system, q, v, external_forces, gravity)
    lead, tree = terms.l.shape[:-2], system.open_tree
    size = math.prod(lead)
    flat = LinkTerms(*(x.reshape(size, *x.shape[len(lead) :]) for x in terms))
    phi = np.zeros((size, tree.n_bodies, 6, 6))
    phi[..., range(6), range(6)] = 1.0
    phi[..., :3, 3:] = skew(flat.l)
    start, out = tree.layout.v_start, []
    for k, body in enumerate(tree.bodies):
        m = body.hinge.nv
        R = np.broadcast_to(np.diag(body.armature), (size, m, m))
        up = phi[:, k] if tree.parent[k] >= 0 else None
        out.append(Blocks(up, flat.H[:, start[k] : start[k + 1]], flat.inertia[:, k], R, flat.xi[:, k], flat.eta[:, k]))
    return lead, out
