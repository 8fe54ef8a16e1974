"""Flexible systems: the same engine with nodes that are larger than six (SKO 85, THEORY section 17).

What they do in a way of their own (:mod:`kfdyn.dynamics.solving.kinds`).
"""

from kfdyn.dynamics.flexible.assembly import FlexibleForest, blocks, flexible_forest
from kfdyn.dynamics.flexible.solve import (
    bias_forces,
    compliance_of,
    forward_dynamics,
    forward_dynamics_by,
    hybrid_dynamics,
    inverse_dynamics,
    inverse_dynamics_by,
    mass_matrix,
    mass_matrix_by,
    mass_matrix_inverse,
    mass_matrix_inverse_by,
    mass_matrix_sparsity,
    singular_node,
)
from kfdyn.dynamics.flexible.solve import finite_forest as forest

__all__ = [
    "FlexibleForest",
    "bias_forces",
    "blocks",
    "compliance_of",
    "flexible_forest",
    "forest",
    "forward_dynamics",
    "forward_dynamics_by",
    "hybrid_dynamics",
    "inverse_dynamics",
    "inverse_dynamics_by",
    "mass_matrix",
    "mass_matrix_by",
    "mass_matrix_inverse",
    "mass_matrix_inverse_by",
    "mass_matrix_sparsity",
    "singular_node",
]
