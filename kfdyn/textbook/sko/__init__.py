"""Jain's SKO models executed: any triple (H, A, M) on a tree, rigid or not, square or not, in plain NumPy.

``model`` holds the triple, the recipe that builds one and the gather and scatter recursions; ``inverse`` Newton-Euler,
composite bodies and the mass matrix; ``forward`` the articulated inertias and forward dynamics in O(N), O(N²) and
O(N³); ``choices`` other base bodies and the older methods. A :class:`Model` is read off any
:class:`~kfdyn.StateSpace` by ``model_of(ss)``, or built by ``recipe``. Every function takes one but these two,
``lagrange`` and ``projected_dynamics``, which take energies and matrices.
"""

from kfdyn.textbook.sko.choices import kane, lagrange, newton_euler_absolute, projected_dynamics, reroot
from kfdyn.textbook.sko.forward import (
    Articulated,
    articulated,
    forward_dynamics,
    forward_dynamics_cubic,
    forward_dynamics_inverse_first,
    forward_dynamics_operators,
    forward_dynamics_quadratic,
    hybrid_dynamics,
)
from kfdyn.textbook.sko.inverse import (
    bias,
    composite_bodies,
    composite_inverse_dynamics,
    jacobian,
    mass_matrix,
    mass_matrix_by_columns,
    newton_euler,
    velocities,
)
from kfdyn.textbook.sko.sko_model import Model, gather, model_of, operators, recipe, scatter

__all__ = [
    "Articulated",
    "Model",
    "articulated",
    "bias",
    "composite_bodies",
    "composite_inverse_dynamics",
    "forward_dynamics",
    "forward_dynamics_cubic",
    "forward_dynamics_inverse_first",
    "forward_dynamics_operators",
    "forward_dynamics_quadratic",
    "gather",
    "hybrid_dynamics",
    "jacobian",
    "kane",
    "lagrange",
    "mass_matrix",
    "mass_matrix_by_columns",
    "model_of",
    "newton_euler",
    "newton_euler_absolute",
    "operators",
    "projected_dynamics",
    "recipe",
    "reroot",
    "scatter",
    "velocities",
]
