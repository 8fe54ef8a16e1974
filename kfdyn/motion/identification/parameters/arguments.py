"""Bounds and priors as they are given, checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from kfdyn.arrays import Array
from kfdyn.errors import ModelError, ShapeError


def mapping(given: Any, what: str) -> Mapping[str, Any]:
    """Bounds or priors by name; none if None."""
    if given is not None and not isinstance(given, Mapping):
        raise ShapeError(f"{what} must be a mapping from names to pairs, got {type(given).__name__}")
    return given or {}


def pair_of_bounds(name: str, pair: Any, size: int) -> tuple[Array, Array]:
    """Lower and upper bounds of some numbers; low below high, or equal."""
    try:
        low, high = (np.broadcast_to(np.asarray(x, np.float64), (size,)) for x in pair)
    except (TypeError, ValueError):
        raise ShapeError(f"bounds of {name!r} must be a pair (low, high)") from None
    if not (low <= high).all():
        raise ModelError(f"bounds of {name!r} leave nothing between them: {pair!r}")
    return low, high


class Prior:
    """A normal prior of natural numbers: its mean and information.

    Parameters
    ----------
    key : str
        What it is of.
    given : (mean, cov)
        The covariance a standard deviation, one for each number, or a matrix.
    size : int
        Of numbers.
    """

    def __init__(self, key: str, given: Any, size: int) -> None:
        try:
            mean, spread = (np.asarray(part, np.float64) for part in given)
        except (TypeError, ValueError):
            raise ShapeError(f"the prior of {key!r} must be a pair (mean, standard deviations or covariance)") from None
        if mean.shape not in ((), (size,)) or spread.shape not in ((), (size,), (size, size)):
            raise ShapeError(f"the prior of {key!r} is of {size} numbers; got shapes {mean.shape} and {spread.shape}")
        matrix = spread.ndim == 2
        cov = spread if matrix else np.diag(np.broadcast_to(spread, (size,)) ** 2)
        if not (np.isfinite(mean).all() and np.isfinite(cov).all() and (matrix or (spread > 0.0).all())):
            raise ModelError(f"the prior of {key!r} must have finite means and positive deviations")
        if (cov != cov.T).any() or np.linalg.eigvalsh(cov)[0] <= 0.0:
            raise ModelError(f"the prior of {key!r} must have a symmetric and positive definite covariance")
        self.mean, self.cov = np.broadcast_to(mean, (size,)), cov
        self.information = np.linalg.inv(cov)
        self.constant = -0.5 * (size * np.log(2 * np.pi) + np.linalg.slogdet(cov)[1])
