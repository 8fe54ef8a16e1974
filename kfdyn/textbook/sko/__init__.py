"""Jain's SKO models executed: any triple (H, A, M) on a tree, rigid or not, square or not, in plain NumPy.

``sko_model`` holds the triple, the recipe that builds one and the gather and scatter recursions; ``inverse``
Newton-Euler, composite bodies and the mass matrix; ``forward`` the articulated inertias and forward dynamics in O(N),
O(N²) and O(N³); ``choices`` other base bodies and the older methods. A :class:`Model` is read off any
:class:`~kfdyn.StateSpace` by ``model_of(ss)``, or built by ``recipe``. Every function takes one but these two,
``lagrange`` and ``projected_dynamics``, which take energies and matrices.

Parameters
----------
model : Model
    The triple (H, A, M), with its rotors and biases.
T, theta_ddot : (Σm_k,)
    Generalised forces and accelerations, stacked node by node.
"""

from kfdyn.lazy import on_first_use

_PLACES = {
    "choices": ("kane", "lagrange", "newton_euler_absolute", "projected_dynamics", "reroot"),
    "forward": (
        "Articulated", "articulated", "forward_dynamics", "forward_dynamics_cubic", "forward_dynamics_inverse_first",
        "forward_dynamics_operators", "forward_dynamics_quadratic", "hybrid_dynamics",
    ),
    "inverse": (
        "bias", "composite_bodies", "composite_inverse_dynamics", "jacobian", "mass_matrix", "mass_matrix_by_columns",
        "newton_euler", "velocities",
    ),
    "sko_model": ("Model", "gather", "model_of", "operators", "recipe", "scatter"),
}  # fmt: skip

__getattr__, __dir__, __all__ = on_first_use(__name__, _PLACES)
