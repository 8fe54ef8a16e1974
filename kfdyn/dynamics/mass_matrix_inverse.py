"""The inverse of the mass matrix, three ways, without ever forming the mass matrix."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.arrays import Array
from kfdyn.dynamics.assembly import as_forest
from kfdyn.dynamics.solving.forest import States, expect_method
from kfdyn.dynamics.solving.solver import Solver
from kfdyn.multibody import System
from kfdyn.multibody.calls.arguments import expect_system, filled

METHODS = ("innovations", "engine", "blocks", "columns")


def mass_matrix_inverse(
    system: System,
    q: ArrayLike,
    *,
    method: Literal["innovations", "engine", "blocks", "columns"] = "innovations",
    out: Array | None = None,
) -> Array:
    """Inverse mass matrix 𝓜⁻¹ = (1 − HψK)* D⁻¹ (1 − HψK): the covariance of a in the estimation problem.

    ===============  ======================================================================  ==================
    ``innovations``  both factors applied to unit vectors, along ancestors only; fused       SKO "mass-inverse"
    ``engine``       the same by the generic engine on the assembled forest                  SKO "mass-inverse"
    ``blocks``       closed form: c(k) = D⁻¹ + G*Λ⁺G on the diagonal, d(k)ψG(i) outboard of  R86 (10.3)
                     k, G*ψ*Λψ G through the nearest common ancestor elsewhere
    ``columns``      forward dynamics of unit forces, nv right-hand sides at once            R86 (8.2)–(8.13)
    ===============  ======================================================================  ==================

    Parameters
    ----------
    system : System
        The robot.
    q : (..., nq)
        Configurations.
    method : {"innovations", "engine", "blocks", "columns"}
        The first is the fastest and symmetric to the bit; all are O(N²) or O(N² depth).
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
        return filled(out, _by_method(system, q, method))
    answer: Array = MASS_MATRIX_INVERSE.solve(system, q, out)
    return answer


def _by_method(system: System, q: ArrayLike, method: Any) -> Array:
    """Another way than the compiled one."""
    expect_system(system)
    expect_method(method, METHODS, "mass_matrix_inverse")
    own = MASS_MATRIX_INVERSE.other(system)
    if own is not None:
        return np.asarray(own(system, q))
    states, work = States.of(system, q), {"blocks": _by_blocks, "columns": _by_columns}.get(method, _by_factors)
    return states.shaped(MASS_MATRIX_INVERSE.mended(states, None, None, lambda few: by_engine(few, work))[0])


def _by_factors(states: States, part: slice, out: Array) -> None:
    from kfdyn.estimation.inference.factor import dense_inverses
    from kfdyn.estimation.inference.riccati import riccati

    ss = states.forest(part).ss
    tree = as_forest(states.system, states["q"][part.start]).ss  # lends its numbering
    dense_inverses(tree, riccati(ss), out[part])


def by_engine(states: States, work: Callable[[States, slice, Array], None] = _by_factors) -> dict[str, Array]:
    """𝓜⁻¹ (size, nv, nv) by the generic engine on the assembled forest."""
    out = np.zeros((states.size, states.system.nv, states.system.nv))
    states.in_parts(lambda part: work(states, part, out))
    return {"the inverse of the mass matrix": out}


def _by_blocks(states: States, part: slice, out: Array) -> None:
    from kfdyn.estimation import Covariances

    a = Covariances(states.forest(part).ss).a
    n, start = states.system.n_bodies, states.system.layout.v_start
    own = [slice(start[k], start[k + 1]) for k in range(n)]
    for b in range(part.stop - part.start):
        for i in range(n):
            for j in range(n):
                out[part.start + b, own[i], own[j]] = a.block(b * n + i, b * n + j)


def _by_columns(states: States, part: slice, out: Array) -> None:
    """Row i of ``unit`` is the same unit vector for every tree of the forest."""
    from kfdyn.estimation import innovations_factor

    nv = states.system.nv
    size = part.stop - part.start
    unit = np.tile(np.eye(nv), size)
    columns = innovations_factor(states.forest(part).ss).solve(unit)
    out[part] = columns.reshape(nv, size, nv).transpose(1, 2, 0)


MASS_MATRIX_INVERSE = Solver(
    "mass_matrix_inverse",
    "kfdyn.dynamics.recursions.mass_matrix_inverse",
    "MASS_MATRIX_INVERSE",
    coupled="kfdyn.dynamics.recursions.coupled.geared",
    explain=by_engine,
)
