"""Posterior covariances of every node, in one scatter: Z is the block of the inverse KKT matrix for (α, λ, u).

    Z' = diag(φ*, φ*, 1) Z(p) diag(φ, φ, 1),   Z_w = 𝒦⁻¹ + X Z' X*,   cov α = Z_αα,   cov m = −Z_mm
    cov f = C + [A, −C, E] Z [A, −C, E]*

0 stands above a root. THEORY section 11.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from kfdyn.dynamics.sensors.dofs import dofs_of
from kfdyn.dynamics.sensors.elimination.factor import Factor, spans
from kfdyn.dynamics.sensors.sensor import Array


class Local(NamedTuple):
    """Covariances (B, ·, ·) at node k: of q̈, of m of its rows, and of (α, λ, u); of m and λ their negatives.

    ``others``: variances (B, ·) of tau, f and the external force, if they are at hand.
    """

    k: int
    a: Array
    m: Array
    z: Array
    others: tuple[Array, Array, Array] | None = None


def marginals(factor: Factor) -> Iterator[Local]:
    """Yield the nodes' covariances, parents first; cost O(N)."""
    layout, size, D = factor.layout, len(factor.terms.l), factor.width
    (alpha, lam), head, armature = spans(D), 2 * D, dofs_of(layout.system).armature
    inward: dict[int, Array] = {}
    for k in layout.order:
        node, own = layout.nodes[k], factor.nodes[k]
        n, total, m = own.Gamma.shape[-1], len(own.keep) + len(own.gone), node.n_dofs
        kept = inward.pop(k) if node.parent >= 0 else np.zeros((size, len(own.keep), len(own.keep)))
        whole = np.empty((size, total, total))
        cross = -(own.X @ kept)
        whole[:, own.keep[:, None], own.keep] = kept
        whole[:, own.gone[:, None], own.keep] = cross
        whole[:, own.keep[:, None], own.gone] = cross.swapaxes(-1, -2)
        whole[:, own.gone[:, None], own.gone] = own.inverse - cross @ own.X.swapaxes(-1, -2)
        T = np.zeros((size, n, total))
        T[:, range(n), range(n)] = 1.0
        T[:, :head, n:] = own.E
        Z = _around(T, whole)
        C = -own.Gamma[:, lam, lam]
        to_f = own.Gamma[:, lam]
        H, back = own.data.H, own.data.H.swapaxes(-1, -2)
        to_tau = H @ to_f @ T
        to_tau[:, :, n : n + m] += np.diag(armature[node.dofs])
        spread = (own.data.P_spread @ own.data.cov) @ own.data.P_spread.swapaxes(-1, -2)
        to_x = np.zeros((size, D, n))
        to_x[:, :, lam] = spread
        to_x[:, :, head : head + node.n_loose] = own.data.P_loose
        yield Local(
            k,
            whole[:, n : n + m, n : n + m],
            -whole[:, n + m :, n + m :],
            Z,
            (H @ C @ back + _around(to_tau, whole), C + _around(to_f, Z), spread + _around(to_x, Z)),
        )
        at, Z = head + node.n_own, own.parted_covariance(Z)
        for j in node.children:
            child = factor.nodes[j]
            count = len(child.keep) - head
            pick = np.concatenate([np.arange(head), np.arange(at, at + count)])
            part, phi = Z[:, pick[:, None], pick], child.phi
            for rows in (alpha, lam):
                part[:, rows] = phi.swapaxes(-1, -2) @ part[:, rows]
            for rows in (alpha, lam):
                part[:, :, rows] = part[:, :, rows] @ phi
            inward[j] = part
            at += count


def _around(T: Array, Z: Array) -> Array:
    """T Z T*."""
    return np.asarray(T @ Z @ T.swapaxes(-1, -2))
