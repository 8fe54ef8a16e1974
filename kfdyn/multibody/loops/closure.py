"""Loops of a system: their rows and gaps in its coordinates, how many are independent, and a way to close them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfdyn.arrays import Array
from kfdyn.errors import ModelError
from kfdyn.multibody.coordinates.configuration import integrate
from kfdyn.multibody.kinematics import Pose, frame_pose
from kfdyn.multibody.loops.loop import Loop
from kfdyn.multibody.loops.loop_tables import LoopReadings, loop_readings, loop_tables
from kfdyn.multibody.loops.relative_motion import Moving, both_ends, gap

if TYPE_CHECKING:
    from kfdyn.multibody.system import System


# Radians, or metres of a mechanism whose size is about 1: what rounding leaves of a closed loop.
CLOSED = 1e-12
# What it may leave at most, where steps towards it do not get any nearer.
SHUT = 100 * CLOSED
# Of a system's size: what is open by less may be closed but for the digits that its angles were written with.
OPEN = 1e-5
MOST_STEPS = 100
# In radians and sizes of loops: what rows hold by less follows from other rows, or is nothing, but for the digits of a
# file. Loops that such rows leave open by less are as closed as they can be.
RANK = LEFT_OPEN = 1e-6
# Accelerations that dependent rows ask for and no motion has, as part of the squares of rates that they are made of.
CONSISTENT = 1e-6


def gaps(system: System, q: ArrayLike) -> list[Array]:
    """Return the gap of each loop, (..., r) each; without rows where a loop holds rates alone."""
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


class Ranked(NamedTuple):
    """Rows of loops and how many of them are independent: J = row (U s V*) column, of which ``rank`` values s count.

    Every method and function asks here. Rows are in radians or sizes of their loops, rates in what moves rows by that,
    so that a singular value is compared with the mechanism and not with the other values, which may all be rounding.

    Attributes
    ----------
    row, column : (r,), (B, m)
        Units of rows and rates.
    U, s, Vt : (B, r, r), (B, min(r, m)), (B, m, m)
        Singular value decomposition.
    rank : (B,) of int
        How many singular values are not zero.
    """

    row: Array
    column: Array
    U: Array
    s: Array
    Vt: Array
    rank: NDArray[np.int64]

    @classmethod
    def of(cls, J: Array, row: Array, column: Array) -> Ranked:
        """Decompose rows J (B, r, m) in given units."""
        U, s, Vt = np.linalg.svd(J / row[:, None] / column[:, None], full_matrices=True)
        return cls(row, column, U, s, Vt, (s > RANK).sum(axis=1))

    @classmethod
    def at(cls, system: System, q: Array, positions_only: bool = False) -> Ranked:
        """Decompose the rows of all loops at q (B, nq); ``positions_only`` as for :func:`constraint_jacobian`."""
        read = loop_readings(system, q)
        held = rows_that_hold_positions(system) if positions_only else slice(None)
        row, column = row_units(system), column_units(system, q, read)
        return cls.of(read.J[:, held], row[held], column)

    @property
    def kept(self) -> NDArray[np.bool_]:
        """Return which singular values (B, k) count, k being the highest rank."""
        return np.arange(self.rank.max(initial=0)) < self.rank[:, None]

    def independent(self) -> Array:
        """Combinations C (B, k, r) of the rows that say all they say: C J is orthonormal in the units of the rates.

        Combinations beyond the rank of a state are zero.
        """
        k = self.kept.shape[1]
        weights = np.divide(1.0, self.s[:, :k], out=np.zeros(self.kept.shape), where=self.kept)
        return np.asarray(weights[..., None] * np.swapaxes(self.U[..., :k], -1, -2) / self.row)

    def solve(self, b: Array) -> Array:
        """Least rates x (B, m), in their units, with J x = b (B, r) as far as the rows can be met at all."""
        k = self.kept.shape[1]
        along = self.independent() @ b[..., None]
        return np.asarray((np.swapaxes(self.Vt[:, :k], -1, -2) @ along)[..., 0] / self.column)

    def forces(self, tau: Array) -> Array:
        """Least forces f (B, r), in units of the rows, with J*f = tau (B, m) as far as they reach."""
        k = self.kept.shape[1]
        along = self.Vt[:, :k] @ (tau / self.column)[..., None]
        return np.asarray((np.swapaxes(self.independent(), -1, -2) @ along)[..., 0])

    def reached(self, b: Array) -> Array:
        """The part of b (B, r) that some rates have."""
        k = self.kept.shape[1]
        U = self.U[..., :k] * self.kept[:, None]
        return np.asarray((U @ (np.swapaxes(U, -1, -2) @ (b / self.row)[..., None]))[..., 0] * self.row)

    def free(self) -> Array:
        """Basis (B, m, f) of the rates that the rows leave free; columns beyond the freedom of a state are zero."""
        least = int(self.rank.min(initial=self.Vt.shape[-1]))
        spare = np.arange(least, self.Vt.shape[-1]) >= self.rank[:, None]
        return np.asarray(np.swapaxes(self.Vt[:, least:], -1, -2) / self.column[..., None] * spare[:, None])

    def expect_consistent(self, loops: str, drift: Array, speed: Array) -> None:
        """Refuse dependent rows that ask for different accelerations −``drift`` (B, r); ``speed`` (B,) is of rates."""
        off = np.abs((drift - self.reached(drift)) / self.row).max(axis=-1, initial=0.0)
        wrong = np.flatnonzero(~(off <= CONSISTENT * np.maximum(speed, 1e-150) ** 2))
        if wrong.size:
            at = f" (state {wrong[0]} of the batch)" if len(off) > 1 else ""
            raise ModelError(
                f"loop {loops}{at}: its rows contradict each other by {off[wrong[0]]:.3g} (rad/s², or sizes of the "
                "loop/s²), whatever the forces are; bring q and v onto the loops first (kf.assemble, kf.impact), or "
                "leave rows out"
            )


def row_units(system: System) -> Array:
    """Return the units of rates of all loops' rows, (Σr,): a radian, or the size of their loop."""
    return loop_tables(system).units


