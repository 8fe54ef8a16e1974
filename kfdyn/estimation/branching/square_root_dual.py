"""Solve the dual model in square-root form, every observed row a leaf: for very unequal informations.

The dual model sums the informations C*C of rows and A*P⁺A of branches on a node. Where they differ by more than 1e10 in
directions that are no trait's own, the smaller ones drown in that sum, and so would a factor of it. A row is
therefore a leaf, a body of unit inertia that hangs on its node by φ = C*: then rows and branches are columns of one
array, and nothing is squared. The leaf's force is −ρ, its smoothed error covariance N of the row (:mod:`.score`)::

    x̂(leaf) = C x̂ − y = −ρ        S(leaf) = 1 − C Λ C* = N        S(k) = P⁺ − P⁺A Λ(p) A*P⁺ = N

by sums of squares, so that rows that know a state far better than all others, or alone, are no special case.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from kfdyn.errors import ModelError, SingularError
from kfdyn.estimation.branching.dual import Dual, solve_dual
from kfdyn.estimation.branching.exact import Branches, solve_exact
from kfdyn.estimation.branching.flat_roots import expect_resolved, hinges, name_direction, transposed
from kfdyn.estimation.branching.rows import Rows, get_blocks, split_rows
from kfdyn.estimation.inference.filter import kalman_filter
from kfdyn.estimation.inference.smoother import bryson_frazier
from kfdyn.estimation.model.blocks import Blocks, FloatArray
from kfdyn.estimation.model.covariance_factors import Factor, Factors
from kfdyn.estimation.model.state_space import StateSpace
from kfdyn.estimation.model.tree import Tree
from kfdyn.estimation.precision.cancellation import lost_digits

if TYPE_CHECKING:
    from kfdyn.estimation.branching.outward_tree import OutwardTree

_MIXED = 1e3  # of P_ii Λ_ii, which is at most 1 where no trait is mixed with another: what a sum may lose
_LOST = 1e-10  # relative error of the covariances
_PASSES = 6
_CONVERGED = 1e-9  # of the mean, or
_OF_DEVIATION = 1e-7  # of its standard deviation: the next pass would change no digit that counts


def solve(model: OutwardTree, y: FloatArray, covariances: bool) -> Dual:
    """Solve the dual model of a tree with data y (batch, Σm); in square-root form where small informations drown."""
    if model.n.max(initial=0) <= 1:
        return solve_dual(model, y, covariances)
    try:
        dual = solve_dual(model, y, True)
    except (SingularError, ModelError):
        return solve_in_square_root_form(model, y)
    return solve_in_square_root_form(model, y) if _drowned(dual) else dual


def _drowned(dual: Dual) -> bool:
    """Return True if small informations were lost in a sum with large ones."""
    Lambda, variance = dual.Lambda, dual.Lambda.diagonals()
    if lost_digits(dual.smooth.filt.covariances, _LOST).error > _LOST:
        return True
    if (dual.smooth.filt.covariances.P.diagonals() * variance).max(initial=0.0) > _MIXED:
        return True
    deviation = Blocks(np.sqrt(np.maximum(variance, 0.0)), Lambda.rows)
    for nodes, a in dual.branches.A.grouped():
        n, above = a.shape[1:]
        if not a[:, ~np.eye(n, above, dtype=bool)].any():  # every trait comes of its own alone
            continue
        cov = get_blocks(Lambda, dual.smooth.ss.tree.parent[nodes], above, above)
        terms = (np.abs(a) @ get_blocks(deviation, dual.smooth.ss.tree.parent[nodes], above)[:, :, None])[:, :, 0]
        if (terms**2 > _MIXED * ((a @ cov) * a).sum(axis=2)).any():
            return True
    return any(step.passed is not None for step in dual.solved)  # by a rank that rounding may have decided


def solve_in_square_root_form(model: OutwardTree, y: FloatArray) -> Dual:
    """Build the dual model with its rows as leaves; smooth deviations from the mean until it stops moving."""
    tree, u, flat_roots = model.tree, np.repeat(model.mean[None], len(y), axis=0), model.root_cov is None
    about, ss, states = np.zeros_like(u), None, int((model.n**2).sum())
    for _ in range(_PASSES):
        read, known = _deviations(model, y, u, about)
        noisy, exact, logdet = split_rows(tree, model.C, model.R, read)
        A, B = model.A.like(model.A.flat.copy()), model.B.like(model.B.flat.copy())
        branches = Branches(A, B, Blocks(known, model.n))
        solved, left, more, square = solve_exact(tree, branches, exact, flat_roots)
        noisy = noisy + left
        ss = _state_space(model, branches, noisy, bool(exact)) if ss is None else ss
        read = np.concatenate(
            [known[:, :0], *(rows.y.reshape(len(y), rows.y.shape[1] * rows.y.shape[2]) for rows in noisy)], axis=1
        )
        xi = np.concatenate([np.zeros_like(known), -read], axis=1)
        eta = np.concatenate([branches.u.flat, np.zeros_like(read)], axis=1)
        try:
            filt = kalman_filter(ss, np.zeros((len(y), ss.n_outputs)), xi, eta, method="square_root")
        except SingularError as error:
            name_direction(model, ss, error)
            raise
        if flat_roots:
            for k in tree.roots:
                expect_resolved(ss, k, filt.P[k])
        smooth = bryson_frazier(ss, filt)
        step = np.atleast_2d(smooth.costate.flat)[:, : u.shape[1]]
        about, before = about + step, about
        Lambda = Blocks(smooth.Lambda.flat[:states], model.n, model.n)
        deviation = np.sqrt(np.maximum(Lambda.diagonals(), 0.0))
        if (np.abs(step) <= _CONVERGED * np.abs(before) + _OF_DEVIATION * deviation).all():
            break
    first = np.cumsum([len(model), *(rows.at.size for rows in noisy)]).tolist()
    leaves = [np.arange(a, b) for a, b in pairwise(first)]
    force = smooth.ss.state_blocks(-np.atleast_2d(smooth.x.flat))
    rho = [get_blocks(force, nodes, rows.C.shape[1]) for nodes, rows in zip(leaves, noisy)]
    return Dual(
        smooth, Blocks(about, model.n), Lambda, np.atleast_2d(smooth.a), branches, noisy, rho, solved, logdet + more,
        square, leaves,
    )  # fmt: skip


def _deviations(model: OutwardTree, y: FloatArray, u: FloatArray, about: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return y − C x and u + A x(p) − x about states x, without cancellation."""
    x = Blocks(about.astype(np.longdouble), model.n)
    outputs = Blocks(y.astype(np.longdouble), model.m)
    for nodes, c in model.C.grouped():
        m, n = c.shape[1:]
        outputs.flat[:, outputs.places(nodes, m)] -= np.einsum("gmn,bgn->bgm", c, x.flat[:, x.places(nodes, n)])
    branches = Blocks(u - x.flat, model.n)
    for nodes, a in model.A.grouped():
        n, above = a.shape[1:]
        if above:
            known = x.flat[:, x.places(model.tree.parent[nodes], above)]
            branches.flat[:, branches.places(nodes, n)] += np.einsum("gij,bgj->bgi", a, known)
        elif model.root_cov is None:  # which may be anywhere
            branches.flat[:, branches.places(nodes, n)] = 0.0
    return outputs.flat.astype(float), branches.flat.astype(float)


