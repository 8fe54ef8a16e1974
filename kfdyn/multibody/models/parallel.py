"""Parallel robots: the Stewart platform, six legs and six loops, and the delta robot, three arms and three loops."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.arrays import Array
from kfdyn.errors import ModelError
from kfdyn.multibody.loops.loop import Loop
from kfdyn.multibody.models.linkages import rod
from kfdyn.multibody.parts.body import Body, Frame
from kfdyn.multibody.parts.hinge import Hinge
from kfdyn.multibody.system import System
from kfdyn.spatial import spatial_inertia

X, Y, Z = np.eye(3)
# Directions of the Stewart platform's joints: pairs, 120° apart, turned against each other below and above.
_BASE = np.deg2rad([-15.0, 15.0, 105.0, 135.0, 225.0, 255.0])
_TOP = np.deg2rad([-45.0, 45.0, 75.0, 165.0, 195.0, 285.0])
_BASE_RADIUS, _TOP_RADIUS = 1.0, 0.6
_LEG = 0.6  # length of the lower part of a leg


def _circle(radius: float, angles: Array) -> Array:
    return np.stack([radius * np.cos(angles), radius * np.sin(angles), np.zeros_like(angles)], axis=-1)


def stewart_platform(platform_mass: float = 10.0, leg_mass: float = 1.0) -> System:
    """Stewart platform: six legs that slide, on universal joints below, with a ball each under the platform.

    q is (two angles, slide) of each leg in turn and then the platform's pose: 18 + 7 numbers; v 18 + 6. Each ball is
    a loop that closes a point.

    Parameters
    ----------
    platform_mass, leg_mass : float
        In kg; the two parts of a leg have half of its mass each.

    Returns
    -------
    System
        13 bodies, 6 loops, 6 degrees of freedom.

    Examples
    --------
    >>> import kfdyn as kf
    >>> robot = stewart_platform()
    >>> q = stewart_configuration([0.0, 0.0, 1.2])
    >>> kf.minimal_coordinates(robot, q).X.shape
    (24, 6)
    """
    foot, corner = _circle(_BASE_RADIUS, _BASE), _circle(_TOP_RADIUS, _TOP)
    upright = np.array([[0.0, 0, -1], [0, 1, 0], [1, 0, 0]])  # x of a rod points up
    bodies, frames, loops = [], {}, []
    for i in range(6):
        lower, upper = f"cylinder_{i}", f"piston_{i}"
        bodies += [
            Body(lower, rod(_LEG, leg_mass / 2), Hinge.universal(Y, Z), None, upright, foot[i]),
            Body(upper, rod(_LEG, leg_mass / 2), Hinge.prismatic(X), lower),
        ]
        frames[f"leg_{i}"] = Frame(upper, position=[_LEG, 0, 0])
        frames[f"corner_{i}"] = Frame("platform", position=corner[i])
        loops.append(Loop(f"leg_{i}", f"corner_{i}", rows="point", name=f"ball {i}"))
    disc = spatial_inertia(platform_mass, np.zeros(3), platform_mass * _TOP_RADIUS**2 * np.diag([0.25, 0.25, 0.5]))
    bodies.append(Body("platform", disc, Hinge.free()))
    return System(bodies, frames=frames, name="stewart_platform", loops=loops)


def stewart_configuration(position: ArrayLike, rotation: ArrayLike | None = None) -> Array:
    """The closed q (25,) of the Stewart platform for a pose of its platform, by geometry.

    Parameters
    ----------
    position : (3,)
        Of the platform.
    rotation : (3, 3), optional
        Of the platform; level if not given.

    Returns
    -------
    (25,) array

    Examples
    --------
    >>> stewart_configuration([0.0, 0.0, 1.2]).shape
    (25,)
    """
    from kfdyn.spatial import matrix_to_quaternion

    R, p = np.eye(3) if rotation is None else np.asarray(rotation, float), np.asarray(position, float)
    legs = p + _circle(_TOP_RADIUS, _TOP) @ R.T - _circle(_BASE_RADIUS, _BASE)
    q = []
    for x, y, z in legs:
        # in the leg's own axes (up, y, −x) the rod points along Ry(a) Rz(b) e_x = (cos a cos b, sin b, −sin a cos b)
        length = float(np.sqrt(x * x + y * y + z * z))
        q += [np.arctan2(x, z), np.arcsin(y / length), length - _LEG]
    return np.concatenate([q, p, matrix_to_quaternion(R)])


_ARM, _FOREARM, _HIP, _WRIST = 0.3, 0.8, 0.25, 0.06
_DIRECTIONS = np.deg2rad([0.0, 120.0, 240.0])


def delta_robot(arm_mass: float = 0.5, forearm_mass: float = 0.3, platform_mass: float = 0.4) -> System:
    """Delta robot: three driven arms under a ceiling, with forearms that hold a platform level.

    q is (arm, two angles of the forearm) of each side in turn and then the platform's place: 12 numbers. The
    parallelograms of the forearms, which keep the platform from turning, are replaced by three slides that carry it;
    each forearm is one rod, and a loop closes a point at its end.

    Parameters
    ----------
    arm_mass, forearm_mass, platform_mass : float
        In kg.

    Returns
    -------
    System
        7 bodies, 3 loops, 3 degrees of freedom.

    Examples
    --------
    >>> import kfdyn as kf
    >>> robot = delta_robot()
    >>> q = kf.assemble(robot, delta_configuration([0.05, 0.1, -0.7]))
    >>> kf.minimal_coordinates(robot, q).X.shape
    (12, 3)
    """
    bodies, frames, loops = [], {}, []
    for i, angle in enumerate(_DIRECTIONS):
        c, s = np.cos(angle), np.sin(angle)
        outward = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1.0]])
        arm, forearm = f"arm_{i}", f"forearm_{i}"
        bodies += [
            Body(arm, rod(_ARM, arm_mass), Hinge.revolute(Y), None, outward, outward @ [_HIP, 0, 0]),
            Body(forearm, rod(_FOREARM, forearm_mass), Hinge.universal(Y, Z), arm, position=[_ARM, 0, 0]),
        ]
        frames[f"end_{i}"] = Frame(forearm, position=[_FOREARM, 0, 0])
        frames[f"wrist_{i}"] = Frame("platform", position=outward @ [_WRIST, 0, 0])
        loops.append(Loop(f"end_{i}", f"wrist_{i}", rows="point", name=f"wrist {i}"))
    slides = np.zeros((3, 6))
    slides[:, 3:] = np.eye(3)
    disc = spatial_inertia(platform_mass, np.zeros(3), 1e-3 * platform_mass * np.eye(3))
    bodies.append(Body("platform", disc, Hinge.succession(slides)))
    return System(bodies, frames=frames, name="delta_robot", loops=loops)


def delta_configuration(position: ArrayLike) -> Array:
    """The closed q (12,) of the delta robot for a place of its platform, by geometry; elbows outward.

    Parameters
    ----------
    position : (3,)
        Of the platform; below the ceiling z is negative.

    Returns
    -------
    (12,) array

    Examples
    --------
    >>> delta_configuration([0.0, 0.0, -0.7]).shape
    (12,)
    """
    p = np.asarray(position, float)
    q: list[float] = []
    for i, angle in enumerate(_DIRECTIONS):
        c, s = np.cos(angle), np.sin(angle)
        x, y, z = np.array([[c, s, 0], [-s, c, 0], [0, 0, 1.0]]) @ p + [_WRIST - _HIP, 0, 0]
        # arm along (cos t, 0, −sin t); |wrist − elbow| = forearm gives A cos t + B sin t = C
        A, B = 2 * _ARM * x, -2 * _ARM * z
        C = x * x + y * y + z * z + _ARM**2 - _FOREARM**2
        size = np.hypot(A, B)
        if abs(C) > size:
            raise ModelError(f"the delta robot cannot reach {p.tolist()}: arm {i} is too short or too long")
        t = np.arctan2(B, A) - np.arccos(C / size)
        u = np.array([x - _ARM * np.cos(t), y, z + _ARM * np.sin(t)]) / _FOREARM
        # Ry(t + a) Rz(b) e_x = (cos(t + a) cos b, sin b, −sin(t + a) cos b)
        q += [t, np.arctan2(-u[2], u[0]) - t, np.arcsin(np.clip(u[1], -1, 1))]
    return np.concatenate([q, p])
