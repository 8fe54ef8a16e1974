"""Gradient of an outward tree's log-likelihood in every block, from the dual model's forces (THEORY section 13).

With s = ∂ℓ/∂u, which is minus the force x̂ of the dual model, and N its smoothed error covariance S::

    ∂ℓ/∂u(k) = s        ∂ℓ/∂W(k) = ½(s s* − N)        ∂ℓ/∂A(k) = s x̂*(p) − P⁺ A Λ(p)
    ∂ℓ/∂C(k) = ρ x̂* − C Λ     ∂ℓ/∂R(k) = ½(ρρ* − 1 + C Λ C*)     ρ = y − C x̂, rows whitened

Nothing is inverted, so it holds for W = 0. Exact rows were solved for the noise of a branch, by functions of A, W, u
and C; the chain rule goes back through them, last step first. Where ρ, N or a force is a small difference, as for rows
with next to no noise, all of it is read off the square-root smoother (:mod:`.square_root_dual`).
"""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kfdyn.errors import LostDigitsWarning, ModelError
from kfdyn.estimation.branching.exact import Solved
from kfdyn.estimation.branching.rows import Rows
from kfdyn.estimation.branching.square_root_dual import solve_by_roots
from kfdyn.estimation.model.blocks import Blocks, FloatArray, IntArray
from kfdyn.estimation.precision.cancellation import TOLERABLE, level_of_caller

if TYPE_CHECKING:
    from kfdyn.estimation.branching.dual import Dual
    from kfdyn.estimation.branching.outward_tree import OutwardTree
    from kfdyn.estimation.branching.posterior import OutwardPosterior

_EPS = float(np.finfo(float).eps)
_LEFT = 1e-6  # of what rows or a branch tell, when all others have told theirs: ten digits of it are right
_ALONE = 1e-15  # force of rows that alone tell a direction of a flat root: there N and ρ are 0 but for rounding
_FAR = 1e5  # deviations of the noise that a row may read: ρ is then right to 1e-11


class OutwardScore(NamedTuple):
    """Gradient of the log-likelihood, one for each batch entry.

    ``A``, ``W``, ``C``, ``R`` are Blocks of the shapes of the model's; ``W[root]`` belongs to root_cov and is 0 for a
    flat root. ``mean`` (..., Σn_k) belongs to u, at roots to root_mean. The directional derivative along a symmetric dW
    is ⟨∂ℓ/∂W, dW⟩; outputs that are missing have gradient 0.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> one, none = np.eye(1), np.zeros((0, 1))
    >>> tree = kf.OutwardTree([2, 2, -1], [one] * 3, [one] * 3, [one, one, none], root_cov=one)
    >>> tree.smooth([3.0, 3.0]).score.mean.round(6)
    array([1., 1., 2.])
    """

    A: Blocks
    W: Blocks
    C: Blocks
    R: Blocks
    mean: FloatArray


class _RowScore(NamedTuple):
    """Gradients of rows: of their map C (g, c, n) without the part ρ x̂*; N (g, c, c) in that of their noise, which is
    ½(ρρ* − N); and ρ (batch, g, c), minus that of y. A batch axis leads; it is 1 where all entries share the matrix.

    The parts in ρ are put in last, for they would drown the rest where they are large.
    """

    C: FloatArray
    N: FloatArray
    rho: FloatArray


class _Sums(NamedTuple):
    """Gradients of the branches: s of u, (batch, Σn); of A without its part s x̂*(p); and N in that of W, ½(ss* − N)."""

    A: Blocks
    N: Blocks
    u: Blocks


