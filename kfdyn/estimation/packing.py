"""Blocks given by a user, packed into flat buffers and checked, with errors that name the node."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfdyn.errors import ModelError, ShapeError
from kfdyn.estimation.blocks import Blocks, FloatArray, IntArray, offsets_of, real_array
from kfdyn.estimation.tree import Tree

BlockInput = ArrayLike | Sequence[Any]

_MANY = 64  # blocks: fewer are looked at in less time than it takes to load compiled code
_CLEARLY_POSITIVE = 1e-12  # a pivot of elimination above this part of its variance: far above what rounding leaves of 0
_PSD_TOLERANCE = 1e-10  # of a variance: far above the rounding of a computed G Q G*, far below a modelling error
_TILE = 512  # blocks that are copied as one


class Shared(NamedTuple):
    """Blocks of one size of which many nodes have the same: the distinct ones, and which of them each node has.

    Attributes
    ----------
    blocks : ndarray, shape (d, r, c)
        The distinct blocks.
    which : ndarray of int, shape (N,)
        Node k has ``blocks[which[k]]``.
    """

    blocks: FloatArray
    which: NDArray[Any]


class Packed(NamedTuple):
    """Blocks in one buffer. Where nodes share them, each is there once, and ``which`` tells which one a node has."""

    flat: FloatArray
    rows: IntArray
    cols: IntArray
    which: NDArray[Any] | None = None

    @property
    def shapes(self) -> tuple[IntArray, IntArray]:
        """Rows and columns of every node's block."""
        return self.row_counts(), self.cols if self.which is None else _take(self.cols, self.which)

    def row_counts(self) -> IntArray:
        """Rows of every node's block."""
        return self.rows if self.which is None else _take(self.rows, self.which)

    def node(self, i: int) -> int:
        """The first node that has the stored block i."""
        return i if self.which is None else int(np.argmax(self.which == i))

    def spread(self) -> FloatArray:
        """The buffer with one block for each node, one after the other."""
        if self.which is None:
            return self.flat
        return _take(self.flat.reshape(len(self.rows), -1), self.which).ravel()

    def starts(self) -> IntArray:
        """Where each node's block starts in ``flat``; (N + 1,)."""
        sizes = self.rows * self.cols
        if self.which is None:
            return offsets_of(sizes)
        out = np.empty(self.which.size + 1, np.int64)
        starts = offsets_of(sizes)
        out[:-1], out[-1] = _take(starts, self.which), starts[-1]
        return out


def _take(stack: Any, which: NDArray[Any]) -> Any:
    """``stack[which]``, where the block that the last but one node has is likely to be the one that most nodes have."""
    if which.size < 2:
        return stack[which]
    out = np.empty((which.size, *stack.shape[1:]), stack.dtype)
    whole = which.size // _TILE
    out[:_TILE] = out[whole * _TILE :] = stack[which[-2]]
    if whole > 1:  # long rows are copied at the speed of memory, blocks of four numbers are not
        tiles = out[: whole * _TILE].reshape(whole, -1)
        tiles[1:] = tiles[:1]
    others = np.flatnonzero(which != which[-2])
    out[others] = stack[which[others]]
    return out


def pack(tree: Tree, name: str, blocks: BlockInput | Shared, skip_roots: IntArray | None = None) -> Packed:
    """Pack a sequence of blocks or a stacked array (N, rows, columns) into one buffer.

    With ``skip_roots``, the state sizes, a root has no block: whatever is given there is ignored, and its block has no
    rows and a column for each state.
    """
    N = len(tree)
    if isinstance(blocks, np.ndarray) and blocks.dtype != object:
        if blocks.ndim != 3 or blocks.shape[0] != N:
            raise ShapeError(f"{name} as one array must have shape (N, rows, columns) with N = {N}, got {blocks.shape}")
        if N > 1 and blocks.strides[0] == 0 and skip_roots is None:  # one matrix broadcast to all nodes
            blocks = Shared(real_array(blocks[:1], name), np.zeros(N, np.uint8))
    if isinstance(blocks, Shared):
        if skip_roots is not None:
            return _pack_shared_steps(tree, name, blocks, skip_roots)
        count = len(blocks.blocks)
        rows, cols = np.full(count, blocks.blocks.shape[1]), np.full(count, blocks.blocks.shape[2])
        return Packed(np.array(real_array(blocks.blocks, name)).ravel(), rows, cols, blocks.which)
    if isinstance(blocks, np.ndarray) and blocks.dtype != object:
        rows, cols = np.full(N, blocks.shape[1]), np.full(N, blocks.shape[2])
        if skip_roots is not None:
            inner = tree.parent >= 0
            rows, cols = np.where(inner, rows, 0), np.where(inner, cols, skip_roots)
            blocks = blocks[inner]
        return Packed(np.array(real_array(blocks, name)).ravel(), rows, cols)
    if not isinstance(blocks, Iterable):
        raise ShapeError(f"{name} must be a sequence of {N} matrices or an array (N, rows, columns)")
    listed = list(blocks)
    if len(listed) != N:
        raise ShapeError(f"{name} has {len(listed)} blocks, but there are {N} nodes; give one block for each node")
    used = np.arange(N) if skip_roots is None else np.flatnonzero(tree.parent >= 0)
    if used.size < N:
        listed = [listed[k] for k in used.tolist()]
    rows, cols = np.zeros(N, dtype=np.int64), np.zeros(N, dtype=np.int64)
    if skip_roots is not None:
        cols[:] = skip_roots
    if not listed:
        return Packed(np.zeros(0), rows, cols)
    if not _all_are_matrices(listed):
        listed = [_matrix(tree, name, int(k), block) for k, block in zip(used, listed)]
    shapes = np.fromiter(chain.from_iterable(map(attrgetter("shape"), listed)), np.int64, 2 * len(listed))
    rows[used], cols[used] = shapes[::2], shapes[1::2]
    try:
        flat = np.frombuffer(bytearray().join(listed))  # five times as fast as np.concatenate, but
    except TypeError:  # only where every row follows the one before
        flat = np.concatenate(listed, axis=None)
    return Packed(flat, rows, cols)


