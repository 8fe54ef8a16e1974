"""Systems with loops: what they do in a way of their own (:mod:`kfdyn.dynamics.solving.kinds`)."""

from kfdyn.dynamics.loops.assemble import back_onto_loops, onto_loops
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
from kfdyn.dynamics.loops.constrained_hybrid import hybrid_of
from kfdyn.dynamics.loops.embedding import embedded_forest as forest
from kfdyn.dynamics.loops.embedding import node_of_body, output_forces, output_rates
from kfdyn.dynamics.loops.reduced import mass_matrix_sparsity, singular_node
from kfdyn.dynamics.loops.reduced_derivatives import (
    forward_dynamics_derivatives_of,
    inverse_dynamics_derivatives_of,
)
from kfdyn.dynamics.simulation.symplectic.rattle import rattle_step as symplectic_step
from kfdyn.dynamics.solving.blocks import expect_invertible
from kfdyn.dynamics.vibration import gravity_slope_by_differences as gravity_slope

__all__ = [
    "back_onto_loops",
    "compliance_of",
    "expect_invertible",
    "forest",
    "forward_dynamics",
    "forward_dynamics_by",
    "forward_dynamics_derivatives_of",
    "gravity_slope",
    "hybrid_of",
    "inverse_dynamics",
    "inverse_dynamics_by",
    "inverse_dynamics_derivatives_of",
    "mass_matrix_by",
    "mass_matrix_inverse",
    "mass_matrix_inverse_by",
    "mass_matrix_sparsity",
    "node_of_body",
    "onto_loops",
    "output_forces",
    "output_rates",
    "singular_node",
    "symplectic_step",
]