def _state_space(model: OutwardTree, branches: Branches, noisy: list[Rows], exact: bool) -> StateSpace:
    """Build the dual model of branches, and of rows as leaves of unit inertia on φ = C*."""
    tree, sizes = model.tree, [model.n, *(np.full(rows.at.size, rows.C.shape[1]) for rows in noisy)]
    n = np.concatenate(sizes)
    parent = np.concatenate([tree.parent, *(rows.at for rows in noisy)])
    names = None
    if tree.names is not None:
        names = [*tree.names, *(f"an observation of {tree.names[k]}" for k in parent[len(tree) :].tolist())]
    H, R, m = hinges(model, branches, exact)
    m = np.concatenate([m, np.zeros(n.size - m.size, dtype=m.dtype)])
    phi = [transposed(branches.A), *(rows.C.transpose(0, 2, 1).ravel() for rows in noisy)]
    Q = [np.zeros(int((model.n**2).sum()))]
    Q += [np.repeat(np.eye(rows.C.shape[1])[None], rows.at.size, axis=0).ravel() for rows in noisy]
    root = np.concatenate(Q)
    ss = StateSpace.trusted(Tree(parent, names), n, m, np.concatenate(phi), H, root, R)
    ss.__dict__.update(factors=Factors(Factor(ss.Q.like(root)), None))
    return ss