def column_units(system: System, q: Array, read: LoopReadings) -> Array:
    """Return how far unit rates (B, nv) move rows in their units if nothing cancels; 1 where not at all."""
    made_of = system.without_loops.narrowed(q, read.made_of, squared=True)
    unit = np.sqrt((made_of / row_units(system)[:, None] ** 2).max(axis=-2, initial=0.0))
    return np.where(unit > 0, unit, 1.0)


def constraint_drift(system: System, q: ArrayLike, v: ArrayLike) -> Array:
    """J̇ v of all loops' rows, (..., Σr): the loops hold where J a = −J̇ v."""
    return loop_readings(system, np.asarray(q, float), np.asarray(v, float)).drift


def rows_that_hold_positions(system: System) -> NDArray[np.bool_]:
    """Mark the rows (Σr,) of loops that hold positions, and not rates alone."""
    return np.concatenate([np.zeros(0, bool), *([loop.holds_positions] * len(loop.rows) for loop in system.loops)]) > 0


def worst_gap(system: System, q: Array) -> tuple[str, float]:
    """Name of the loop that is farthest from closed, and how far."""
    found = [float(np.abs(g).max(initial=0.0)) for g in gaps(system, q)]
    worst = int(np.argmax(found))
    return system.loops[worst].name, found[worst]


Step = Callable[[Array, Array], tuple[Array, Array]]


