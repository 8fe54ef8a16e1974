"""Mechanics solved as estimation: forward dynamics is the smoother, the mass matrix the covariance of T.

A name is imported when it is first used: who wants forward dynamics need not wait for sensors and loops.
"""

# Functions that are named as their modules are must be here before anybody imports these.
from kfdyn.dynamics.mass_matrix import (
    mass_matrix,
    mass_matrix_logdet,
    mass_matrix_sparsity,
    mass_matrix_trace,
)
from kfdyn.dynamics.mass_matrix_inverse import mass_matrix_inverse
from kfdyn.lazy import on_first_use

_PLACES = {
    "assembly": (
        "Forest",
        "as_estimation",
        "as_forest",
    ),
    "bias": ("bias_forces",),
    "composite": ("composite_inertias",),
    "control": (
        "computed_torque",
        "operational_space_control",
    ),
    "derivatives": (
        "ForwardDerivatives",
        "InverseDerivatives",
        "forward_dynamics_derivatives",
        "inverse_dynamics_derivatives",
    ),
    "forward": (
        "dynamics_filter",
        "forward_dynamics",
    ),
    "gravity": ("gravity_torques",),
    "hybrid": ("hybrid_dynamics",),
    "inverse": ("inverse_dynamics",),
    "logdet_gradient": ("mass_matrix_logdet_gradient",),
    "loops.assemble": (
        "Impact",
        "assemble",
        "impact",
    ),
    "loops.closed": ("constraint_forces",),
    "loops.cut_joint": (
        "CutJoint",
        "cut_joint",
    ),
    "loops.minimal": (
        "MinimalCoordinates",
        "minimal_coordinates",
    ),
    "operational_space": ("operational_space_compliance",),
    "sensors": (
        "DynamicsEstimate",
        "Observability",
        "Placement",
        "estimate_dynamics",
        "observability",
        "place_sensors",
    ),
    "simulation.motion": ("with_armature",),
    "simulation.feedback": ("LinearFeedback",),
    "simulation.simulate": ("simulate",),
    "simulation.state_equation": ("state_derivative",),
    "simulation.trajectory": ("Trajectory",),
    "theory.boundary_value": ("BoundaryValueProblem",),
    "theory.causes": (
        "AccelerationCauses",
        "Responses",
        "acceleration_causes",
        "causes_of_outputs",
        "inverse_element",
    ),
    "theory.decomposition": (
        "ForceDecompositions",
        "decompose_forces",
        "force_decompositions",
    ),
    "theory.parted": ("Partition",),
    "theory.partition": ("partition_hinges",),
    "theory.succession": (
        "behind_modes",
        "succession",
    ),
    "vibration": (
        "Modes",
        "modes",
    ),
}
__getattr__, __dir__, _names = on_first_use(__name__, _PLACES, rooms=("sensors",))

__all__ = [
    "mass_matrix",
    "mass_matrix_inverse",
    "mass_matrix_logdet",
    "mass_matrix_sparsity",
    "mass_matrix_trace",
    "sensors",
    *_names,
]
