"""Forward and backward Lyapunov equations on a tree, for one or two transition operators (SKO)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from kfdyn.estimation.model.blocks import Blocks, FloatArray, IntArray, offsets_of
from kfdyn.estimation.model.packing import BlockInput, pack
from kfdyn.estimation.model.tree import Tree
from kfdyn.estimation.model.validation import expect_finite, expect_size, transitions

_RULE = "map its node's block of X to its parent's"


@dataclass(frozen=True, eq=False)
class Transitions:
    """The steps A(p(k), k) of an operator A = (1 − ℰ_A)⁻¹ on a tree, from each node to its parent."""

    tree: Tree
    steps: Blocks

    def __call__(self, i: int, j: int) -> FloatArray:
        """Return A(i, j), the product of the steps from node j up to its ancestor i; 1 for i = j. O(depth)."""
        product = np.eye(self.steps.width(j))
        for k in self.tree.path(i, j)[:-1]:
            product = self.steps[k] @ product
        return product


@dataclass(frozen=True, eq=False)
class ForwardLyapunov:
    """A X B* for block-diagonal X, by its diagonal: A X B* = Y + ÃY + Y B̃* (SKO "forward-lyapunov").

    Blocks between unrelated nodes are zero: no node feeds both.
    """

    A: Transitions
    B: Transitions
    diagonal: Blocks

    def block(self, i: int, j: int) -> FloatArray:
        """Return block (i, j): A(i,j) Y(j) for j outboard of i, Y(i) B*(j,i) for i outboard of j, else 0."""
        i, j = self.diagonal.node(i), self.diagonal.node(j)
        common = self.A.tree.nearest_common_ancestor(i, j)
        if common == i:
            return self.A(i, j) @ self.diagonal[j]
        if common == j:
            return self.diagonal[i] @ self.B(j, i).T
        return self.diagonal.zero(i, j)

    def dense(self) -> FloatArray:
        """Return the whole matrix, O(N Σn) for its Σn² entries."""
        tree, rows, cols = self.A.tree, _slices(self.diagonal.rows), _slices(self.diagonal.cols)
        diagonal = self.diagonal.dense()
        upper, lower = diagonal.copy(), diagonal.copy()
        for k in tree.order:
            p = tree.parent[k]
            if p >= 0:
                upper[rows[p]] += self.A.steps[k] @ upper[rows[k]]
                lower[:, cols[p]] += lower[:, cols[k]] @ self.B.steps[k].T
        return upper + lower - diagonal


@dataclass(frozen=True, eq=False)
class BackwardLyapunov:
    """A* X B for block-diagonal X, by its diagonal: Y + Ã*Y + Y B̃ + ℛ_b (SKO "backward-lyapunov").

    ℛ_b couples unrelated nodes through their nearest common ancestor; on a chain it is zero.
    """

    A: Transitions
    B: Transitions
    diagonal: Blocks

    def block(self, i: int, j: int) -> FloatArray:
        """Return block (i, j) = A*(c,i) Y(c) B(c,j), c the nearest common ancestor; 0 between different trees."""
        i, j = self.diagonal.node(i), self.diagonal.node(j)
        common = self.A.tree.nearest_common_ancestor(i, j)
        if common is None:
            return self.diagonal.zero(i, j)
        return self.A(common, i).T @ self.diagonal[common] @ self.B(common, j)

    def dense(self) -> FloatArray:
        """Return the whole matrix, O(N Σn): each node's row and column follow from its parent's."""
        tree, rows, cols = self.A.tree, _slices(self.diagonal.rows), _slices(self.diagonal.cols)
        out = np.zeros((rows[-1].stop, cols[-1].stop)) if rows else np.zeros((0, 0))
        for k in tree.order[::-1]:
            p = tree.parent[k]
            if p >= 0:
                out[rows[k]] = self.A.steps[k].T @ out[rows[p]]
                out[:, cols[k]] = out[:, cols[p]] @ self.B.steps[k]
            out[rows[k], cols[k]] = self.diagonal[k]
        return out


def forward_lyapunov(tree: Tree, A: BlockInput, X: BlockInput, B: BlockInput | None = None) -> ForwardLyapunov:
    """Solve Y(k) = Σ_{j∈c(k)} A(k,j) Y(j) B*(k,j) + X(k), leaves to roots.

    Y is the diagonal of A X B*, and gives the rest: A X B* = Y + ÃY + Y B̃*.

    Parameters
    ----------
    tree : Tree
        The forest.
    A, B : sequences of blocks, or stacked arrays
        ``A[k]`` leads from node k to its parent; None at a root. B is A if not given; its sizes may differ.
    X : sequence of blocks (a_k, b_k), or stacked array
        The block-diagonal X; need be neither square nor symmetric.

    Returns
    -------
    ForwardLyapunov
        ``diagonal[k]`` = Y(k), ``block(i, j)``, ``dense()``.

    Notes
    -----
    O(N). With A = B = φ, X = Q, Y is the state covariance ℛ, in mechanics the composite body inertia. Source: SKO
    "forward-lyapunov", R86 (7.9).

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> y = kf.forward_lyapunov(kf.Tree([1, -1]), np.full((2, 1, 1), 2.0), np.ones((2, 1, 1)))
    >>> y.diagonal[1], y.block(1, 0)
    (array([[5.]]), array([[2.]]))
    """
    from kfdyn.estimation.recursions.lyapunov import forward

    return ForwardLyapunov(*_solved(forward, tree, A, X, B))


def backward_lyapunov(tree: Tree, A: BlockInput, X: BlockInput, B: BlockInput | None = None) -> BackwardLyapunov:
    """Solve Y(k) = A*(p,k) Y(p) B(p,k) + X(k), roots to leaves.

    Y is the diagonal of A* X B, and gives the rest: Y + Ã*Y + Y B̃ + ℛ_b, with ℛ_b(i,j) = A*(c,i) Y(c) B(c,j) for
    unrelated i, j and c their nearest common ancestor.

    Parameters
    ----------
    tree : Tree
        The forest.
    A, B : sequences of blocks, or stacked arrays
        ``A[k]`` leads from node k to its parent; None at a root. B is A if not given; its sizes may differ.
    X : sequence of blocks (a_k, b_k), or stacked array
        The block-diagonal X; need be neither square nor symmetric.

    Returns
    -------
    BackwardLyapunov
        ``diagonal[k]`` = Y(k), ``block(i, j)``, ``dense()``.

    Notes
    -----
    O(N). With A = B = ψ, X = H*D⁻¹H, Y is the co-state covariance Λ, in mechanics the operational space compliance
    kernel. Source: SKO "backward-lyapunov" (48–50); PART (21) is the chain's case.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> y = kf.backward_lyapunov(kf.Tree([2, 2, -1]), np.full((3, 1, 1), 2.0), np.ones((3, 1, 1)))
    >>> y.diagonal[0], y.block(0, 1)
    (array([[5.]]), array([[4.]]))
    """
    from kfdyn.estimation.recursions.lyapunov import backward

    return BackwardLyapunov(*_solved(backward, tree, A, X, B))


def _solved(
    sweep: Callable[..., object], tree: Tree, A: BlockInput, X: BlockInput, B: BlockInput | None
) -> tuple[Transitions, Transitions, Blocks]:
    """Return A, B and Y, by the sweep over checked blocks in one direction or the other."""
    packed = pack(tree, "X", X)
    expect_finite(tree, "X", packed)
    rows, cols = packed.shapes
    left = Transitions(tree, transitions(tree, "A", A, rows, _RULE))
    right = left if B is None else Transitions(tree, transitions(tree, "B", B, cols, _RULE))
    if B is None:
        expect_size(tree, "X", packed, rows, rows, "be square when B is not given")
    Y = Blocks(packed.spread(), rows, cols)
    work = np.empty(int(rows.max(initial=0)) * int(cols.max(initial=0)))  # as the largest block could have
    sweep(tree.order, tree.parent, left.steps.ragged, right.steps.ragged, Y.ragged, work)
    return left, right, Y


def _slices(sizes: IntArray | None) -> list[slice]:
    assert sizes is not None  # matrices, not vectors
    starts = offsets_of(sizes).tolist()
    return [slice(a, b) for a, b in pairwise(starts)]