def close_loops(system: System, q: Array, step: Step, tolerance: float) -> Array:
    """Gauss–Newton on the gaps of one configuration; ``step(q, gap)`` is a move dv, and what of the gap it is to close.

    A step that does not bring the gap down is halved; where none does, the loops cannot be closed from here. The
    ``tolerance`` is in radians and metres, and of a mechanism that is smaller than a metre in units of its size. Where
    dependent rows differ by the digits of a file, what can be closed is; :func:`warn_left_open` tells of the rest.
    """
    unit = gap_units(system, q)[rows_that_hold_positions(system)]
    fine = np.minimum(unit, 1.0)

    def miss(q: Array) -> Array:
        return np.concatenate([np.zeros(0), *gaps(system, q)])

    r, last, reach = miss(q), np.inf, np.zeros(0)
    for _ in range(MOST_STEPS):
        if (np.abs(r) <= tolerance * fine).all():
            return q
        dv, reach = step(q, r)
        near, left = (np.abs(r) <= LEFT_OPEN * unit).all(), np.abs(reach / fine).max(initial=0.0)
        if near and (left <= tolerance or left > 0.5 * last):
            break
        last = left if near else np.inf
        biggest = float(np.abs(dv).max(initial=0.0))
        fraction = min(1.0, 1.0 / biggest) if biggest else 1.0
        for _halving in range(12):
            ahead = integrate(system, q, fraction * dv)
            r_ahead = miss(ahead)
            if np.linalg.norm(r_ahead / fine) < np.linalg.norm(r / fine) * (1 if near else 1 - 1e-4 * fraction):
                break
            fraction /= 2
        else:
            break
        q, r = ahead, r_ahead
    shut = np.maximum(tolerance * fine, SHUT * unit)
    if (np.abs(r) <= shut).all() or ((np.abs(r) <= LEFT_OPEN * unit).all() and (np.abs(reach) <= shut).all()):
        return q
    name, off = worst_gap(system, q)
    raise ModelError(
        f"loop {name} of system {system.name!r} does not close: {off:.3g} (m or rad) is left where Gauss–Newton stops; "
        "begin from another configuration, or see whether the lengths of its bodies allow it to close"
    )


def warn_left_open(system: System, q: Array, tolerance: float = 0.0, level: int = 3) -> None:
    """Tell how far loops stay open in configurations (B, nq) that are as closed as the digits of a file allow."""
    unit = gap_units(system, q)[..., rows_that_hold_positions(system)]
    found = np.abs(np.concatenate([np.zeros((len(q), 0)), *gaps(system, q)], axis=-1))
    if (found > np.maximum(tolerance * np.minimum(unit, 1.0), SHUT * unit)).any():
        name, off = worst_gap(system, q)
        warnings.warn(
            f"loop {name} of system {system.name!r} stays open by {off:.2g} (m or rad): its rows are dependent, and "
            "the digits of its lengths and axes do not let all of them close; they are closed as far as they can be",
            stacklevel=level,
        )


def expect_closed(system: System, q: Array) -> None:
    """Refuse a configuration (nq,) that the loops do not have; with the loop and how far it is open."""
    found = np.concatenate([np.zeros(0), *gaps(system, q)])
    if not (np.abs(found) <= OPEN * gap_units(system, q)[rows_that_hold_positions(system)]).all():
        name, off = worst_gap(system, q)
        raise ModelError(
            f"loop {name} of system {system.name!r} is open by {off:.3g} (m or rad), so this is no configuration that "
            "it can be in; close it by kf.assemble(system, q), or begin from one that is closed, as "
            "system.random_configuration(seed) draws it"
        )


def gap_units(system: System, q: Array) -> Array:
    """Return the units of gaps of all loops' rows, (..., Σr): a radian, or the size of the mechanism at q.

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
    free = system.without_loops
    for _ in range(tries):
        try:
            q = close_loops(system, q, plain_step(system), CLOSED)
        except ModelError as error:
            failure = error
            q = free.random_configuration(rng)
        else:
            warn_left_open(system, q[None], level=5)
            return q
    raise ModelError(f"no random configuration closes the loops in {tries} tries; the last said: {failure}")


def plain_step(system: System) -> Step:
    """Steps for :func:`close_loops` that are least in units of the coordinates."""

    def step(q: Array, r: Array) -> tuple[Array, Array]:
        rows = Ranked.at(system, q[None], positions_only=True)
        return -rows.solve(r[None])[0], rows.reached(r[None])[0]

    return step


def loop_slices(system: System) -> Iterator[slice]:
    """Return where each loop's rows are among all."""
    at = 0
    for loop in system.loops:
        yield slice(at, at + len(loop.rows))
        at += len(loop.rows)
