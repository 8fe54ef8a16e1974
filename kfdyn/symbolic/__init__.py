"""Formulas of a robot: the recursions run on symbols, exported as functions (R86 sections 10-12).

Needs SymPy where an expression is wanted (``pip install ".[symbolic]"`` in the folder of the sources); export needs
nothing.

Parameters
----------
system : System
    The robot, with any hinges.
parameters : bool
    Make letters of masses m, first moments c = m p, inertias J, places l and rotors r too; zeros stay zeros.
"""

from kfdyn.symbolic.export import export
from kfdyn.symbolic.formulas import (
    Counts,
    Formula,
    bias_forces,
    filter_quantity,
    forward_dynamics,
    inverse_element,
    mass_matrix,
    mass_matrix_inverse,
)

__all__ = [
    "Counts",
    "Formula",
    "bias_forces",
    "export",
    "filter_quantity",
    "forward_dynamics",
    "inverse_element",
    "mass_matrix",
    "mass_matrix_inverse",
]
