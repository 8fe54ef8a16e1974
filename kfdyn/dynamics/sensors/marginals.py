"""Posterior covariances of every node, in one scatter: Z is the block of the inverse KKT matrix for (α, λ, u).

    Z' = diag(φ*, φ*, 1) Z(p) diag(φ, φ, 1),   Z_w = 𝒦⁻¹ + X Z' X*,   cov α = Z_αα,   cov m = −Z_mm
    cov f = C + [A, −C, E] Z [A, −C, E]*

0 stands above a root. THEORY section 11.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from kfdyn.dynamics.sensors.gather import ALPHA, LAMBDA, Factor
from kfdyn.dynamics.sensors.sensor import Array


class Local(NamedTuple):
    """Covariances (B, ·, ·) at node k: of a, tau, α, f, the external force, and m of its rows; and Z_λα."""

    k: int
    a: Array
    tau: Array
    alpha: Array
    f: Array
    external: Array
    m: Array
    lam_alpha: Array
    z: Array


def marginals(factor: Factor) -> Iterator[Local]:
    """Yield the nodes' covariances, parents first; cost O(N)."""
    layout, size = factor.layout, len(factor.terms.l)
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
        T[:, :12, n:] = own.E
        Z = _around(T, whole)
        C = -own.Gamma[:, LAMBDA, LAMBDA]
        to_f = own.Gamma[:, LAMBDA]
        H, back = own.data.H, own.data.H.swapaxes(-1, -2)
        to_tau = H @ to_f @ T
        to_tau[:, :, n : n + m] += np.diag(layout.system.open_tree.armature[node.dofs])
        spread = (own.data.P_spread @ own.data.cov) @ own.data.P_spread.swapaxes(-1, -2)
        to_x = np.zeros((size, 6, n))
        to_x[:, :, LAMBDA] = spread
        to_x[:, :, 12 : 12 + node.n_loose] = own.data.P_loose
        yield Local(
            k,
            whole[:, n : n + m, n : n + m],
            H @ C @ back + _around(to_tau, whole),
            Z[:, ALPHA, ALPHA],
            C + _around(to_f, Z),
            spread + _around(to_x, Z),
            -whole[:, n + m :, n + m :],
            Z[:, LAMBDA, ALPHA],
            Z,
        )
        at, Z = 12 + node.n_own, own.parted_covariance(Z)
        for j in node.children:
            child = factor.nodes[j]
            count = len(child.keep) - 12
            pick = np.concatenate([np.arange(12), np.arange(at, at + count)])
            part, phi = Z[:, pick[:, None], pick], child.phi
            for rows in (ALPHA, LAMBDA):
                part[:, rows] = phi.swapaxes(-1, -2) @ part[:, rows]
            for rows in (ALPHA, LAMBDA):
                part[:, :, rows] = part[:, :, rows] @ phi
            inward[j] = part
            at += count


def _around(T: Array, Z: Array) -> Array:
    """T Z T*."""
    return np.asarray(T @ Z @ T.swapaxes(-1, -2))
