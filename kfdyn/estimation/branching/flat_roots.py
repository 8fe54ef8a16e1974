"""Treat roots with a flat prior: free in the dual model, refused where the data do not resolve them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kfdyn.errors import SingularError
from kfdyn.estimation.branching.exact import Branches
from kfdyn.estimation.inference.riccati import riccati
from kfdyn.estimation.model.blocks import Blocks, FloatArray, offsets_of
from kfdyn.estimation.model.state_space import StateSpace

if TYPE_CHECKING:
    from kfdyn.estimation.branching.outward_tree import OutwardTree

_SEEN = 1e-13  # of the information on a flat root, each state in its own units: less is rounding


def hinges(model: OutwardTree, branches: Branches, exact: bool) -> tuple[FloatArray, FloatArray, np.ndarray]:
    """Return H = B* and R = 1 of the branches, stacked, and their output sizes; a flat root's are free."""
    H, n = transposed(branches.B), model.n
    R = np.zeros(H.size)
    R[_diagonal(n)] = 1.0
    if model.root_cov is None:
        return _flat_roots(model.tree.roots, branches.B, H, R, n, exact)
    return H, R, n.copy()


def transposed(blocks: Blocks) -> FloatArray:
    """Return the transposed blocks, stacked."""
    out = np.empty_like(blocks.flat)
    for nodes, b in blocks.grouped():
        if b.size:
            out[blocks.places(nodes, b[0].size)] = b.transpose(0, 2, 1).reshape(nodes.size, -1)
    return out


def _flat_roots(
    roots: list[int], B: Blocks, H: FloatArray, R: FloatArray, n: np.ndarray, exact: bool
) -> tuple[FloatArray, FloatArray, np.ndarray]:
    """Give a flat root a hinge without rotor: H = N*, R = 0, N its directions still free."""
    m = n.copy()
    H_parts, R_parts = Blocks(H, n, n), Blocks(R, n, n)
    if not exact or all((B[k] == np.eye(n[k])).all() for k in roots):
        for k in roots:
            R_parts[k][...] = 0.0
        return H, R, m
    free = {}
    for k in roots:
        value, vector = np.linalg.eigh(0.5 * (B[k] + B[k].T))  # a projection
        free[k] = vector[:, value > 0.5].T
        m[k] = len(free[k])
    H_new, R_new = Blocks(np.empty(int((m * n).sum())), m, n), Blocks(np.zeros(int((m * m).sum())), m, m)
    for k in range(n.size):
        H_new[k][...] = free.get(k, H_parts[k])
        R_new[k][...] = 0.0 if k in free else R_parts[k]
    return H_new.flat, R_new.flat, m


def _diagonal(n: np.ndarray) -> np.ndarray:
    """Return the places of the diagonal entries of stacked square blocks."""
    nodes = np.repeat(np.arange(n.size), n)
    within = np.arange(nodes.size) - offsets_of(n)[nodes]
    return offsets_of(n * n)[nodes] + within * (n[nodes] + 1)


def name_direction(model: OutwardTree, ss: StateSpace, error: SingularError) -> None:
    """Raise an error that names the direction of a flat root which the data do not resolve."""
    if model.root_cov is None and error.node in model.tree.roots:
        expect_resolved(ss, error.node, _closed(ss, error.node), always=True)


def _closed(ss: StateSpace, root: int) -> FloatArray:
    """Compute the information P(root) with the root's hinge left out, for a root that cannot be filtered."""
    others = [k for k in range(len(ss)) if k != root]
    H, R = (np.concatenate([b[k].ravel() for k in others] or [np.zeros(0)]) for b in (ss.H, ss.R))
    m = np.where(np.arange(len(ss)) == root, 0, ss.m)
    return riccati(StateSpace.trusted(ss.tree, ss.n, m, ss.phi.flat, H, ss.Q.flat, R)).P[root]


def expect_resolved(ss: StateSpace, root: int, P: FloatArray, always: bool = False) -> None:
    """Refuse a flat root with an unresolved direction, and name the direction."""
    information = ss.H[root] @ P @ ss.H[root].T
    if not information.size:
        return
    scale = np.sqrt(np.maximum(np.diag(information), 0.0))
    scale = np.where(scale > 0.0, scale, 1.0)
    value, vector = np.linalg.eigh(information / np.outer(scale, scale))
    if value[0] > _SEEN and not always:
        return
    direction = ss.H[root].T @ (vector[:, 0] / scale)
    direction = direction / direction[np.argmax(np.abs(direction))]
    shown = ", ".join(f"{x:.3g}" for x in np.where(np.abs(direction) < _SEEN, 0.0, direction))
    raise SingularError(
        f"{ss.tree.label(root)}: its prior is flat and the data never resolve the direction [{shown}] of its state; "
        "give root_cov, or an observation that sees it",
        root,
    )
