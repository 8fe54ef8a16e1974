"""The points of bodies that bend: where they are, how they move, and sums over them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.arrays import Array
from kfdyn.multibody.kinematics import frame_pose, frame_velocity

if TYPE_CHECKING:
    from kfdyn.multibody.flexible.system import FlexibleSystem


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


def point_motion(system: FlexibleSystem, q: ArrayLike, v: ArrayLike, body: str) -> PointMasses:
    """Return the places of points of a flexible body, p + R s, and their rates.

    Parameters
    ----------
    system : FlexibleSystem
        The robot.
    q, v : (..., nq), (..., nv)
        State.
    body : str
        A flexible body.

    Returns
    -------
    PointMasses
        ``position`` and ``velocity``, (..., N, 3), and the strain energy ½η*Kη, (...).
    """
    here, rate = system.checked(q, system.nq, "q"), system.checked(v, system.nv, "v")
    flexible = system.flexible[body]
    tree, q_tree, v_tree = system.opened(here, v=rate)
    R, p = frame_pose(tree, q_tree, body)
    V = frame_velocity(tree, q_tree, v_tree, body)
    eta, deta = system.modal(here, body, False), system.modal(rate, body, True)
    s, shapes = flexible.points + np.einsum("iaj,...j->...ia", flexible.shapes, eta), flexible.shapes
    if flexible.bends is not None:
        quadratic = np.einsum("iajl,...l->...iaj", flexible.bends, eta)
        s, shapes = s + 0.5 * np.einsum("...iaj,...j->...ia", quadratic, eta), shapes + quadratic
    ds = np.einsum("...iaj,...j->...ia", shapes, deta)
    turned, moved = (np.einsum("...ab,...ib->...ia", R, x) for x in (s, ds))
    velocity = V[..., None, 3:] + np.cross(V[..., None, :3], turned) + moved
    strain = 0.5 * np.einsum("...i,ij,...j->...", eta, flexible.stiffness, eta)
    return PointMasses(flexible.mass, p[..., None, :] + turned, velocity, strain)
