"""Group the components of a node that share a unit: moments with moments, forces with forces."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kfdyn.arrays import Array
from kfdyn.estimation import StateSpace
from kfdyn.estimation.model.turned import of_vectors

Starts = NDArray[np.int64]

_ROUNDED = 1e-12  # how exactly a rigid body's steps show what they are
_TRIPLES = np.array([0, 3])  # [angular; linear]


def unit_groups(ss: StateSpace) -> list[Starts]:
    """Return the first component of each group of one unit, node by node; a group ends where the next begins.

    What is small must be told from what is 0, and an axis of the world is no unit: a lever of 1e-17 m along y says
    only that the lever along x was rounded. The three moments of a node have one unit, its three forces another, and
    no choice of axes changes them. They are recognised by what rigid bodies alone have, in every block of six::

        M = [[J, m p~], [−m p~, m 1]],     φ = [[A, l~A], [0, A]],  AA* = 1 (or φ = 0)

    In any other node every component has its own unit, for nothing is known of it.

    Returns
    -------
    list of arrays of int
        One for each node: ``[0, 3]`` for a body, ``[0, 3, 6, 9]`` for two in one node, ``[0, 1, ...]`` otherwise.

    Examples
    --------
    >>> import kfdyn as kf
    >>> unit_groups(kf.as_estimation(kf.models.double_pendulum(), [0.0, 0.0]))
    [array([0, 3]), array([0, 3])]
    >>> unit_groups(kf.StateSpace([-1], [None], [[[1.0, 0.0]]], [[[1.0, 0.0], [0.0, 2.0]]]))
    [array([0, 1])]
    """
    bodies = [bool(of_vectors(Q)) for Q in ss.Q]
    for k, p in enumerate(ss.tree.parent):
        if p >= 0 and not (bodies[k] and bodies[p] and _rigid(ss.phi[k])):
            bodies[k] = bodies[p] = False
    return [
        np.concatenate([6 * i + _TRIPLES for i in range(len(Q) // 6)]) if body else np.arange(len(Q))
        for Q, body in zip(ss.Q, bodies)
    ]


def group_norms(block: Array, rows: Starts, cols: Starts) -> Array:
    """Return the Frobenius norm of each part of a block (r, c) whose rows and columns are of one unit."""
    if not block.size:
        return np.zeros((len(rows), len(cols)))
    return np.sqrt(np.add.reduceat(np.add.reduceat(block**2, rows, axis=0), cols, axis=1))


def group_gains(block: Array, rows: Starts, cols: Starts) -> Array:
    """Return the spectral norm of each such part, (groups, groups): what a group's length may become.

    A rotation has gain 1, where its Frobenius norm is √3: over forty hinges in a row that is a factor of 1e9.
    """
    if not block.size:
        return np.zeros((len(rows), len(cols)))
    if len(rows) == len(block) and len(cols) == block.shape[1]:
        return np.abs(block)
    parts = [np.split(part, cols[1:], axis=1) for part in np.split(block, rows[1:])]
    return np.array([[np.linalg.norm(part, 2) for part in row] for row in parts])


def group_norm(vector: Array, starts: Starts) -> Array:
    """Return the Euclidean norm of each group of a vector (n,): (groups,)."""
    return np.sqrt(np.add.reduceat(vector**2, starts)) if len(vector) else np.zeros(0)


def spread(values: Array, starts: Starts, n: int) -> Array:
    """Repeat the value of each group for its components, (n,)."""
    return np.repeat(values, np.diff(np.append(starts, n)))


def _rigid(phi: Array) -> bool:
    """Return True if every block of six shifts a spatial force, or is 0."""
    if phi.shape[0] % 6 or phi.shape[1] % 6:
        return False
    for part in phi.reshape(phi.shape[0] // 6, 6, -1, 6).transpose(0, 2, 1, 3).reshape(-1, 6, 6):
        A, lever = part[:3, :3], part[:3, 3:]
        if not part.any():
            continue
        skew = lever @ A.T
        off = max(np.abs(A @ A.T - np.eye(3)).max(), np.abs(part[3:, 3:] - A).max(), np.abs(part[3:, :3]).max())
        if off > _ROUNDED or np.abs(skew + skew.T).max() > _ROUNDED * max(np.abs(skew).max(), 1e-300):
            return False
    return True
