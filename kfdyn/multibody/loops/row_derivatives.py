"""Derivatives of the rows of loops in tangent coordinates: of their rates, accelerations, and what their forces do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kfdyn.arrays import Array
from kfdyn.errors import ModelError
from kfdyn.multibody.frame_derivatives import (
    force_derivatives,
    frame_acceleration_derivatives,
    frame_velocity_derivatives,
)
from kfdyn.multibody.kinematics import frame_acceleration, frame_pose, frame_velocity, jacobian
from kfdyn.multibody.loops.loop import Loop

if TYPE_CHECKING:
    from kfdyn.multibody.system import System


class Vector(NamedTuple):
    """Vectors of states with their derivatives in (q, v): (states, 3) and (states, 3, 2 nv)."""

    value: Array
    slope: Array

    def __add__(self, other: Vector) -> Vector:  # type: ignore[override]
        return Vector(self.value + other.value, self.slope + other.slope)

    def __sub__(self, other: Vector) -> Vector:
        return Vector(self.value - other.value, self.slope - other.slope)

    def times(self, factor: Array) -> Vector:
        """The multiple by a number of each state."""
        return Vector(factor[:, None] * self.value, factor[:, None, None] * self.slope)

    def cross(self, other: Vector) -> Vector:
        """self × other."""
        moved = _columns(self.value, other.slope) - _columns(other.value, self.slope)
        return Vector(np.cross(self.value, other.value), moved)

    def dot(self, other: Vector) -> tuple[Array, Array]:
        """self · other, (states,), and its derivatives, (states, 2 nv)."""
        slope = np.einsum("ri,rij->rj", self.value, other.slope) + np.einsum("ri,rij->rj", other.value, self.slope)
        return (self.value * other.value).sum(axis=1), slope


def _columns(x: Array, columns: Array) -> Array:
    """x × every column."""
    return np.cross(x[:, :, None], columns, axis=1)


class End(NamedTuple):
    """Axes, position, velocity and acceleration of one end of a loop."""

    axes: tuple[Vector, Vector, Vector]
    position: Vector
    w: Vector
    v: Vector
    alpha: Vector
    c: Vector

    @classmethod
    def at(cls, system: System, q: Array, v: Array, a: Array, frame: str) -> End:
        """The end that is a frame of the system."""
        pose, J, still = frame_pose(system, q, frame), jacobian(system, q, frame), np.zeros((len(q), 3, system.nv))
        V, A = frame_velocity(system, q, v, frame), frame_acceleration(system, q, v, a, frame)
        of_V = frame_velocity_derivatives(system, q, v, frame)
        of_A = frame_acceleration_derivatives(system, q, v, a, frame)
        turn, shift = (np.concatenate([J[:, own], still], axis=2) for own in (slice(0, 3), slice(3, 6)))
        axes = (Vector(e, -_columns(e, turn)) for e in np.moveaxis(pose.rotation, 2, 0))
        rates = []
        for value, *of in ((V, of_V.dV_dq, of_V.dV_dv), (A, of_A.dA_dq, of_A.dA_dv)):
            for own in (slice(0, 3), slice(3, 6)):
                rates.append(Vector(value[:, own], np.concatenate([x[:, own] for x in of], axis=2)))
        return cls(tuple(axes), Vector(pose.position, shift), *rates)  # type: ignore[arg-type]

    @classmethod
    def of_world(cls, rotation: Array, position: Array, size: int, columns: int) -> End:
        """The end that stands still."""
        still = np.zeros((size, 3, columns))

        def fixed(x: Array) -> Vector:
            return Vector(np.broadcast_to(x, (size, 3)), still)

        axes = tuple(fixed(rotation[..., :, i]) for i in range(3))
        none = fixed(np.zeros(3))
        return cls(axes, fixed(position), none, none, none, none)  # type: ignore[arg-type]


class _Row(NamedTuple):
    """One row: what it reads is along n, which changes at rate n_dot."""

    linear: bool
    n: Vector
    n_dot: Vector


class LoopMotion:
    """The rows of one loop in states (rows, nq), (rows, nv), (rows, nv), with all that they depend on.

    Parameters
    ----------
    system : System
        Without loops.
    loop : Loop
        Which; one that rolls is refused.
    """

    def __init__(self, system: System, loop: Loop, q: Array, v: Array, a: Array) -> None:
        if loop.rolling is not None:
            raise ModelError(
                f"loop {loop.name} rolls, and derivatives of what rolls are not implemented; take differences of "
                "kf.forward_dynamics along kf.integrate(system, q, h * dv)"
            )
        self.system, self.loop, self.q = system, loop, q
        self.names = (loop.frame_a, loop.frame_b)
        ends = [None if name is None else End.at(system, q, v, a, name) for name in self.names]
        here = ends[0] or ends[1]
        assert here is not None
        if loop.anchor is not None:
            rotation, position = loop.anchor
        else:  # rates alone: the axes of a, and no distance between the ends
            rotation, position = np.eye(3), here.position.value
        world = End.of_world(rotation, position, len(q), 2 * system.nv)
        self.a, self.b = ends[0] or world, ends[1] or world
        apart = self.b.position - self.a.position
        none = Vector(np.zeros_like(apart.value), np.zeros_like(apart.slope))
        self.d, self.d_dot = (apart, self.b.v - self.a.v) if loop.holds_positions else (none, none)

    def _rows(self) -> Iterator[_Row]:
        a, b, angular = self.a, self.b, self.loop.angular
        for row in self.loop.rows:
            i = row % 3
            if row < 3 and len(angular) == 1 and self.loop.holds_positions:  # two axes at a right angle
                one, other = a.axes[(i + 1) % 3], b.axes[(i + 2) % 3]
                yield _Row(False, one.cross(other), a.w.cross(one).cross(other) + one.cross(b.w.cross(other)))
            else:
                yield _Row(row >= 3, a.axes[i], a.w.cross(a.axes[i]))

    def rates(self) -> Array:
        """∂(J v)/∂q, (states, r, nv)."""
        w, v = self.b.w - self.a.w, self.b.v - self.a.v - self.a.w.cross(self.d)
        slopes = [row.n.dot(v if row.linear else w)[1] for row in self._rows()]
        return np.stack(slopes, axis=1)[:, :, : self.system.nv]

    def accelerations(self) -> Array:
        """∂(J a + J̇ v)/∂(q, v), (states, r, 2 nv)."""
        a, b = self.a, self.b
        w, v = b.w - a.w, b.v - a.v - a.w.cross(self.d)
        alpha, c = b.alpha - a.alpha, b.c - a.c - a.alpha.cross(self.d) - a.w.cross(self.d_dot)
        slopes = []
        for row in self._rows():
            of = (c, v) if row.linear else (alpha, w)
            slopes.append(row.n.dot(of[0])[1] + row.n_dot.dot(of[1])[1])
        return np.stack(slopes, axis=1)

    def forces(self, f: Array) -> Array:
        """∂(J*f)/∂q of forces f (states, r) that stay as they are, (states, nv, nv)."""
        none = Vector(np.zeros_like(self.d.value), np.zeros_like(self.d.slope))
        moment = force = none
        for row, size in zip(self._rows(), f.T):
            if row.linear:
                force = force + row.n.times(size)
            else:
                moment = moment + row.n.times(size)
        back = none - force
        out = np.zeros((len(self.q), self.system.nv, self.system.nv))
        on_a = none - moment - self.d.cross(force)
        for frame, *wrench in ((self.names[0], on_a, back), (self.names[1], moment, force)):
            if frame is not None:
                value = np.concatenate([part.value for part in wrench], axis=1)
                slope = np.concatenate([part.slope for part in wrench], axis=1)[:, :, : self.system.nv]
                J = jacobian(self.system, self.q, frame)
                out += force_derivatives(self.system, self.q, value, frame)[1] + J.swapaxes(1, 2) @ slope
        return out
