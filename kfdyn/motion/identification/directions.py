"""Directions of free numbers that logs do not tell, found and said in words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kfdyn.arrays import Array

_BLIND = 1e-14  # square of what a robot's equations change by, scaled to 1: below it a direction is not seen


def visible(signatures: Array, robot: NDArray[np.bool_]) -> tuple[Array, Array]:
    """Bases of the directions of free numbers that change the robot's equations of motion, and of those that do not.

    Parameters
    ----------
    signatures : (p, ·)
        What each number changes of them.
    robot : (p,) of bool
        Numbers of the robot; the others are taken to be seen.
    """
    p = len(signatures)
    own = np.flatnonzero(robot)
    gram = signatures[own] @ signatures[own].T
    scale = np.sqrt(np.diagonal(gram))
    scale = np.where(scale > np.sqrt(_BLIND) * scale.max(initial=0.0), scale, np.inf)
    values, vectors = np.linalg.eigh(gram / np.outer(scale, scale))
    seen = values > _BLIND * max(own.size, 1)
    if seen.all():
        return np.eye(p), np.zeros((p, 0))
    back = np.where(np.isfinite(scale), scale, 1.0)[:, None]
    blind = np.zeros((p, int((~seen).sum())))
    blind[own] = np.linalg.qr(vectors[:, ~seen] / back)[0]
    return beside(blind), blind


def beside(blind: Array) -> Array:
    """Basis of what is orthogonal to given directions."""
    p = len(blind)
    whole = np.linalg.qr(np.concatenate([blind, np.eye(p)], axis=1))[0]
    return np.asarray(whole[:, blind.shape[1] : p])


def scaled(H: Array) -> tuple[Array, Array, Array]:
    """Eigenvalues and vectors of an information scaled to unit diagonal, and the scales."""
    scale = np.sqrt(np.maximum(np.abs(np.diagonal(H)), 1e-12 * np.abs(np.diagonal(H)).max(initial=0.0)))
    scale = np.where(scale > 0.0, scale, 1.0)
    values, vectors = np.linalg.eigh(H / np.outer(scale, scale))
    return values, vectors, scale


def sparse(columns: Array) -> Array:
    """Reduce a basis to columns with few entries, by elimination with full pivoting."""
    A = columns.copy()
    for j in range(A.shape[1]):
        i, k = np.unravel_index(np.abs(A[:, j:]).argmax(), A[:, j:].shape)
        A[:, [j, j + int(k)]] = A[:, [j + int(k), j]]
        A[:, j] /= A[i, j]
        others = np.arange(A.shape[1]) != j
        A[:, others] -= np.outer(A[:, j], A[i, others])
    return A


def words(column: Array, names: Sequence[str]) -> str:
    """A direction of natural numbers as a sum of names."""
    column = column / np.abs(column).max(initial=1e-300)
    return " ".join(f"{x:+.3g} {name}" for x, name in zip(column, names) if abs(x) > 1e-4)
