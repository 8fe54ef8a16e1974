"""Ragged blocks packed in one flat buffer, indexed by node through views."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfdyn.errors import ShapeError
from kfdyn.estimation.recursions.linalg.ragged import Ragged

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
_DOUBLE = np.dtype(np.float64)
_LONGEST_KEPT = 4096  # nodes: equal sizes of longer models are made anew each time
_MOST_KEPT = 64


class Blocks(Sequence[FloatArray]):
    """A sequence of matrices (or vectors), one for each node, stored in one buffer.

    ``blocks[k]`` is a view of shape (..., r_k, c_k), or (..., r_k) for vectors; leading axes are batch
    axes. No array per node exists until it is asked for.

    Parameters
    ----------
    flat : ndarray, shape (..., Σ r_k c_k)
        The buffer, block after block, each row by row.
    rows : ndarray of int, shape (N,)
        Number of rows r_k.
    cols : ndarray of int, shape (N,), optional
        Number of columns c_k; None for vectors.
    offsets : ndarray of int, shape (N + 1,), optional
        Where the blocks start, if known already. Nodes may share a block: their offsets are then the same.

    Examples
    --------
    >>> import numpy as np
    >>> blocks = Blocks(np.arange(5.0), np.array([1, 2]), np.array([1, 2]))
    >>> blocks[1]
    array([[1., 2.],
           [3., 4.]])
    """

    __slots__ = ("cols", "flat", "offsets", "rows")

    def __init__(
        self, flat: FloatArray, rows: IntArray, cols: IntArray | None = None, offsets: IntArray | None = None
    ) -> None:
        self.flat = flat
        self.rows = rows
        self.cols = cols
        self.offsets = offsets_of(rows if cols is None else products(rows, cols)) if offsets is None else offsets

    def __len__(self) -> int:
        return self.rows.size

    def __getitem__(self, k: Any) -> Any:
        """Block k as a view (an integer), or a list of views (a slice)."""
        if isinstance(k, slice):
            return [self[j] for j in range(*k.indices(len(self)))]
        k = self.node(k)
        shape = (self.rows[k],) if self.cols is None else (self.rows[k], self.cols[k])
        start = self.offsets[k]
        view = self.flat[..., start : start + math.prod(shape)]
        return view.reshape(self.flat.shape[:-1] + shape)

    def __iter__(self) -> Iterator[FloatArray]:
        return (self[k] for k in range(len(self)))

    def __repr__(self) -> str:
        sizes = sorted(
            {(int(r),) for r in self.rows} if self.cols is None else set(zip(self.rows.tolist(), self.cols.tolist()))
        )
        shown = ", ".join("x".join(map(str, s)) for s in sizes[:4]) + (", ..." if len(sizes) > 4 else "")
        batch = f", batch {self.flat.shape[:-1]}" if self.flat.ndim > 1 else ""
        return f"Blocks({len(self)} of size {shown}{batch})"

    def node(self, k: int) -> int:
        """Node number that the index k means; negative ones count from the end, as in any sequence."""
        if not isinstance(k, int | np.integer):
            raise ShapeError(
                f"blocks are counted by node, x[k] or x[first:last], but the index is {k!r}; number i of every node is "
                "x.stacked()[..., i], where all have one size"
            )
        if not -len(self) <= k < len(self):
            raise IndexError(f"node {k} is out of range for {len(self)} nodes")
        return int(k) % len(self)

    def like(self, flat: FloatArray) -> Blocks:
        """Other numbers in the same layout."""
        return Blocks(flat, self.rows, self.cols, self.offsets)

    @property
    def shares(self) -> bool:
        """True if nodes share blocks, so that the buffer holds fewer numbers than the blocks count."""
        sizes = self.rows if self.cols is None else products(self.rows, self.cols)
        same = alike(sizes)
        return self.flat.shape[-1] != (int(sizes.sum()) if same is None else same * sizes.size)

    @property
    def ragged(self) -> Ragged:
        """Unbatched matrix blocks as the compiled sweeps take them."""
        return Ragged(self.flat, self.offsets, self.rows, self.cols)

    def packed(self) -> Blocks:
        """The same blocks one after the other, each stored for itself."""
        if not self.shares:
            return self
        sizes = self.rows if self.cols is None else self.rows * self.cols
        start = offsets_of(sizes)
        nodes = np.repeat(np.arange(len(self)), sizes)
        return Blocks(
            self.flat[..., self.offsets[nodes] + np.arange(nodes.size) - start[nodes]], self.rows, self.cols, start
        )

    def diagonals(self) -> FloatArray:
        """Diagonals of all (square, unbatched) blocks, one after the other."""
        size = alike(self.rows)
        if size and not self.shares:
            return self.flat.reshape(-1, size * size)[:, :: size + 1].flatten()
        nodes = np.repeat(np.arange(len(self)), self.rows)
        within = np.arange(nodes.size) - offsets_of(self.rows)[nodes]
        return self.flat[self.offsets[nodes] + within * (self.rows[nodes] + 1)]

    @property
    def is_uniform(self) -> bool:
        """True if all blocks have one size."""
        if self.rows.size == 0:
            return True
        return alike(self.rows) is not None and (self.cols is None or alike(self.cols) is not None)

    def stacked(self) -> FloatArray:
        """All blocks as one array (..., N, r, c), a view unless nodes share blocks; only where all have one size."""
        if not self.is_uniform:
            raise ShapeError("the blocks differ in size; index them one by one, or use grouped()")
        size: tuple[int, ...] = (int(self.rows[0]) if len(self) else 0,)
        if self.cols is not None:
            size += (int(self.cols[0]) if len(self) else 0,)
        flat = self.packed().flat
        return flat.reshape(*flat.shape[:-1], len(self), *size)

    def grouped(self) -> Iterator[tuple[IntArray, FloatArray]]:
        """Yield (nodes, stacked copies of their blocks) for each distinct block size of unbatched blocks.

        Lets vectorised linear algebra run over ragged blocks with a loop over sizes, not over nodes.
        """
        if self.is_uniform:  # no sorting of a million equal sizes
            if len(self):
                yield np.arange(len(self)), self.stacked().copy()
            return
        cols = np.ones_like(self.rows) if self.cols is None else self.cols
        widest = int(cols.max()) + 1
        shapes, group = np.unique(self.rows * widest + cols, return_inverse=True)
        for i, shape in enumerate(shapes.tolist()):
            nodes, (r, c) = np.flatnonzero(group == i), divmod(shape, widest)
            size = (r,) if self.cols is None else (r, c)
            yield nodes, self.flat[self.places(nodes, r * c)].reshape(nodes.size, *size)

    def places(self, nodes: IntArray, size: int) -> IntArray:
        """Return the places of some nodes' blocks, all of one size, in the buffer: (count, size)."""
        return self.offsets[nodes][:, None] + np.arange(size)

    def put(self, nodes: IntArray, values: FloatArray) -> None:
        """Write the blocks (count, ...) of some nodes in their order, all of one size, none shared."""
        flat = values.reshape(nodes.size, -1)
        if flat.size == self.flat.size:  # all of them
            self.flat[...] = flat.ravel()
        else:
            self.flat[self.places(nodes, flat.shape[1])] = flat

    def width(self, k: int) -> int:
        """Number of columns of block k; 1 for a vector."""
        return 1 if self.cols is None else int(self.cols[k])

    def zero(self, i: int, j: int) -> FloatArray:
        """A zero block with the rows of block i and the columns of block j."""
        return np.zeros((int(self.rows[i]), self.width(j)))

    def dense(self) -> FloatArray:
        """The block-diagonal matrix (Σ r_k, Σ c_k) of unbatched matrix blocks."""
        if self.cols is None:
            return self.flat.copy()
        row, col = offsets_of(self.rows), offsets_of(self.cols)
        out = np.zeros((row[-1], col[-1]))
        for k, block in enumerate(self):
            out[row[k] : row[k + 1], col[k] : col[k + 1]] = block
        return out


