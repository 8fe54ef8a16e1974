"""Systems with couplings: what they do in a way of their own (:mod:`kfdyn.dynamics.solving.kinds`)."""

from kfdyn.dynamics.loops.constrained_hybrid import hybrid_of
from kfdyn.dynamics.loops.embedding import embedded_forest as forest
from kfdyn.dynamics.loops.embedding import node_of_body, output_forces, output_rates
from kfdyn.dynamics.loops.reduced import (
    compliance_of,
    explain_bias_forces,
    explain_forward_dynamics,
    explain_inverse_dynamics,
    explain_mass_matrix,
    explain_mass_matrix_inverse,
    explain_mass_matrix_logdet,
    forward_dynamics_by,
    inverse_dynamics_by,
    mass_matrix_by,
    mass_matrix_inverse_by,
    mass_matrix_sparsity,
    singular_node,
)
from kfdyn.dynamics.loops.reduced_derivatives import (
    explain_forward_dynamics_derivatives,
    explain_inverse_dynamics_derivatives,
)

__all__ = [
    "compliance_of",
    "explain_bias_forces",
    "explain_forward_dynamics",
    "explain_forward_dynamics_derivatives",
    "explain_inverse_dynamics",
    "explain_inverse_dynamics_derivatives",
    "explain_mass_matrix",
    "explain_mass_matrix_inverse",
    "explain_mass_matrix_logdet",
    "forest",
    "forward_dynamics_by",
    "hybrid_of",
    "inverse_dynamics_by",
    "mass_matrix_by",
    "mass_matrix_inverse_by",
    "mass_matrix_sparsity",
    "node_of_body",
    "output_forces",
    "output_rates",
    "singular_node",
]
