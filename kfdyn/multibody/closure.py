"""Kinematics of loops: how far a loop is from closed, how its gap moves, and a Gauss–Newton way to close it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfdyn.errors import ModelError
from kfdyn.multibody.configuration import integrate
from kfdyn.multibody.kinematics import Pose, frame_bias_acceleration, frame_pose, frame_velocity, jacobian
from kfdyn.multibody.loop import Loop
from kfdyn.multibody.system import System
from kfdyn.spatial import matrix_to_rotation_vector

Array = NDArray[np.float64]

# Metres or radians, of a mechanism whose size is about 1: what rounding leaves of a closed loop.
CLOSED = 1e-12
MOST_STEPS = 100
# Singular values below this part of the largest are taken for zero: dependent rows, or a singular configuration.
RANK = 1e-9


class Moving(NamedTuple):
    """Pose and velocity of one end of a loop: rotation (..., 3, 3), position (..., 3), V (..., 6)."""

    rotation: Array
    position: Array
    velocity: Array


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
    of_a[..., 3:, :3] = Rt @ _cross_matrix(d)  # −ω × d = d × ω
    times = 2.0 if loop.holds_positions else 1.0
    drift = np.zeros((*lead, 6))
    (wa, va), (wb, vb) = ((x.velocity[..., :3], x.velocity[..., 3:]) for x in (a, b))
    if wa.any():  # where a stands still, so does what it drags along
        drift[..., :3] = _turn(Rt, -cross(wa, wb))
        drift[..., 3:] = _turn(Rt, cross(wa, cross(wa, d)) - times * cross(wa, vb - va))
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
    """How far a loop is from closed, (..., r): metres, and radians that turn a's axes into b's."""
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


def moving(system: System, frame: str, q: ArrayLike, v: ArrayLike | None = None) -> Moving:
    """Pose and velocity of a frame; no v is at rest."""
    pose = frame_pose(system, q, frame)
    still = np.zeros((*pose.position.shape[:-1], 6))
    return Moving(*pose, still if v is None else frame_velocity(system, q, v, frame))


def ends(system: System, loop: Loop, q: ArrayLike, v: ArrayLike | None = None) -> tuple[Moving, Moving]:
    """Poses and velocities of both ends of a loop; no v is at rest."""
    system = system.without_loops
    a = None if loop.frame_a is None else moving(system, loop.frame_a, q, v)
    b = None if loop.frame_b is None else moving(system, loop.frame_b, q, v)
    return both_ends(loop, a, b)


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


def gaps(system: System, q: ArrayLike) -> list[Array]:
    """How far each loop is from closed, (..., r) each; without rows where a loop holds rates alone."""
    out = []
    for loop in system.loops:
        a, b = ends(system, loop, q)
        found = gap(loop, Pose(a.rotation, a.position), Pose(b.rotation, b.position))
        out.append(found if loop.holds_positions else found[..., :0])
    return out


def constraint_jacobian(system: System, q: ArrayLike, positions_only: bool = False) -> Array:
    """Rates of all loops' rows J v, (..., Σr, nv); ``positions_only`` leaves out loops that hold rates alone."""
    return scaled_jacobian(system, q, positions_only)[0]


def scaled_jacobian(system: System, q: ArrayLike, positions_only: bool = False) -> tuple[Array, Array]:
    """J, and how large its rows (..., Σr) are before what both ends do alike cancels: to that, a zero is zero."""
    lead = np.shape(q)[:-1]
    blocks, sizes = [np.zeros((*lead, 0, system.nv))], [np.zeros((*lead, 0))]
    for loop in system.loops:
        if positions_only and not loop.holds_positions:
            continue
        rows = relative_rows(loop, *ends(system, loop, q))
        both = ((rows.of_a, loop.frame_a), (rows.of_b, loop.frame_b))
        ends_J = [(K, jacobian(system, q, name)) for K, name in both if name]
        blocks.append(sum(K @ J for K, J in ends_J))
        sizes.append(np.sqrt(sum(made_of(K, (J**2).sum(-1)) for K, J in ends_J)))
    return np.concatenate(blocks, axis=-2), np.concatenate(sizes, axis=-1)


def made_of(K: Array, square: Array) -> Array:
    """What the squares of rows K (..., r, 6) of a frame's motion are made of, (..., r), before anything cancels.

    ``square`` (..., 6) are squares of that motion, or its variances. Angular and linear parts are taken whole: along an
    axis that a planar linkage cannot move along, rounding is all there is, and it is not to be measured by itself.
    """
    parts = ((K[..., own] ** 2).sum(-1) * square[..., None, own].sum(-1) for own in (slice(0, 3), slice(3, 6)))
    return np.asarray(sum(parts))


