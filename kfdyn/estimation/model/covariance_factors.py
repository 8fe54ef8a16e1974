"""Factors of the noise covariances Q and R, as given, and their lower triangular roots."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from kfdyn.errors import ModelError
from kfdyn.estimation.model.blocks import Blocks, FloatArray
from kfdyn.estimation.model.packing import BlockInput, Packed, pack
from kfdyn.estimation.model.tree import Tree
from kfdyn.estimation.model.validation import Mask, expect_finite, vector_deviations

if TYPE_CHECKING:
    from kfdyn.estimation.model.state_space import StateSpace


_LARGEST_IN_LANES = 16  # rows; of larger blocks, several side by side leave the nearest cache


@dataclass(frozen=True, eq=False)
class Factor:
    """Factors B(k) of covariances B B*, as given, with any number of columns."""

    given: Blocks

    @cached_property
    def lower(self) -> FloatArray:
        """Lower triangular L with L L* = B B*, flat; made when first asked for, by the square-root form or a draw."""
        rows = self.given.rows
        out = Blocks(np.zeros(int((rows * rows).sum())), rows, rows)
        for nodes, b in self.given.grouped():
            out.flat[out.places(nodes, b.shape[1] ** 2)] = _lower(b).reshape(nodes.size, -1)
        return out.flat

    def square(self) -> Packed:
        """B B*, exactly symmetric."""
        rows = self.given.rows
        out = Blocks(np.zeros(int((rows * rows).sum())), rows, rows)
        for nodes, b in self.given.grouped():
            with np.errstate(over="ignore", invalid="ignore"):  # told of by name
                product = b @ b.transpose(0, 2, 1)
            out.flat[out.places(nodes, b.shape[1] ** 2)] = (0.5 * (product + product.transpose(0, 2, 1))).reshape(
                nodes.size, -1
            )
        return Packed(out.flat, rows, rows)


class Factors(NamedTuple):
    """Factors that the caller gave; None where he gave the covariance itself."""

    Q: Factor | None
    R: Factor | None


def squared(
    tree: Tree, name: str, given: BlockInput | None, factor: BlockInput | None, check: bool = True
) -> tuple[Any, Factor | None]:
    """The covariances, and their factors if these were given instead."""
    if factor is None:
        return given, None
    if given is not None:
        raise ModelError(f"{name} and {name}_factor are both given; one of them says it all")
    packed = pack(tree, f"{name}_factor", factor)
    if check:
        expect_finite(tree, f"{name}_factor", packed)
    rows, cols = packed.shapes
    own = Factor(Blocks(packed.spread(), rows, cols))
    square = own.square()
    if check:
        expect_finite(tree, name, square)
    return square, own


def _lower(b: FloatArray) -> FloatArray:
    """L with L L* = b b* for b (count, n, c), by orthogonal factors; no diagonal is negative, so that there is one."""
    count, n, c = b.shape
    if n == 1:
        return np.sqrt((b * b).sum(axis=2, keepdims=True)) if c != 1 else np.abs(b)
    if c < n:
        b = np.concatenate([b, np.zeros((count, n, n - c))], axis=2)
    elif c == n and not np.triu(b, 1).any():
        return b
    # The largest first, or reflections leave a small column only the digits that a large one behind it has.
    order = np.argsort(-np.abs(b).max(axis=1, initial=0.0), axis=1, kind="stable")
    b = np.take_along_axis(b, order[:, None, :], axis=2)
    upper: FloatArray = np.linalg.qr(b.transpose(0, 2, 1), mode="r")  # type: ignore[assignment]
    return (upper * np.where(np.diagonal(upper, axis1=1, axis2=2) < 0, -1.0, 1.0)[:, :, None]).transpose(0, 2, 1)


def noise_roots(ss: StateSpace) -> tuple[FloatArray, FloatArray]:
    """Q^½ and R^½ of all nodes, lower triangular and flat."""
    Q, R = ss.factors if ss.factors is not None else (None, None)
    return (root_of(ss.Q, ss.vectors) if Q is None else Q.lower), (root_of(ss.R) if R is None else R.lower)


def root_of(blocks: Blocks, vectors: Mask | None = None) -> FloatArray:
    """Lower triangular factors of covariances; of those that may be singular through eigenvalues."""
    from kfdyn.estimation.recursions.linalg.triangular import cholesky_roots

    out, doubtful = np.empty_like(blocks.flat), np.zeros(len(blocks), dtype=bool)
    lanes, size = side_by_side(blocks)
    work = np.empty(lanes * int(blocks.rows.max(initial=0)) ** 2)
    if cholesky_roots(lanes, size, blocks.ragged, out, doubtful, work):
        for nodes, stack in blocks.grouped():
            some, n = np.flatnonzero(doubtful[nodes]), stack.shape[1]
            if some.size:
                sizes = np.full(some.size, n)
                own = None if vectors is None else vectors[nodes[some]]
                root = _lower(square_root(Blocks(stack[some].ravel(), sizes, sizes), own).stacked())
                out[blocks.places(nodes[some], n * n)] = root.reshape(some.size, -1)
    return out


def side_by_side(blocks: Blocks) -> tuple[Any, Any]:
    """Return the number of blocks that go side by side, and the size they share: one and None if they differ."""
    from kfdyn.sweeps import Checks, Tag
    from kfdyn.sweeps.compiler.driver import machine

    size = int(blocks.rows[0]) if len(blocks) else 0
    if Checks.on or not 0 < size <= _LARGEST_IN_LANES or (blocks.rows != size).any():
        return Tag(1), None
    return Tag(machine().lanes), Tag(size)


def of_seen(ss: StateSpace, R_root: FloatArray, seen: np.ndarray) -> FloatArray:
    """R^½ of the outputs that are seen, with rows and columns of zeros for the others."""
    if seen.all():
        return R_root
    out, start = ss.R.like(R_root.copy()), ss.arrays.output
    for k in np.unique(np.searchsorted(start, np.flatnonzero(~seen), side="right") - 1).tolist():
        own, block = seen[start[k] : start[k + 1]], out[k]
        kept = _lower(block[None, own])[0]
        block[...] = 0.0
        block[np.ix_(own, own)] = kept
    return out.flat


def square_root(blocks: Blocks, vectors: Mask | None = None) -> Blocks:
    """C(k) with C C* = B(k) for positive semi-definite blocks: scaled eigenvectors of the correlations.

    Eigenvalues within rounding of zero are zero: the root of ε would be a deviation of 1e-8 out of the range of B.
    Correlations, so that a state in small units is not taken for rounding; unless it is some, of a vector turned:
    ``vectors`` are the nodes that have those.
    """
    flat = np.empty_like(blocks.flat)
    for nodes, stack in blocks.grouped():
        deviation = np.sqrt(np.maximum(np.diagonal(stack, axis1=1, axis2=2), 0.0))
        root, lowest = _scaled_root(stack, deviation)
        unseen = ((deviation == 0) & stack.any(axis=2)).any(axis=1)  # no variance, but covariances
        turned = (lowest < 0) | unseen
        turned &= False if vectors is None else vectors[nodes]
        if turned.any():
            root[turned] = _scaled_root(stack[turned], vector_deviations(stack[turned]))[0]
        where = blocks.places(nodes, stack.shape[1] ** 2)
        flat[where] = root.reshape(where.shape)
    return Blocks(flat, blocks.rows, blocks.cols)


def _scaled_root(stack: FloatArray, unit: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Roots by eigenvalues in these units; and the lowest of them, 0 where it is within rounding of zero."""
    divisor = np.where(unit > 0, unit, 1.0)
    correlation = stack / (divisor[:, :, None] * divisor[:, None, :])
    values, vectors = np.linalg.eigh(correlation)
    rounding = 2 * stack.shape[1] * np.finfo(float).eps * values[:, -1:]
    lowest = np.where(values >= -rounding, 0.0, values).min(axis=1, initial=0.0)
    values[values <= rounding] = 0.0
    return unit[:, :, None] * _refined(correlation, values, vectors), lowest


def _refined(matrix: FloatArray, values: FloatArray, vectors: FloatArray) -> FloatArray:
    """C = V √λ of matrices (g, n, n), and a Newton step for C C* = matrix in the range of V where λ is not 0.

    What libraries leave of eigenvectors is several times the rounding of C, and differs from one processor to another.
    """
    root = vectors * np.sqrt(values)[:, None, :]
    wide = root.astype(np.longdouble)
    left = (matrix - wide @ wide.transpose(0, 2, 1)).astype(float)
    there = values > 0.0
    inverse = np.where(there, 1.0 / np.sqrt(np.where(there, values, 1.0)), 0.0)
    kept = vectors * there[:, None, :]
    return np.asarray(root + 0.5 * kept @ (kept.transpose(0, 2, 1) @ left @ kept) * inverse[:, None, :])
