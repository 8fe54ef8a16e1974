"""Solve an outward tree by its dual, an inward tree whose co-state is the posterior.

Minimising ½Σ|e|² + ½Σ|C x − y|² over the noise e of the branches x = φ*(B e + u) is forward dynamics: e is the joint
acceleration, x the acceleration of a body, C*C its inertia and −C*y its bias force. So (THEORY section 13)::

    φ(p,k) = A*(k),  H = B*,  R = 1,  Q = Σ C*C,  ξ = −Σ C*y,  η = u,  T = 0      rows whitened, B B* = W

and λ is the posterior mean, Λ the posterior covariance, log det V = Σ log det D + what the whitening divided out.
Taking the factor B into H, and not W⁻¹ into R, makes branches of no length and singular W ordinary.

Here the information C*C of the rows is summed on their node, which takes the least time. Where informations are so
unlike that the sum would lose the small ones, :mod:`.square_root_dual` keeps them apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kfdyn.errors import SingularError
from kfdyn.estimation.branching.exact import Branches, Solved, solve_exact
from kfdyn.estimation.branching.flat_roots import expect_resolved, hinges, name_direction, transposed
from kfdyn.estimation.branching.rows import Rows, split_rows
from kfdyn.estimation.inference.filter import kalman_filter
from kfdyn.estimation.inference.smoothed import Smoothed
from kfdyn.estimation.inference.smoother import bryson_frazier
from kfdyn.estimation.model.blocks import Blocks, FloatArray
from kfdyn.estimation.model.state_space import StateSpace

if TYPE_CHECKING:
    from kfdyn.estimation.branching.outward_tree import OutwardTree

_PASSES = 4
_CONVERGED = 1e-9  # of the mean: the next pass would change the 17th digit


@dataclass(frozen=True, eq=False)
class Dual:
    """The dual model of a tree and its data, solved.

    ``mean`` (batch, n_k) is the posterior mean, ``Lambda`` (n_k, n_k) the posterior covariance and ``noise``
    (batch, Σm) is e, what the branches add. ``noisy`` are all rows with noise, those of the data and those that exact
    ones have left, and ``rho`` what is left of each, y − C x̂; ``solved`` is how the exact ones were removed;
    ``logdet`` and ``square`` (batch,) what both have added to the likelihood. ``leaves`` are the nodes of ``smooth``
    that stand for the rows, group by group, or None where rows are no nodes.
    """

    smooth: Smoothed
    mean: Blocks
    Lambda: Blocks
    noise: FloatArray
    branches: Branches
    noisy: list[Rows]
    rho: list[FloatArray]
    solved: list[Solved]
    logdet: float
    square: FloatArray
    leaves: list[np.ndarray] | None = None

    def log_determinant(self) -> float:
        """Return log det V of the covariance of the data, without that of a flat root."""
        return self.smooth.filt.covariances.logdet + self.logdet

    def quadratic(self, flat_roots: bool) -> FloatArray:
        """Return (y − mean)*V⁻¹(y − mean), (batch,), as a sum of squares at the optimum."""
        ss, e = self.smooth.ss, self.noise.copy()
        for k in ss.tree.roots if flat_roots else ():
            e[:, ss.arrays.output[k] : ss.arrays.output[k + 1]] = 0.0
        return self.square + (e * e).sum(axis=1) + sum((rho * rho).sum(axis=(1, 2)) for rho in self.rho)


def solve_dual(model: OutwardTree, y: FloatArray, covariances: bool) -> Dual:
    """Build the dual model of a tree with data y (batch, Σm) and smooth it."""
    u = np.repeat(model.mean[None], len(y), axis=0)
    noisy, exact, logdet = split_rows(model.tree, model.C, model.R, y)
    A, B = model.A, model.B
    if exact:
        A, B = A.like(A.flat.copy()), B.like(B.flat.copy())
    branches = Branches(A, B, Blocks(u, model.n))
    solved, left, more, square = solve_exact(model.tree, branches, exact, model.root_cov is None)
    noisy = noisy + left
    ss = _state_space(model, branches, noisy, bool(exact))
    mean, noise, rho = np.zeros_like(u), np.zeros((len(y), ss.n_outputs)), [rows.y for rows in noisy]
    for _ in range(_PASSES):
        smooth = _smooth(model, ss, branches, noisy, rho, mean, noise, covariances)
        step = np.atleast_2d(smooth.costate.flat)
        mean, noise = mean + step, noise + smooth.a
        rho = [left_of(rows, Blocks(mean, model.n)) for rows in noisy]
        if np.abs(step).max(initial=0.0) <= _CONVERGED * np.abs(mean).max(initial=0.0):
            break
    Lambda = smooth.Lambda if covariances else Blocks(np.zeros(0), model.n[:0], model.n[:0])
    return Dual(smooth, Blocks(mean, model.n), Lambda, noise, branches, noisy, rho, solved, logdet + more, square)


def left_of(rows: Rows, x: Blocks) -> FloatArray:
    """Return y − C x of rows, (batch, g, c)."""
    return rows.y - np.einsum("gcn,bgn->bgc", rows.C, x.flat[:, x.places(rows.at, rows.C.shape[2])])


def _smooth(
    model: OutwardTree,
    ss: StateSpace,
    branches: Branches,
    noisy: list[Rows],
    rho: list[FloatArray],
    mean: FloatArray,
    noise: FloatArray,
    covariances: bool,
) -> Smoothed:
    """Solve the dual model for what is left of x and e beyond a first answer: ξ, η and T are the residuals of that.

    Where the information is large, −C*y is, and z⁺ the small difference of such numbers; residuals are not. Each pass
    is one gather and one scatter of vectors; the covariances are kept with the model.
    """
    x, xi, eta = Blocks(mean, model.n), Blocks(np.zeros_like(mean), model.n), branches.u.flat - mean
    for rows, left in zip(noisy, rho):
        at = xi.places(rows.at, rows.C.shape[2])
        for entry, value in zip(xi.flat, np.einsum("gcn,bgc->bgn", rows.C, left)):
            np.subtract.at(entry, at, value)
    for nodes, a in branches.A.grouped():
        n, above = a.shape[1:]
        if above:
            known = mean[:, x.places(model.tree.parent[nodes], above)]
            eta[:, x.places(nodes, n)] += np.einsum("gij,bgj->bgi", a, known)
    flat_roots, T = model.root_cov is None, ss.output_blocks(-noise)
    for nodes, h in ss.H.grouped() if noise.any() else ():
        m, n = h.shape[1:]
        eta[:, x.places(nodes, n)] -= np.einsum("gmn,bgm->bgn", h, T.flat[:, T.places(nodes, m)])
    if flat_roots:
        for k in model.tree.roots:
            T[k][...] = 0.0  # where e has no price
    try:
        filt = kalman_filter(ss, T.flat, xi.flat, eta)
    except SingularError as error:
        name_direction(model, ss, error)
        raise
    if flat_roots:
        for k in model.tree.roots:
            expect_resolved(ss, k, filt.P[k])
    return bryson_frazier(ss, filt, covariances)


def _state_space(model: OutwardTree, branches: Branches, noisy: list[Rows], exact: bool) -> StateSpace:
    tree, n = model.tree, model.n
    H, R, m = hinges(model, branches, exact)
    Q = Blocks(np.zeros(int((n * n).sum())), n, n)
    for rows in noisy:
        size = rows.C.shape[2]
        np.add.at(
            Q.flat, Q.places(rows.at, size * size), np.einsum("gca,gcb->gab", rows.C, rows.C).reshape(-1, size**2)
        )
    return StateSpace.trusted(tree, n, m, transposed(branches.A), H, Q.flat, R)
