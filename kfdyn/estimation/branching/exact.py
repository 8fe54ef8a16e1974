"""Exact observations: solved for the noise of the branch that explains them, so that no information is infinite.

A row y = C x(k) without noise, on the branch x(k) = A x(p) + u + B e with e ~ N(0, 1), says
C B e = y − C u − C A x(p). With the singular values C B = U S V* (rank r) the r combinations V₁*e are known once x(p)
is, and the branch keeps the others::

    e₁ = K (y − C u − C A x(p)),   K = S₁⁻¹ U₁*         a noisy row on the parent, with unit noise
    x(k) = (A − E K C A) x(p) + u + E K (y − C u) + B (1 − V₁V₁*) e,   E = B V₁
    U₂*(y − C u) = U₂* C A x(p)                          an exact row on the parent, where C B has not full rank

Conditioning may be done in any order, so the groups of rows are taken as they come.

Rows with a noise R can be solved in the same way, Σ = C W C* + R in place of C W C*; then nothing depends on R being
large enough, and R → 0 is the exact row. The score takes this road where R is small (:mod:`.near_exact`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from kfdyn.errors import ModelError, SingularError
from kfdyn.estimation.branching.factors import factor_of
from kfdyn.estimation.branching.rows import Rows
from kfdyn.estimation.inference.filter_covariances import BoolArray
from kfdyn.estimation.model.blocks import Blocks, FloatArray, IntArray
from kfdyn.estimation.model.tree import Tree

_RANK = 1e-13  # of the branch's own deviation: what C B is below that, is rounding


class Branches(NamedTuple):
    """The branches x(k) = A x(p) + u + B e by node: A (n, n_p), B (n, n) and u (batch, n)."""

    A: Blocks
    B: Blocks
    u: Blocks


@dataclass(frozen=True, eq=False)
class Solved:
    """What became of a group of exact rows; the score goes back through it. Scaled rows are C / t, y / t."""

    rows: Rows
    scale: FloatArray  # t (g, c)
    K: FloatArray  # (g, r, c), on scaled rows
    E: FloatArray  # (g, n, r)
    rest: FloatArray  # U₂ (g, c, c − r)
    A: FloatArray  # (g, n, n_p), as the rows met it, as are B and u; (g, n, 0) at roots
    B: FloatArray  # (g, n, n)
    u: FloatArray  # (batch, g, n)
    flat: bool  # a root with nothing known of it: e₁ is free
    passed: Rows | None = None
    noise: Rows | None = None

    @cached_property
    def whitener(self) -> FloatArray:
        """K of rows as they are, (g, r, c): Σ⁻¹ = whitener* whitener."""
        return self.K / self.scale[:, None, :]

    @cached_property
    def Gamma(self) -> FloatArray:
        """Γ = W C*Σ⁻¹, (g, n, c)."""
        Gamma = self.E @ self.whitener
        i, row, state, unit = self._read
        Gamma[i, state] = (np.eye(self.rows.C.shape[1])[row] - self._share[i, row]) / unit
        return Gamma

    @cached_property
    def keep(self) -> FloatArray:
        """1 − ΓC, (g, n, n): what the branch still takes over and adds."""
        keep = np.eye(self.rows.C.shape[2]) - self.Gamma @ self.rows.C
        i, row, state, unit = self._read
        keep[i, state] = np.einsum("ec,ecn->en", self._share[i, row], self.rows.C[i]) / unit
        return keep

    @cached_property
    def _share(self) -> FloatArray:
        """R Σ⁻¹ = 1 − CΓ, (g, c, c): no difference of numbers next to 1 where R is small."""
        cov = self.rows.cov
        return (
            np.zeros_like(_t(self.whitener) @ self.whitener) if cov is None else cov @ _t(self.whitener) @ self.whitener
        )

    @cached_property
    def _read(self) -> tuple[IntArray, IntArray, IntArray, FloatArray]:
        """States that are read themselves, by one row each: member, row, state, and what the row multiplies it by.

        A state with a noise of 1e-20 of what its branch adds keeps just that, of which 1 − ΓC would leave rounding.
        """
        C = self.rows.C
        seen = C != 0.0
        alone = (seen.sum(axis=2) == 1) & ((seen.sum(axis=1)[:, None, :] * seen).sum(axis=2) == 1)
        i, row = np.nonzero(alone & (self.rest.shape[2] == 0))
        state = np.argmax(seen, axis=2)[i, row]
        return i, row, state, C[i, row, state][:, None]


class _Sizes(NamedTuple):
    """What a branch adds to each state, (n,), and takes over, |A|: what is small against them is rounding."""

    deviation: Blocks
    A: Blocks


def solve_exact(
    tree: Tree, branches: Branches, rows: list[Rows], flat_roots: bool, strong: BoolArray | None = None
) -> tuple[list[Solved], list[Rows], float, FloatArray]:
    """Work off all exact rows. Changes the branches; returns the steps, the noisy rows they leave on the parents,
    the log det of what was divided out, and the sum of squares (batch,) of what was known at roots.

    Noisy rows that are left on ``strong`` nodes (N,) are solved too.
    """
    steps: list[Solved] = []
    noisy: list[Rows] = []
    logdet, square = 0.0, np.zeros(branches.u.flat.shape[0])
    sizes = _sizes(branches) if rows else None
    waiting = [part for group in rows for part in _by_place(tree, group)]
    while waiting:
        group = waiting.pop(0)
        assert sizes is not None
        solve = _solve if group.cov is None else _solve_with_noise
        for step in solve(tree, branches, group, sizes, flat_roots):
            logdet += 2.0 * float(np.log(step.scale).sum())
            r = step.K.shape[1]
            if r:
                logdet -= 2.0 * float(np.log(np.linalg.norm(step.K, axis=2)).sum())  # rows of K have length 1/S
            inner = bool(tree.parent[step.rows.at[0]] >= 0)
            if inner and r:
                stay, go = _left(step.noise, strong)  # type: ignore[arg-type]
                noisy += stay
                waiting += [part for left in go for part in _by_place(tree, left)]
            elif r and not step.flat:
                square += (step.noise.y**2).sum(axis=(1, 2))  # type: ignore[union-attr]
            if step.passed is not None:
                waiting += _by_place(tree, step.passed)
            steps.append(step)
    return steps, noisy, logdet, square


def _left(rows: Rows, strong: BoolArray | None) -> tuple[list[Rows], list[Rows]]:
    """Rows left on the parents: those that stay there, and those to be solved on."""
    if strong is None or not strong[rows.at].any():
        return [rows], []
    stay, go = np.flatnonzero(~strong[rows.at]), np.flatnonzero(strong[rows.at])
    return [rows.with_noise(stay, False)] if stay.size else [], [rows.with_noise(go, True)]


def _sizes(branches: Branches) -> _Sizes:
    """The sizes of the branches before anything is solved."""
    B, out = branches.B, branches.u.like(np.empty(branches.u.flat.shape[-1]))
    for nodes, b in B.grouped():
        out.flat[out.places(nodes, b.shape[1])] = np.sqrt((b * b).sum(axis=2))
    return _Sizes(out, branches.A.like(np.abs(branches.A.flat)))


def _by_place(tree: Tree, rows: Rows) -> list[Rows]:
    """The rows in groups that meet each node once, and whose nodes have parents of one size, or none."""
    out = []
    order = np.argsort(rows.at, kind="stable")
    nodes = rows.at[order]
    first = np.concatenate([[True], nodes[1:] != nodes[:-1]])
    turn = np.arange(nodes.size) - np.maximum.accumulate(np.where(first, np.arange(nodes.size), 0))
    key = turn * 2 + (tree.parent[nodes] < 0)
    for kind in np.unique(key):
        out.append(rows.take(order[key == kind]))
    return out


def _solve(tree: Tree, branches: Branches, rows: Rows, sizes: _Sizes, flat_roots: bool) -> list[Solved]:
    """One group of rows, split by the parents' size and by rank."""
    A, B, _ = branches
    assert A.cols is not None
    g, c, n = rows.C.shape
    b = B.flat[B.places(rows.at, n * n)].reshape(g, n, n)
    scale = np.einsum("gcn,gn->gc", np.abs(rows.C), sizes.deviation.flat[sizes.deviation.places(rows.at, n)])
    scale = np.where(scale > 0.0, scale, np.abs(rows.C).sum(axis=2))
    C = rows.C / scale[:, :, None]
    U, S, Vt = _svd(C @ b)
    rank = (_RANK * c * n < S).sum(axis=1)
    out = []
    widths = A.cols[rows.at]
    kinds = np.unique(rank * (int(widths.max()) + 1) + widths)
    for r, above in (divmod(int(kind), int(widths.max()) + 1) for kind in kinds):
        i = np.flatnonzero((rank == r) & (widths == above))
        K = U[i, :, :r].transpose(0, 2, 1) / S[i, :r, None]
        E = b[i] @ Vt[i, :r].transpose(0, 2, 1)
        step = Solved(
            rows.take(i), scale[i], K, E, U[i, :, r:],
            A.flat[A.places(rows.at[i], n * above)].reshape(i.size, n, above), b[i],
            branches.u.flat[:, branches.u.places(rows.at[i], n)],
            flat_roots and bool(tree.parent[rows.at[i[0]]] < 0),
        )  # fmt: skip
        out.append(_apply(tree, branches, sizes, step, C[i], Vt[i, :r]))
    return out


