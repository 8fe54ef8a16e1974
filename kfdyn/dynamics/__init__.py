"""Mechanics solved as estimation: forward dynamics is the smoother, the mass matrix the covariance of T."""

from kfdyn.dynamics.assembly import Forest, as_estimation, as_forest
from kfdyn.dynamics.bias import bias_forces
from kfdyn.dynamics.forward import dynamics_filter, forward_dynamics
from kfdyn.dynamics.hybrid import hybrid_dynamics
from kfdyn.dynamics.inverse import inverse_dynamics
from kfdyn.dynamics.mass_matrix import (
    composite_inertias,
    mass_matrix,
    mass_matrix_logdet,
    mass_matrix_sparsity,
    mass_matrix_trace,
)
from kfdyn.dynamics.mass_matrix_inverse import mass_matrix_inverse
from kfdyn.dynamics.operational_space import operational_space_compliance

__all__ = [
    "Forest",
    "as_estimation",
    "as_forest",
    "bias_forces",
    "composite_inertias",
    "dynamics_filter",
    "forward_dynamics",
    "hybrid_dynamics",
    "inverse_dynamics",
    "mass_matrix",
    "mass_matrix_inverse",
    "mass_matrix_logdet",
    "mass_matrix_sparsity",
    "mass_matrix_trace",
    "operational_space_compliance",
]
