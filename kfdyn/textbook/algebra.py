"""The little matrix algebra the sources take for granted, for floats and for any other kind of number."""

from __future__ import annotations

from typing import Any

import numpy as np

from kfdyn.errors import SingularError

Array = Any  # of floats, or of objects: symbols, numbers that count


def tilde(v: Array) -> Array:
    """The matrix v~ (3, 3) with v~ w = v × w."""
    x, y, z = v
    zero = x * 0
    return np.array([[zero, -z, y], [z, zero, -x], [-y, x, zero]])


def cross(v: Array, w: Array) -> Array:
    """v × w, written out so that it serves every kind of number."""
    return np.array([v[1] * w[2] - v[2] * w[1], v[2] * w[0] - v[0] * w[2], v[0] * w[1] - v[1] * w[0]])


def block(rows: list[list[Array]]) -> Array:
    """A matrix from its blocks."""
    return np.concatenate([np.concatenate(row, axis=1) for row in rows], axis=0)


def inverse(D: Array, what: str = "D") -> Array:
    """D⁻¹ (m, m) of a symmetric positive definite D; a singular one is named by ``what``."""
    if D.dtype != object:
        if len(D) and (not np.isfinite(D).all() or np.linalg.cond(D) > 1 / np.finfo(float).eps):
            raise SingularError(f"{what} is singular: nothing that is free to move there has inertia")
        return np.linalg.inv(D)
    m = len(D)
    left, right = D.copy(), np.array([[1 if i == j else 0 for j in range(m)] for i in range(m)], dtype=object)
    if m == 0:
        return left
    for i in range(m):  # Gauss and Jordan; a positive definite matrix needs no search for pivots
        if left[i, i] == 0:
            raise SingularError(f"{what} is singular: nothing that is free to move there has inertia")
        over = 1 / left[i, i]
        left[i], right[i] = left[i] * over, right[i] * over
        left[i, i] = 1
        for j in range(m):
            if j != i and left[j, i] != 0:
                by = left[j, i]
                left[j], right[j] = left[j] - by * left[i], right[j] - by * right[i]
                left[j, i] = 0
    return right


def zeros(shape: tuple[int, ...] | int, like: Array) -> Array:
    """Zeros of the kind of number that ``like`` holds."""
    return np.zeros(shape, dtype=object if np.asarray(like).dtype == object else np.asarray(like).dtype)
