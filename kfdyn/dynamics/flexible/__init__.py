"""Flexible systems: the same engine with nodes that are larger than six (SKO 85, THEORY section 17).

What they do in a way of their own (:mod:`kfdyn.dynamics.solving.kinds`).
"""

from kfdyn.dynamics.flexible.assembly import FlexibleForest, blocks, flexible_forest
from kfdyn.dynamics.flexible.solve import (
    compliance_of,
    mass_matrix,
    mass_matrix_by,
    mass_matrix_inverse,
    mass_matrix_inverse_by,
    mass_matrix_sparsity,
    singular_node,
)
from kfdyn.dynamics.flexible.solve import finite_forest as forest
from kfdyn.dynamics.solving.blocks import expect_invertible
from kfdyn.dynamics.vibration import gravity_slope_by_differences as gravity_slope
from kfdyn.multibody import FlexibleSystem


def output_names(system: FlexibleSystem) -> tuple[str, ...]:
    """The outputs of ``as_estimation``: dofs, by their names."""
    return system.dof_names


__all__ = [
    "FlexibleForest",
    "blocks",
    "compliance_of",
    "expect_invertible",
    "flexible_forest",
    "forest",
    "gravity_slope",
    "mass_matrix",
    "mass_matrix_by",
    "mass_matrix_inverse",
    "mass_matrix_inverse_by",
    "mass_matrix_sparsity",
    "output_names",
    "singular_node",
]
