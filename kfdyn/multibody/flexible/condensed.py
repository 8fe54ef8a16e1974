"""A few points that weigh as all points of a body do, whatever bends it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kfdyn.arrays import Array


class Condensed(NamedTuple):
    """Points of mass 1 with J_j = [Ψ_j + B_jη, −s_j~, u_j 1] and M_m = Σ J_j*J_j: all that dynamics sees of a body.

    ``weight`` u (p,), ``points`` r (p, 3), ``shapes`` Ψ (p, 3, n), ``bends`` B (p, 3, n, n) or None.
    """

    weight: Array
    points: Array
    shapes: Array
    bends: Array | None


def condensed(mass: Array, points: Array, shapes: Array, bends: Array | None) -> Condensed:
    """Condense points to as few as there are different numbers in 1, r, Ψ, B.

    Row i of A = √m [1, r_i, Ψ_i, B_i] is what point i brings, and dynamics asks for A*A alone. So the rows of the
    triangle of A = QR will do: a plane beam with two modes has 4, however fine its elements are.

    Parameters
    ----------
    mass : (N,) or (N, N)
        Masses, positive semi-definite.
    points, shapes, bends : (N, 3), (N, 3, n), (N, 3, n, n) or None
        r, Ψ, B.

    Returns
    -------
    Condensed
    """
    N, n = len(points), shapes.shape[2]
    parts = [np.ones((N, 1)), points, shapes.reshape(N, -1)]
    pairs = np.triu_indices(n)
    if bends is not None:  # symmetric in the modes
        parts.append(bends[:, :, pairs[0], pairs[1]].reshape(N, -1))
    A = np.concatenate(parts, axis=1)
    if mass.ndim == 1:
        A = np.sqrt(mass)[:, None] * A
    else:
        weights, basis = np.linalg.eigh(mass)
        A = np.sqrt(np.maximum(weights, 0.0))[:, None] * (basis.T @ A)
    moves = A.any(axis=0)
    R = np.zeros((min(N, int(moves.sum())), A.shape[1]))
    R[:, moves] = np.linalg.qr(A[:, moves], mode="r")
    R = R[R.any(axis=1)]
    second = 4 + 3 * n
    whole = None
    if bends is not None:
        whole = np.zeros((len(R), 3, n, n))
        whole[:, :, pairs[0], pairs[1]] = whole[:, :, pairs[1], pairs[0]] = R[:, second:].reshape(len(R), 3, -1)
    return Condensed(R[:, 0], R[:, 1:4], R[:, 4:second].reshape(len(R), 3, n), whole)
