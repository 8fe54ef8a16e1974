"""Batches of small symmetric positive definite equations, and of semi-definite ones whose rank is to be found."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kfdyn.arrays import Array

# Matrices done at a time, so that they stay in the cache, and the least number for which columns of all of them beat
# LAPACK on one after the other.
_BLOCK, _FEW, _SMALL = 512, 8, 48


def solve_positive(M: Array, b: Array, tolerance: float = 1e-14, floor: float = 0.0) -> tuple[Array, NDArray[np.bool_]]:
    """Solve M x = b for M (B, n, n) positive definite and b (B, n, k); which (B,) have no pivot below the tolerance.

    A pivot is judged against its diagonal entry, so that units do not matter, and against ``floor`` where the caller
    has scaled the matrix. The rows of x that are not fine are to be thrown away.
    L D L* with all matrices side by side: numpy works through (n, n, B).
    """
    size, n = M.shape[:2]
    x, fine = np.empty_like(b), np.empty(size, dtype=bool)
    block = _BLOCK if size >= _FEW and n <= _SMALL else 1
    for at in range(0, size, block):
        part = slice(at, at + block)
        x[part], fine[part] = (_side_by_side if block > 1 else _one)(M[part], b[part], tolerance, floor)
    return x, fine


def _side_by_side(M: Array, b: Array, tolerance: float, floor: float) -> tuple[Array, NDArray[np.bool_]]:
    n = M.shape[-1]
    A, x = np.ascontiguousarray(M.transpose(1, 2, 0)), np.ascontiguousarray(b.transpose(1, 2, 0))
    least = np.maximum(tolerance * np.abs(A[range(n), range(n)]), floor)
    fine = np.ones(len(M), dtype=bool)
    for j in range(n):
        pivot = A[j, j]
        fine &= pivot > least[j]
        np.copyto(pivot, 1.0, where=~(pivot > least[j]))
        column = A[j + 1 :, j] / pivot  # of L
        A[j + 1 :, j + 1 :] -= column[:, None] * A[j, j + 1 :]
        x[j + 1 :] -= column[:, None] * x[j]
        A[j + 1 :, j] = column
    x /= A[range(n), range(n)][:, None]
    for j in range(n - 1, 0, -1):
        x[:j] -= A[j, :j, None] * x[j]
    return x.transpose(2, 0, 1), fine


def _one(M: Array, b: Array, tolerance: float, floor: float) -> tuple[Array, NDArray[np.bool_]]:
    from scipy.linalg import lapack

    n = M.shape[-1]
    if not n:
        return b, np.ones(len(M), dtype=bool)
    potrf, potrs = lapack.dpotrf, lapack.dpotrs
    L, info = potrf(M[0], lower=1)
    least = np.maximum(tolerance * np.abs(np.einsum("ii->i", M[0])), floor)
    if info or (np.einsum("ii->i", L) ** 2 <= least).any():
        return b, np.zeros(1, dtype=bool)
    return potrs(L, b[0], lower=1)[0][None], np.ones(1, dtype=bool)


def solve_semidefinite(
    M: Array, b: Array, scale: Array, tolerance: float, noise: Array | None = None
) -> tuple[Array, Array, NDArray[np.int64], float]:
    """Least-norm x with M x = b, M (B, n, n) semi-definite; what is left of b (B,), rank (B,), least eigenvalue kept.

    Rows and columns are divided by ``scale`` (B, n) first; eigenvalues below ``tolerance`` times the largest of the
    scaled matrix, or than ``tolerance`` itself where that is less than 1, are zero. What no x reaches, the part of b
    along the null space, is told as the largest entry of the scaled remainder. ``noise`` (B, n) is added to the
    diagonal: a measurement that is not exact.
    """
    if noise is not None:
        M = M + noise[..., None] * np.eye(M.shape[-1])
    values, vectors = np.linalg.eigh(M / (scale[:, :, None] * scale[:, None, :]))
    kept = values > tolerance * np.maximum(values[:, -1:] if values.shape[-1] else 1.0, 1.0)
    along = (np.swapaxes(vectors, -1, -2) @ (b / scale)[..., None])[..., 0]
    answer = np.divide(along, values, out=np.zeros_like(along), where=kept)
    x = (vectors @ answer[..., None])[..., 0] / scale
    left = np.abs(np.where(kept, 0.0, along)).max(axis=-1, initial=0.0)
    return x, left, kept.sum(axis=-1), float(values[kept].min(initial=1.0))
