"""Strong rows on a root of which nothing else is known beforehand: what all others say, summed without them.

No branch carries a flat root, so its rows cannot be solved with one (:mod:`.strong`). But the forces on it balance, and
the information of all others is a sum in which the row itself need not stand. For rows y = C x with unit noise::

    C*ρ = −Σ forces of the others      N = P'(1 + P')⁻¹,   P' the others' information on C x

Rows that alone tell a direction of the root have P' = 0 there, and so neither ρ nor N.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kfdyn.estimation.blocks import FloatArray, IntArray
from kfdyn.estimation.outward.strong import STRONG, noise_left

if TYPE_CHECKING:
    from kfdyn.estimation.blocks import Blocks
    from kfdyn.estimation.outward.dual import Dual
    from kfdyn.estimation.outward.model import OutwardTree
    from kfdyn.estimation.outward.rows import Rows

_RANK = 1e-13  # of the largest singular value of C


def strong_at_roots(model: OutwardTree, dual: Dual, rows: Rows) -> IntArray:
    """Which of the rows are strong ones on a flat root."""
    if model.root_cov is not None:
        return np.zeros(0, dtype=np.int64)
    there = np.flatnonzero(model.tree.parent[rows.at] < 0)
    return there[noise_left(dual, rows.take(there)) < STRONG] if there.size else there


def balanced(
    model: OutwardTree, dual: Dual, rows: Rows, i: int, P_plus: Blocks, s: Blocks
) -> tuple[FloatArray, FloatArray]:
    """ρ (batch, c) and N (c, c) of one block of strong rows on a flat root.

    ``P_plus`` and ``s`` are what the branches let through: information (n, n) and minus the forces (batch, n).
    """
    k, free = int(rows.at[i]), dual.smooth.ss.H[rows.at[i]].T
    P, force = _others(model, dual, rows, i, P_plus, s)
    P, force, C = free.T @ P @ free, force @ free, rows.C[i] @ free
    U, S, Vt = np.linalg.svd(C)
    r = int((_RANK * S[0] < S).sum())
    onto, rest = Vt[:r].T / S[:r], Vt[r:].T
    known = onto.T @ P @ onto
    if rest.shape[1]:  # what the rows do not see is known by the others
        unit = np.sqrt(np.diag(rest.T @ P @ rest))
        across = (onto.T @ P @ rest) / unit
        known = known - across @ np.linalg.solve((rest.T @ P @ rest) / np.outer(unit, unit), across.T)
    known = 0.5 * (known + known.T)
    N = np.linalg.solve(np.eye(r) + known, known)
    x = dual.mean[k]
    blind = rows.y[:, i] - x @ rows.C[i].T
    rho = -(force @ onto) @ U[:, :r].T + blind @ U[:, r:] @ U[:, r:].T
    return rho, U[:, :r] @ (0.5 * (N + N.T)) @ U[:, :r].T + U[:, r:] @ U[:, r:].T


def _others(
    model: OutwardTree, dual: Dual, rows: Rows, i: int, P_plus: Blocks, s: Blocks
) -> tuple[FloatArray, FloatArray]:
    """Information (n, n) and force (batch, n) on the root of all but one block of rows."""
    k, x = int(rows.at[i]), dual.mean
    n = int(model.n[k])
    P, force = np.zeros((n, n)), np.zeros((len(x.flat), n))
    for child in np.flatnonzero(model.tree.parent == k):
        A = dual.branches.A[child]
        P += A.T @ P_plus[child] @ A
        force += s[child] @ A
    for other in dual.noisy:
        here = np.flatnonzero(other.at == k)
        if other is rows:
            here = here[here != i]
        if not here.size:
            continue
        C = other.C[here]
        P += np.einsum("gca,gcb->ab", C, C)
        left = other.y[:, here] - np.einsum("gcn,bn->bgc", C, x[k])
        force += np.einsum("gcn,bgc->bn", C, left)
    return P, force
