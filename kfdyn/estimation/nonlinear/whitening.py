"""Residuals in units of their standard deviations; what has none, because it is exact, is kept apart."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kfdyn.estimation.blocks import FloatArray

_EXACT = 1e-13  # of the largest variance: below it a direction is exact


class Whitener:
    """C^{-½} of covariances that may be singular, and the projector on their null space.

    Parameters
    ----------
    C : ndarray, shape (d, d) or (..., d, d)
        Covariances, broadcast against the residuals.
    seen : ndarray of bool, shape (..., d), optional
        Components that count; the others are left out as if C had no such rows.

    Notes
    -----
    The symmetric root keeps blocks apart that share nothing, so that groups of readings have residuals of their own.
    """

    def __init__(self, C: FloatArray, seen: NDArray[np.bool_] | None = None) -> None:
        d = C.shape[-1]
        if seen is not None and seen.all():
            seen = None
        self.seen = seen
        self._matrices: list[tuple[NDArray[np.intp] | None, FloatArray, FloatArray]] | None = None
        variance = np.diagonal(C, axis1=-2, axis2=-1)
        if not (C * (1.0 - np.eye(d))).any():
            regular = variance > 0.0
            self.scale = np.where(regular, 1.0 / np.sqrt(np.where(regular, variance, 1.0)), 0.0)
            self.exact = np.where(regular, 0.0, 1.0)
            return
        if seen is None:
            self._matrices = [(None, *_roots(C))]
        elif C.ndim == 2:
            flat = seen.reshape(-1, d)
            patterns, which = np.unique(flat, axis=0, return_inverse=True)
            which = which.ravel()
            self._matrices = [
                (np.flatnonzero(which == i), *_roots(C * np.outer(one, one))) for i, one in enumerate(patterns)
            ]
        else:
            self._matrices = [(None, *_roots(C * (seen[..., :, None] & seen[..., None, :])))]

    def __call__(self, T: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Standardised residuals, and those that ought to be 0, both of the shape of T (..., d)."""
        if self.seen is not None:
            T = np.where(self.seen, T, 0.0)
        if self._matrices is None:
            return T * self.scale, T * self.exact
        rows = T.reshape(-1, T.shape[-1])
        z, e = np.zeros_like(rows), np.zeros_like(rows)
        for index, W, E in self._matrices:
            if index is None:
                return (W @ T[..., None])[..., 0], (E @ T[..., None])[..., 0]
            z[index], e[index] = rows[index] @ W, rows[index] @ E
        return z.reshape(T.shape), e.reshape(T.shape)


def _roots(C: FloatArray) -> tuple[FloatArray, FloatArray]:
    values, U = np.linalg.eigh(C)
    regular = values > _EXACT * np.abs(values).max(axis=-1, keepdims=True, initial=0.0)
    scale = np.where(regular, 1.0 / np.sqrt(np.where(regular, values, 1.0)), 0.0)
    U_t = np.swapaxes(U, -1, -2)
    return (U * scale[..., None, :]) @ U_t, (U * np.where(regular, 0.0, 1.0)[..., None, :]) @ U_t
