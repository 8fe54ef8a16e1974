"""Eliminate exact observations: solve each for the noise of the branch that explains it.

A row y = C x(k) without noise, on the branch x(k) = A x(p) + u + B e with e ~ N(0, 1), says
C B e = y − C u − C A x(p). With the singular values C B = U S V* (rank r) the r combinations V₁*e are known once x(p)
is, and the branch keeps the others::

    e₁ = K (y − C u − C A x(p)),   K = S₁⁻¹ U₁*         a noisy row on the parent, with unit noise
    x(k) = (A − E K C A) x(p) + u + E K (y − C u) + B (1 − V₁V₁*) e,   E = B V₁
    U₂*(y − C u) = U₂* C A x(p)                          an exact row on the parent, where C B has not full rank

Conditioning may be done in any order, so the groups of rows are taken as they come.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from kfdyn.errors import SingularError
from kfdyn.estimation.branching.rows import Rows
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
    """Result of eliminating a group of exact rows, kept for the score. Scaled rows are C / t, y / t."""

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
        i, row, state = self.read
        Gamma[i, state] = np.eye(self.rows.C.shape[1])[row] / self.rows.C[i, row, state][:, None]
        return Gamma

    @cached_property
    def keep(self) -> FloatArray:
        """1 − ΓC, (g, n, n): what the branch still takes over and adds."""
        keep = np.eye(self.rows.C.shape[2]) - self.Gamma @ self.rows.C
        i, _, state = self.read
        keep[i, state] = 0.0
        return keep

    @cached_property
    def read(self) -> tuple[IntArray, IntArray, IntArray]:
        """States that are read themselves, by one row each: member, row, state. Such a state has no variance left."""
        seen = self.rows.C != 0.0
        alone = (seen.sum(axis=2) == 1) & ((seen.sum(axis=1)[:, None, :] * seen).sum(axis=2) == 1)
        i, row = np.nonzero(alone & (self.rest.shape[2] == 0))
        return i, row, np.argmax(seen, axis=2)[i, row]


class _Sizes(NamedTuple):
    """Scales of a branch for rank decisions: the deviation it adds to each state, (n,), and |A|."""

    deviation: Blocks
    A: Blocks


def solve_exact(
    tree: Tree, branches: Branches, rows: list[Rows], flat_roots: bool
) -> tuple[list[Solved], list[Rows], float, FloatArray]:
    """Eliminate all exact rows; change the branches.

    Return the steps, the noisy rows that they leave on the parents, the log det of what was divided out, and the sum of
    squares (batch,) of what was known at roots.
    """
    steps: list[Solved] = []
    noisy: list[Rows] = []
    logdet, square = 0.0, np.zeros(branches.u.flat.shape[0])
    sizes = _sizes(branches) if rows else None
    waiting = [part for group in rows for part in _by_place(tree, group)]
    while waiting:
        group = waiting.pop(0)
        assert sizes is not None
        for step in _solve(tree, branches, group, sizes, flat_roots):
            logdet += 2.0 * float(np.log(step.scale).sum())
            r = step.K.shape[1]
            if r:
                logdet -= 2.0 * float(np.log(np.linalg.norm(step.K, axis=2)).sum())  # rows of K have length 1/S
            inner = bool(tree.parent[step.rows.at[0]] >= 0)
            if inner and r:
                noisy.append(step.noise)  # type: ignore[arg-type]
            elif r and not step.flat:
                square += (step.noise.y**2).sum(axis=(1, 2))  # type: ignore[union-attr]
            if step.passed is not None:
                waiting += _by_place(tree, step.passed)
            steps.append(step)
    return steps, noisy, logdet, square


def _sizes(branches: Branches) -> _Sizes:
    """Return the sizes of the branches before anything is solved."""
    B, out = branches.B, branches.u.like(np.empty(branches.u.flat.shape[-1]))
    for nodes, b in B.grouped():
        out.flat[out.places(nodes, b.shape[1])] = np.sqrt((b * b).sum(axis=2))
    return _Sizes(out, branches.A.like(np.abs(branches.A.flat)))


def _by_place(tree: Tree, rows: Rows) -> list[Rows]:
    """Group rows so that each group meets a node once, and its nodes have parents of one size, or none."""
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
    """Eliminate one group of rows, split by the parents' size and by rank."""
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


def _svd(F: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return full singular value decompositions of F (g, c, n); S has c entries, zeros beyond n."""
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
        i, _, state = step.read
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
