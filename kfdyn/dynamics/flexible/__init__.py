"""Dynamics of flexible systems: the same engine with nodes that are larger than six (SKO 85, THEORY section 17)."""

from kfdyn.dynamics.flexible.assembly import FlexibleForest, flexible_forest
from kfdyn.dynamics.flexible.solve import (
    bias_forces,
    forward_dynamics,
    hybrid_dynamics,
    inverse_dynamics,
    mass_matrix,
    mass_matrix_inverse,
    mass_matrix_logdet,
)

__all__ = [
    "FlexibleForest",
    "bias_forces",
    "flexible_forest",
    "forward_dynamics",
    "hybrid_dynamics",
    "inverse_dynamics",
    "mass_matrix",
    "mass_matrix_inverse",
    "mass_matrix_logdet",
]