def outward_score(post: OutwardPosterior) -> OutwardScore:
    """Read the gradient off a posterior. O(N)."""
    model, dual = post.model, _for_score(post)
    post = replace(post, dual=dual)
    _expect_one_step(post)
    _warn_of_lost_digits(dual, model)
    sums, found = _branches(dual, model), _rows(dual)
    for step in reversed(dual.solved):
        score = _undo(post, step, sums, found)
        found[id(step.rows)] = score
        if step.rows.child is not None:
            for i, child in enumerate(step.rows.child.tolist()):
                found[-1 - child] = _RowScore(score.C[:, [i]], score.N[:, [i]], score.rho[:, [i]])
    C, R = (Blocks(np.zeros((len(sums.u.flat), b.flat.size)), b.rows, b.cols) for b in (model.C, model.R))
    data = [rows for rows in dual.noisy if rows.made is not None]
    exact = [step.rows for step in dual.solved if step.rows.made is not None]
    rho = np.zeros((len(sums.u.flat), model.n_outputs))
    for rows in data + exact:
        _outputs(post, rows, found[id(rows)], C, R, rho)
    _between(post, data, exact, found, R)
    A, W = (Blocks(np.zeros((len(sums.u.flat), b.flat.shape[-1])), b.rows, b.cols) for b in (sums.A, sums.N))
    mean = dual.mean
    for nodes, a in model.A.grouped():
        n, above = a.shape[1:]
        s = _get(sums.u, nodes, n)
        _put(W, nodes, 0.5 * (_outer(s, s) - _get(sums.N, nodes, n, n)))
        if above:
            x = _get(mean, model.tree.parent[nodes], above)
            _put(A, nodes, _get(sums.A, nodes, n, above) + _outer(s, x))
    if model.root_cov is None:
        for k in model.tree.roots:
            W[k][...] = 0.0
            sums.u[k][...] = 0.0
    batch = post.y.shape[:-1]
    A, W, C, R, u = (b.like(b.flat.reshape(*batch, b.flat.shape[-1])) for b in (A, W, C, R, sums.u))
    return OutwardScore(A, W, C, R, u.flat)


def _for_score(post: OutwardPosterior) -> Dual:
    """Solve the dual model again by square roots where N or a force would cancel."""
    dual = post.dual
    if dual.leaves is not None or not _cancels(dual, post.model):
        return dual
    return solve_by_roots(post.model, post.y.reshape(math.prod(post.y.shape[:-1]), post.y.shape[-1]))


def _cancels(dual: Dual, model: OutwardTree) -> bool:
    """Return True if the score of the plain dual would lose digits: far readings, or one dominant source."""
    for rows in dual.noisy:
        n = rows.C.shape[2]
        N = np.eye(rows.C.shape[1]) - rows.C @ _get(dual.Lambda, rows.at, n, n) @ _t(rows.C)
        # eigenvalues lie between 0 and 1, so none is smaller than their product
        if np.abs(rows.y).max(initial=0.0) > _FAR or (np.linalg.det(N) < _LEFT).any():
            return True
    cov = dual.smooth.filt.covariances
    for nodes, b in dual.branches.B.grouped():
        n = b.shape[1]
        P, P_plus, N = (_get(blocks, nodes, n, n) for blocks in (cov.P, cov.P_plus, dual.smooth.S))
        unit = np.sqrt(np.diagonal(P_plus, axis1=1, axis2=2))
        both = unit[:, :, None] * unit[:, None, :]
        both = np.where(both > 0.0, both, 1.0)
        less = ~(np.linalg.det(N / both) > _LEFT * np.linalg.det(P_plus / both)) & unit.any(axis=1)
        inner = model.tree.parent[nodes] >= 0
        if ((P * (b @ _t(b))).sum(axis=(1, 2))[inner] > 1.0 / _LEFT).any() or less[inner].any():
            return True
    return False


