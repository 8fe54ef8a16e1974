"""An outward tree as an inward one: the dual model, whose co-state is the posterior.

Minimising ½Σ|e|² + ½Σ|C x − y|² over the noise e of the branches x = φ*(B e + u) is forward dynamics: e is the joint
acceleration, x the acceleration of a body, C*C its inertia and −C*y its bias force. So (THEORY section 13)::

    φ(p,k) = A*(k),  H = B*,  R = 1,  Q = Σ C*C,  ξ = −Σ C*y,  η = u,  T = 0      rows whitened, B B* = W

and λ is the posterior mean, Λ the posterior covariance, log det V = Σ log det D + what the whitening divided out.
Taking the factor B into H, and not W⁻¹ into R, makes branches of no length and singular W ordinary.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from kfdyn.errors import SingularError
from kfdyn.estimation.branching.exact import Branches, Solved, solve_exact
from kfdyn.estimation.branching.near_exact import STRONG, almost_exact, noise_left
from kfdyn.estimation.branching.rows import Rows, split_rows
from kfdyn.estimation.inference.filter import kalman_filter
from kfdyn.estimation.inference.filter_covariances import BoolArray
from kfdyn.estimation.inference.riccati import riccati
from kfdyn.estimation.inference.smoothed import Smoothed
from kfdyn.estimation.inference.smoother import bryson_frazier
from kfdyn.estimation.model.blocks import Blocks, FloatArray, offsets_of
from kfdyn.estimation.model.state_space import StateSpace
from kfdyn.estimation.precision.cancellation import lost_digits

if TYPE_CHECKING:
    from kfdyn.estimation.branching.model import OutwardTree

_PASSES = 4
_CONVERGED = 1e-9  # of the mean: the next pass would change the 17th digit
_BY_ROOTS = 1e-10  # relative error of the covariances beyond which their roots are filtered
_ROUNDS = 64
_FAR = 1e5  # deviations of the noise that a row may read: ρ is then right to 1e-11
_SEEN = 1e-13  # of the information on a flat root, each state in its own units: less is rounding


@dataclass(frozen=True, eq=False)
class Dual:
    """The dual model of a tree and its data, solved.

    ``mean`` (batch, n_k) is the posterior mean, of which the last pass of ``smooth`` found the last digits; it is what
    lies beyond ``about`` (batch, Σn), if that is given, as are u and the rows. ``noise`` (batch, Σm) is e, what the
    branches add. ``noisy`` are all rows with noise, those of the data and those that exact ones have left; ``solved``
    is how the exact ones were removed; ``logdet`` and ``square`` (batch,) what both have added to the likelihood.
    """

    smooth: Smoothed
    mean: Blocks
    noise: FloatArray
    branches: Branches
    noisy: list[Rows]
    solved: list[Solved]
    logdet: float
    square: FloatArray
    about: FloatArray | None = None

    @property
    def whole_mean(self) -> Blocks:
        """The posterior mean itself, (batch, n_k)."""
        return self.mean if self.about is None else self.mean.like(self.about + self.mean.flat)

    @property
    def Lambda(self) -> Blocks:
        """Posterior covariance of x(k), (n_k, n_k): the Λ of the dual model."""
        return self.smooth.Lambda

    @cached_property
    def S_by_roots(self) -> Blocks:
        """S of the dual model, (n_k, n_k), by arrays: no digit is lost, however unlike the informations are."""
        ss = self.smooth.ss
        return bryson_frazier(kalman_filter(ss, np.zeros(ss.n_outputs), method="square_root")).S

    def log_determinant(self) -> float:
        """Log det V of the covariance of the data, that of a flat root left out."""
        return self.smooth.filt.covariances.logdet + self.logdet

    def quadratic(self, flat_roots: bool) -> FloatArray:
        """(y − mean)*V⁻¹(y − mean), (batch,): a sum of squares at the optimum, nothing cancels."""
        ss, mean = self.smooth.ss, self.mean
        e = self.noise
        if flat_roots:
            keep = np.ones(ss.n_outputs, dtype=bool)
            for k in ss.tree.roots:
                keep[ss.arrays.output[k] : ss.arrays.output[k + 1]] = False
            e = e[:, keep]
        total = self.square + (e * e).sum(axis=1)
        for rows in self.noisy:
            x = mean.flat[:, mean.places(rows.at, rows.C.shape[2])]
            total = total + ((rows.y - np.einsum("gcn,bgn->bgc", rows.C, x)) ** 2).sum(axis=(1, 2))
        return total


def solve_dual(
    model: OutwardTree,
    y: FloatArray,
    covariances: bool,
    strong: BoolArray | None = None,
    onward: bool = False,
    about: FloatArray | None = None,
) -> Dual:
    """Build the dual model of a tree with data y (batch, Σm) and smooth it.

    Outputs of ``strong`` nodes (N,), none of them a flat root, are solved as exact ones are; if not given, those that
    are almost exact. With ``onward`` so are the rows that children leave there. What is found are deviations from
    ``about`` (batch, Σn), any states: from the posterior mean they have all their digits, however small they are.
    """
    strong = almost_exact(model) if strong is None else strong
    tree, flat_roots = model.tree, model.root_cov is None
    u = np.repeat(model.mean[None], len(y), axis=0)
    if about is not None:
        y, u = deviations(model, y, u, about)
    noisy, exact, logdet = split_rows(tree, model.C, model.R, y, strong)
    A, B = model.A, model.B
    if exact or strong is not None:
        A, B = A.like(A.flat.copy()), B.like(B.flat.copy())
    branches = Branches(A, B, Blocks(u, model.n))
    solved, left, more, square = solve_exact(tree, branches, exact, flat_roots, strong if onward else None)
    noisy, logdet = noisy + left, logdet + more
    ss = _state_space(model, branches, noisy, bool(exact))
    mean, noise = np.zeros_like(u), np.zeros((len(y), ss.n_outputs))
    for _ in range(_PASSES):
        smooth = _smooth(model, ss, branches, noisy, mean, noise, covariances)
        step = np.atleast_2d(smooth.costate.flat)
        mean, noise = mean + step, noise + smooth.a
        if np.abs(step).max(initial=0.0) <= _CONVERGED * np.abs(mean).max(initial=0.0):
            break
    return Dual(smooth, Blocks(mean, model.n), noise, branches, noisy, solved, logdet, square, about)


def deviations(model: OutwardTree, y: FloatArray, u: FloatArray, about: FloatArray) -> tuple[FloatArray, FloatArray]:
    """y − C x and u + A x(p) − x about states x: small differences, taken with as many digits as there are."""
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


def _smooth(
    model: OutwardTree,
    ss: StateSpace,
    branches: Branches,
    noisy: list[Rows],
    around: FloatArray,
    noise: FloatArray,
    covariances: bool,
) -> Smoothed:
    """Solve the dual model for what is left of x and e beyond a first answer: ξ, η and T are the residuals of that.

    Where the information is large, −C*y is, and z⁺ the small difference of such numbers; residuals are not. Each pass
    is one gather and one scatter of vectors; the covariances are kept with the model.
    """
    x = Blocks(around, model.n)
    xi, eta = Blocks(np.zeros_like(around), model.n), branches.u.flat - around
    for rows in noisy:
        size = rows.C.shape[2]
        left = rows.y - np.einsum("gcn,bgn->bgc", rows.C, around[:, x.places(rows.at, size)])
        for entry, value in zip(xi.flat, np.einsum("gcn,bgc->bgn", rows.C, left)):
            np.subtract.at(entry, xi.places(rows.at, size), value)
    for nodes, a in branches.A.grouped():
        n, above = a.shape[1:]
        if above:
            known = around[:, x.places(model.tree.parent[nodes], above)]
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
        if model.n.max(initial=0) > 1 and lost_digits(filt.covariances, _BY_ROOTS).error > _BY_ROOTS:
            filt = kalman_filter(ss, T.flat, xi.flat, eta, method="square_root")
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


def hinges(model: OutwardTree, branches: Branches, exact: bool) -> tuple[FloatArray, FloatArray, np.ndarray]:
    """H = B* and R = 1 of the branches, flat, and their number of outputs; a flat root's are free."""
    H, n = transposed(branches.B), model.n
    R = np.zeros(H.size)
    R[_diagonal(n)] = 1.0
    if model.root_cov is None:
        return _flat_roots(model.tree.roots, branches.B, H, R, n, exact)
    return H, R, n.copy()


