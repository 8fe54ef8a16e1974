"""Validate arrays: real, finite, and of the right trailing shape."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfdyn.arrays import Array
from kfdyn.errors import ModelError, ShapeError

ROTATION_TOLERANCE = 1e-8  # of R*R − 1: what is further off is a mistake, not rounding
SYMMETRY_TOLERANCE = 1e-9  # of the largest entry; sums and shifts stay near 1e-15


def trailing(x: ArrayLike, shape: tuple[int | None, ...], name: str, finite: bool = True) -> Array:
    """``x`` as finite float64 with this trailing shape (None: any length); leading axes are free."""
    try:
        array = np.asarray(x)
    except ValueError as error:  # ragged nested lists
        raise ShapeError(f"{name} is ragged; give an array of shape {_text(shape)}") from error
    if array.dtype.kind not in "fiub":
        raise ModelError(f"{name} must hold real numbers, it has dtype {array.dtype}; convert it to float")
    array = array.astype(np.float64, copy=False)
    axes = len(shape)
    fits = array.ndim >= axes and all(n is None or n == m for n, m in zip(shape, array.shape[array.ndim - axes :]))
    if not fits:
        raise ShapeError(f"{name} must have shape {_text(shape)}, it has shape {array.shape}")
    if finite and not np.isfinite(array).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        place = f" at index {where}" if where else ""
        raise ModelError(f"{name} is not finite{place}; replace the NaN or infinity")
    return array


def length(w: Array, name: str) -> Array:
    """|w| of (..., 3), or a ModelError where its square leaves double precision."""
    with np.errstate(over="ignore"):
        found = np.linalg.norm(w, axis=-1)
    beyond = np.isinf(found)
    if beyond.any():
        raise ModelError(f"{name}{index_of(beyond)} is longer than 1e154; is it in the right unit?")
    return np.asarray(found)


def symmetric(x: Array, name: str) -> Array:
    """``x`` (..., n, n) itself, or a ModelError if x and x* differ by more than rounding."""
    gap = np.abs(x - np.swapaxes(x, -1, -2)).max(axis=(-2, -1), initial=0.0)
    fault = gap > SYMMETRY_TOLERANCE * np.abs(x).max(axis=(-2, -1), initial=0.0)
    if fault.any():
        raise ModelError(f"{name}{index_of(fault)} is not symmetric; average it with its transpose if that is rounding")
    return x


def check_rotation(R: Array, name: str = "rotation") -> Array:
    """``R`` (..., 3, 3) itself, or a ModelError if it is no proper rotation: R*R = 1, det R = +1."""
    error = np.abs(np.swapaxes(R, -1, -2) @ R - np.eye(3)).max(axis=(-2, -1))
    if (error > ROTATION_TOLERANCE).any():
        where = index_of(error > ROTATION_TOLERANCE)
        raise ModelError(
            f"{name}{where} is not orthonormal: R*R differs from 1 by up to {error.max():.1e}; "
            "give a rotation matrix to full precision, or build it from a quaternion"
        )
    mirrored = np.linalg.det(R) < 0
    if mirrored.any():
        raise ModelError(
            f"{name}{index_of(mirrored)} is a reflection, det R = -1; negate an axis to make it right-handed"
        )
    return R


def index_of(fault: NDArray[np.bool_]) -> str:
    """First true entry as text, ``[2, 0]``; empty for a single case."""
    return f"[{', '.join(map(str, np.argwhere(fault)[0]))}]" if np.ndim(fault) else ""


def together(*arrays: tuple[Array, int, str]) -> tuple[int, ...]:
    """Broadcast shape of the leading axes of (array, number of trailing axes, name) triples."""
    leading = [a.shape[: a.ndim - axes] for a, axes, _ in arrays]
    try:
        return np.broadcast_shapes(*leading)
    except ValueError as error:
        text = ", ".join(f"{name} {shape}" for (_, _, name), shape in zip(arrays, leading))
        raise ShapeError(f"leading axes do not broadcast: {text}; give them equal lengths or 1") from error


def _text(shape: tuple[int | None, ...]) -> str:
    return "(" + ", ".join(["...", *("c" if n is None else str(n) for n in shape)]) + ")"
