"""The Stanford (Scheinman) arm: five revolute joints and one prismatic."""

from __future__ import annotations

from math import pi

import numpy as np

from kfdyn.multibody.parts.body import Body, Frame
from kfdyn.multibody.parts.hinge import Hinge
from kfdyn.multibody.system import System
from kfdyn.spatial import rotate_inertia, rotation_from_rpy, shift_inertia, skew

# Denavit-Hartenberg parameters: link k's frame is turned by theta about, and moved by d along, the axis of
# joint k, then twisted by alpha about x. All a are zero. Joint 3 slides.
#         theta    d      alpha
KINEMATICS = (
    (0.0, 0.412, -pi / 2),
    (0.0, 0.154, pi / 2),
    (-pi / 2, 0.0, 0.0),
    (0.0, 0.0, -pi / 2),
    (0.0, 0.0, pi / 2),
    (0.0, 0.0, 0.0),
)
HAND = 0.263  # from the wrist to the hand, along the last axis
# mass (kg), mass centre (cm) and moments of inertia (kg m²) in the link's frame about its origin, and the
# actuator's inertia at the joint (kg m², joint 3: kg)
LINKS = (
    (9.29, (0.0, 1.75, -11.05), (0.276, 0.255, 0.071), 0.953),
    (5.01, (0.0, -10.54, 0.0), (0.108, 0.018, 0.100), 2.193),
    (4.25, (0.0, 0.0, -64.47), (2.51, 2.51, 0.006), 0.782),
    (1.08, (0.0, 0.92, -0.54), (0.002, 0.001, 0.001), 0.106),
    (0.63, (0.0, 0.0, 5.66), (0.003, 0.003, 0.0004), 0.097),
    (0.51, (0.0, 0.0, 15.54), (0.013, 0.013, 0.0003), 0.020),
)


def stanford_arm() -> System:
    """Build the Stanford arm with Scheinman's kinematics and the masses and inertias Bejczy measured.

    Kinematics: Paul, "Modelling, trajectory calculation and servoing of a computer controlled arm",
    Stanford AIM-177 (1972), figure 2.3. Masses, mass centres, inertias and actuator inertias (here:
    armature): Paul, "Robot manipulators: mathematics, programming and control" (1981), tables 6.5 and
    6.6, after Bejczy, JPL TM 33-669 (1974). The mass centres are in centimetres and the inertias about
    the link frames' origins, as Paul's pseudo-inertia matrices have them (about the mass centres a hand
    of 0.5 kg would have a radius of gyration of 16 cm). The frames of links 4 to 6 are at the wrist; the
    hand is the frame ``"hand"``.

    Returns
    -------
    System
        Five revolute hinges and a slide.

    Examples
    --------
    >>> arm = stanford_arm()
    >>> arm.nv, round(arm.mass, 2), arm.bodies[2].hinge.kind
    (6, 20.77, 'prismatic')
    """
    bodies: list[Body] = []
    rotation, position = np.eye(3), np.zeros(3)  # of joint k's axis in the frame of the body before
    for k, ((theta, d, alpha), (mass, com, moments, drive)) in enumerate(zip(KINEMATICS, LINKS)):
        link = rotation_from_rpy([0, 0, theta]) @ rotation_from_rpy([alpha, 0, 0])
        offset = np.array([0, 0, d])
        bodies.append(
            Body(
                f"link_{k + 1}",
                _about_joint(mass, np.array(com) / 100, np.diag(moments), link, offset),
                Hinge.prismatic([0, 0, 1]) if k == 2 else Hinge.revolute([0, 0, 1]),
                f"link_{k}" if k else None,
                rotation,
                position,
                f"joint_{k + 1}",
                armature=drive,
            )
        )
        rotation, position = link, offset
    return System(bodies, frames={"hand": Frame("link_6", position=(0, 0, HAND))}, name="Stanford arm")


def _about_joint(mass: float, com: np.ndarray, J: np.ndarray, rotation: np.ndarray, position: np.ndarray) -> np.ndarray:
    """Spatial inertia about the joint, from J about the origin of a link frame placed there."""
    about_origin = np.block([[J, mass * skew(com)], [-mass * skew(com), mass * np.eye(3)]])
    return shift_inertia(rotate_inertia(about_origin, rotation), position)
