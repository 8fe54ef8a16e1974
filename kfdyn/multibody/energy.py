"""Sums over all bodies: mass centre, momentum, kinetic and potential energy."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.arrays import Array
from kfdyn.errors import ModelError
from kfdyn.multibody.calls.arguments import batch, checked, configuration, expect_finite, overflow
from kfdyn.multibody.calls.kernel import Kernel, known
from kfdyn.multibody.points import PointMasses

if TYPE_CHECKING:
    from kfdyn.multibody.system import System


def kinetic_energy(system: System, q: ArrayLike, v: ArrayLike) -> Array:
    """Kinetic energy ½ Σ V*(k) M(k) V(k) + ½ β* R β, rotors included (R86 3.2).

    Parameters
    ----------
    system : System
        The robot.
    q, v : (..., nq), (..., nv)

    Returns
    -------
    (...) array
        Joule. Cost O(N).

    Examples
    --------
    >>> from kfdyn.multibody.models import pendulum
    >>> float(kinetic_energy(pendulum(mass=2.0, length=1.0), [0.3], [3.0]))
    9.0
    """
    answer: Array = KINETIC.solve(system, q, v)
    return answer


def potential_energy(system: System, q: ArrayLike, gravity: ArrayLike | None = None) -> Array:
    """Potential energy −Σ m g·c of the bodies, zero when all mass centres are at the world's origin.

    Parameters
    ----------
    system : System
        The robot.
    q : (..., nq)
    gravity : (..., 3), optional
        ``system.gravity`` if not given.

    Returns
    -------
    (...) array
        Joule. Springs of hinges are data of the system and not counted; bodies that bend count with what bends them.
        Cost O(N).

    Examples
    --------
    A bob of 2 kg, lifted from the bottom to the side by one metre:

    >>> from kfdyn.multibody.models import pendulum
    >>> bob = pendulum(mass=2.0, length=1.0)
    >>> float(np.diff(potential_energy(bob, [[0.0], [0.5 * np.pi]]))[0].round(6))
    19.62
    """
    answer: Array = POTENTIAL.solve(system, q, gravity)
    return answer


def center_of_mass(system: System, q: ArrayLike) -> Array:
    """Mass centre of all bodies in the world, shape (..., 3), for q (..., nq). Cost O(N).

    Parameters
    ----------
    system : System
        The robot.
    q : (..., nq)
        Configurations.

    Returns
    -------
    (..., 3) array
        In the world. Cost O(N).

    Examples
    --------
    Four rods of one metre, stretched out along x:

    >>> from kfdyn.multibody.models import uniform_chain
    >>> center_of_mass(uniform_chain(4), [0, 0, 0, 0])
    array([2., 0., 0.])
    """
    moment = MOMENT.solve(system, q)
    expect_mass(system)
    com: Array = moment / np.expand_dims(system.mass, -1)
    return com


def momentum(system: System, q: ArrayLike, v: ArrayLike) -> Array:
    """Spatial momentum Σ φ(0,k) M(k) V(k) of the bodies about the world's origin.

    Parameters
    ----------
    system : System
        The robot.
    q, v : (..., nq), (..., nv)

    Returns
    -------
    (..., 6) array
        [angular; linear], world orientation. Rotors carry none. Cost O(N).

    Examples
    --------
    A satellite adrift without forces keeps its momentum while its arms flail:

    >>> import kfdyn as kf
    >>> robot = kf.models.free_flyer()
    >>> q, v = robot.neutral(), np.linspace(-1, 1, robot.nv)
    >>> drift = kf.simulate(robot, q, v, np.linspace(0, 0.2, 21))
    >>> bool(np.abs(momentum(robot, drift.q, drift.v) - momentum(robot, q, v)).max() < 1e-6)
    True
    """
    answer: Array = MOMENTUM.solve(system, q, v)
    return answer


def centroidal_momentum(system: System, q: ArrayLike, v: ArrayLike) -> Array:
    """Spatial momentum of the bodies about their common mass centre.

    Parameters
    ----------
    system : System
        The robot.
    q, v : (..., nq), (..., nv)

    Returns
    -------
    (..., 6) array
        [angular; linear], world orientation. Rotors carry none. Cost O(N).

    Examples
    --------
    A rod of one metre and 1 kg spins at 12 rad/s about its end: J ω = 1 about its own centre.

    >>> from kfdyn.multibody.models import uniform_chain
    >>> centroidal_momentum(uniform_chain(1), [0.0], [12.0])
    array([0., 0., 1., 0., 6., 0.])
    """
    answer: Array = CENTROIDAL.solve(system, q, v)
    expect_mass(system)
    return answer


def _with_points(
    system: System, found: Array, what: str, share: Callable[[PointMasses], Array], **state: ArrayLike | None
) -> Array:
    """Add the share of the points that move beside the bodies to the result of the open tree."""
    with np.errstate(over="ignore", invalid="ignore"):  # told in the last line
        for points in system.beside(state["q"], state.get("v")):  # type: ignore[arg-type]
            found = found + share(points)
    return expect_finite(system, found, what, **state)


def _kinetic(system: System, q: ArrayLike, v: ArrayLike) -> Array:
    found = KINETIC.of_open_tree(system, q, v)
    return _with_points(system, found, "the kinetic energy", lambda points: points.kinetic, q=q, v=v)


def _potential(system: System, q: ArrayLike, gravity: ArrayLike | None) -> Array:
    """With what bends bodies."""
    g = system.gravity if gravity is None else checked(system, gravity, (3,), "gravity")
    found = POTENTIAL.of_open_tree(system, q, g)

    def share(points: PointMasses) -> Array:
        return points.strain - (points.moment * g).sum(-1)

    return _with_points(system, found, "the potential energy", share, q=q, gravity=g)


def _moment(system: System, q: ArrayLike) -> Array:
    """Σ m c (..., 3)."""
    found = MOMENT.of_open_tree(system, q)
    return _with_points(system, found, "the first moment of mass", lambda points: points.moment, q=q)


def _momentum(system: System, q: ArrayLike, v: ArrayLike) -> Array:
    """About the world's origin."""
    v = np.zeros(system.nv) if v is None else v
    found = MOMENTUM.of_open_tree(system, q, v)
    return _with_points(system, found, "the momentum", lambda points: points.momentum(np.zeros(3)), q=q, v=v)