def _all_are_matrices(listed: list[Any]) -> bool:
    """Whether all are plain matrices of float64, as nearly always; asked without a loop in Python."""
    return (
        set(map(type, listed)) == {np.ndarray}
        and set(map(id, map(attrgetter("dtype"), listed))) == {id(np.dtype(np.float64))}
        and set(map(attrgetter("ndim"), listed)) == {2}
    )


def _pack_shared_steps(tree: Tree, name: str, given: Shared, n: IntArray) -> Packed:
    """Blocks that nodes share, and for each root an empty one."""
    count, (r, c) = len(given.blocks), given.blocks.shape[1:]
    roots = np.flatnonzero(tree.parent < 0)
    few = count + roots.size < 255
    which = given.which.astype(np.uint8 if few else np.int64)  # a byte each: there may be a million
    which[roots] = count + np.arange(roots.size)
    rows, cols = np.full(count + roots.size, r), np.full(count + roots.size, c)
    rows[count:], cols[count:] = 0, n[roots]
    return Packed(np.array(real_array(given.blocks, name)).ravel(), rows, cols, which)


def _matrix(tree: Tree, name: str, k: int, block: Any) -> FloatArray:
    """The block of node k as a matrix of float64, or an error."""
    try:
        array = real_array(block, name)
    except ShapeError as error:
        raise ShapeError(f"{name} of {tree.label(k)} is not a matrix of numbers: {error}") from error
    if array.ndim != 2:
        hint = " (None is for roots)" if block is None else ""
        raise ShapeError(f"{name} of {tree.label(k)} must be a matrix, got shape {array.shape}{hint}")
    return array


def variances(blocks: BlockInput, N: int) -> FloatArray | None:
    """A flat copy of N blocks of size 1 that are good variances, or None: then :func:`pack` finds out what they are.

    A series with one state and one output is filtered in less time than NumPy takes for ten calls, so these are few.
    """
    if type(blocks) is not np.ndarray or blocks.dtype != np.float64 or blocks.shape != (N, 1, 1):
        return None
    flat = blocks.flatten()
    if N == 0:
        return None
    least, most = flat.item(flat.argmin()), flat.item(flat.argmax())  # a fifth of the time of min and max
    return flat if least >= 0.0 and most < np.inf else None  # NaN is neither


def expect_size(tree: Tree, name: str, packed: Packed, want_rows: IntArray, want_cols: IntArray, rule: str) -> None:
    """Refuse the first block whose shape is not the one wanted."""
    rows, cols = packed.rows, packed.cols
    if packed.which is not None:
        alike = rows.size > 0 and bool((rows == rows[0]).all() and (cols == cols[0]).all())
        rows, cols = (rows[:1], cols[:1]) if alike else packed.shapes
    if (rows is want_rows or (rows == want_rows).all()) and (cols is want_cols or (cols == want_cols).all()):
        return
    rows, cols = packed.shapes
    k = int(np.flatnonzero((rows != want_rows) | (cols != want_cols))[0])
    raise ShapeError(
        f"{name} of {tree.label(k)} has shape ({rows[k]}, {cols[k]}) but must {rule}: "
        f"shape ({want_rows[k]}, {want_cols[k]})"
    )


def expect_finite(tree: Tree, name: str, packed: Packed) -> None:
    """Refuse the first block with an entry that is NaN or infinite."""
    finite = np.isfinite(packed.flat)
    if not finite.all():
        at = int(np.argmin(finite))
        k = packed.node(int(np.searchsorted(offsets_of(packed.rows * packed.cols), at, side="right")) - 1)
        raise ModelError(
            f"{name} of {tree.label(k)} has an entry that is {packed.flat[at]}; every entry must be finite"
        )


