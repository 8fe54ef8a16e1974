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

from kfdyn.errors import LostDigitsWarning
from kfdyn.estimation.branching.exact_score import (
    BranchScore,
    RowScore,
    add_between,
    add_outputs,
    expect_one_step,
    undo,
)
from kfdyn.estimation.branching.rows import adjoint, get_blocks, outer, put_blocks
from kfdyn.estimation.branching.square_root_dual import solve_in_square_root_form
from kfdyn.estimation.model.blocks import Blocks, FloatArray
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


def outward_score(post: OutwardPosterior) -> OutwardScore:
    """Read the gradient off a posterior. O(N)."""
    model, dual = post.model, _for_score(post)
    post = replace(post, dual=dual)
    expect_one_step(post)
    _warn_of_lost_digits(dual, model)
    sums, found = _branches(dual, model), _rows(dual)
    for step in reversed(dual.solved):
        score = undo(post, step, sums, found)
        found[id(step.rows)] = score
        if step.rows.child is not None:
            for i, child in enumerate(step.rows.child.tolist()):
                found[-1 - child] = RowScore(score.C[:, [i]], score.N[:, [i]], score.rho[:, [i]])
    C, R = (Blocks(np.zeros((len(sums.u.flat), b.flat.size)), b.rows, b.cols) for b in (model.C, model.R))
    data = [rows for rows in dual.noisy if rows.made is not None]
    exact = [step.rows for step in dual.solved if step.rows.made is not None]
    rho = np.zeros((len(sums.u.flat), model.n_outputs))
    for rows in data + exact:
        add_outputs(post, rows, found[id(rows)], C, R, rho)
    add_between(post, data, exact, found, R)
    A, W = (Blocks(np.zeros((len(sums.u.flat), b.flat.shape[-1])), b.rows, b.cols) for b in (sums.A, sums.N))
    mean = dual.mean
    for nodes, a in model.A.grouped():
        n, above = a.shape[1:]
        s = get_blocks(sums.u, nodes, n)
        put_blocks(W, nodes, 0.5 * (outer(s, s) - get_blocks(sums.N, nodes, n, n)))
        if above:
            x = get_blocks(mean, model.tree.parent[nodes], above)
            put_blocks(A, nodes, get_blocks(sums.A, nodes, n, above) + outer(s, x))
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
    return solve_in_square_root_form(post.model, post.y.reshape(math.prod(post.y.shape[:-1]), post.y.shape[-1]))


def _cancels(dual: Dual, model: OutwardTree) -> bool:
    """Return True if the score of the plain dual would lose digits: far readings, or one dominant source."""
    for rows in dual.noisy:
        n = rows.C.shape[2]
        N = np.eye(rows.C.shape[1]) - rows.C @ get_blocks(dual.Lambda, rows.at, n, n) @ adjoint(rows.C)
        # eigenvalues lie between 0 and 1, so none is smaller than their product
        if np.abs(rows.y).max(initial=0.0) > _FAR or (np.linalg.det(N) < _LEFT).any():
            return True
    cov = dual.smooth.filt.covariances
    for nodes, b in dual.branches.B.grouped():
        n = b.shape[1]
        P, P_plus, N = (get_blocks(blocks, nodes, n, n) for blocks in (cov.P, cov.P_plus, dual.smooth.S))
        unit = np.sqrt(np.diagonal(P_plus, axis1=1, axis2=2))
        both = unit[:, :, None] * unit[:, None, :]
        both = np.where(both > 0.0, both, 1.0)
        less = ~(np.linalg.det(N / both) > _LEFT * np.linalg.det(P_plus / both)) & unit.any(axis=1)
        inner = model.tree.parent[nodes] >= 0
        if ((P * (b @ adjoint(b))).sum(axis=(1, 2))[inner] > 1.0 / _LEFT).any() or less[inner].any():
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
            taken = np.abs(a) @ get_blocks(deviation, model.tree.parent[nodes], above)[..., None]
            added = np.sqrt((get_blocks(dual.branches.B, nodes, n, n) ** 2).sum(axis=2))
            t.flat[t.places(nodes, n)] = taken[..., 0] + added
    for rows, leaves, rho in zip(dual.noisy, dual.leaves, dual.rho):
        c, n = rows.C.shape[1:]
        if rows.made is None or n == 1:
            continue
        N = np.diagonal(get_blocks(dual.smooth.S, leaves, c, c), axis1=1, axis2=2)
        force = np.sqrt(np.maximum(N, 0.0)) + np.abs(rho).max(axis=0, initial=0.0)
        force = np.where(force > _ALONE, force, 1.0)
        own = get_blocks(deviation, rows.at, n)[:, None, :]
        seen = np.abs(rows.C @ get_blocks(dual.Lambda, rows.at, n, n))
        terms = _EPS * (np.abs(rows.C) @ get_blocks(t, rows.at, n)[..., None])
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


def _branches(dual: Dual, model: OutwardTree) -> BranchScore:
    """Return ∂ℓ/∂A, ∂ℓ/∂W, ∂ℓ/∂u of the branches that the dual model was made of."""
    S, P_plus, A, n = dual.smooth.S, dual.smooth.filt.covariances.P_plus, dual.branches.A, model.n
    seen = Blocks(np.zeros((1, A.flat.size)), A.rows, A.cols)
    for nodes, a in A.grouped():
        m, above = a.shape[1:]
        if above:
            cov = get_blocks(dual.Lambda, model.tree.parent[nodes], above, above)
            put_blocks(seen, nodes, -(get_blocks(P_plus, nodes, m, m) @ a @ cov)[None])
    force = -np.atleast_2d(dual.smooth.x.flat)[:, : int(n.sum())]
    return BranchScore(seen, Blocks(S.flat[None, : int((n * n).sum())].copy(), n, n), Blocks(force, n))


def _rows(dual: Dual) -> dict[int, RowScore]:
    """Return the gradients of the rows of unit noise."""
    found = {}
    for i, rows in enumerate(dual.noisy):
        c, n = rows.C.shape[1:]
        seen = rows.C @ get_blocks(dual.Lambda, rows.at, n, n)
        N = (
            np.eye(c) - seen @ adjoint(rows.C)
            if dual.leaves is None
            else get_blocks(dual.smooth.S, dual.leaves[i], c, c)
        )
        found[id(rows)] = RowScore(-seen[None], N[None], dual.rho[i])
    return found
