"""Chain rule of an outward tree's score through eliminated exact observations, and back to the outputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kfdyn.errors import ModelError
from kfdyn.estimation.branching.exact import Solved
from kfdyn.estimation.branching.rows import Rows, adjoint, get_blocks, outer, put_blocks
from kfdyn.estimation.model.blocks import Blocks, FloatArray, IntArray

if TYPE_CHECKING:
    from kfdyn.estimation.branching.posterior import OutwardPosterior


class RowScore(NamedTuple):
    """Gradients of rows: of their map C (g, c, n) without the part ρ x̂*; N (g, c, c) in that of their noise, which is
    ½(ρρ* − N); and ρ (batch, g, c), minus that of y. A batch axis leads; it is 1 where all entries share the matrix.

    The parts in ρ are put in last, for they would drown the rest where they are large.
    """

    C: FloatArray
    N: FloatArray
    rho: FloatArray


class BranchScore(NamedTuple):
    """Gradients of the branches: s of u, (batch, Σn); of A without its part s x̂*(p); and N in that of W, ½(ss* − N)."""

    A: Blocks
    N: Blocks
    u: Blocks


def undo(post: OutwardPosterior, step: Solved, sums: BranchScore, found: dict[int, RowScore]) -> RowScore:
    """Apply the chain rule through one step: A' = A − ΓCA, u' = u + Γ(y − Cu), W' = W − ΓΣΓ*, Γ = WC*Σ⁻¹, Σ = CWC*.

    Changes the sums into those of the branch before the step and returns the gradients of the exact rows. On the parent
    the step has left the row y − Cu = CA x(p) with noise Σ. Since y − C(A x̂(p) + u) = Σρ and x̂ − A x̂(p) − u = W s, all
    parts in ρ and s make up those of the new ρ and s; what is left is of N and of A, the same for every batch entry.
    """
    at, C, A = step.rows.at, step.rows.C, step.A
    (g, c, n), above = C.shape, step.A.shape[2]
    gA, N, s = get_blocks(sums.A, at, n, above), get_blocks(sums.N, at, n, n), get_blocks(sums.u, at, n)
    if step.passed is not None:
        _expect_tips(post, step)
        above_C, above_N, above_rho = (
            np.concatenate(part, axis=1) for part in zip(*(found[-1 - k] for k in at.tolist()))
        )
        turn = adjoint(step.rest) / step.scale[:, None, :]
        gM, Ns = adjoint(turn) @ above_C, adjoint(turn) @ above_N @ turn
        rho = np.einsum("gsc,bgs->bgc", turn, above_rho)
        put_blocks(sums.A, at, gA + adjoint(C) @ gM)
        put_blocks(sums.N, at, N + adjoint(C) @ Ns @ C)
        sums.u.flat[:, sums.u.places(at, n)] = s + np.einsum("gcn,bgc->bgn", C, rho)
        return RowScore(gM @ adjoint(A), Ns, rho)
    W = step.B @ adjoint(step.B)
    whitener, Gamma, keep = step.whitener, step.Gamma, step.keep
    if step.flat:
        return _undo_at_flat_root(post, step, N, s)
    if above:  # a row on the parent
        left = found[id(step.noise)]
        gM, Ns = adjoint(whitener) @ left.C, adjoint(whitener) @ left.N @ whitener
        rho = np.einsum("grc,bgr->bgc", whitener, left.rho)
    else:  # at a root: x(p) is nothing, and what is known of e₁ stands alone
        gM, Ns = np.zeros((1, g, c, above)), (adjoint(whitener) @ whitener)[None]
        rho = np.einsum("grc,bgr->bgc", whitener, step.noise.y)  # type: ignore[union-attr]
    Z = -gA @ adjoint(C @ A) @ adjoint(whitener) @ whitener
    crossed, half = adjoint(keep) @ Z @ C, adjoint(Gamma) @ Z
    put_blocks(sums.A, at, adjoint(keep) @ gA + adjoint(C) @ gM)
    put_blocks(sums.N, at, adjoint(keep) @ N @ keep + adjoint(C) @ Ns @ C - crossed - adjoint(crossed))
    sums.u.flat[:, sums.u.places(at, n)] = np.einsum("gmn,bgm->bgn", keep, s) + np.einsum("gcn,bgc->bgn", C, rho)
    gC = (gM - adjoint(Gamma) @ gA) @ adjoint(A) + ((adjoint(Z) + adjoint(Gamma) @ N) @ keep - (Ns + half) @ C) @ W
    rho = rho - np.einsum("gnc,bgn->bgc", Gamma, s)
    return RowScore(gC, Ns + half + adjoint(half) + adjoint(Gamma) @ N @ Gamma, rho)


def _undo_at_flat_root(post: OutwardPosterior, step: Solved, N: FloatArray, s: FloatArray) -> RowScore:
    """Apply the chain rule at a flat root, where e₁ is free and the directions left free turn with C.

    They change log det N*PN and x̂ − u'; and no branch takes R in. The root's own sums are not needed any more.
    """
    at, C = step.rows.at, step.rows.C
    n = C.shape[2]
    W, whitener, Gamma, keep = step.B @ adjoint(step.B), step.whitener, step.Gamma, step.keep
    rho = -np.einsum("gnc,bgn->bgc", Gamma, s)
    read = step.rows.y - np.einsum("gcn,bgn->bgc", C, step.u)
    Z = outer(s, read) @ adjoint(whitener) @ whitener
    half = adjoint(Gamma) @ Z
    gS = -0.5 * (adjoint(whitener) @ whitener + half + adjoint(half))
    P, Lambda = (get_blocks(b, at, n, n) for b in (post.dual.smooth.filt.covariances.P, post.dual.smooth.Lambda))
    moved = step.u - get_blocks(post.dual.branches.u, at, n)
    gC = outer(rho, moved) + adjoint(Z) @ W + 2.0 * gS @ C @ W - adjoint(Gamma) @ (outer(s, s) - N) @ keep @ W
    return RowScore(gC + adjoint(Gamma) @ P @ Lambda, adjoint(Gamma) @ N @ Gamma, rho)


def add_outputs(post: OutwardPosterior, rows: Rows, score: RowScore, C: Blocks, R: Blocks, rho: FloatArray) -> None:
    """Add the gradients of rows to those of the outputs they were made of."""
    assert rows.made is not None and rows.outputs is not None
    back, size = adjoint(rows.made), int(post.model.n[rows.at[0]])
    start = np.concatenate([[0], np.cumsum(C.rows)])
    within = rows.outputs - start[rows.at][:, None]
    place = C.offsets[rows.at][:, None, None] + within[:, :, None] * size + np.arange(size)
    C.flat[:, place] += back @ (score.C + outer(score.rho, get_blocks(post.dual.mean, rows.at, size)))
    rho[:, rows.outputs] += np.einsum("gco,bgc->bgo", rows.made, score.rho)
    noise = 0.5 * (outer(score.rho, score.rho) - score.N)
    _add_noise(R, rows.at, within, within, back @ noise @ rows.made)


def _add_noise(R: Blocks, at: IntArray, row: IntArray, column: IntArray, value: FloatArray) -> None:
    place = R.offsets[at][:, None, None] + row[:, :, None] * R.rows[at][:, None, None] + column[:, None, :]
    R.flat[:, place] += value


def add_between(
    post: OutwardPosterior, noisy: list[Rows], exact: list[Rows], found: dict[int, RowScore], R: Blocks
) -> None:
    """Add ∂ℓ/∂R between a noisy and an exact row of one node: ½(ρρ₀* − C cov(x, ρ₀)), cov(ρ₀, x) = ∂ℓ/∂C₀ − ρ₀x̂*."""
    start = np.concatenate([[0], np.cumsum(post.model.m)])
    for one in noisy:
        for other in exact:
            _, i, j = np.intersect1d(one.at, other.at, return_indices=True)
            if not i.size:
                continue
            assert one.made is not None and other.made is not None
            assert one.outputs is not None and other.outputs is not None
            at = one.at[i]
            rho, rho0 = found[id(one)].rho[:, i], found[id(other)].rho[:, j]
            shared = found[id(other)].C[:, j]
            value = 0.5 * (outer(rho, rho0) - one.C[i] @ adjoint(shared))
            value = adjoint(one.made[i]) @ value @ other.made[j]
            row, column = (r.outputs[k] - start[at][:, None] for r, k in ((one, i), (other, j)))  # type: ignore[index]
            _add_noise(R, at, row, column, value)
            _add_noise(R, at, column, row, adjoint(value))


def expect_one_step(post: OutwardPosterior) -> None:
    """Refuse a flat root whose exact rows came in several groups: the score lacks that case."""
    seen = [int(k) for step in post.dual.solved if step.flat for k in step.rows.at]
    twice = {k for k in seen if seen.count(k) > 1}
    if twice:
        raise ModelError(
            f"{post.model.tree.label(min(twice))}: its prior is flat and several exact observations fall on it; the "
            "score is not available: give root_cov, or a noise R"
        )


def _expect_tips(post: OutwardPosterior, step: Solved) -> None:
    """Refuse exact rows that are passed on to the parent in part, or from nodes with other data."""
    tree = post.model.tree
    inner = np.diff(tree.child_start)[step.rows.at] > 0
    others = [rows.at for rows in post.dual.noisy] + [s.rows.at for s in post.dual.solved if s is not step]
    shared = np.isin(step.rows.at, np.concatenate(others)) if others else np.zeros(step.rows.at.size, dtype=bool)
    bad = np.flatnonzero(inner | shared | (step.K.shape[1] > 0))
    if bad.size:
        raise ModelError(
            f"{tree.label(int(step.rows.at[bad[0]]))}: part of an exact observation falls on its ancestors, for its "
            "branch has no variance there, and the node has other data; the score is not available: give the branch a "
            "variance W, or the observation a noise R"
        )
