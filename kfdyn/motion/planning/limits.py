"""Limits of torques, velocities and positions, as a plan keeps them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from kfdyn.arrays import Array
from kfdyn.errors import ModelError, ShapeError
from kfdyn.multibody import System


class Bounds(NamedTuple):
    """Lower and upper limits of torques, velocities and positions, (nv,) each; ±inf for none."""

    torque: tuple[Array, Array]
    velocity: tuple[Array, Array]
    position: tuple[Array, Array]

    @classmethod
    def of(cls, system: System, torque: Any, velocity: Any, position: Any) -> Bounds:
        """Limits as :func:`kfdyn.plan_motion` takes them."""
        nv = system.nv
        own = {
            "torque": lambda: (-np.asarray(system.effort), np.asarray(system.effort)),
            "velocity": lambda: (-np.asarray(system.speed), np.asarray(system.speed)),
            "position": lambda: (np.asarray(system.lower), np.asarray(system.upper)),
        }
        parts = []
        for name, given in (("torque", torque), ("velocity", velocity), ("position", position)):
            if given is None or given is False:
                parts.append((np.full(nv, -np.inf), np.full(nv, np.inf)))
                continue
            pair = own[name]() if given is True else given
            try:
                if not (isinstance(pair, tuple) and len(pair) == 2):  # a list is an array: of two hinges, or two rows
                    both = np.asarray(pair, np.float64)
                    pair = both if both.ndim == 2 else (-both, both)
                low, high = (np.broadcast_to(np.asarray(side, np.float64), (nv,)) for side in pair)
            except (TypeError, ValueError):
                raise ShapeError(
                    f"{name}_limits must be True, a number, ({nv},), or a pair (lower, upper) of such"
                ) from None
            if np.isnan(low).any() or np.isnan(high).any() or (low > high).any():
                raise ModelError(f"{name}_limits: a lower limit is above its upper one, or not a number")
            parts.append((low, high))
        if system.nq != nv and np.isfinite(np.concatenate(parts[2])).any():
            raise ModelError("position_limits are for angles and slides; a ball or free hinge has none")
        return cls(*parts)

    def controls(self, root: Array) -> tuple[Array, Array]:
        """Limits of the controls s, τ = L s, (p,) each; a torque_cov that is not diagonal has none."""
        if not self.on_torques:
            return np.full(root.shape[1], -np.inf), np.full(root.shape[1], np.inf)
        which = np.argmax(root, axis=0)
        scale = root.max(axis=0)
        return self.torque[0][which] / scale, self.torque[1][which] / scale

    @property
    def on_torques(self) -> bool:
        """True if a torque is limited."""
        return bool(np.isfinite(self.torque).any())

    @property
    def on_states(self) -> bool:
        """True if a velocity or a position is limited."""
        return bool(np.isfinite(self.velocity).any() or np.isfinite(self.position).any())

    def left(self, x: Array, nv: int) -> tuple[Array, Array]:
        """Return the distances of states (..., nx) from their lower and upper limits, (..., 2 nv) each."""
        v = x[..., x.shape[-1] - nv :]
        q = x[..., :nv] if x.shape[-1] == 2 * nv else np.zeros_like(v)
        at = np.concatenate([q, v], axis=-1)
        low = np.concatenate([self.position[0], self.velocity[0]])
        high = np.concatenate([self.position[1], self.velocity[1]])
        return at - low, high - at

    def expect_inside(self, x: Array, system: System) -> None:
        """An error that names the hinge if a start (rows, nx) is outside of its limits of position."""
        if system.nq != system.nv:
            return
        low, high = self.left(x, system.nv)
        bad = np.argwhere(np.minimum(low, high)[:, : system.nv] < 0.0)
        if bad.size:
            (row, i), (lower, upper) = bad[0], self.position
            raise ModelError(
                f"q0[{i}] = {x[row, i]:.6g} is outside of position_limits {lower[i]:.6g} to {upper[i]:.6g}; begin "
                "within, or widen them"
            )
