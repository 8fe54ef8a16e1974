"""Decide by a bound whether the variance left by exact measurements is more than rounding."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kfdyn.estimation.model.blocks import Blocks, FloatArray, offsets_of
from kfdyn.estimation.operators.block_operators import block_diagonal, closed_loop, congruence, lower_inverse, one_step
from kfdyn.estimation.recursions.linalg.covariances import clearly_noisy, clearly_positive

if TYPE_CHECKING:
    from kfdyn.estimation.inference.filter_covariances import BoolArray, Method, Riccati

_EPS = float(np.finfo(float).eps)
# So many ε of what an error is estimated from may be lost. Of 20,000 random singular models, some have 1e4 of it and
# none of their roots 10; regular ones with condition numbers up to 1e11 have 1e6.
_SAFETY, _OF_ROOTS = 2.0**15, 64.0
# Of its size, what a variance that is no rounding has: pivots of singular matrices may be larger than eigenvalues.
_PIVOT, _EIGENVALUE = 1e-8, 1e-12


def output_below_rounding(cov: Riccati, method: Method) -> int | None:
    """Find the first output (stacked) whose innovation may be all rounding error; None if there is none.

    The gather makes errors at every node of no more than ε times the variances there. To first order the closed loop
    carries them on, so that the error of P(k) is below c ε E(k) with

        E(p) = Σ_k φ τ̄ E(k) τ̄*φ* + diag X(p),     X(p) = Q_ii(p) + (Σ_k |φ| (s + |G|(|H|s + √R_aa)))²

    and s² = P⁺_ii. D is positive definite beyond doubt if c ε (H E H* + R_aa) is less. Factors have errors of ε
    themselves, so ε² stands there, but for those taken of a singular Q or R. Outputs measured one by one leave errors
    of P, not of P⁺: what is done for the later ones does not clean up behind the first.

    Only nodes whose own noise HQH* + R is singular are asked: D is no less than that, so no other can fail.

    Notes
    -----
    One look where every R is regular, one pass over the blocks where every HQH* + R is; else O(N), as the gather.
    """
    ss = cov.ss
    asked = _without_noise(cov)
    if not asked.any():
        return None
    from kfdyn.estimation.recursions.lyapunov import forward

    steps = closed_loop(cov).ragged
    phi, G, H = (blocks.like(np.abs(blocks.flat)) for blocks in (ss.phi, cov.G, ss.H))
    s = np.sqrt(np.maximum((cov.P if method == "univariate" else cov.P_plus).diagonals(), 0.0))
    limit = (_OF_ROOTS * _EPS) ** -2 if method == "square_root" else 1.0 / (_SAFETY * _EPS)
    q, r = (_errors(cov, name, limit) for name in ("Q", "R"))
    s = s + block_diagonal(G).forward(block_diagonal(H).forward(s) + np.sqrt(r))
    X = q + one_step(ss._with({"phi": phi})).forward(s) ** 2
    E = ss.Q.like(_on_diagonals(ss.Q, X))
    forward(ss.tree.order, ss.tree.parent, steps, steps, E.ragged, np.empty(ss.common.most_states**2))
    V = congruence(ss.H, E, _on_diagonals(ss.R, r))
    lost = np.zeros(ss.n_outputs, dtype=bool)
    for nodes, L in cov.D_factor.grouped():
        nodes, L = nodes[asked[nodes]], L[asked[nodes]]
        m = L.shape[1]
        inverse = lower_inverse(L)
        share = np.einsum("gab,gbc,gac->ga", inverse, V.flat[V.places(nodes, m * m)].reshape(L.shape), inverse)
        at = ss.arrays.output[nodes][:, None] + np.arange(m)
        lost[at] = cov.observed[at] & (share >= limit)
    if not lost.any():
        return None
    place = np.empty(len(ss), np.int64)
    place[ss.tree.order] = np.arange(len(ss))
    outputs = np.flatnonzero(lost)
    return int(outputs[np.argmin(place[np.repeat(np.arange(len(ss)), ss.m)[outputs]])])


def _errors(cov: Riccati, name: str, limit: float) -> FloatArray:
    """Return variances of Q or R, stacked, larger where a square root was taken of a singular block."""
    blocks: Blocks = getattr(cov.ss, name)
    found = blocks.diagonals()
    if not cov.by_roots or getattr(cov.ss.factors, name, None) is not None:
        return found
    start = offsets_of(blocks.rows)
    for nodes, own in blocks.grouped():
        some = np.count_nonzero(own, axis=(1, 2)) > np.count_nonzero(np.diagonal(own, axis1=1, axis2=2), axis=1)
        nodes, own = nodes[some], own[some]
        unit = np.sqrt(np.maximum(np.diagonal(own, axis1=1, axis2=2), 0.0))
        unit[unit == 0.0] = 1.0
        nodes = nodes[_low(own / (unit[:, :, None] * unit[:, None, :]))]
        found[start[nodes][:, None] + np.arange(own.shape[1])] *= np.sqrt(limit)
    return found


def _on_diagonals(like: Blocks, values: FloatArray) -> FloatArray:
    """Return blocks of these sizes, stacked, with the values on their diagonals and zeros elsewhere."""
    out, start = np.zeros_like(like.flat), offsets_of(like.rows)
    nodes = np.repeat(np.arange(len(like)), like.rows)
    out[like.offsets[nodes] + (np.arange(nodes.size) - start[nodes]) * (like.rows[nodes] + 1)] = values
    return out


def _without_noise(cov: Riccati) -> BoolArray:
    """Find nodes whose own noise HQH* + R is singular, or negligible beside the prior."""
    ss, asked = cov.ss, np.zeros(len(cov.ss), dtype=bool)
    R, m = ss.R, ss.m
    if ss.common.m == 1 and R.flat.min(initial=np.inf) > 0.0:
        return asked
    n, most = ss.common.most_states, ss.common.most_outputs
    if (R.diagonals() > 0.0).all() and clearly_positive(R.flat, m, _PIVOT, np.empty(most**2)):
        return asked  # in a tenth of the time of the next look
    if n and clearly_noisy(ss.H.ragged, ss.Q.ragged, R.ragged, cov.P.flat, _PIVOT, np.empty(most * (most + n))):
        return asked
    size = R.diagonals() + block_diagonal(ss.H.like(ss.H.flat**2)).forward(cov.P.diagonals())
    unit = ss.output_blocks(np.sqrt(np.where(size > 0.0, size, 1.0)))
    for nodes, own in congruence(ss.H, ss.Q, R.flat).grouped():
        one = unit.flat[unit.places(nodes, own.shape[1])]
        own = own / (one[:, :, None] * one[:, None, :])
        asked[nodes] = own[:, 0, 0] < _EIGENVALUE if own.shape[1] == 1 else _low(own)
    return asked


def _low(stack: FloatArray) -> BoolArray:
    """Return the mask of the covariances (count, m, m) with a negligible eigenvalue."""
    m = stack.shape[1]
    sizes, flat = np.full(len(stack), m), np.ascontiguousarray(stack).reshape(-1)
    diagonal = np.diagonal(stack, axis1=1, axis2=2)
    if (diagonal > _PIVOT).all() and clearly_positive(flat, sizes, _PIVOT, np.empty(m * m)):
        return np.zeros(len(stack), dtype=bool)
    return np.linalg.eigvalsh(stack).min(axis=1, initial=1.0) < _EIGENVALUE