def _solve_with_noise(tree: Tree, branches: Branches, rows: Rows, sizes: _Sizes, flat_roots: bool) -> list[Solved]:
    """One group of rows with noise, split by the parents' size: Γ = W C*Σ⁻¹ = E K, Σ = C W C* + R.

    The branch keeps W − ΓΣΓ* = (1 − ΓC) W (1 − ΓC)* + ΓRΓ*, as a factor, so that a small R is not lost.
    """
    A, B, U = branches
    assert A.cols is not None and rows.cov is not None
    out = []
    for above in np.unique(A.cols[rows.at]).tolist():
        part = rows.take(np.flatnonzero(A.cols[rows.at] == above))
        assert part.cov is not None
        at, (g, c, n) = part.at, part.C.shape
        a, b = A.flat[A.places(at, n * above)].reshape(g, n, above), B.flat[B.places(at, n * n)].reshape(g, n, n)
        u = U.flat[:, U.places(at, n)]
        CB = part.C @ b
        Sigma = CB @ CB.transpose(0, 2, 1) + part.cov
        scale = np.sqrt(np.diagonal(Sigma, axis1=1, axis2=2))
        scale = np.where(scale > 0.0, scale, 1.0)
        value, turn = np.linalg.eigh(Sigma / (scale[:, :, None] * scale[:, None, :]))
        if (value <= _RANK * c).any():
            k = int(at[np.flatnonzero((value <= _RANK * c).any(axis=1))[0]])
            raise ModelError(
                f"{tree.label(k)}: some of its observations are exact where its branch has no variance, and others "
                "almost; the score is not available: give the branch a variance W, or all observations a noise R"
            )
        K = turn.transpose(0, 2, 1) / np.sqrt(value)[:, :, None]
        C = part.C / scale[:, :, None]
        E = b @ (K @ C @ b).transpose(0, 2, 1)
        known = np.einsum("grc,bgc->bgr", K, part.y / scale - np.einsum("gcn,bgn->bgc", C, u))
        left = Rows(tree.parent[at], K @ C @ a, known)
        step = Solved(part, scale, K, E, np.zeros((g, c, 0)), a, b, u, False, None, left)
        roots = np.concatenate([step.keep @ b, step.Gamma @ factor_of(part.cov)], axis=2)
        A.flat[A.places(at, n * above)] = (step.keep @ a).reshape(g, -1)
        B.flat[B.places(at, n * n)] = _triangle(roots).reshape(g, -1)
        gap = part.y - np.einsum("gcn,bgn->bgc", part.C, u)
        U.flat[:, U.places(at, n)] = u + np.einsum("gnc,bgc->bgn", step.Gamma, gap)
        out.append(step)
    return out