def transposed(blocks: Blocks) -> FloatArray:
    """The transposed blocks, flat."""
    out = np.empty_like(blocks.flat)
    for nodes, b in blocks.grouped():
        if b.size:
            out[blocks.places(nodes, b[0].size)] = b.transpose(0, 2, 1).reshape(nodes.size, -1)
    return out


def _flat_roots(
    roots: list[int], B: Blocks, H: FloatArray, R: FloatArray, n: np.ndarray, exact: bool
) -> tuple[FloatArray, FloatArray, np.ndarray]:
    """A root of which nothing is known has a hinge without rotor: H = N*, R = 0, N its directions still free."""
    m = n.copy()
    H_parts, R_parts = Blocks(H, n, n), Blocks(R, n, n)
    if not exact or all((B[k] == np.eye(n[k])).all() for k in roots):
        for k in roots:
            R_parts[k][...] = 0.0
        return H, R, m
    free = {}
    for k in roots:
        value, vector = np.linalg.eigh(0.5 * (B[k] + B[k].T))  # a projection
        free[k] = vector[:, value > 0.5].T
        m[k] = len(free[k])
    H_new, R_new = Blocks(np.empty(int((m * n).sum())), m, n), Blocks(np.zeros(int((m * m).sum())), m, m)
    for k in range(n.size):
        H_new[k][...] = free.get(k, H_parts[k])
        R_new[k][...] = 0.0 if k in free else R_parts[k]
    return H_new.flat, R_new.flat, m


