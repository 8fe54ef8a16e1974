"""Blocks given by a user, packed into flat buffers, with errors that name the node."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfdyn.errors import ShapeError
from kfdyn.estimation.model.blocks import FloatArray, IntArray, alike, even, offsets_of, products, real_array
from kfdyn.estimation.model.tree import Tree

BlockInput = ArrayLike | Sequence[Any]

_LONGEST_KEPT = 4096  # nodes: sizes of longer models are made anew each time
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
        return self.row_counts(), self.cols if self.which is None else _sizes(self.cols, self.which)

    def row_counts(self) -> IntArray:
        """Rows of every node's block."""
        return self.rows if self.which is None else _sizes(self.rows, self.which)

    def node(self, i: int) -> int:
        """The first node that has the stored block i."""
        return i if self.which is None else int(np.argmax(self.which == i))

    def spread(self) -> FloatArray:
        """The buffer with one block for each node, one after the other."""
        if self.which is None:
            return self.flat
        return _take(self.flat.reshape(len(self.rows), -1), self.which).ravel()

    def starts(self) -> IntArray:
        """Start of each node's block in ``flat``; (N + 1,)."""
        sizes = products(self.rows, self.cols)
        if self.which is None:
            return offsets_of(sizes)
        out = np.empty(self.which.size + 1, np.int64)
        starts = offsets_of(sizes)
        out[:-1], out[-1] = _take(starts, self.which), starts[-1]
        return out


def _sizes(sizes: IntArray, which: NDArray[Any]) -> IntArray:
    same = alike(sizes)
    taken: IntArray = _take(sizes, which) if same is None else even(which.size, same)
    return taken


def _take(stack: Any, which: NDArray[Any]) -> Any:
    """``stack[which]``, where the block that the last but one node has is likely to be the one that most nodes have."""
    if which.size < 2:
        return stack[which]
    if len(stack) == 1 and which.size < _TILE:
        return np.repeat(stack, which.size, axis=0)
    out = np.empty((which.size, *stack.shape[1:]), stack.dtype)
    whole = which.size // _TILE
    out[:_TILE] = out[whole * _TILE :] = stack[which[-2]]
    if whole > 1:  # long rows are copied at the speed of memory, blocks of four numbers are not
        tiles = out[: whole * _TILE].reshape(whole, -1)
        tiles[1:] = tiles[:1]
    others = np.flatnonzero(which != which[-2])
    out[others] = stack[which[others]]
    return out


def pack(tree: Tree, name: str, blocks: BlockInput | Shared | Packed, skip_roots: IntArray | None = None) -> Packed:
    """Pack a sequence of blocks or a stacked array (N, rows, columns) into one buffer, unless it is packed already.

    With ``skip_roots``, the state sizes, a root has no block: whatever is given there is ignored, and its block has no
    rows and a column for each state.
    """
    if isinstance(blocks, Packed):
        return blocks
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
        rows, cols = even(count, blocks.blocks.shape[1]), even(count, blocks.blocks.shape[2])
        return Packed(real_array(blocks.blocks, name).flatten(), rows, cols, blocks.which)
    if isinstance(blocks, np.ndarray) and blocks.dtype != object:
        rows, cols = even(N, blocks.shape[1]), even(N, blocks.shape[2])
        if skip_roots is not None:
            roots = np.flatnonzero(tree.parent < 0)
            rows = parent_blocks(tree, rows)[0]
            cols = skip_roots if skip_roots is cols else np.where(tree.parent < 0, skip_roots, cols)
            if roots.size == 1 and roots[0] in (0, N - 1):  # a chain: no copy
                blocks = blocks[1:] if roots[0] == 0 else blocks[:-1]
            else:
                blocks = blocks[tree.parent >= 0]
        return Packed(real_array(blocks, name).flatten(), rows, cols)
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


def parent_blocks(tree: Tree, n: IntArray) -> tuple[IntArray, IntArray]:
    """State sizes of the parents, 0 at a root, and where blocks φ(p(k), k) of these rows start."""
    same = alike(n)
    if same is None:
        return _parent_blocks(tree, n)
    return _kept_parent_blocks(tree, same) if len(tree) <= _LONGEST_KEPT else _even_parent_blocks(tree, same)


def _parent_blocks(tree: Tree, n: IntArray) -> tuple[IntArray, IntArray]:
    above = n[tree.parent]
    above[tree.parent < 0] = 0
    return above, offsets_of(above * n)


def _even_parent_blocks(tree: Tree, size: int) -> tuple[IntArray, IntArray]:
    above = np.where(tree.parent < 0, 0, size)
    starts = offsets_of(above * size)
    above.flags.writeable = starts.flags.writeable = False
    return above, starts


_kept_parent_blocks = lru_cache(maxsize=64)(_even_parent_blocks)  # models of one form are built again and again


def _all_are_matrices(listed: list[Any]) -> bool:
    """Tell whether all are plain matrices of float64, as nearly always; asked without a loop in Python."""
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
    return Packed(real_array(given.blocks, name).flatten(), rows, cols, which)


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
