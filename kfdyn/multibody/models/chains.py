"""Pendulums and serial chains."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.errors import ModelError
from kfdyn.multibody.models.random_bodies import random_inertia, random_rotation, random_unit
from kfdyn.multibody.parts.body import Body
from kfdyn.multibody.parts.hinge import Hinge
from kfdyn.multibody.system import System
from kfdyn.spatial import spatial_inertia

POINT = np.zeros((3, 3))


def pendulum(mass: float = 1.0, length: float = 1.0, armature: float = 0.0) -> System:
    """Point mass on a mass-less rod, turning about y; hangs along −z when q = 0.

    (m l² + R) q̈ = τ − m g l sin q.

    Parameters
    ----------
    mass, length : float
        Of the bob, and of the rod [kg, m].
    armature : float
        Rotor inertia R of the hinge [kg m²].

    Returns
    -------
    System
        One body, ``"bob"``, on the hinge ``"pivot"``.

    Examples
    --------
    Two metres long and held out level, it begins to fall with g/l:

    >>> import numpy as np, kfdyn as kf
    >>> kf.forward_dynamics(pendulum(length=2.0), [0.5 * np.pi], [0.0], [0.0])
    array([-4.905])
    """
    bob = spatial_inertia(mass, [0, 0, -length], POINT)
    return System([Body("bob", bob, Hinge.revolute([0, 1, 0]), hinge_name="pivot", armature=armature)], name="pendulum")


def double_pendulum(mass: ArrayLike = (1.0, 1.0), length: ArrayLike = (1.0, 1.0)) -> System:
    """Two point masses on mass-less rods, both hinges about y; q are relative angles.

    Parameters
    ----------
    mass, length : scalar or (2,)

    Returns
    -------
    System
        Bodies ``"upper"`` and ``"lower"``.

    Examples
    --------
    >>> double_pendulum().hinge_names
    ('shoulder', 'elbow')
    """
    (m1, m2), (l1, l2) = np.broadcast_to(mass, 2), np.broadcast_to(length, 2)
    about_y = Hinge.revolute([0, 1, 0])
    return System(
        [
            Body("upper", spatial_inertia(m1, [0, 0, -l1], POINT), about_y, hinge_name="shoulder"),
            Body(
                "lower",
                spatial_inertia(m2, [0, 0, -l2], POINT),
                about_y,
                "upper",
                position=[0, 0, -l1],
                hinge_name="elbow",
            ),
        ],
        name="double pendulum",
    )


def chain(n: int, seed: int = 0) -> System:
    """Serial arm of n bodies on revolute hinges, no two alike: random axes, links, inertias, rotors.

    Parameters
    ----------
    n
        Number of bodies, dofs and links.
    seed
        The same seed gives the same chain.

    Returns
    -------
    System
        Bodies ``"link_0"``, ``"link_1"``, ... from the base.

    Examples
    --------
    >>> arm = chain(5)
    >>> arm.nv, len({float(body.inertia[5, 5]) for body in arm.bodies})
    (5, 5)
    """
    _require_bodies(n)
    rng = np.random.default_rng(seed)
    axis, inertia, rotation = random_unit(rng, n), random_inertia(rng, n), random_rotation(rng, n)
    position, armature = rng.normal(size=(n, 3), scale=0.3), rng.uniform(0.01, 0.1, n).tolist()
    bodies = [
        Body(
            f"link_{k}",
            inertia[k],
            Hinge.revolute(axis[k]),
            f"link_{k - 1}" if k else None,
            rotation[k],
            position[k],
            f"joint_{k}",
            armature=armature[k],
        )
        for k in range(n)
    ]
    return System(bodies, name=f"chain({n})")


def uniform_chain(n: int, length: float = 1.0, mass: float = 1.0, hinge: Hinge | None = None) -> System:
    """N equal thin rods along x, end to end: φ, H and M are the same at every node when q = 0.

    Parameters
    ----------
    n
        Number of rods.
    length, mass
        Of each rod.
    hinge
        Revolute about z unless given; with universal hinges (about y and z) the Riccati recursion of the
        chain converges, with revolute ones only D and G do (R86 section 12).

    Returns
    -------
    System
        Bodies ``"rod_0"``, ``"rod_1"``, ... from the base.

    Examples
    --------
    >>> uniform_chain(100).mass
    100.0
    """
    _require_bodies(n)
    across = mass * length**2 / 12
    rod = spatial_inertia(mass, [length / 2, 0, 0], np.diag([0, across, across]))
    hinge = Hinge.revolute([0, 0, 1]) if hinge is None else hinge
    bodies = [
        Body(
            f"rod_{k}",
            rod,
            hinge,
            f"rod_{k - 1}" if k else None,
            position=[length, 0, 0] if k else [0, 0, 0],
            hinge_name=f"joint_{k}",
        )
        for k in range(n)
    ]
    return System(bodies, name=f"uniform_chain({n})")


def _require_bodies(n: int) -> None:
    if n < 1:
        raise ModelError(f"a chain needs at least one body, got n = {n}")
