"""States and covariances of the filter while flat components are being resolved.

With M the information on δ from the outputs outboard of a node, N its null space and A what δ does to the state::

    P + κP∞:   P∞ = A N N*A*,   P = P_s + A (M⁺ − N N*s²N N*) A*,   z = z_s + A M⁺ b

where P_s, z_s belong to the finite model with variances s² in place of infinite ones.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kfdyn.estimation.inference.factor import InnovationsFactor
from kfdyn.estimation.inference.filtered import Filtered
from kfdyn.estimation.model.blocks import Blocks, FloatArray

if TYPE_CHECKING:
    from kfdyn.estimation.flat.filtering import FlatFiltered

_NULL = 1e-12  # of the information that a component could have at best


class Phase(NamedTuple):
    """Node-by-node quantities of :class:`FlatFiltered`."""

    z: Blocks
    z_plus: Blocks
    P: Blocks
    P_inf: Blocks
    P_plus: Blocks
    P_plus_inf: Blocks


def phase_of(filt: FlatFiltered) -> Phase:
    """Collect the information on δ from the leaves to the roots. O(N d³), in Python; done when first asked for."""
    ss, layout = filt.ss, filt.layout
    tree, d = ss.tree, layout.most
    X, e = whitened(filt.columns).T, whitened(filt.finite)
    batch = filt.finite.eps.shape[:-1]
    number = layout.of_state[ss.arrays.state[:-1]] if ss.n_states else np.zeros(len(tree), dtype=int)
    z, zp = (Blocks(b.flat.reshape(-1, ss.n_states).copy(), ss.n) for b in (filt.finite.z, filt.finite.z_plus))
    P, Pp = (b.like(b.flat.copy()) for b in (filt.finite.P, filt.finite.P_plus))
    P_inf, Pp_inf = (P.like(np.zeros_like(P.flat)) for _ in range(2))
    A, Ap = filt.columns.z, filt.columns.z_plus
    M, b = np.zeros((len(tree), d, d)), np.zeros((len(tree), len(e), d))
    for k in tree.order.tolist():
        place = layout.place[number[k]]
        have = int((place >= 0).sum())
        s = filt.scale[place[:have]]
        for own, mean, cov, infinite in ((A, z, P, P_inf), (Ap, zp, Pp, Pp_inf)):
            a = own[k][:have].T
            if a.any():
                known, correction, null = _limit(M[k, :have, :have], b[k, :, :have], s)
                mean[k][...] -= known @ a.T
                cov[k][...] += a @ correction @ a.T
                infinite[k][...] += (a @ null) @ (a @ null).T
            if own is A:
                seen = slice(ss.arrays.output[k], ss.arrays.output[k + 1])
                M[k] += X[seen].T @ X[seen]
                b[k] += e[:, seen] @ X[seen]
        p = tree.parent[k]
        if p >= 0:
            M[p] += M[k]
            b[p] += b[k]
    mean, updated = (Blocks(m.flat.reshape(*batch, -1), ss.n) for m in (z, zp))
    return Phase(mean, updated, P, P_inf, Pp, Pp_inf)


def _limit(M: FloatArray, b: FloatArray, s: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """M⁺b, M⁺ − NN*s²NN* and N; the rank is judged in units of s."""
    value, vector = np.linalg.eigh(M * np.outer(s, s))
    open_ = value <= _NULL
    if not open_.any():
        inverse = (s[:, None] * vector / value) @ (vector.T * s)
        return b @ inverse, inverse, np.zeros((s.size, 0))
    null = np.linalg.qr(s[:, None] * vector[:, open_])[0]
    seen = np.linalg.qr(null, mode="complete")[0][:, null.shape[1] :]
    inverse = seen @ np.linalg.solve(seen.T @ M @ seen, seen.T)
    onto = null @ null.T
    return b @ inverse, inverse - onto * s**2 @ onto, null


def whitened(filt: Filtered) -> FloatArray:
    """D^-½ ε of the centred innovations, one row for each batch entry."""
    factor = InnovationsFactor(filt.covariances)
    white = factor._lower(filt.eps_centered, inverse=True, transposed=False)
    return white.reshape(math.prod(white.shape[:-1]), white.shape[-1])
