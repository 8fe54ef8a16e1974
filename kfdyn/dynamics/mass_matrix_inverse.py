"""The inverse of the mass matrix, without ever forming the mass matrix."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.arrays import Array
from kfdyn.dynamics.assembly import as_forest
from kfdyn.dynamics.solving.forest import States, expect_method
from kfdyn.dynamics.solving.solver import Solver
from kfdyn.multibody import System
from kfdyn.multibody.calls.arguments import filled

METHODS = ("innovations", "engine")


def mass_matrix_inverse(
    system: System,
    q: ArrayLike,
    *,
    method: Literal["innovations", "engine"] = "innovations",
    out: Array | None = None,
) -> Array:
    """Inverse mass matrix 𝓜⁻¹ = (1 − HψK)* D⁻¹ (1 − HψK): the covariance of a in the estimation problem.

    Both factors are applied to unit vectors, along ancestors only (SKO "mass-inverse"). Single elements in closed form,
    R86 (10.3), are :func:`kfdyn.inverse_element`.

    Parameters
    ----------
    system : System
        The robot.
    q : (..., nq)
        Configurations.
    method : {"innovations", "engine"}
        Fused, and symmetric to the bit; or the same by the generic engine on the assembled forest. O(N²).
    out : (..., nv, nv) array of float64, optional
        Where the answer goes, instead of a new array; returned. It may overlap arguments. After an error its numbers
        mean nothing.

    Returns
    -------
    (..., nv, nv) array
        𝓜⁻¹; dense on every tree, zero between different trees.

    Raises
    ------
    SingularError
        If a hinge has no inertia to move; names the hinge.

    Examples
    --------
    >>> import kfdyn as kf
    >>> np.round(mass_matrix_inverse(kf.models.double_pendulum(), [0.0, 0.0]), 12)
    array([[ 1., -2.],
           [-2.,  5.]])
    """
    if method != "innovations":
        expect_method(method, METHODS, "mass_matrix_inverse")
        return filled(out, MASS_MATRIX_INVERSE.explained(system, (q,)))
    answer: Array = MASS_MATRIX_INVERSE.solve(system, q, out)
    return answer


def by_engine(states: States) -> dict[str, Array]:
    """𝓜⁻¹ (size, nv, nv) by the generic engine on the assembled forest."""
    from kfdyn.estimation.inference.factor import dense_inverses
    from kfdyn.estimation.inference.riccati import riccati

    out = np.zeros((states.size, states.system.nv, states.system.nv))

    def work(part: slice) -> None:
        tree = as_forest(states.system, states["q"][part.start]).ss  # lends its numbering
        dense_inverses(tree, riccati(states.forest(part).ss), out[part])

    states.in_parts(work)
    return {"the inverse of the mass matrix": out}


MASS_MATRIX_INVERSE = Solver(
    "mass_matrix_inverse",
    "kfdyn.dynamics.recursions.mass_matrix_inverse",
    "MASS_MATRIX_INVERSE",
    coupled="kfdyn.dynamics.recursions.coupled.geared",
    explain=by_engine,
)
