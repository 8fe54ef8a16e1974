"""Residuals in units of their standard deviations, and losses that grow more slowly than their squares."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kfdyn.errors import ModelError
from kfdyn.estimation.model.blocks import FloatArray

_EXACT = 1e-13  # of the largest variance: below it a direction is exact


class Huber:
    """Huber's loss of a standardised residual s: s²/2 up to c, then c s − c²/2.

    Parameters
    ----------
    c : float
        Where it becomes linear, in standard deviations; 1.345 costs 5 % of efficiency if all readings are normal.

    Examples
    --------
    >>> Huber(2.0).weight(np.array([1.0, 16.0]), 1)
    array([1. , 0.5])
    """

    def __init__(self, c: float = 1.345) -> None:
        self.c = _positive(c, "Huber's c")

    def weight(self, square: FloatArray, size: Any) -> FloatArray:
        """Factor of the information of a reading with s² = ``square``."""
        return self.c / np.maximum(np.sqrt(square), self.c)

    def loss(self, square: FloatArray, size: Any) -> FloatArray:
        """ρ(s)."""
        s = np.sqrt(square)
        return np.where(s <= self.c, 0.5 * square, self.c * s - 0.5 * self.c**2)


class StudentT:
    """Loss of readings with Student's t distribution, scale R: ½(ν + m) log(1 + s²/ν) for m outputs.

    Parameters
    ----------
    nu : float
        Degrees of freedom ν; small is heavy-tailed, infinite is normal.

    Examples
    --------
    >>> StudentT(3.0).weight(np.array([1.0, 97.0]), 1)
    array([1.  , 0.04])
    """

    def __init__(self, nu: float = 4.0) -> None:
        self.nu = _positive(nu, "Student's nu")

    def weight(self, square: FloatArray, size: Any) -> FloatArray:
        """Factor of the information of a reading of ``size`` outputs with s² = ``square``."""
        return (self.nu + size) / (self.nu + square)

    def loss(self, square: FloatArray, size: Any) -> FloatArray:
        """ρ(s)."""
        return 0.5 * (self.nu + size) * np.log1p(square / self.nu)


def _positive(value: Any, name: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = np.nan
    if not number > 0.0:
        raise ModelError(f"{name} must be positive, got {value!r}")
    return number


def robust_loss(robust: Any) -> Huber | StudentT | None:
    """The loss that ``robust=`` names."""
    if robust is None or isinstance(robust, Huber | StudentT):
        return robust
    if robust == "huber":
        return Huber()
    if robust == "student":
        return StudentT()
    raise ModelError(f"robust must be Huber(c), StudentT(nu), 'huber', 'student' or None, got {robust!r}")


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
        self.exact: FloatArray | None = None
        variance = np.diagonal(C, axis1=-2, axis2=-1)
        if not (C * (1.0 - np.eye(d))).any():
            regular = variance > 0.0
            self.scale = np.where(regular, 1.0 / np.sqrt(np.where(regular, variance, 1.0)), 0.0)
            self.exact = None if regular.all() else np.where(regular, 0.0, 1.0)
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

    def __call__(self, T: FloatArray) -> tuple[FloatArray, FloatArray | None]:
        """Standardised residuals and, None if there are none, those that ought to be 0; shaped as T (..., d)."""
        if self.seen is not None:
            T = np.where(self.seen, T, 0.0)
        if self._matrices is None:
            return T * self.scale, None if self.exact is None else T * self.exact
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