def constraint_drift(system: System, q: ArrayLike, v: ArrayLike) -> Array:
    """J̇ v of all loops' rows, (..., Σr): the loops hold where J a = −J̇ v."""
    parts = []
    for loop in system.loops:
        rows = relative_rows(loop, *ends(system, loop, q, v))
        drift = rows.drift
        for K, name in ((rows.of_a, loop.frame_a), (rows.of_b, loop.frame_b)):
            if name:
                drift = drift + _turn(K, frame_bias_acceleration(system, q, v, name))
        parts.append(drift)
    return np.concatenate(parts, axis=-1)


def worst_gap(system: System, q: Array) -> tuple[str, float]:
    """Name of the loop that is farthest from closed, and how far."""
    found = [float(np.abs(g).max(initial=0.0)) for g in gaps(system, q)]
    worst = int(np.argmax(found))
    return system.loops[worst].name, found[worst]


def close_loops(system: System, q: Array, step: Callable[[Array, Array], Array], tolerance: float) -> Array:
    """Gauss–Newton on the gaps of one configuration; ``step(q, gap)`` is the move dv that should close it.

    A step that does not bring the gap down is halved; where none does, the loops cannot be closed from here.
    """

    def miss(q: Array) -> Array:
        return np.concatenate([np.zeros(0), *gaps(system, q)])

    r = miss(q)
    size = float(np.abs(r).max(initial=0.0))
    for _ in range(MOST_STEPS):
        if size <= tolerance:
            break
        dv = step(q, r)
        biggest = float(np.abs(dv).max(initial=0.0))
        fraction = min(1.0, 1.0 / biggest) if biggest else 1.0
        for _halving in range(12):
            ahead = integrate(system, q, fraction * dv)
            r_ahead = miss(ahead)
            if np.sqrt((r_ahead**2).sum()) < np.sqrt((r**2).sum()) * (1 - 1e-4 * fraction):
                break
            fraction /= 2
        else:
            break
        q, r = ahead, r_ahead
        size = float(np.abs(r).max(initial=0.0))
    if size <= max(tolerance, 100 * CLOSED * _size(system, q)):
        return q
    name, off = worst_gap(system, q)
    raise ModelError(
        f"loop {name} of system {system.name!r} does not close: {off:.3g} (m or rad) is left where Gauss–Newton stops; "
        "begin from another configuration, or see whether the lengths of its bodies allow it to close"
    )


def _size(system: System, q: Array) -> float:
    """The length, at least 1, to which a gap is small or large: how far the ends of loops are from the origin."""
    far = [np.abs(m.position).max(initial=0.0) for loop in system.loops for m in ends(system, loop, q)]
    return max(1.0, *map(float, far))


def draw_closed(system: System, q: Array, rng: np.random.Generator, tries: int = 50) -> Array:
    """A configuration on the loops near a draw, with plain least-norm steps; drawn again where that fails."""

    def step(q: Array, r: Array) -> Array:
        J = constraint_jacobian(system, q, positions_only=True)
        return -np.linalg.pinv(J, rcond=RANK) @ r

    free = system.without_loops
    for _ in range(tries):
        try:
            return close_loops(system, q, step, CLOSED)
        except ModelError as error:
            failure = error
            q = free.random_configuration(rng)
    raise ModelError(f"no random configuration closes the loops in {tries} tries; the last said: {failure}")


def cross(a: Array, b: Array) -> Array:
    """a × b along the last axis; numpy's own takes several times as long for a few vectors."""
    x, y, z = a[..., 0], a[..., 1], a[..., 2]
    u, v, w = b[..., 0], b[..., 1], b[..., 2]
    return np.stack([y * w - z * v, z * u - x * w, x * v - y * u], axis=-1)


def _cross_matrix(d: Array) -> Array:
    out = np.zeros((*d.shape, 3))
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        out[..., i, j], out[..., j, i] = -d[..., k], d[..., k]
    return out


def _turn(A: Array, x: Array) -> Array:
    return (A @ x[..., None])[..., 0]


def loop_slices(system: System) -> Iterator[slice]:
    """Where each loop's rows are among all."""
    at = 0
    for loop in system.loops:
        yield slice(at, at + len(loop.rows))
        at += len(loop.rows)
