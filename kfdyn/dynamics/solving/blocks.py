"""Blocks of a body in the estimation problem, for many states at once: what nodes of several bodies are made of."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfdyn.arrays import Array
from kfdyn.dynamics.solving.kinds import own_way
from kfdyn.multibody import LinkTerms
from kfdyn.multibody.links import open_terms
from kfdyn.spatial import skew


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
    system: Any,
    q: ArrayLike,
    v: ArrayLike | None = None,
    gravity: ArrayLike | None = None,
    external_forces: ArrayLike | None = None,
) -> tuple[tuple[int, ...], list[Blocks]]:
    """Leading axes, and the blocks of every body without couplings and loops, at a state of the system with them."""
    own: Any = own_way(system.uncoupled, "blocks")
    if own is not None:
        found: tuple[tuple[int, ...], list[Blocks]] = own(system, q, v, gravity, external_forces)
        return found
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


def expect_invertible(states: Any, free: NDArray[np.bool_] | None = None) -> None:
    """Leave it to the filter to say which node has nothing to move, where no units of the coordinates are known."""
