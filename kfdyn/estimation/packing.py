"""Blocks given by a user, packed into flat buffers and checked, with errors that name the node."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfdyn.errors import ModelError, ShapeError
from kfdyn.estimation.blocks import Blocks, FloatArray, IntArray, offsets_of, real_array
from kfdyn.estimation.tree import Tree

BlockInput = ArrayLike | Sequence[Any]

_PSD_TOLERANCE = 1e-10  # of a variance: far above the rounding of a computed G Q G*, far below a modelling error


def pack(tree: Tree, name: str, blocks: BlockInput, skip_roots: bool = False) -> tuple[FloatArray, IntArray, IntArray]:
    """Flat buffer, rows and columns of a sequence of blocks or of a stacked array (N, rows, columns).

    With ``skip_roots`` a root has no block: whatever is given there is ignored and its rows are 0.
    """
    N = len(tree)
    inner = tree.parent >= 0
    if isinstance(blocks, np.ndarray) and blocks.dtype != object:
        if blocks.ndim != 3 or blocks.shape[0] != N:
            raise ShapeError(f"{name} as one array must have shape (N, rows, columns) with N = {N}, got {blocks.shape}")
        rows, cols = np.full(N, blocks.shape[1]), np.full(N, blocks.shape[2])
        if skip_roots:
            rows = np.where(inner, rows, 0)
            blocks = blocks[inner]
        return np.array(real_array(blocks, name)).ravel(), rows, cols
    if not isinstance(blocks, Iterable):
        raise ShapeError(f"{name} must be a sequence of {N} matrices or an array (N, rows, columns)")
    listed = list(blocks)
    if len(listed) != N:
        raise ShapeError(f"{name} has {len(listed)} blocks, but there are {N} nodes; give one block for each node")
    rows, cols = np.zeros(N, dtype=np.int64), np.zeros(N, dtype=np.int64)
    parts = []
    for k, block in enumerate(listed):
        if skip_roots and not inner[k]:
            continue
        try:
            array = real_array(block, name)
        except ShapeError as error:
            raise ShapeError(f"{name} of {tree.label(k)} is not a matrix of numbers: {error}") from error
        if array.ndim != 2:
            hint = " (None is for roots)" if block is None else ""
            raise ShapeError(f"{name} of {tree.label(k)} must be a matrix, got shape {array.shape}{hint}")
        rows[k], cols[k] = array.shape
        parts.append(array.ravel())
    return np.concatenate(parts) if parts else np.zeros(0), rows, cols


def expect_size(
    tree: Tree, name: str, rows: IntArray, cols: IntArray, want_rows: IntArray, want_cols: IntArray, rule: str
) -> None:
    """Refuse the first block whose shape is not the one wanted."""
    wrong = np.flatnonzero((rows != want_rows) | (cols != want_cols))
    if wrong.size:
        k = int(wrong[0])
        raise ShapeError(
            f"{name} of {tree.label(k)} has shape ({rows[k]}, {cols[k]}) but must {rule}: "
            f"shape ({want_rows[k]}, {want_cols[k]})"
        )


def expect_finite(tree: Tree, name: str, flat: FloatArray, sizes: IntArray) -> None:
    """Refuse the first block with an entry that is NaN or infinite."""
    finite = np.isfinite(flat)
    if not finite.all():
        at = int(np.argmin(finite))
        k = int(np.searchsorted(offsets_of(sizes), at, side="right")) - 1
        raise ModelError(f"{name} of {tree.label(k)} has an entry that is {flat[at]}; every entry must be finite")


def expect_covariance(tree: Tree, name: str, flat: FloatArray, sizes: IntArray) -> None:
    """Refuse the first block that is not symmetric positive semi-definite; symmetrise the rounding of the others.

    Each block is scaled to a correlation matrix first, so that the verdict does not depend on units.
    """
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
                    f"{name} of {tree.label(int(nodes[wrong[0]]))} is not symmetric (entries differ by "
                    f"{by[wrong[0]]:.3g}); a covariance is"
                )
            stack = 0.5 * (stack + stack.transpose(0, 2, 1))
            flat[blocks.places(nodes, n * n)] = stack.reshape(nodes.size, n * n)
        wrong = np.flatnonzero(_indefinite(stack))
        if wrong.size:
            k, lowest = int(nodes[wrong[0]]), np.linalg.eigvalsh(stack[wrong[0]])[0]
            raise ModelError(
                f"{name} of {tree.label(k)} is not positive semi-definite (lowest eigenvalue {lowest:.3g}); "
                "a covariance must be: correct its entries"
            )


def _indefinite(stack: FloatArray) -> NDArray[np.bool_]:
    """Which of the symmetric matrices (count, n, n) have an eigenvalue below zero by more than rounding."""
    try:
        np.linalg.cholesky(stack)  # the usual case, and several times cheaper than eigenvalues
    except np.linalg.LinAlgError:
        variance = np.diagonal(stack, axis1=1, axis2=2)
        scale = np.sqrt(np.where(variance > 0, variance, 1.0))
        correlation = stack / (scale[:, :, None] * scale[:, None, :])
        return np.linalg.eigvalsh(correlation)[:, 0] < -_PSD_TOLERANCE * stack.shape[1]
    return np.zeros(len(stack), dtype=bool)


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
