"""Hinge degrees of freedom from the rank of a velocity constraint."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.arrays import Array
from kfdyn.errors import ModelError, ShapeError
from kfdyn.spatial._arrays import trailing


def hinge_map_from_constraint(gradient: ArrayLike, tolerance: float = 1e-10) -> Array:
    """Hinge map H whose rows span the motions a constraint A V = 0 allows: AH* = 0, HH* = 1, m = 6 − rank A.

    Parameters
    ----------
    gradient : (c, 6)
        A: each row is a velocity constraint on the hinge's relative spatial velocity V = [ω; v]. Rows may
        depend on each other; c = 0 constrains nothing. A may be a gradient (holonomic) or not.
    tolerance : float
        A singular value of A, rows scaled to a largest entry of 1, counts as zero below this fraction of the largest.
        One within a factor 1000 of that line raises: the rank, so the number of dofs, would be a guess.

    Returns
    -------
    (m, 6)
        Orthonormal rows, so that V = H*β. Axes of the frame come first if they are free.

    Notes
    -----
    H depends on the null space alone: it is the pivoted Cholesky factor of the projector N = 1 − A⁺A on it,
    and N = H*H makes HH* = 1. A pivot is never below 1/6, so this step loses nothing.
    Source: SRB, holonomic and non-holonomic case. Cost: one c×6 singular value decomposition.

    Examples
    --------
    >>> from kfdyn.spatial import hinge_map_from_constraint
    >>> import numpy as np
    >>> pin = np.delete(np.eye(6), 2, axis=0)  # everything forbidden but the turn about z
    >>> hinge_map_from_constraint(pin)
    array([[0., 0., 1., 0., 0., 0.]])
    """
    A = trailing(gradient, (None, 6), "gradient")
    if A.ndim != 2:
        raise ShapeError(f"gradient must have shape (c, 6), it has shape {A.shape}; give one hinge at a time")
    if not 0 < tolerance < 1:
        raise ModelError(f"tolerance must lie between 0 and 1, it is {tolerance}")
    largest = np.abs(A).max(axis=1, keepdims=True, initial=0.0)
    A = A[largest[:, 0] > 0] / largest[largest[:, 0] > 0]  # zeros say nothing, units do not decide the rank
    if len(A) == 0:
        return np.eye(6)
    _, sigma, Vh = np.linalg.svd(A)
    relative = sigma / sigma[0]
    # 1e-15 and less is the rounding of exactly dependent rows
    doubtful = (relative > 1e-3 * tolerance) & (relative < 1e3 * tolerance) & (relative > 1e-15)
    if doubtful.any():
        raise ModelError(
            f"the rank of gradient is not clear: singular value {relative[doubtful][0]:.1e} (relative) lies "
            f"at the tolerance {tolerance:.1e}; remove the nearly dependent row or move the tolerance"
        )
    rank = int((relative >= tolerance).sum())
    return _pivoted_factor(np.eye(6) - Vh[:rank].T @ Vh[:rank], 6 - rank)


def _pivoted_factor(N: Array, rank: int) -> Array:
    """H (rank, 6) with H*H = N, for a projector N of this rank."""
    H = np.zeros((rank, 6))
    for i in range(rank):
        diagonal = np.diagonal(N)
        k = int(np.argmax(diagonal > diagonal.max() - 1e-9))  # first of equals, whatever the rounding
        H[i] = N[k] / np.sqrt(N[k, k])
        N = N - np.outer(H[i], H[i])
    return H
