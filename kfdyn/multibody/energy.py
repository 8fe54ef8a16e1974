"""Sums over all bodies: mass centre, momentum, kinetic and potential energy."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfdyn.errors import ModelError
from kfdyn.multibody.arguments import batch, checked, configuration, expect_system
from kfdyn.multibody.entries import (
    CENTROIDAL,
    FINE,
    KINETIC,
    MOMENT,
    MOMENTUM,
    MOMENTUM_ABOUT,
    POTENTIAL,
    known,
    reading,
)
from kfdyn.multibody.overflow import expect_finite, overflow
from kfdyn.multibody.system import System

Array = NDArray[np.float64]


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
    one = KINETIC.one
    answer = one(system, q, v)
    if answer is not None:  # what loops call
        return answer
    answer = KINETIC.constrained(system, q, v)
    if answer is not None:
        return answer
    expect_system(system)
    rigid, q_rigid, v_rigid = system.rigid_state(q, v=v)
    own = reading(rigid, KINETIC, ((),), "the kinetic energy", q_rigid, v_rigid)[0]
    with np.errstate(over="ignore", invalid="ignore"):  # told in the next line
        energy = sum((points.kinetic for points in system.beside(q, v)), own)
    return expect_finite(system, energy, "the kinetic energy", q=q, v=v)


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
    one = POTENTIAL.one
    answer = one(system, q, gravity)
    if answer is not None:  # what loops call
        return answer
    answer = POTENTIAL.constrained(system, q, gravity)
    if answer is not None:
        return answer
    expect_system(system)
    system = system.without_loops
    rigid = isinstance(system, System)
    if rigid:
        system, q = system.rigid_state(q)
    if rigid and type(q) is np.ndarray and q.ndim > 1:  # a batch as it stands
        energy = np.empty(q.shape[:-1])
        if POTENTIAL(system, energy.size, q, system.gravity if gravity is None else gravity, energy) == FINE:
            return energy
    g = system.gravity if gravity is None else checked(system, gravity, (3,), "gravity")
    lead, (q_flat, g_flat) = batch(system, q=(configuration(system, q), 1), gravity=(g, 1))
    if rigid:
        energy = np.empty(len(q_flat))
        if not known(POTENTIAL(system, len(q_flat), q_flat, g if g.ndim == 1 else g_flat, energy)):
            raise overflow(system, "the potential energy", q=q_flat, gravity=g)
        return energy.reshape(lead)
    with np.errstate(over="ignore", invalid="ignore"):  # told in the next line
        energy = -system.mass * (_mass_centre(system, q_flat) * g_flat).sum(-1)
        energy = sum((points.strain for points in system.beside(q_flat)), energy)
    return expect_finite(system, energy, "the potential energy", q=q, gravity=g).reshape(lead)


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
    one = MOMENT.one
    moment = one(system, q)
    if moment is None:
        moment = MOMENT.constrained(system, q)
    com = _mass_centre(system, q) if moment is None or not system.mass else moment / system.mass
    _require_mass(system)
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
    one = MOMENTUM.one
    answer = one(system, q, v)
    if answer is not None:  # what loops call
        return answer
    answer = MOMENTUM.constrained(system, q, v)
    if answer is not None:
        return answer
    expect_system(system)
    v = np.zeros(system.nv) if v is None else v  # at rest
    if isinstance(system, System):
        rigid, q_rigid, v_rigid = system.rigid_state(q, v=v)
        return reading(rigid, MOMENTUM, ((6,),), "the momentum", q_rigid, v_rigid)[0]
    com, h = _with_points(system, q, v)
    with np.errstate(over="ignore", invalid="ignore"):  # told below
        turning = h[..., :3] + np.cross(com, h[..., 3:])
    return expect_finite(system, np.concatenate([turning, h[..., 3:]], axis=-1), "the momentum", q=q, v=v)


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
    one = CENTROIDAL.one
    answer = one(system, q, v)
    if answer is None:
        answer = CENTROIDAL.constrained(system, q, v)
    if answer is None:
        expect_system(system)
        v = np.zeros(system.nv) if v is None else v  # at rest
        if isinstance(system, System):
            rigid, q_rigid, v_rigid = system.rigid_state(q, v=v)
            answer = reading(rigid, CENTROIDAL, ((6,),), "the momentum", q_rigid, v_rigid)[0]
        else:
            answer = _with_points(system, q, v)[1]
    _require_mass(system)
    return answer


def _mass_centre(system: System, q: ArrayLike) -> Array:
    """Mass centre (..., 3); the world's origin if there is no mass."""
    expect_system(system)
    rigid, q_rigid = system.rigid_state(q)
    own = reading(rigid, MOMENT, ((3,),), "the mass centre", q_rigid)[0]
    with np.errstate(over="ignore", invalid="ignore"):  # told in the next line
        moment = sum((points.moment for points in system.beside(q)), own)
    return expect_finite(system, moment, "the first moment of mass", q=q) / (system.mass or 1.0)


def _with_points(system: System, q: ArrayLike, v: ArrayLike) -> tuple[Array, Array]:
    """Mass centre of bodies and of what moves beside them, and momentum about it."""
    v_in = checked(system, v, (system.nv,), "v")
    lead, (q_flat, v_flat) = batch(system, q=(configuration(system, q), 1), v=(v_in, 1))
    com, h = _mass_centre(system, q_flat), np.empty((len(q_flat), 6))
    tree, q_tree, v_tree = system.opened(q_flat, v=v_flat)
    if not known(MOMENTUM_ABOUT(tree, len(q_flat), q_tree, v_tree, com, h)):
        raise overflow(system, "the momentum", q=q_flat, v=v_flat)
    with np.errstate(over="ignore", invalid="ignore"):  # told in the next line
        h = sum((points.momentum(com) for points in system.beside(q_flat, v_flat)), h)
    expect_finite(system, h, "the momentum", q=q, v=v)
    return com.reshape((*lead, 3)), h.reshape((*lead, 6))


def _require_mass(system: System) -> None:
    if system.mass == 0:
        raise ModelError(f"system {system.name!r} has no mass, so it has no mass centre; give a body some")
