"""Mechanics of trees of bodies: hinges, systems, kinematics, energy. Knows nothing of filters."""

from kfdyn.multibody import models
from kfdyn.multibody.absolute import absolute_angles
from kfdyn.multibody.coordinates.configuration import difference, integrate, random_configuration
from kfdyn.multibody.energy import (
    center_of_mass,
    centroidal_momentum,
    kinetic_energy,
    momentum,
    potential_energy,
)
from kfdyn.multibody.flexible import FlexibleBody, FlexibleSystem, beam, from_finite_elements
from kfdyn.multibody.frame_derivatives import frame_acceleration_derivatives, frame_velocity_derivatives
from kfdyn.multibody.kinematics import (
    Pose,
    frame_acceleration,
    frame_bias_acceleration,
    frame_pose,
    frame_velocity,
    jacobian,
)
from kfdyn.multibody.links import LinkTerms, link_terms
from kfdyn.multibody.loops.loop import Loop
from kfdyn.multibody.parts.body import Body, Frame
from kfdyn.multibody.parts.coupling import Coupling
from kfdyn.multibody.parts.hinge import Hinge
from kfdyn.multibody.parts.origin import Origin
from kfdyn.multibody.parts.rotor import Rotor, with_rotors
from kfdyn.multibody.parts.series_elastic import FlexibleJoint
from kfdyn.multibody.specialise import specialise
from kfdyn.multibody.system import System
from kfdyn.multibody.system_batch import SystemBatch, with_parameters
from kfdyn.multibody.tangents import difference_derivatives, integrate_derivatives

__all__ = [
    "Body",
    "Coupling",
    "FlexibleBody",
    "FlexibleJoint",
    "FlexibleSystem",
    "Frame",
    "Hinge",
    "LinkTerms",
    "Loop",
    "Origin",
    "Pose",
    "Rotor",
    "System",
    "SystemBatch",
    "absolute_angles",
    "beam",
    "center_of_mass",
    "centroidal_momentum",
    "difference",
    "difference_derivatives",
    "frame_acceleration",
    "frame_acceleration_derivatives",
    "frame_bias_acceleration",
    "frame_pose",
    "frame_velocity",
    "frame_velocity_derivatives",
    "from_finite_elements",
    "integrate",
    "integrate_derivatives",
    "jacobian",
    "kinetic_energy",
    "link_terms",
    "models",
    "momentum",
    "potential_energy",
    "random_configuration",
    "specialise",
    "with_parameters",
    "with_rotors",
]
