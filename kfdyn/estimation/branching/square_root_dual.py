"""The dual model by square roots, every observed row a leaf: for traits that are mixed and known very unequally.

The dual model sums the informations C*C of rows and A*P⁺A of branches on a node. Where they differ by more than 1e10 in
directions that are no trait's own, the smaller ones drown in that sum, and so would a root taken of it. A row is
therefore a leaf, a body of unit inertia that hangs on its node by φ = C*: then rows and branches are columns of one
array, and nothing is squared. The leaf's force is −ρ, its smoothed error covariance N of the row (:mod:`.score`)::

    x̂(leaf) = C x̂ − y = −ρ        S(leaf) = 1 − C Λ C* = N        S(k) = P⁺ − P⁺A Λ(p) A*P⁺ = N

by sums of squares, so that rows that know a state far better than all others, or alone, are no special case.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from kfdyn.errors import ModelError, SingularError
from kfdyn.estimation.branching.dual import (
    Dual,
    deviations,
    expect_resolved,
    hinges,
    name_direction,
    solve_dual,
    transposed,
)
from kfdyn.estimation.branching.exact import Branches, solve_exact
from kfdyn.estimation.branching.factors import branch_factors
from kfdyn.estimation.branching.near_exact import almost_exact
from kfdyn.estimation.branching.posterior_sensitivity import posterior_covariances
from kfdyn.estimation.branching.rows import Rows, split_rows
from kfdyn.estimation.inference.filter import kalman_filter
from kfdyn.estimation.inference.filter_covariances import BoolArray
from kfdyn.estimation.inference.smoother import bryson_frazier
from kfdyn.estimation.inference.square_root import RootRiccati
from kfdyn.estimation.model.blocks import Blocks, FloatArray, IntArray
from kfdyn.estimation.model.covariance_factors import Factor, Factors
from kfdyn.estimation.model.state_space import StateSpace
from kfdyn.estimation.model.tree import Tree

if TYPE_CHECKING:
    from kfdyn.estimation.branching.model import OutwardTree

_MIXED = 1e3  # of P_ii Λ_ii, which is at most 1 where no trait is mixed with another: what a sum may lose
_PASSES = 6
_CONVERGED = 1e-9  # of the mean, or
_OF_DEVIATION = 1e-7  # of its standard deviation: the next pass would change no digit that counts


@dataclass(frozen=True, eq=False)
class RootedDual(Dual):
    """The dual model solved by square roots; the nodes of ``smooth`` beyond the tree's are the rows, in their order."""

    flat_roots: bool = False

    @property
    def swept_Lambda(self) -> Blocks:
        """Posterior covariance of x(k), (n_k, n_k), as the smoother has found it."""
        n = self.mean.rows
        return Blocks(self.smooth.Lambda.flat[: int((n * n).sum())], n, n)

    @cached_property
    def Lambda(self) -> Blocks:
        """Posterior covariance of x(k), (n_k, n_k), also of combinations that are known far better than their parts."""
        return posterior_covariances(self)

    @property
    def first_leaves(self) -> list[int]:
        """The first leaf of each group of rows."""
        sizes = [len(self.mean), *(rows.at.size for rows in self.noisy)]
        return np.cumsum(sizes)[:-1].tolist()

    @cached_property
    def force(self) -> Blocks:
        """∂ℓ/∂u = s of the branches and ρ of the rows, (batch, n_k): minus the forces."""
        return self.smooth.ss.state_blocks(-np.atleast_2d(self.smooth.x.flat))

    def quadratic(self, flat_roots: bool) -> FloatArray:
        """(y − mean)*V⁻¹(y − mean), (batch,): the squares of what the branches add, and of the rows' noise."""
        ss, e = self.smooth.ss, np.atleast_2d(self.smooth.a).copy()
        for k in ss.tree.roots if flat_roots else ():
            e[:, ss.arrays.output[k] : ss.arrays.output[k + 1]] = 0.0
        rho = self.force.flat[:, self.mean.flat.shape[1] :]
        return self.square + (e * e).sum(axis=1) + (rho * rho).sum(axis=1)