class Even(NamedTuple):
    """Sizes of blocks of one size, and where they start, both read-only."""

    sizes: IntArray
    starts: IntArray


_EVEN: dict[tuple[int, int], Even] = {}  # by count and size: models of one form are built again and again


def even(count: int, size: int) -> IntArray:
    """One size for all of ``count`` blocks, read-only: the same array at every call, unless it is long."""
    kept = _EVEN.get((count, size))
    if kept is None:
        kept = Even(np.full(count, size, np.int64), np.arange(count + 1) * size)
        for array in kept:
            array.flags.writeable = False
        if count <= _LONGEST_KEPT:
            if len(_EVEN) >= _MOST_KEPT:
                _EVEN.clear()
            _EVEN[count, size] = kept
    return kept.sizes


def _kept(sizes: IntArray) -> Even | None:
    """The entry of an array that :func:`even` made and keeps, None of others."""
    kept = _EVEN.get((sizes.size, sizes.item(0))) if sizes.size else None
    return kept if kept is not None and kept.sizes is sizes else None


def alike(sizes: IntArray) -> int | None:
    """The size that all blocks share; None where they differ, or where there is none."""
    if not sizes.size:
        return None
    first: int = sizes.item(0)
    kept = _EVEN.get((sizes.size, first))
    return first if (kept is not None and kept.sizes is sizes) or (sizes == first).all() else None


def products(rows: IntArray, cols: IntArray) -> IntArray:
    """Return how many numbers each block holds."""
    if _kept(rows) is not None and (cols is rows or _kept(cols) is not None):
        return even(rows.size, rows.item(0) * cols.item(0))
    return rows * cols


def offsets_of(sizes: IntArray) -> IntArray:
    """Return where each block starts: (0, s_0, s_0 + s_1, …), shape (N + 1,)."""
    kept = _kept(sizes)
    if kept is not None:
        return kept.starts
    out = np.zeros(sizes.size + 1, dtype=np.int64)
    np.cumsum(sizes, out=out[1:])
    return out


def real_array(value: ArrayLike, name: str) -> FloatArray:
    """Value as float64, or an error that names it.

    A complex array is refused, for it would lose its imaginary part; what a masked array hides becomes NaN.
    """
    if type(value) is np.ndarray and value.dtype == _DOUBLE:  # as nearly always
        return value
    try:
        hidden = np.ma.getmask(value) if isinstance(value, np.ma.MaskedArray) else False
        array = np.asarray(value)
        if np.any(hidden):
            array = np.where(hidden, np.nan, array)
        if array.dtype.kind == "c":
            raise TypeError("it is complex")
        return array.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        raise ShapeError(f"{name} must be an array of real numbers: {error}") from error
