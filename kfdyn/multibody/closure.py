"""Loops of a system: their rows and gaps in its coordinates, and a Gauss–Newton way to close them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfdyn.errors import ModelError
from kfdyn.multibody.configuration import integrate
from kfdyn.multibody.kinematics import Pose, frame_pose
from kfdyn.multibody.loop import Loop
from kfdyn.multibody.loop_tables import loop_readings
from kfdyn.multibody.relative_motion import Moving, both_ends, gap
from kfdyn.multibody.system import System

Array = NDArray[np.float64]

# Radians, or metres of a mechanism whose size is about 1: what rounding leaves of a closed loop.
CLOSED = 1e-12
# Of a system's size: what is open by less may be closed but for the digits that its angles were written with.
OPEN = 1e-5
MOST_STEPS = 100
# Singular values below this part of the largest are taken for zero: dependent rows, or a singular configuration.
RANK = 1e-9


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


def worst_gap(system: System, q: Array) -> tuple[str, float]:
    """Name of the loop that is farthest from closed, and how far."""
    found = [float(np.abs(g).max(initial=0.0)) for g in gaps(system, q)]
    worst = int(np.argmax(found))
    return system.loops[worst].name, found[worst]


def close_loops(system: System, q: Array, step: Callable[[Array, Array], Array], tolerance: float) -> Array:
    """Gauss–Newton on the gaps of one configuration; ``step(q, gap)`` is the move dv that should close it.

    A step that does not bring the gap down is halved; where none does, the loops cannot be closed from here. The
    ``tolerance`` is in radians and metres, and of a mechanism that is smaller than a metre in units of its size.
    """
    unit = gap_units(system, q)[rows_that_hold_positions(system)]
    fine = np.minimum(unit, 1.0)

    def miss(q: Array) -> Array:
        return np.concatenate([np.zeros(0), *gaps(system, q)])

    r = miss(q)
    for _ in range(MOST_STEPS):
        if (np.abs(r) <= tolerance * fine).all():
            break
        dv = step(q, r)
        biggest = float(np.abs(dv).max(initial=0.0))
        fraction = min(1.0, 1.0 / biggest) if biggest else 1.0
        for _halving in range(12):
            ahead = integrate(system, q, fraction * dv)
            r_ahead = miss(ahead)
            if np.linalg.norm(r_ahead / fine) < np.linalg.norm(r / fine) * (1 - 1e-4 * fraction):
                break
            fraction /= 2
        else:
            break
        q, r = ahead, r_ahead
    if (np.abs(r) <= np.maximum(tolerance * fine, 100 * CLOSED * unit)).all():
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
    found = np.concatenate([np.zeros(0), *gaps(system, q)])
    if not (np.abs(found) <= OPEN * gap_units(system, q)[rows_that_hold_positions(system)]).all():
        name, off = worst_gap(system, q)
        raise ModelError(
            f"loop {name} of system {system.name!r} is open by {off:.3g} (m or rad), so this is no configuration that "
            "it can be in; close it by kf.assemble(system, q), or begin from one that is closed, as "
            "system.random_configuration(seed) draws it"
        )


def gap_units(system: System, q: Array) -> Array:
    """What gaps of all loops' rows are small or large to, (..., Σr): a radian, or the size of the mechanism at q.

    The size is how far ends of loops are from the origin, and bodies and frames from those they are fixed to.
    """
    size = np.asarray(_own_size(system))
    for loop in system.loops:
        for end in _at_rest(system, loop, q):
            size = np.maximum(size, np.abs(end.position).max(axis=-1))
    angular = np.concatenate([np.zeros(0), *(np.asarray(loop.rows) for loop in system.loops)]) < 3
    return np.where(angular, 1.0, np.where(size > 0, size, 1.0)[..., None])


@lru_cache(maxsize=64)
def _own_size(system: System) -> float:
    """The part of the size that no configuration changes."""
    bodies = [np.asarray(body.position) for body in system.open_tree.bodies]
    frames = [np.asarray(frame.position) for frame in system.frames.values()]
    return max(float(np.abs(place).max()) for place in bodies + frames)


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


def loop_slices(system: System) -> Iterator[slice]:
    """Where each loop's rows are among all."""
    at = 0
    for loop in system.loops:
        yield slice(at, at + len(loop.rows))
        at += len(loop.rows)
