"""Effects of the numbers of a robot on its inverse dynamics: forces r, linear in them, with derivatives.

A number θ of a robot enters as 𝓜a + bias − forces = ID(q, v, a; θ) − f = 0, so that a moves by −𝓜⁻¹ r with
r = ∂(ID − f)/∂θ. Inertias, rotors, dampers, springs, friction and gravity all enter linearly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from kfdyn.arrays import Array
from kfdyn.dynamics import inverse_dynamics, inverse_dynamics_derivatives
from kfdyn.motion.identification.parameters.log_cholesky import point_mass
from kfdyn.motion.regressor import inertia_of
from kfdyn.motion.step import Stepper
from kfdyn.multibody import System
from kfdyn.multibody.system import rebuilt

# Ten places of a unit mass whose inertias span all: no quadratic but zero vanishes in all of them.
_PLACES = np.array(
    [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [-1, 0, 0], [0, -1, 0], [0, 0, -1], [1, 1, 0], [1, 0, 1], [0, 1, 1]],
    float,
)
_TEN_OF_PLACES = np.stack([point_mass(1.0, place) for place in _PLACES])
_PLACES_OF_TEN = np.linalg.inv(_TEN_OF_PLACES)


class Rows(NamedTuple):
    """States and accelerations of all steps, (rows, ·), the stepper that moves them, and gravity."""

    stepper: Stepper
    q: Array
    v: Array
    a: Array
    g: Array


class Effect(NamedTuple):
    """The force r (rows, nv) of a unit of a number, and its derivatives (rows, nv, nv); None is zero."""

    r: Array
    of_q: Array | None = None
    of_v: Array | None = None
    of_a: Array | None = None


class PointMasses:
    """Robots that consist of one unit mass each, fixed to one body: built once, as they never change.

    Parameters
    ----------
    system : System
        The robot whose hinges they have.
    """

    def __init__(self, system: System) -> None:
        self.system = system
        self._known: dict[int, list[System]] = {}

    def of(self, k: int) -> list[System]:
        """The ten of body k."""
        if k not in self._known:
            self._known[k] = [self._fixed(k, inertia_of(ten)) for ten in _TEN_OF_PLACES]
        return self._known[k]

    def _fixed(self, k: int, inertia: Array) -> System:
        bodies = tuple(
            replace(body, inertia=inertia if i == k else np.zeros((6, 6)), armature=np.zeros(body.hinge.nv))
            for i, body in enumerate(self.system.bodies)
        )
        return rebuilt(bodies, self.system.gravity, {}, "a point mass", "warn")


def of_body(masses: PointMasses, k: int, rows: Rows, slopes: bool) -> Iterator[Effect]:
    """Effects of the ten point masses of a body; the ten inertial parameters combine them by ``combined``."""
    g = rows.g
    for robot in masses.of(k):
        r = inverse_dynamics(robot, rows.q, rows.v, rows.a, gravity=g)
        yield (
            Effect(r, *inverse_dynamics_derivatives(robot, rows.q, rows.v, rows.a, gravity=g)) if slopes else Effect(r)
        )


def combined(of_places: Array) -> Array:
    """Combine effects of ten point masses to those of ten inertial parameters: (10, ...)."""
    return np.tensordot(_PLACES_OF_TEN, of_places, axes=1)


def _on_dof(i: int, rows: Rows, force: Array, **slopes: Any) -> Effect:
    """An effect on one dof; slopes of it in that dof's own q, v and a, numbers or (rows,)."""
    nv = rows.v.shape[1]
    r = np.zeros((len(force), nv))
    r[:, i] = force
    out: dict[str, Array] = {}
    for of, slope in slopes.items():
        out[of] = np.zeros((len(force), nv, nv))
        out[of][:, i, i] = slope
    return Effect(r, **out)


def of_armature(i: int, rows: Rows) -> Effect:
    """A rotor: r = a."""
    return _on_dof(i, rows, rows.a[:, i], of_a=1.0)


def of_damping(i: int, rows: Rows) -> Effect:
    """A damper: r = v, at the end of the step where it is implicit."""
    if rows.stepper.method == "implicit":
        h = rows.stepper.dt
        return _on_dof(i, rows, rows.v[:, i] + h * rows.a[:, i], of_v=1.0, of_a=h)
    return _on_dof(i, rows, rows.v[:, i], of_v=1.0)


def of_friction(i: int, rows: Rows) -> Effect:
    """Coulomb friction: r = tanh(v/v₀)."""
    slow = rows.stepper.slow
    pull = np.tanh(rows.v[:, i] / slow)
    return _on_dof(i, rows, pull, of_v=(1.0 - pull**2) / slow)


def of_stiffness(i: int, rows: Rows) -> Effect:
    """A spring: r = q − rest, at the end of the step where it is implicit."""
    stepper = rows.stepper
    stretch = stepper.points.minus(rows.q, np.broadcast_to(stepper.rest, rows.q.shape))[:, i]
    if stepper.method == "implicit":
        h = stepper.dt
        return _on_dof(i, rows, stretch + h * rows.v[:, i] + h**2 * rows.a[:, i], of_q=1.0, of_v=h, of_a=h**2)
    return _on_dof(i, rows, stretch, of_q=1.0)


def of_gravity(rows: Rows, slopes: bool) -> Iterator[Effect]:
    """The three components of gravity."""
    zero = np.zeros_like(rows.v)
    for unit in np.eye(3):
        r = inverse_dynamics(rows.stepper.system, rows.q, zero, zero, gravity=unit)
        if not slopes:
            yield Effect(r)
            continue
        yield Effect(r, inverse_dynamics_derivatives(rows.stepper.system, rows.q, zero, zero, gravity=unit).dtau_dq)


#: Effects of one dof by the name of the number.
OF_DOF: dict[str, Callable[[int, Rows], Effect]] = {
    "armature": of_armature, "damping": of_damping, "friction": of_friction, "stiffness": of_stiffness,
}  # fmt: skip


def effects(block: tuple[Any, ...], rows: Rows, masses: PointMasses, slopes: bool) -> Iterator[Effect]:
    """Effects of the numbers of a block; those of a body are of its ten point masses."""
    if block[0] == "body":
        return of_body(masses, block[1], rows, slopes)
    if block[0] == "gravity":
        return of_gravity(rows, slopes)
    return iter([OF_DOF[block[0]](block[1], rows)])
