"""kfdyn: robot dynamics is a Kalman filter.

The names below are the public door; each is imported from its room when first used, so that
``import kfdyn`` costs little more than ``import numpy``.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_NAMES_OF = {
    "kfdyn.duality": (
        "Report",
        "cross_check",
    ),
    "kfdyn.dynamics": (
        "BoundaryValueProblem",
        "DynamicsEstimate",
        "CutJoint",
        "Impact",
        "LinearFeedback",
        "MinimalCoordinates",
        "Modes",
        "Trajectory",
        "acceleration_causes",
        "as_estimation",
        "assemble",
        "bias_forces",
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
        "observability",
        "modes",
        "operational_space_compliance",
        "operational_space_control",
        "partition_hinges",
        "place_sensors",
        "sensors",
        "simulate",
        "state_derivative",
    ),
    "kfdyn.estimation": (
        "Blocks",
        "Covariances",
        "Filtered",
        "Fit",
        "InnovationsFactor",
        "Operators",
        "OutwardPosterior",
        "OutwardScore",
        "OutwardTree",
        "ParallelFiltered",
        "Phylogeny",
        "Riccati",
        "Smoothed",
        "SmoothedBatch",
        "Score",
        "StateSpace",
        "Tree",
        "adjoint_mismatch",
        "backward_lyapunov",
        "bryson_frazier",
        "draw",
        "draw_posterior",
        "fit",
        "forward_lyapunov",
        "innovations_factor",
        "kalman_filter",
        "parallel_filter",
        "likelihood",
        "series",
        "score",
        "smooth_batch",
    ),
    "kfdyn.estimation.fast_gain": ("FastFiltered", "FastGain", "fast_filter", "fast_gain"),
    "kfdyn.estimation.riccati": ("riccati",),
    "kfdyn.io": (
        "LoadWarning",
        "Loaded",
        "describe",
        "from_mujoco",
        "from_mujoco_q",
        "from_pinocchio",
        "load",
        "read",
        "save_urdf",
        "to_mujoco",
        "to_mujoco_q",
        "to_pinocchio",
    ),
    "kfdyn.multibody": (
        "Body",
        "Coupling",
        "Rotor",
        "with_rotors",
        "FlexibleBody",
        "FlexibleJoint",
        "FlexibleSystem",
        "Frame",
        "Hinge",
        "Loop",
        "System",
        "absolute_angles",
        "beam",
        "center_of_mass",
        "centroidal_momentum",
        "difference",
        "frame_acceleration",
        "frame_bias_acceleration",
        "frame_pose",
        "frame_velocity",
        "from_finite_elements",
        "integrate",
        "jacobian",
        "kinetic_energy",
        "models",
        "momentum",
        "potential_energy",
        "specialise",
    ),
}
_ROOMS = ("errors", "symbolic", "textbook", "viz")
_HOME_OF = {name: home for home, names in _NAMES_OF.items() for name in names}

__all__ = ["__version__", *sorted([*_HOME_OF, *_ROOMS])]


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        value = getattr(import_module(_HOME_OF[name]), name)
        globals()[name] = value
        return value
    if name in _ROOMS:
        return import_module(f"kfdyn.{name}")
    raise AttributeError(f"module 'kfdyn' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