def _triangle(roots: FloatArray) -> FloatArray:
    """B (g, n, n) with B B* = F F* of roots F (g, n, r), r ≥ n."""
    if roots.shape[1] == 1:
        return np.sqrt((roots * roots).sum(axis=2))[:, :, None]
    return _t(np.asarray(np.linalg.qr(_t(roots), mode="r")))


def _t(a: FloatArray) -> FloatArray:
    return np.swapaxes(a, -1, -2)


def _svd(F: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Full singular value decompositions of F (g, c, n); S has c entries, zeros beyond n."""
    g, c, n = F.shape
    if c == n == 1:  # 10⁵ exact tips of one trait
        return np.where(F < 0.0, -1.0, 1.0), np.abs(F[:, 0]), np.ones((g, 1, 1))
    U, S, Vt = np.linalg.svd(F)
    return U, np.concatenate([S, np.zeros((g, max(0, c - n)))], axis=1), Vt


def _apply(tree: Tree, branches: Branches, sizes: _Sizes, step: Solved, C: FloatArray, V1t: FloatArray) -> Solved:
    """Change the branches of one step's nodes; returns the step with the rows it leaves on the parents."""
    A, B, u = branches
    at, n = step.rows.at, C.shape[2]
    own, b = step.u, step.B
    CA, gap = C @ step.A, step.rows.y / step.scale - np.einsum("gcn,bgn->bgc", C, own)
    known = np.einsum("grc,bgc->bgr", step.K, gap)
    if step.K.shape[1] == n:  # nothing is left free: the state itself is known
        A_new, B_new = np.zeros_like(step.A), np.zeros_like(b)
    else:
        A_new = step.keep @ step.A
        B_new = b - step.E @ V1t
        i, _, state, _ = step._read
        B_new[i, state] = 0.0
    own = own + np.einsum("gnr,bgr->bgn", step.E, known)
    A.flat[A.places(at, step.A[0].size)] = A_new.reshape(at.size, -1)
    B.flat[B.places(at, n * n)] = B_new.reshape(at.size, -1)
    u.flat[:, u.places(at, n)] = own
    parents = tree.parent[at]
    noise = Rows(parents, step.K @ CA, known)
    passed = None
    if step.rest.shape[2]:
        if parents[0] < 0:
            raise _overdetermined(tree, int(at[0]))
        turn = step.rest.transpose(0, 2, 1)
        passed = Rows(parents, turn @ CA, np.einsum("gsc,bgc->bgs", turn, gap), child=at)
        taken = sizes.A.flat[A.places(at, step.A[0].size)].reshape(step.A.shape)
        size = np.abs(turn) @ np.abs(C) @ taken
        blind = np.flatnonzero(np.any(np.all(np.abs(passed.C) <= _RANK * size, axis=2), axis=1))
        if blind.size:
            raise _overdetermined(tree, int(at[blind[0]]))
    return replace(step, noise=noise, passed=passed)


def _overdetermined(tree: Tree, node: int) -> SingularError:
    return SingularError(
        f"{tree.label(node)}: exact observations on both ends of branches without variance say the same thing twice, "
        "so the data have no density; merge the tips, give a branch a variance W, or the observations a noise R",
        node,
    )