def _diagonal(n: np.ndarray) -> np.ndarray:
    """Places of the diagonal entries of square blocks one after the other."""
    nodes = np.repeat(np.arange(n.size), n)
    within = np.arange(nodes.size) - offsets_of(n)[nodes]
    return offsets_of(n * n)[nodes] + within * (n[nodes] + 1)


def name_direction(model: OutwardTree, ss: StateSpace, error: SingularError) -> None:
    """Say of a flat root that could not be filtered which direction of it the data do not resolve."""
    if model.root_cov is None and error.node in model.tree.roots:
        expect_resolved(ss, error.node, _closed(ss, error.node), always=True)


def _closed(ss: StateSpace, root: int) -> FloatArray:
    """The information P(root) of a model whose root is too poorly known to be filtered: its hinge left out."""
    others = [k for k in range(len(ss)) if k != root]
    H, R = (np.concatenate([b[k].ravel() for k in others] or [np.zeros(0)]) for b in (ss.H, ss.R))
    m = np.where(np.arange(len(ss)) == root, 0, ss.m)
    return riccati(StateSpace.trusted(ss.tree, ss.n, m, ss.phi.flat, H, ss.Q.flat, R)).P[root]


def expect_resolved(ss: StateSpace, root: int, P: FloatArray, always: bool = False) -> None:
    """Refuse a flat root with a direction that the data say nothing of, and name it."""
    information = ss.H[root] @ P @ ss.H[root].T
    if not information.size:
        return
    scale = np.sqrt(np.maximum(np.diag(information), 0.0))
    scale = np.where(scale > 0.0, scale, 1.0)
    value, vector = np.linalg.eigh(information / np.outer(scale, scale))
    if value[0] > _SEEN and not always:
        return
    direction = ss.H[root].T @ (vector[:, 0] / scale)
    direction = direction / direction[np.argmax(np.abs(direction))]
    shown = ", ".join(f"{x:.3g}" for x in np.where(np.abs(direction) < _SEEN, 0.0, direction))
    raise SingularError(
        f"{ss.tree.label(root)}: its prior is flat and the data never resolve the direction [{shown}] of its state; "
        "give root_cov, or an observation that sees it",
        root,
    )


def resolved(model: OutwardTree, y: FloatArray, dual: Dual) -> Dual:
    """The dual model with all strong rows solved; the one given where there is none.

    A round takes the rows that are strong now; what they leave on the parents may be strong in the next. Where rows
    read many deviations of their noise, ρ = y − C x̂ cancels, and with it the forces; so they are read about x̂ then.
    """
    fixed = np.zeros(len(model), dtype=bool)
    if model.root_cov is None:
        fixed[model.tree.roots] = True  # nothing is known there but the rows
    first = almost_exact(model)
    strong = np.zeros(len(model), dtype=bool) if first is None else first
    onward = False
    for _ in range(_ROUNDS):
        more = _strong(dual, len(model)) & ~fixed & ~strong
        if not more.any():
            break
        strong, onward = strong | more, True
        dual = solve_dual(model, y, True, strong, onward)
    if max((float(np.abs(rows.y).max(initial=0.0)) for rows in dual.noisy), default=0.0) < _FAR:
        return dual
    return solve_dual(model, y, True, strong if onward else None, onward, dual.mean.flat)


def _strong(dual: Dual, size: int) -> BoolArray:
    out = np.zeros(size, dtype=bool)
    for rows in dual.noisy:
        out[rows.at[noise_left(dual, rows) < STRONG]] = True
    return out
