"""Kinematics of loops: how far a loop is from closed, how its gap moves, and a Gauss–Newton way to close it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfdyn.errors import ModelError
from kfdyn.multibody.configuration import integrate
from kfdyn.multibody.kinematics import Pose, frame_pose
from kfdyn.multibody.loop import Loop
from kfdyn.multibody.loop_tables import loop_readings
from kfdyn.multibody.system import System
from kfdyn.spatial import matrix_to_rotation_vector, skew

Array = NDArray[np.float64]

# Metres or radians, of a mechanism whose size is about 1: what rounding leaves of a closed loop.
CLOSED = 1e-12
# Of a system's size: what is open by less may be closed but for the digits that its angles were written with.
OPEN = 1e-5
MOST_STEPS = 100
# Singular values below this part of the largest are taken for zero: dependent rows, or a singular configuration.
RANK = 1e-9


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
    every = loop_readings(system, np.asarray(q, float)).gap
    out = []
    for loop, own in zip(system.loops, loop_slices(system)):
        found = every[..., own] if loop.holds_positions else every[..., :0]
        out.append(found if not np.isnan(found).any() else _opposite(system, loop, q))
    return out


def _opposite(system: System, loop: Loop, q: ArrayLike) -> Array:
    """The gap of a loop whose axes are opposite somewhere."""
    a, b = _at_rest(system, loop, q)
    return gap(loop, Pose(a.rotation, a.position), Pose(b.rotation, b.position))


def _at_rest(system: System, loop: Loop, q: ArrayLike) -> tuple[Moving, Moving]:
    """Both ends of a loop at rest."""
    base, still = system.without_loops, np.zeros(6)
    poses = [None if name is None else frame_pose(base, q, name) for name in (loop.frame_a, loop.frame_b)]
    return both_ends(loop, *(None if pose is None else Moving(*pose, still) for pose in poses))


def constraint_jacobian(system: System, q: ArrayLike, positions_only: bool = False) -> Array:
    """Rates of all loops' rows J v, (..., Σr, nv); ``positions_only`` leaves out loops that hold rates alone."""
    J = loop_readings(system, np.asarray(q, float)).J
    return J[..., rows_that_hold_positions(system), :] if positions_only else J


def scaled_jacobian(system: System, q: ArrayLike) -> tuple[Array, Array]:
    """J, and how large its rows (..., Σr) are before anything cancels: to that, a zero is zero."""
    found = loop_readings(system, np.asarray(q, float))
    if system.without_loops.is_tree:
        return found.J, np.sqrt(found.made_of.sum(-1))
    weights = (system.expansion(q) ** 2).sum(-1)
    return found.J, np.sqrt((found.made_of @ weights[..., None])[..., 0])


def constraint_drift(system: System, q: ArrayLike, v: ArrayLike) -> Array:
    """J̇ v of all loops' rows, (..., Σr): the loops hold where J a = −J̇ v."""
    return loop_readings(system, np.asarray(q, float), np.asarray(v, float)).drift


def rows_that_hold_positions(system: System) -> NDArray[np.bool_]:
    """Which rows (Σr,) belong to loops that hold positions, and not rates alone."""
    return np.concatenate([np.zeros(0, bool), *([loop.holds_positions] * len(loop.rows) for loop in system.loops)]) > 0


def made_of(K: Array, square: Array) -> Array:
    """What the squares of rows K (..., r, 6) of a frame's motion are made of, (..., r), before anything cancels.

    ``square`` (..., 6) are squares of that motion. Angular and linear parts are taken whole: along an axis that a
    planar linkage cannot move along, rounding is all there is, and it is not to be measured by itself.
    """
    parts = ((K[..., own] ** 2).sum(-1) * square[..., None, own].sum(-1) for own in (slice(0, 3), slice(3, 6)))
    return np.asarray(sum(parts))


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


def expect_closed(system: System, q: Array) -> None:
    """Refuse a configuration (nq,) that the loops do not have; with the loop and how far it is open."""
    if not system.loops:
        return
    name, off = worst_gap(system, q)
    if not off <= OPEN * _size(system, q):
        raise ModelError(
            f"loop {name} of system {system.name!r} is open by {off:.3g} (m or rad), so this is no configuration that "
            "it can be in; close it by kf.assemble(system, q), or begin from one that is closed, as "
            "system.random_configuration(seed) draws it"
        )


def _size(system: System, q: Array) -> float:
    """The length, at least 1, to which a gap is small or large: how far the ends of loops are from the origin."""
    far = [np.abs(m.position).max(initial=0.0) for loop in system.loops for m in _at_rest(system, loop, q)]
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


def _turn(A: Array, x: Array) -> Array:
    return (A @ x[..., None])[..., 0]


def loop_slices(system: System) -> Iterator[slice]:
    """Where each loop's rows are among all."""
    at = 0
    for loop in system.loops:
        yield slice(at, at + len(loop.rows))
        at += len(loop.rows)