def _centroidal(system: System, q: ArrayLike, v: ArrayLike) -> Array:
    """About the mass centre of the bodies and of what moves beside them."""
    v_in = checked(system, np.zeros(system.nv) if v is None else v, (system.nv,), "v")
    lead, (q_flat, v_flat) = batch(system, q=(configuration(system, q), 1), v=(v_in, 1))
    com, h = _moment(system, q_flat) / (system.mass or 1.0), np.empty((len(q_flat), 6))
    tree, q_tree, v_tree = system.opened(q_flat, v=v_flat)
    if not known(MOMENTUM_ABOUT(tree, len(q_flat), q_tree, v_tree, com, h)):
        raise overflow(system, "the momentum", q=q_flat, v=v_flat)
    h = _with_points(system, h, "the momentum", lambda points: points.momentum(com), q=q_flat, v=v_flat)
    return h.reshape((*lead, 6))


def expect_mass(system: System) -> None:
    """Refuse a system without mass, which has no mass centre."""
    if not np.all(system.mass):
        raise ModelError(f"system {system.name!r} has no mass, so it has no mass centre; give a body some")


_ROOM = "kfdyn.multibody.recursions.energy"

KINETIC = Kernel(_ROOM, "KINETIC", coupled=True, meaning="the kinetic energy", otherwise=_kinetic, rest=False)
POTENTIAL = Kernel(_ROOM, "POTENTIAL", coupled=True, meaning="the potential energy", otherwise=_potential)
MOMENT = Kernel(_ROOM, "MOMENT", coupled=True, meaning="the mass centre", otherwise=_moment)
MOMENTUM = Kernel(_ROOM, "MOMENTUM", coupled=True, meaning="the momentum", otherwise=_momentum)
CENTROIDAL = Kernel(_ROOM, "CENTROIDAL", coupled=True, meaning="the momentum", otherwise=_centroidal)
MOMENTUM_ABOUT = Kernel(_ROOM, "MOMENTUM_ABOUT")
