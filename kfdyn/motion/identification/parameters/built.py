"""Parameters of any function that builds models of motions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from kfdyn.arrays import Array
from kfdyn.errors import ModelError, ShapeError
from kfdyn.motion.identification.parameters.arguments import mapping, pair_of_bounds
from kfdyn.motion.model import MotionModel


class Built:
    """Numbers theta of a function ``build(theta)``, with the interface of :class:`Parameters`.

    Their effect on the linearised model is found by differences of it.

    Parameters
    ----------
    build : callable
        theta (p,) -> MotionModel, or a list with one for each log.
    theta : mapping from a name to a first value, or sequence of first values
        Which.
    bounds : mapping from a name to (low, high)
        Of some.
    """

    groups: tuple[Any, ...] = ()
    places: tuple[Any, ...] = ()

    def __init__(self, build: Callable[[Array], Any], theta: Any, bounds: Mapping[str, Any] | None = None) -> None:
        named = isinstance(theta, Mapping)
        self.build = build
        first = np.atleast_1d(np.asarray(list(theta.values()) if named else theta, np.float64))
        if first.ndim != 1 or not first.size or not np.isfinite(first).all():
            raise ShapeError(f"theta must be a row of finite numbers, got shape {first.shape}")
        self.names = tuple(theta) if named else tuple(f"theta[{i}]" for i in range(first.size))
        self.unit = np.where(first != 0.0, np.abs(first), 1.0)
        self.start = first / self.unit
        self.lower, self.upper = np.full(first.size, -np.inf), np.full(first.size, np.inf)
        for name, pair in mapping(bounds, "bounds").items():
            if name not in self.names:
                raise ModelError(f"bounds name {name!r}, which is not fitted; there are {', '.join(self.names)}")
            i = self.names.index(name)
            low, high = pair_of_bounds(name, pair, 1)
            self.lower[i], self.upper[i] = low[0] / self.unit[i], high[0] / self.unit[i]
        self.start = np.clip(self.start, self.lower, self.upper)
        self.longest = np.ones(first.size)
        self.closed = self.noise = np.zeros(first.size, bool)
        self.bases = self.models(self.start)

    def models(self, z: Array) -> list[MotionModel]:
        """Those that are built."""
        found = self.build(z * self.unit)
        models = list(found) if isinstance(found, Sequence) else [found]
        if not all(isinstance(model, MotionModel) for model in models):
            raise ModelError("build(theta) must return a kf.MotionModel, or a list with one for each log")
        return models

    def natural(self, z: Array) -> Array:
        """theta."""
        return z * self.unit

    def free_numbers(self, name: str, values: Array) -> Array:
        """z of values of one number."""
        return values / self.unit[self.names.index(name)]

    def slope(self, z: Array) -> Array:
        """Its derivative in z."""
        return np.diag(self.unit)

    def straight(self, z: Array) -> Array:
        """z."""
        return z

    def bent(self, straight: Array) -> Array:
        """z."""
        return straight

    def straight_slope(self, z: Array) -> Array:
        """Identity."""
        return np.eye(z.size)

    def thin(self, z: Array) -> list[str]:
        """None: what theta does to inertias is not known."""
        return []

    def prior(self, z: Array) -> tuple[float, Array, Array]:
        """None."""
        return 0.0, np.zeros(z.size), np.zeros((z.size, z.size))
