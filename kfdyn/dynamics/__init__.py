"""Mechanics solved as estimation: forward dynamics is the smoother, the mass matrix the covariance of T."""

from kfdyn.dynamics import sensors
from kfdyn.dynamics.assembly import Forest, as_estimation, as_forest
from kfdyn.dynamics.bias import bias_forces
from kfdyn.dynamics.control import computed_torque, operational_space_control
from kfdyn.dynamics.derivatives import (
    ForwardDerivatives,
    InverseDerivatives,
    forward_dynamics_derivatives,
    inverse_dynamics_derivatives,
)
from kfdyn.dynamics.forward import dynamics_filter, forward_dynamics
from kfdyn.dynamics.hybrid import hybrid_dynamics
from kfdyn.dynamics.inverse import inverse_dynamics
from kfdyn.dynamics.logdet_gradient import mass_matrix_logdet_gradient
from kfdyn.dynamics.loops.assemble import Impact, assemble, impact
from kfdyn.dynamics.loops.closed import constraint_forces
from kfdyn.dynamics.loops.cut_joint import CutJoint, cut_joint
from kfdyn.dynamics.loops.minimal import MinimalCoordinates, minimal_coordinates
from kfdyn.dynamics.mass_matrix import (
    composite_inertias,
    mass_matrix,
    mass_matrix_logdet,
    mass_matrix_sparsity,
    mass_matrix_trace,
)
from kfdyn.dynamics.mass_matrix_inverse import mass_matrix_inverse
from kfdyn.dynamics.operational_space import operational_space_compliance
from kfdyn.dynamics.sensors import (
    DynamicsEstimate,
    Observability,
    Placement,
    estimate_dynamics,
    observability,
    place_sensors,
)
from kfdyn.dynamics.simulation.feedback import LinearFeedback
from kfdyn.dynamics.simulation.simulate import simulate
from kfdyn.dynamics.simulation.state_equation import state_derivative
from kfdyn.dynamics.simulation.trajectory import Trajectory
from kfdyn.dynamics.theory.boundary_value import BoundaryValueProblem
from kfdyn.dynamics.theory.causes import (
    AccelerationCauses,
    Responses,
    acceleration_causes,
    causes_of_outputs,
    inverse_element,
)
from kfdyn.dynamics.theory.decomposition import ForceDecompositions, decompose_forces, force_decompositions
from kfdyn.dynamics.theory.partition import Partition, behind_modes, partition_hinges, succession
from kfdyn.dynamics.vibration import Modes, modes

__all__ = [
    "AccelerationCauses",
    "BoundaryValueProblem",
    "CutJoint",
    "DynamicsEstimate",
    "ForceDecompositions",
    "Forest",
    "ForwardDerivatives",
    "Impact",
    "InverseDerivatives",
    "LinearFeedback",
    "MinimalCoordinates",
    "Modes",
    "Observability",
    "Partition",
    "Placement",
    "Responses",
    "Trajectory",
    "acceleration_causes",
    "as_estimation",
    "as_forest",
    "assemble",
    "behind_modes",
    "bias_forces",
    "causes_of_outputs",
    "composite_inertias",
    "computed_torque",
    "constraint_forces",
    "cut_joint",
    "decompose_forces",
    "dynamics_filter",
    "estimate_dynamics",
    "force_decompositions",
    "forward_dynamics",
    "forward_dynamics_derivatives",
    "hybrid_dynamics",
    "impact",
    "inverse_dynamics",
    "inverse_dynamics_derivatives",
    "inverse_element",
    "mass_matrix",
    "mass_matrix_inverse",
    "mass_matrix_logdet",
    "mass_matrix_logdet_gradient",
    "mass_matrix_sparsity",
    "mass_matrix_trace",
    "minimal_coordinates",
    "modes",
    "observability",
    "operational_space_compliance",
    "operational_space_control",
    "partition_hinges",
    "place_sensors",
    "sensors",
    "simulate",
    "state_derivative",
    "succession",
]
