"""Derivatives of a frame's Jacobian: how its columns are carried along when a hinge moves."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from kfdyn.errors import ModelError
from kfdyn.multibody import System, jacobian
from kfdyn.multibody.parts.hinge import Coordinates

Array = NDArray[np.float64]


def jacobian_derivatives(system: System, q: Array, frame: str) -> tuple[Array, Array]:
    """Jacobian J (..., 6, nv) of a frame and ∂J/∂q (..., 6, nv, nv), the last axis in tangent coordinates.

    ::

        ∂ω_j/∂q_i = ω_i × ω_j,   ∂u_j/∂q_i = ω_i × u_j     where hinge motion i carries the axis of column j = [ω; u]
        ∂ω_j/∂q_i = 0,           ∂u_j/∂q_i = ω_j × u_i     where j carries i

    O(nv²).
    """
    J = jacobian(system, q, frame)
    tree = system.open_tree
    T = J if tree is system else jacobian(tree, system.expand(q), frame)
    w, u = np.moveaxis(T[..., :3, :], -2, -1), np.moveaxis(T[..., 3:, :], -2, -1)
    carries = _carries(tree)[..., None]
    by = np.empty((*T.shape, tree.nv))
    turned = np.cross(w[..., None, :], w[..., None, :, :])
    moved = np.cross(w[..., None, :], u[..., None, :, :])
    by[..., :3, :, :] = np.moveaxis(np.where(carries, turned, 0.0), (-3, -2, -1), (-1, -2, -3))
    by[..., 3:, :, :] = np.moveaxis(np.where(carries, moved, np.swapaxes(moved, -2, -3)), (-3, -2, -1), (-1, -2, -3))
    if tree is system:
        return J, by
    X = system.expansion()
    return J, np.einsum("...rji,jl,ik->...rlk", by, X, X)


def expect_constant_couplings(system: System) -> None:
    """Refuse hinges that follow others by functions."""
    if system.is_curved:
        raise ModelError(
            f"system {system.name!r} has hinges that follow others by functions, and derivatives of its Jacobians are "
            "not implemented; take those of system.open_tree"
        )


@lru_cache(maxsize=256)
def _carries(tree: System) -> NDArray[np.bool_]:
    """Whether dof i carries the axis of dof j (nv, nv): it is inboard of it, or before it in one hinge, or both turn
    with their body, as axes of balls and poses do. Said of dofs on one path only.
    """
    rank = np.empty(tree.nv)
    for k, body in enumerate(tree.bodies):
        depth, up = 0, int(tree.parent[k])
        while up >= 0:
            depth, up = depth + 1, int(tree.parent[up])
        own = tree.v_slice(body.hinge_name)
        screws = body.hinge.coordinates is Coordinates.SCREWS
        rank[own] = depth + (np.arange(body.hinge.nv) / 8.0 if screws else 0.0)
    return rank[:, None] <= rank
