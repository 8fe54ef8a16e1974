"""Motion of one end of a loop against the other: the rows of its rates, and its gap."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kfdyn.arrays import Array
from kfdyn.multibody.kinematics import Pose
from kfdyn.multibody.loops.loop import Loop
from kfdyn.spatial import matrix_to_rotation_vector, skew


class Moving(NamedTuple):
    """Pose and velocity of one end of a loop: rotation (..., 3, 3), position (..., 3), V (..., 6).

    ``turning`` (..., 3) is the angular velocity of its axes where that is not V's: where something rolls.
    """

    rotation: Array
    position: Array
    velocity: Array
    turning: Array | None = None


class Rows(NamedTuple):
    """Rates of a loop's rows K_a V_a + K_b V_b, (..., r, 6) each; ``drift`` (..., r) is their change at α = 0."""

    of_a: Array
    of_b: Array
    drift: Array


def relative_rows(loop: Loop, a: Moving, b: Moving) -> Rows:
    """Rows of the motion of b against a, in the axes of a.

    ::

        angular  R_a*(ω_b − ω_a)                      drift −R_a*(ω_a × ω_b)
        linear   R_a*(v_b − v_a − ω_a × d)            drift R_a*(ω_a × (ω_a × d) − 2 ω_a × (v_b − v_a)),  d = p_b − p_a

    A loop that holds rates alone has d = 0 for good, and half of the Coriolis term.
    """
    lead = np.broadcast_shapes(a.position.shape[:-1], b.position.shape[:-1])
    Rt = np.broadcast_to(np.swapaxes(a.rotation, -1, -2), (*lead, 3, 3))
    d = b.position - a.position if loop.holds_positions else np.zeros((*lead, 3))
    of_a, of_b = np.zeros((*lead, 6, 6)), np.zeros((*lead, 6, 6))
    of_b[..., :3, :3] = of_b[..., 3:, 3:] = Rt
    of_a[..., :3, :3] = of_a[..., 3:, 3:] = -Rt
    of_a[..., 3:, :3] = Rt @ skew(d)  # −ω × d = d × ω
    times = 2.0 if loop.holds_positions else 1.0
    drift = np.zeros((*lead, 6))
    (wa, va), (wb, vb) = ((x.velocity[..., :3], x.velocity[..., 3:]) for x in (a, b))
    axes = wa if a.turning is None else a.turning
    if axes.any():  # where a stands still, so does what it drags along
        drift[..., :3] = _turn(Rt, -cross(axes, wb - wa))
        drift[..., 3:] = _turn(Rt, cross(axes, cross(axes, d)) - times * cross(axes, vb - va))
    if len(loop.angular) == 1 and loop.holds_positions:
        _universal(loop.angular[0], Rt @ b.rotation, _turn(Rt, wb - wa), of_a, of_b, drift)
    rows = list(loop.rows)
    return Rows(of_a[..., rows, :], of_b[..., rows, :], drift[..., rows])


def _universal(i: int, R: Array, w: Array, of_a: Array, of_b: Array, drift: Array) -> None:
    """One angular row alone: −R_jk, whose rate is (e_j × R e_k)·ω, in the place of ω_i."""
    e = np.eye(3)[(i + 1) % 3]
    other = R[..., (i + 2) % 3]
    W = cross(e, other)[..., None, :]
    turned = drift[..., :3].copy()
    of_a[..., i : i + 1, :3] = W @ of_a[..., :3, :3]
    of_b[..., i : i + 1, :3] = W @ of_b[..., :3, :3]
    drift[..., i] = (W[..., 0, :] * turned).sum(-1) + (cross(e, cross(w, other)) * w).sum(-1)


def gap(loop: Loop, a: Pose, b: Pose) -> Array:
    """Return the gap of a loop, (..., r): metres, and radians that turn a's axes into b's."""
    Rt = np.swapaxes(a.rotation, -1, -2)
    out = np.zeros((*np.broadcast_shapes(a.position.shape[:-1], b.position.shape[:-1]), 6))
    out[..., 3:] = _turn(Rt, b.position - a.position)
    R = Rt @ b.rotation
    if len(loop.angular) == 3:
        out[..., :3] = matrix_to_rotation_vector(np.broadcast_to(R, (*out.shape[:-1], 3, 3)))
    elif len(loop.angular) == 2:
        k = ({0, 1, 2} - set(loop.angular)).pop()
        axis = cross(np.eye(3)[k], R[..., k])
        sine = np.sqrt((axis**2).sum(-1, keepdims=True))
        angle = np.arctan2(sine, R[..., k, k][..., None])
        # opposite axes: any turn by π; one is taken, so that the gap does not look closed
        axis = np.where(sine > 1e-12, axis, np.eye(3)[loop.angular[0]] * (R[..., k, k][..., None] < 0))
        out[..., :3] = np.where(sine > 1e-12, angle / np.maximum(sine, 1e-300), angle) * axis
    elif loop.angular:
        i = loop.angular[0]
        out[..., i] = -R[..., (i + 1) % 3, (i + 2) % 3]
    return out[..., list(loop.rows)]


def both_ends(loop: Loop, a: Moving | None, b: Moving | None) -> tuple[Moving, Moving]:
    """The ends of a loop, of which one may be the world's: at its anchor, or without one at the frame."""
    if a is not None and b is not None:
        return a, b
    here = a if a is not None else b
    assert here is not None
    if loop.anchor is not None:
        world = Moving(*loop.anchor, np.zeros(6))
    else:  # axes of a: the frame's own, or the world's
        world = Moving(here.rotation if a is not None else np.eye(3), here.position, np.zeros(6))
    return (a, world) if a is not None else (world, here)


def cross(a: Array, b: Array) -> Array:
    """a × b along the last axis; numpy's own takes several times as long for a few vectors."""
    x, y, z = a[..., 0], a[..., 1], a[..., 2]
    u, v, w = b[..., 0], b[..., 1], b[..., 2]
    return np.stack([y * w - z * v, z * u - x * w, x * v - y * u], axis=-1)


def _turn(A: Array, x: Array) -> Array:
    return (A @ x[..., None])[..., 0]
