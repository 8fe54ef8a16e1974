"""Group the components of a node that share a unit: moments with moments, forces with forces."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kfdyn.arrays import Array
from kfdyn.estimation import StateSpace

Starts = NDArray[np.int64]


def unit_groups(ss: StateSpace) -> list[Starts]:
    """Return the first component of each group of one unit, node by node; a group ends where the next begins.

    What is small must be told from what is 0, and an axis of the world is no unit: a lever of 1e-17 m along y says
    only that the lever along x was rounded. The three moments of a body have one unit, its three forces another, and
    no choice of axes changes them: ``ss.vectors`` says which nodes are made of such vectors. In any other node every
    component has its own unit, for nothing is known of it.

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
    vectors = np.zeros(len(ss), dtype=bool) if ss.vectors is None else ss.vectors
    return [np.arange(0, n, 3 if triple else 1) for n, triple in zip(ss.n.tolist(), vectors.tolist())]


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