def solve(model: OutwardTree, y: FloatArray, covariances: bool) -> Dual:
    """Solve the dual model of a tree with data y (batch, Σm); by roots where informations would drown."""
    if model.n.max(initial=0) <= 1:
        return solve_dual(model, y, covariances)
    try:
        dual = solve_dual(model, y, True)
    except (SingularError, ModelError):
        return solve_by_roots(model, y)
    return solve_by_roots(model, y) if _drowned(dual) else dual


def _drowned(dual: Dual) -> bool:
    """Whether some information is so small beside another that their sum has lost it, or a difference will."""
    cov, Lambda = dual.smooth.filt.covariances, dual.Lambda
    variance = Lambda.diagonals()
    if isinstance(cov, RootRiccati) or (cov.P.diagonals() * variance).max(initial=0.0) > _MIXED:
        return True
    deviation = Blocks(np.sqrt(np.maximum(variance, 0.0)), Lambda.rows)
    for nodes, a in dual.branches.A.grouped():
        n, above = a.shape[1:]
        if not a[:, ~np.eye(n, above, dtype=bool)].any():  # every trait comes of its own alone
            continue
        if _known_better(a, dual.smooth.ss.tree.parent[nodes], Lambda, deviation, 0.0).any():
            return True
    for step in dual.solved:
        if step.passed is not None:  # by a rank that rounding may have decided
            return True
        noise = step.rows.cov
        if noise is not None:
            own = np.diagonal(noise, axis1=1, axis2=2)
            if _known_better(step.rows.C, step.rows.at, Lambda, deviation, own).any():
                return True
    return False


def _known_better(
    maps: FloatArray, nodes: IntArray, Lambda: Blocks, deviation: Blocks, noise: FloatArray | float
) -> BoolArray:
    """Which combinations maps @ x are known far better than their terms, noise of their own aside, (g, c)."""
    n = maps.shape[2]
    cov = Lambda.flat[Lambda.places(nodes, n * n)].reshape(-1, n, n)
    terms = (np.abs(maps) @ deviation.flat[deviation.places(nodes, n)][:, :, None])[:, :, 0]
    return terms**2 > _MIXED * (((maps @ cov) * maps).sum(axis=2) + noise)


def solve_by_roots(model: OutwardTree, y: FloatArray, as_given: bool = False) -> RootedDual:
    """Build the dual model with its rows as leaves, and smooth it in deviations from the mean until that rests.

    ``as_given`` takes no W or R to be singular for rounding's sake (:mod:`.factors`).
    """
    tree, u, flat_roots = model.tree, np.repeat(model.mean[None], len(y), axis=0), model.root_cov is None
    about, ss, together = np.zeros_like(u), None, _almost_and_quite_exact(model)
    added = branch_factors(model.W, tree.roots if flat_roots else [], True) if as_given else model.B
    for _ in range(_PASSES):
        read, known = deviations(model, y, u, about)
        noisy, exact, logdet = split_rows(tree, model.C, model.R, read, together, as_given)
        A, B = model.A.like(model.A.flat.copy()), added.like(added.flat.copy())
        branches = Branches(A, B, Blocks(known, model.n))
        solved, left, more, square = solve_exact(tree, branches, exact, flat_roots)
        noisy = noisy + left
        ss = state_space_with_leaves(model, branches, noisy, bool(exact)) if ss is None else ss
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
        dual = RootedDual(
            smooth, Blocks(step, model.n), smooth.a, branches, noisy, solved, logdet + more, square, about, flat_roots
        )
        deviation = np.sqrt(np.maximum(dual.swept_Lambda.diagonals(), 0.0))
        if (np.abs(step) <= _CONVERGED * np.abs(about) + _OF_DEVIATION * deviation).all():
            break
        about = about + step
    return dual


def _almost_and_quite_exact(model: OutwardTree) -> BoolArray | None:
    """Nodes with exact outputs beside almost exact ones, (N,): solved together, lest what they share be a product."""
    out = almost_exact(model)
    if out is not None:
        for nodes, r in model.R.grouped():
            noise = np.diagonal(r, axis1=1, axis2=2)
            out[nodes] &= (noise == 0.0).any(axis=1)
    return out


def state_space_with_leaves(model: OutwardTree, branches: Branches, noisy: list[Rows], exact: bool) -> StateSpace:
    """The dual model of branches, and of rows as leaves of unit inertia on φ = C*."""
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