def expect_covariance(tree: Tree, name: str, packed: Packed) -> None:
    """Refuse the first block that is not symmetric positive semi-definite; symmetrise the rounding of the others.

    Each block is scaled to a correlation matrix first, so that the verdict does not depend on units.
    """
    flat, sizes = packed.flat, packed.rows
    if sizes.size and not (sizes != 1).any():  # variances: their sign is all there is to check
        wrong = np.flatnonzero(flat < 0.0)
        if wrong.size:
            raise _not_semidefinite(tree, name, packed.node(int(wrong[0])), flat[wrong[0]])
        return
    if sizes.size >= _MANY and _clearly_positive(flat, sizes):
        return
    blocks = Blocks(flat, sizes, sizes)
    for nodes, stack in blocks.grouped():
        n = stack.shape[1]
        if n == 0:
            continue
        used = np.flatnonzero(stack.any(axis=(1, 2)))
        if used.size < len(nodes):
            nodes, stack = nodes[used], stack[used]
        skew = stack - stack.transpose(0, 2, 1)
        if skew.any():
            by = np.abs(skew).max(axis=(1, 2))
            wrong = np.flatnonzero(by > _PSD_TOLERANCE * np.abs(stack).max(axis=(1, 2)))
            if wrong.size:
                raise ModelError(
                    f"{name} of {tree.label(packed.node(int(nodes[wrong[0]])))} is not symmetric (entries differ by "
                    f"{by[wrong[0]]:.3g}); a covariance is"
                )
            stack = 0.5 * (stack + stack.transpose(0, 2, 1))
            flat[blocks.places(nodes, n * n)] = stack.reshape(nodes.size, n * n)
        wrong = np.flatnonzero(_indefinite(stack))
        if wrong.size:
            k, lowest = packed.node(int(nodes[wrong[0]])), np.linalg.eigvalsh(stack[wrong[0]])[0]
            raise _not_semidefinite(tree, name, k, lowest)


def _clearly_positive(flat: FloatArray, sizes: IntArray) -> bool:
    """Whether all blocks are exactly symmetric and positive definite beyond doubt: one compiled look, no verdict."""
    from kfdyn.estimation.recursions.covariances import clearly_positive

    most = int(sizes.max())
    return bool(clearly_positive(flat, sizes, _CLEARLY_POSITIVE, np.empty(most * most)))


def _not_semidefinite(tree: Tree, name: str, k: int, lowest: float) -> ModelError:
    return ModelError(
        f"{name} of {tree.label(k)} is not positive semi-definite (lowest eigenvalue {lowest:.3g}); "
        "a covariance must be: correct its entries"
    )


def _indefinite(stack: FloatArray) -> NDArray[np.bool_]:
    """Which of the symmetric matrices (count, n, n) have an eigenvalue below zero by more than rounding.

    Elimination on all of them at once finds the positive definite ones; the eigenvalues of the correlations decide
    about the others only, for they cost several times as much.
    """
    n = stack.shape[1]
    left = stack.copy()
    doubtful = np.zeros(len(stack), dtype=bool)
    floor = _CLEARLY_POSITIVE * np.diagonal(stack, axis1=1, axis2=2)
    with np.errstate(over="ignore", invalid="ignore"):  # of what is doubtful already
        for i in range(n):
            pivot = left[:, i, i]
            bad = ~(pivot > floor[:, i])
            doubtful |= bad
            factor = left[:, i + 1 :, i] / np.where(bad, 1.0, pivot)[:, None]
            left[:, i + 1 :, i + 1 :] -= factor[:, :, None] * left[:, None, i, i + 1 :]
    wrong = np.zeros(len(stack), dtype=bool)
    asked = np.flatnonzero(doubtful)
    if asked.size:
        some = stack[asked]
        variance = np.diagonal(some, axis1=1, axis2=2)
        scale = np.sqrt(np.where(variance > 0, variance, 1.0))
        correlation = some / (scale[:, :, None] * scale[:, None, :])
        wrong[asked] = np.linalg.eigvalsh(correlation)[:, 0] < -_PSD_TOLERANCE * n
    return wrong


def expect_generator(rng: np.random.Generator) -> None:
    """Refuse anything but a numpy Generator, legacy states and seeds included."""
    if not isinstance(rng, np.random.Generator):
        raise ModelError(f"rng must be a numpy Generator (np.random.default_rng(seed)), not {type(rng).__name__}")


def draw_axes(n: int | None) -> tuple[int, ...]:
    """Leading axes of n draws: (n,), or none for a single draw."""
    if n is None:
        return ()
    if not isinstance(n, int | np.integer) or n < 0:
        raise ShapeError(f"n must be a number of draws, 0 or more (or None for a single draw), got {n!r}")
    return (int(n),)
