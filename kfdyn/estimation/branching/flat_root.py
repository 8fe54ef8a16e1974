"""Strong rows on a root of which nothing else is known beforehand: what all others say, summed without them.

No branch carries a flat root, so its rows cannot be solved with one (:mod:`.near_exact`). But the forces on it balance,
and the information of all others is a sum in which the row itself need not stand. For rows y = C x with unit noise::

    C*ρ = −Σ forces of the others      N = P'(1 + P')⁻¹,   P' = G*G the others' information on C x

Rows that alone tell a direction of the root have P' = 0 there, and so neither ρ nor N.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kfdyn.estimation.branching.factors import factor_of
from kfdyn.estimation.branching.near_exact import STRONG, noise_left
from kfdyn.estimation.model.blocks import FloatArray, IntArray

if TYPE_CHECKING:
    from kfdyn.estimation.branching.dual import Dual
    from kfdyn.estimation.branching.model import OutwardTree
    from kfdyn.estimation.branching.rows import Rows
    from kfdyn.estimation.model.blocks import Blocks

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
    free = dual.smooth.ss.H[rows.at[i]].T
    G, force = _others(model, dual, rows, i, P_plus, s)
    U, S, Vt = np.linalg.svd(rows.C[i] @ free)
    r = int((_RANK * S[0] < S).sum())
    # what the rows do not see, the others know: the triangular factor leaves what they know of the rest
    onto, rest = free @ (Vt[:r].T / S[:r]), free @ Vt[r:].T
    f = rest.shape[1]
    parts = np.concatenate([G @ np.concatenate([rest, onto], axis=1), np.zeros((f + r, f + r))])
    triangle = np.asarray(np.linalg.qr(parts, mode="r"))
    _, value, turn = np.linalg.svd(triangle[f : f + r, f:])
    turn, share = U[:, :r] @ turn.T, value**2 / (1.0 + value**2)
    blind = U[:, r:] @ U[:, r:].T
    N = turn * share @ turn.T + blind
    # each side's rounding counts where the other side knows more
    direct, balance = rows.y[:, i] - dual.mean[rows.at[i]] @ rows.C[i].T, -(force @ onto) @ U[:, :r].T
    return direct @ N + (balance @ turn * (1.0 - share)) @ turn.T, N


def _others(
    model: OutwardTree, dual: Dual, rows: Rows, i: int, P_plus: Blocks, s: Blocks
) -> tuple[FloatArray, FloatArray]:
    """A factor G of the information G*G, (..., n), and the force (batch, n), on the root, of all others."""
    k, x = int(rows.at[i]), dual.mean
    n = int(model.n[k])
    factors, force = [np.zeros((0, n))], np.zeros((len(x.flat), n))
    for child in np.flatnonzero(model.tree.parent == k):
        A = dual.branches.A[child]
        factors.append(factor_of(P_plus[child][None])[0].T @ A)
        force += s[child] @ A
    for other in dual.noisy:
        here = np.flatnonzero(other.at == k)
        if other is rows:
            here = here[here != i]
        if here.size:
            C = other.C[here]
            factors.append(C.reshape(-1, n))
            left = other.y[:, here] - np.einsum("gcn,bn->bgc", C, x[k])
            force += np.einsum("gcn,bgc->bn", C, left)
    return np.concatenate(factors), force
