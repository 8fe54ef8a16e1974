"""Matrix algebra for floats and for any other kind of number."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from kfdyn.errors import SingularError

Array = Any  # of floats, or of objects: symbols, numbers that count


def tilde(v: Array) -> Array:
    """Return the matrix v~ (3, 3) with v~ w = v × w."""
    x, y, z = v
    zero = x * 0
    return np.array([[zero, -z, y], [z, zero, -x], [-y, x, zero]])


def cross(v: Array, w: Array) -> Array:
    """Return v × w, written out so that it serves every kind of number."""
    return np.array([v[1] * w[2] - v[2] * w[1], v[2] * w[0] - v[0] * w[2], v[0] * w[1] - v[1] * w[0]])


def block(rows: list[list[Array]]) -> Array:
    """Assemble a matrix from its blocks."""
    return np.concatenate([np.concatenate(row, axis=1) for row in rows], axis=0)


def inverse(D: Array, what: str = "D") -> Array:
    """Return D⁻¹ (m, m) of a symmetric positive definite D; a singular one is named by ``what``."""
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
        over = _reciprocal(left[i, i])
        left[i], right[i] = left[i] * over, right[i] * over
        left[i, i] = 1
        for j in range(m):
            if j != i and left[j, i] != 0:
                by = left[j, i]
                left[j], right[j] = left[j] - by * left[i], right[j] - by * right[i]
                left[j, i] = 0
    return right


def solve(A: Array, b: Array, what: str = "a system of linear equations") -> Array:
    """Return x (n,) or (n, ...) of A x = b for a regular A (n, n); a singular one is named by ``what``."""
    A, b = np.asarray(A), np.asarray(b)
    if A.dtype != object and b.dtype != object:
        try:
            return np.linalg.solve(A, b)
        except np.linalg.LinAlgError:
            raise SingularError(f"{what} is singular") from None
    n, rest = len(A), b.shape[1:]
    left, right = A.astype(object), b.astype(object).reshape(n, -1)
    for i in range(n):  # Gauss and Jordan; any number that is not 0 is a pivot, for these are exact
        pivot = next((j for j in range(i, n) if left[j, i] != 0), None)
        if pivot is None:
            raise SingularError(f"{what} is singular")
        left[[i, pivot]], right[[i, pivot]] = left[[pivot, i]], right[[pivot, i]]
        over = _reciprocal(left[i, i])
        left[i], right[i] = left[i] * over, right[i] * over
        for j in range(n):
            if j != i and left[j, i] != 0:
                by = left[j, i]
                left[j], right[j] = left[j] - by * left[i], right[j] - by * right[i]
    return right.reshape((n, *rest))


def identity(n: int, like: Array) -> Array:
    """Return the identity (n, n) in the kind of number that ``like`` holds."""
    return np.eye(n, dtype=np.asarray(like).dtype)


def zeros(shape: tuple[int, ...] | int, like: Array) -> Array:
    """Return zeros of the kind of number that ``like`` holds."""
    return np.zeros(shape, dtype=np.asarray(like).dtype)


def _reciprocal(x: Any) -> Any:
    """Return 1/x; that of a whole number is rational."""
    return Fraction(1, int(x)) if isinstance(x, int | np.integer) else 1 / x