def _warn_of_lost_digits(dual: Dual, model: OutwardTree) -> None:
    """Warn if C Λ, a part of score.C, may be the small difference of large products; not if a fit asks.

    An error of ε in what the branch leaves of its node's variances is one of ε|C|t there, with deviations t before the
    observations; it counts beside √N + |ρ|, the size of a row's force.
    """
    level = level_of_caller(__name__.rpartition(".")[0])
    if dual.leaves is None or level is None:
        return
    worst, node, inner = TOLERABLE, -1, model.tree.parent >= 0
    t = Blocks(np.sqrt(np.maximum(dual.Lambda.diagonals(), 0.0)), model.n)
    deviation = t.like(t.flat.copy())
    for nodes, a in dual.branches.A.grouped():
        n, above = a.shape[1:]
        if above:
            taken = np.abs(a) @ _get(deviation, model.tree.parent[nodes], above)[..., None]
            added = np.sqrt((_get(dual.branches.B, nodes, n, n) ** 2).sum(axis=2))
            t.flat[t.places(nodes, n)] = taken[..., 0] + added
    for rows, leaves, rho in zip(dual.noisy, dual.leaves, dual.rho):
        c, n = rows.C.shape[1:]
        if rows.made is None or n == 1:
            continue
        N = np.diagonal(_get(dual.smooth.S, leaves, c, c), axis1=1, axis2=2)
        force = np.sqrt(np.maximum(N, 0.0)) + np.abs(rho).max(axis=0, initial=0.0)
        force = np.where(force > _ALONE, force, 1.0)
        own = _get(deviation, rows.at, n)[:, None, :]
        seen = np.abs(rows.C @ _get(dual.Lambda, rows.at, n, n))
        terms = _EPS * (np.abs(rows.C) @ _get(t, rows.at, n)[..., None])
        size = np.maximum(seen, force[..., None] * own)
        error = np.where(inner[rows.at], (terms * own / np.where(size > 0.0, size, np.inf)).max(axis=(1, 2)), 0.0)
        if error.max(initial=0.0) > worst:
            worst, node = float(error.max()), int(rows.at[np.argmax(error)])
    if node >= 0:
        warnings.warn(
            f"score.C may lose {min(round(math.log10(worst / _EPS)), 16)} of its 16 digits at "
            f"{model.tree.label(node)}: its observations know combinations of states far better than the states; give "
            "them a larger noise R, or R = 0",
            LostDigitsWarning,
            stacklevel=level,
        )


def _branches(dual: Dual, model: OutwardTree) -> _Sums:
    """∂ℓ/∂A, ∂ℓ/∂W, ∂ℓ/∂u of the branches that the dual model was made of."""
    S, P_plus, A, n = dual.smooth.S, dual.smooth.filt.covariances.P_plus, dual.branches.A, model.n
    seen = Blocks(np.zeros((1, A.flat.size)), A.rows, A.cols)
    for nodes, a in A.grouped():
        m, above = a.shape[1:]
        if above:
            cov = _get(dual.Lambda, model.tree.parent[nodes], above, above)
            _put(seen, nodes, -(_get(P_plus, nodes, m, m) @ a @ cov)[None])
    force = -np.atleast_2d(dual.smooth.x.flat)[:, : int(n.sum())]
    return _Sums(seen, Blocks(S.flat[None, : int((n * n).sum())].copy(), n, n), Blocks(force, n))


def _rows(dual: Dual) -> dict[int, _RowScore]:
    """Gradients of the rows of unit noise."""
    found = {}
    for i, rows in enumerate(dual.noisy):
        c, n = rows.C.shape[1:]
        seen = rows.C @ _get(dual.Lambda, rows.at, n, n)
        N = np.eye(c) - seen @ _t(rows.C) if dual.leaves is None else _get(dual.smooth.S, dual.leaves[i], c, c)
        found[id(rows)] = _RowScore(-seen[None], N[None], dual.rho[i])
    return found


