"""Masses in motion, as sums over them are: of bodies that bend, where no rigid body's inertia tells them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kfdyn.arrays import Array


class PointMasses(NamedTuple):
    """Points of one body in the world: ``mass`` (N,) or (N, N), ``position``, ``velocity`` (..., N, 3).

    ``strain`` (...) is the energy that bends them.
    """

    mass: Array
    position: Array
    velocity: Array
    strain: Array

    @property
    def kinetic(self) -> Array:
        """½ Σ v_i* m_ij v_j, (...)."""
        return 0.5 * np.sum(self.velocity * self._weighted(self.velocity), axis=(-2, -1))

    @property
    def moment(self) -> Array:
        """Σ m_i p_i, (..., 3)."""
        return self._weighted(self.position).sum(axis=-2)

    def momentum(self, about: Array) -> Array:
        """[angular; linear] about a point (..., 3), (..., 6)."""
        p = self._weighted(self.velocity)
        turning = np.cross(self.position - about[..., None, :], p).sum(axis=-2)
        return np.concatenate([turning, p.sum(axis=-2)], axis=-1)

    def _weighted(self, x: Array) -> Array:
        return self.mass[:, None] * x if self.mass.ndim == 1 else self.mass @ x
