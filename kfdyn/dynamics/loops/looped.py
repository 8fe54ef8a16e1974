"""Systems with loops: what they do in a way of their own (:mod:`kfdyn.dynamics.solving.kinds`)."""

from kfdyn.dynamics.loops.closed import (
    compliance_of,
    forward_dynamics,
    forward_dynamics_by,
    inverse_dynamics,
    inverse_dynamics_by,
    mass_matrix_by,
    mass_matrix_inverse,
    mass_matrix_inverse_by,
)
from kfdyn.dynamics.loops.embedding import embedded_forest as forest
from kfdyn.dynamics.loops.prescribed import hybrid_of
from kfdyn.dynamics.loops.reduced import mass_matrix_sparsity, singular_node

__all__ = [
    "compliance_of",
    "forest",
    "forward_dynamics",
    "forward_dynamics_by",
    "hybrid_of",
    "inverse_dynamics",
    "inverse_dynamics_by",
    "mass_matrix_by",
    "mass_matrix_inverse",
    "mass_matrix_inverse_by",
    "mass_matrix_sparsity",
    "singular_node",
]