def _undo(post: OutwardPosterior, step: Solved, sums: _Sums, found: dict[int, _RowScore]) -> _RowScore:
    """The chain rule through one step: A' = A − ΓCA, u' = u + Γ(y − Cu), W' = W − ΓΣΓ*, Γ = WC*Σ⁻¹, Σ = CWC*.

    Changes the sums into those of the branch before the step and returns the gradients of the exact rows. On the parent
    the step has left the row y − Cu = CA x(p) with noise Σ. Since y − C(A x̂(p) + u) = Σρ and x̂ − A x̂(p) − u = W s, all
    parts in ρ and s make up those of the new ρ and s; what is left is of N and of A, the same for every batch entry.
    """
    at, C, A = step.rows.at, step.rows.C, step.A
    (g, c, n), above = C.shape, step.A.shape[2]
    gA, N, s = _get(sums.A, at, n, above), _get(sums.N, at, n, n), _get(sums.u, at, n)
    if step.passed is not None:
        _expect_tips(post, step)
        above_C, above_N, above_rho = (
            np.concatenate(part, axis=1) for part in zip(*(found[-1 - k] for k in at.tolist()))
        )
        turn = _t(step.rest) / step.scale[:, None, :]
        gM, Ns = _t(turn) @ above_C, _t(turn) @ above_N @ turn
        rho = np.einsum("gsc,bgs->bgc", turn, above_rho)
        _put(sums.A, at, gA + _t(C) @ gM)
        _put(sums.N, at, N + _t(C) @ Ns @ C)
        sums.u.flat[:, sums.u.places(at, n)] = s + np.einsum("gcn,bgc->bgn", C, rho)
        return _RowScore(gM @ _t(A), Ns, rho)
    W = step.B @ _t(step.B)
    whitener, Gamma, keep = step.whitener, step.Gamma, step.keep
    if step.flat:
        return _undo_at_flat_root(post, step, N, s)
    if above:  # a row on the parent
        left = found[id(step.noise)]
        gM, Ns = _t(whitener) @ left.C, _t(whitener) @ left.N @ whitener
        rho = np.einsum("grc,bgr->bgc", whitener, left.rho)
    else:  # at a root: x(p) is nothing, and what is known of e₁ stands alone
        gM, Ns = np.zeros((1, g, c, above)), (_t(whitener) @ whitener)[None]
        rho = np.einsum("grc,bgr->bgc", whitener, step.noise.y)  # type: ignore[union-attr]
    Z = -gA @ _t(C @ A) @ _t(whitener) @ whitener
    crossed, half = _t(keep) @ Z @ C, _t(Gamma) @ Z
    _put(sums.A, at, _t(keep) @ gA + _t(C) @ gM)
    _put(sums.N, at, _t(keep) @ N @ keep + _t(C) @ Ns @ C - crossed - _t(crossed))
    sums.u.flat[:, sums.u.places(at, n)] = np.einsum("gmn,bgm->bgn", keep, s) + np.einsum("gcn,bgc->bgn", C, rho)
    gC = (gM - _t(Gamma) @ gA) @ _t(A) + ((_t(Z) + _t(Gamma) @ N) @ keep - (Ns + half) @ C) @ W
    rho = rho - np.einsum("gnc,bgn->bgc", Gamma, s)
    return _RowScore(gC, Ns + half + _t(half) + _t(Gamma) @ N @ Gamma, rho)


def _undo_at_flat_root(post: OutwardPosterior, step: Solved, N: FloatArray, s: FloatArray) -> _RowScore:
    """The same at a flat root, where e₁ is free: no row is left, and the directions left free turn with C.

    They change log det N*PN and x̂ − u'; and no branch takes R in. The root's own sums are not needed any more.
    """
    at, C = step.rows.at, step.rows.C
    n = C.shape[2]
    W, whitener, Gamma, keep = step.B @ _t(step.B), step.whitener, step.Gamma, step.keep
    rho = -np.einsum("gnc,bgn->bgc", Gamma, s)
    read = step.rows.y - np.einsum("gcn,bgn->bgc", C, step.u)
    Z = _outer(s, read) @ _t(whitener) @ whitener
    half = _t(Gamma) @ Z
    gS = -0.5 * (_t(whitener) @ whitener + half + _t(half))
    P, Lambda = (_get(b, at, n, n) for b in (post.dual.smooth.filt.covariances.P, post.dual.smooth.Lambda))
    moved = step.u - _get(post.dual.branches.u, at, n)
    gC = _outer(rho, moved) + _t(Z) @ W + 2.0 * gS @ C @ W - _t(Gamma) @ (_outer(s, s) - N) @ keep @ W
    return _RowScore(gC + _t(Gamma) @ P @ Lambda, _t(Gamma) @ N @ Gamma, rho)


