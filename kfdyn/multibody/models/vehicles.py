"""Floating systems: a satellite with two arms, a humanoid."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.arrays import Array
from kfdyn.multibody.parts.body import Body, Frame
from kfdyn.multibody.parts.hinge import Hinge
from kfdyn.multibody.system import System
from kfdyn.spatial import spatial_inertia

X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)


def box(mass: float, size: ArrayLike, center: ArrayLike = (0.0, 0.0, 0.0)) -> Array:
    """Spatial inertia (6, 6) of a homogeneous box with edges ``size`` (3,), its centre at ``center``."""
    x, y, z = np.square(np.asarray(size, dtype=float))
    return spatial_inertia(mass, center, np.diag([y + z, x + z, x + y]) * mass / 12)


def free_flyer() -> System:
    """Satellite with two arms of seven joints, no gravity: 20 dofs, momentum conserved.

    A homogeneous box of 400 kg on a free hinge carries two equal arms (yaw, pitch, roll at the shoulder,
    an elbow, and a wrist of three) of 22.5 kg each. The numbers are round, not those of a real satellite.

    Returns
    -------
    System
        15 bodies, ``"left_grip"`` and ``"right_grip"`` as frames.

    Examples
    --------
    >>> robot = free_flyer()
    >>> robot.nv, robot.mass, robot.hinge_names[:3]
    (20, 445.0, ('bus', 'left_shoulder_yaw', 'left_shoulder_pitch'))
    """
    bodies = [Body("bus", box(400.0, (1.2, 1.0, 1.5)), Hinge.free())]
    frames = {}
    for side, sign in (("left", 1.0), ("right", -1.0)):
        parent, at = "bus", (0.6, sign * 0.4, 0.0)
        for joint, axis, length, mass in (
            ("shoulder_yaw", Z, 0.0, 1.5),
            ("shoulder_pitch", Y, 0.0, 1.5),
            ("upper_arm", X, 0.8, 8.0),
            ("forearm", Y, 0.8, 7.0),
            ("wrist_roll", X, 0.1, 1.5),
            ("wrist_pitch", Y, 0.0, 1.0),
            ("gripper", Z, 0.2, 2.0),
        ):
            name = f"{side}_{joint}"
            inertia = box(mass, (max(length, 0.1), 0.12, 0.1), (length / 2, 0.0, 0.0))
            bodies.append(Body(name, inertia, Hinge.revolute(axis), parent, position=at, armature=0.05))
            parent, at = name, (length, 0.0, 0.0)
        frames[f"{side}_grip"] = Frame(parent, position=at)
    return System(bodies, gravity=(0.0, 0.0, 0.0), frames=frames, name="free flyer")


_Vector = tuple[float, float, float]
# name, parent, position in the parent, hinge, mass, edges and centre of its box
_Part = tuple[str, str | None, _Vector, Hinge, float, _Vector, _Vector]
_TRUNK: tuple[_Part, ...] = (
    ("pelvis", None, (0, 0, 0), Hinge.free(), 10.0, (0.2, 0.3, 0.2), (0, 0, 0)),
    ("torso", "pelvis", (0, 0, 0.1), Hinge.gimbal(Z, Y, X), 20.0, (0.2, 0.35, 0.45), (0, 0, 0.25)),
    ("head", "torso", (0, 0, 0.55), Hinge.universal(Z, Y), 4.5, (0.18, 0.15, 0.25), (0, 0, 0.12)),
)
# the left side; y is mirrored for the right
_SIDE: tuple[_Part, ...] = (
    ("thigh", "pelvis", (0, 0.1, -0.05), Hinge.ball(), 8.0, (0.15, 0.15, 0.4), (0, 0, -0.2)),
    ("shank", "thigh", (0, 0, -0.4), Hinge.revolute(Y), 4.0, (0.1, 0.1, 0.4), (0, 0, -0.2)),
    ("foot", "shank", (0, 0, -0.4), Hinge.universal(Y, X), 1.2, (0.25, 0.1, 0.06), (0.05, 0, -0.04)),
    ("toes", "foot", (0.15, 0, -0.05), Hinge.revolute(Y), 0.3, (0.08, 0.1, 0.03), (0.04, 0, 0)),
    ("clavicle", "torso", (0, 0.08, 0.42), Hinge.universal(Z, X), 1.0, (0.06, 0.12, 0.06), (0, 0.06, 0)),
    ("upper_arm", "clavicle", (0, 0.12, 0), Hinge.ball(), 2.2, (0.09, 0.09, 0.3), (0, 0, -0.15)),
    ("forearm", "upper_arm", (0, 0, -0.3), Hinge.revolute(Y), 1.4, (0.07, 0.07, 0.25), (0, 0, -0.12)),
    ("hand", "forearm", (0, 0, -0.25), Hinge.gimbal(Z, X, Y), 0.5, (0.08, 0.03, 0.18), (0, 0, -0.09)),
)


def humanoid() -> System:
    """Humanoid of 19 bodies and 43 dofs on a free pelvis, 71.7 kg, z up, facing x.

    Balls at hips and shoulders, gimbals at waist and wrists, universals at neck, clavicles and ankles,
    revolutes at knees, elbows and toes: a tree that uses every rotary hinge. The numbers are round.

    Returns
    -------
    System
        19 bodies, ``"left_sole"`` and ``"right_sole"`` as frames.

    Examples
    --------
    >>> robot = humanoid()
    >>> robot.nv, round(robot.mass, 1), robot.v_slice("left_thigh")
    (43, 71.7, slice(11, 14, None))
    """
    parts: list[_Part] = list(_TRUNK)
    trunk = {"pelvis", "torso", "head"}
    for side, sign in (("left", 1), ("right", -1)):
        for name, parent, at, hinge, mass, size, center in _SIDE:
            inboard = parent if parent in trunk else f"{side}_{parent}"
            mirrored = (at[0], sign * at[1], at[2]), (center[0], sign * center[1], center[2])
            parts.append((f"{side}_{name}", inboard, mirrored[0], hinge, mass, size, mirrored[1]))
    bodies = [
        Body(name, box(mass, size, center), hinge, parent, position=at, armature=0.0 if parent is None else 0.01)
        for name, parent, at, hinge, mass, size, center in parts
    ]
    frames = {f"{side}_sole": Frame(f"{side}_foot", position=(0.05, 0.0, -0.07)) for side in ("left", "right")}
    return System(bodies, frames=frames, name="humanoid")
