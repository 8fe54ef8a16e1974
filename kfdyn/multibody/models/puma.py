"""The PUMA 560, as it was taken apart and measured."""

from __future__ import annotations

import warnings
from math import pi

import numpy as np

from kfdyn.multibody.parts.body import Body
from kfdyn.multibody.parts.hinge import Hinge
from kfdyn.multibody.system import System
from kfdyn.spatial import TriangleInequalityWarning, rotation_from_rpy, spatial_inertia

# Craig's (modified) Denavit-Hartenberg parameters: alpha and a lead from the frame before, d along the axis.
#         alpha     a        d
KINEMATICS = (
    (0.0, 0.0, 0.0),
    (-pi / 2, 0.0, 0.2435),
    (0.0, 0.4318, -0.0934),
    (pi / 2, -0.0203, 0.4331),
    (-pi / 2, 0.0, 0.0),
    (pi / 2, 0.0, 0.0),
)
# mass, mass centre, principal moments about it, motor and drive inertia at the joint
LINKS = (
    (0.0, (0.0, 0.0, 0.0), (0.175, 0.175, 0.35), 1.14),
    (17.40, (0.068, 0.006, -0.016), (0.130, 0.524, 0.539), 4.71),
    (4.80, (0.0, -0.070, 0.014), (0.066, 0.0125, 0.086), 0.827),
    (0.82, (0.0, 0.0, -0.019), (1.8e-3, 1.8e-3, 1.3e-3), 0.200),
    (0.34, (0.0, 0.0, 0.0), (0.3e-3, 0.3e-3, 0.4e-3), 0.179),
    (0.09, (0.0, 0.0, 0.032), (0.15e-3, 0.15e-3, 0.04e-3), 0.193),
)


def puma560() -> System:
    """Unimation PUMA 560 with its measured masses, inertias and drives; the world's origin is its shoulder.

    Frames, masses, mass centres, inertias and effective motor inertias (here: armature) are those of
    Armstrong, Khatib and Burdick, "The explicit dynamic model and inertial parameters of the PUMA 560
    arm", IEEE Int. Conf. Robotics and Automation 1986: link frames after Craig, and the tables of link
    masses, centres of gravity, and inertia dyadics with motor inertia. The wrist links' values were
    derived there from dimensions; the angle zero is theirs (upper arm level, forearm up).

    Two things are not in the paper because they do not matter on a fixed base: the mass of link 1 (0
    here) and its moments about x and y (half the one about z here). Link 3 as published breaks the
    triangle inequality by a tenth (0.066 + 0.0125 < 0.086); it is used as it is, without a warning.

    Returns
    -------
    System
        Six revolute hinges, rotors included.

    Examples
    --------
    >>> arm = puma560()
    >>> arm.nv, round(arm.mass, 2)
    (6, 23.45)
    """
    bodies = [
        Body(
            f"link_{k + 1}",
            spatial_inertia(mass, com, np.diag(moments)),
            Hinge.revolute([0, 0, 1]),
            f"link_{k}" if k else None,
            turn := rotation_from_rpy([alpha, 0, 0]),
            np.array([a, 0, 0]) + turn @ [0, 0, d],
            f"joint_{k + 1}",
            armature=drive,
        )
        for k, ((alpha, a, d), (mass, com, moments, drive)) in enumerate(zip(KINEMATICS, LINKS))
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TriangleInequalityWarning)
        return System(bodies, name="PUMA 560")