def _outputs(post: OutwardPosterior, rows: Rows, score: _RowScore, C: Blocks, R: Blocks, rho: FloatArray) -> None:
    """Give the gradients of rows to the outputs that they were made of."""
    assert rows.made is not None and rows.outputs is not None
    back, size = _t(rows.made), int(post.model.n[rows.at[0]])
    start = np.concatenate([[0], np.cumsum(C.rows)])
    within = rows.outputs - start[rows.at][:, None]
    place = C.offsets[rows.at][:, None, None] + within[:, :, None] * size + np.arange(size)
    C.flat[:, place] += back @ (score.C + _outer(score.rho, _get(post.dual.mean, rows.at, size)))
    rho[:, rows.outputs] += np.einsum("gco,bgc->bgo", rows.made, score.rho)
    noise = 0.5 * (_outer(score.rho, score.rho) - score.N)
    _add_noise(R, rows.at, within, within, back @ noise @ rows.made)


def _add_noise(R: Blocks, at: IntArray, row: IntArray, column: IntArray, value: FloatArray) -> None:
    place = R.offsets[at][:, None, None] + row[:, :, None] * R.rows[at][:, None, None] + column[:, None, :]
    R.flat[:, place] += value


def _between(
    post: OutwardPosterior, noisy: list[Rows], exact: list[Rows], found: dict[int, _RowScore], R: Blocks
) -> None:
    """∂ℓ/∂R between a noisy and an exact row of one node: ½(ρρ₀* − C cov(x, ρ₀)), cov(ρ₀, x) = ∂ℓ/∂C₀ − ρ₀x̂*."""
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
            value = 0.5 * (_outer(rho, rho0) - one.C[i] @ _t(shared))
            value = _t(one.made[i]) @ value @ other.made[j]
            row, column = (r.outputs[k] - start[at][:, None] for r, k in ((one, i), (other, j)))  # type: ignore[index]
            _add_noise(R, at, row, column, value)
            _add_noise(R, at, column, row, _t(value))


def _expect_one_step(post: OutwardPosterior) -> None:
    """A flat root whose exact rows came in several groups would need the gradient of its free directions."""
    seen = [int(k) for step in post.dual.solved if step.flat for k in step.rows.at]
    twice = {k for k in seen if seen.count(k) > 1}
    if twice:
        raise ModelError(
            f"{post.model.tree.label(min(twice))}: its prior is flat and several exact observations fall on it; the "
            "score is not available: give root_cov, or a noise R"
        )


def _expect_tips(post: OutwardPosterior, step: Solved) -> None:
    """Rows are passed on to the parent whole, and from nodes that know nothing else; the score covers that case."""
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


def _get(blocks: Blocks, nodes: IntArray, *shape: int) -> FloatArray:
    """The blocks of some nodes, (..., g, *shape)."""
    flat = blocks.flat[..., blocks.places(nodes, int(np.prod(shape)))]
    return flat.reshape(*blocks.flat.shape[:-1], nodes.size, *shape)


def _put(blocks: Blocks, nodes: IntArray, value: FloatArray) -> None:
    size = value.shape[-2] * value.shape[-1]
    blocks.flat[..., blocks.places(nodes, size)] = value.reshape(*value.shape[:-2], size)


def _outer(a: FloatArray, b: FloatArray) -> FloatArray:
    return a[..., :, None] * b[..., None, :]


def _t(a: FloatArray) -> FloatArray:
    return np.swapaxes(a, -1, -2)
