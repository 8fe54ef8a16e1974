"""Dynamics of systems with couplings: X constant, so that everything without them goes through X, modes as they are.

    X*𝓜X a + X*c = tau,     c the bias forces without couplings at X v                      THEORY section 12

Small systems solve this in one compiled sweep; large ones by the embedded filter.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import ndarray
from numpy.typing import ArrayLike, NDArray

from kfdyn.dynamics.bias import bias_forces
from kfdyn.dynamics.declined import answered
from kfdyn.dynamics.entries import (
    FORWARD,
    INVERSE,
    MASS_MATRIX,
    MASS_MATRIX_INVERSE,
    fused_forward_dynamics,
    quick_geared,
)
from kfdyn.dynamics.forest import States, expect_method
from kfdyn.dynamics.inverse import inverse_dynamics
from kfdyn.dynamics.loops.aggregation import described
from kfdyn.dynamics.loops.embedding import embedded_forest
from kfdyn.dynamics.mass_matrix import mass_matrix
from kfdyn.dynamics.positive import solve_positive
from kfdyn.errors import SingularError
from kfdyn.multibody import System
from kfdyn.multibody.arguments import checked, configuration

Array = NDArray[np.float64]

# Dofs beyond which n³ costs more than the embedded filter's O(N).
DENSE = 80


def coupled_mass_matrix(system: System, q: ArrayLike, method: str = "composite") -> Array:
    """X*𝓜X (..., nv, nv); ``method`` is for 𝓜 of the open tree."""
    if method == "composite":
        quick = quick_geared(MASS_MATRIX, system, (system.nv, system.nv), q)
        if isinstance(quick, ndarray):
            return quick
    tree, q_tree = _opened(system, q)
    return system._expansion.matrix(mass_matrix(tree, q_tree, method=method))  # type: ignore[arg-type]


def coupled_inverse_dynamics(
    system: System,
    q: ArrayLike,
    v: ArrayLike | None,
    a: ArrayLike,
    external_forces: ArrayLike | None,
    gravity: ArrayLike | None,
    method: str = "newton_euler",
) -> Array:
    """X*(𝓜Xa + c) (..., nv)."""
    if method == "newton_euler":
        quick = quick_geared(INVERSE, system, (system.nv,), q, *_moving(system, q, v, a, external_forces, gravity))
        if isinstance(quick, ndarray):
            return quick
    tree, q_tree, v_tree, a_tree = _opened(system, q, v=v, a=a)
    return system._expansion.forces(
        inverse_dynamics(tree, q_tree, v_tree, a_tree, external_forces, gravity, method=method)  # type: ignore
    )


def coupled_bias_forces(
    system: System, q: ArrayLike, v: ArrayLike | None, external_forces: ArrayLike | None, gravity: ArrayLike | None
) -> Array:
    """X*c (..., nv)."""
    quick = quick_geared(INVERSE, system, (system.nv,), q, *_moving(system, q, v, None, external_forces, gravity))
    if isinstance(quick, ndarray):
        return quick
    tree, q_tree, v_tree = _opened(system, q, v=v)
    return system._expansion.forces(bias_forces(tree, q_tree, v_tree, external_forces, gravity))


def _moving(system: System, q: Any, v: Any, u: Any, force: Any, gravity: Any) -> tuple[Any, ...]:
    """What entries take beside q, with v = 0 and the system's gravity where none is given."""
    if v is None:
        v = np.zeros((*np.shape(q)[:-1], system.nv))
    return v, u, force, system.gravity if gravity is None else gravity


def _opened(system: System, q: ArrayLike, **rates: ArrayLike | None) -> tuple[Any, ...]:
    """The system without couplings, its q, and its rates; bodies that bend stay bent."""
    e = system._expansion
    every = (None if x is None else e.rates(checked(system, x, (system.nv,), name)) for name, x in rates.items())
    return system.uncoupled, e.positions(configuration(system, q)), *every


def coupled_forward_dynamics(
    system: System,
    q: ArrayLike,
    v: ArrayLike | None,
    tau: ArrayLike,
    external_forces: ArrayLike | None,
    gravity: ArrayLike | None,
    method: str = "filter",
) -> Array:
    """(X*𝓜X)⁻¹(tau − X*c) (..., nv): by a small factor, or by the embedded filter and smoother."""
    expect_method(method, ("filter", "engine", "embedding", "mass_matrix"), "forward_dynamics of a coupled system")
    quick = None
    if method == "filter" and system.nv <= DENSE:
        quick = quick_geared(FORWARD, system, (system.nv,), q, *_moving(system, q, v, tau, external_forces, gravity))
    if isinstance(quick, ndarray):
        return quick
    states = States.of(system, q, v, external_forces, gravity, tau=tau)
    a, declined = np.empty((states.size, system.nv)), np.ones(states.size, dtype=bool)
    dense = method == "mass_matrix" or (method == "filter" and system.nv <= DENSE)
    if method == "filter" and dense and type(system) is System:  # bodies that bend have no such sweep
        a, declined = fused_forward_dynamics(states) if quick is None else quick.alone(states)

    def engine(few: States) -> dict[str, Array]:
        if dense:
            rhs = few["tau"] - coupled_bias_forces(system, *few.part(slice(None)))
            with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused, with words
                found, fine = solve_positive(coupled_mass_matrix(system, few["q"]), rhs[..., None])
            if fine.all():
                return {"the acceleration": found[..., 0]}
        return {"the acceleration": by_embedding(system, few)}  # it names the node without inertia

    return answered(states, (a,), declined, engine)[0]


def by_embedding(system: System, states: States) -> Array:
    """Accelerations (size, nv) by filter and smoother on the aggregated forest; loops included."""
    from kfdyn.estimation import bryson_frazier, kalman_filter

    a = np.empty((states.size, system.nv))

    def solve(part: slice) -> None:
        q, v, force, g = states.part(part)
        forest = embedded_forest(system, q, v, g, force)
        try:
            filt = kalman_filter(forest.ss, forest.stack(states["tau"][part]))
        except SingularError as error:
            node = forest.plan.nodes[(error.node or 0) % len(forest.plan.nodes)]
            raise without_inertia(system, described(system, node)) from None
        a[part] = forest.by_dof(bryson_frazier(forest.ss, filt, covariances=False).a)

    states.in_parts(solve)
    return a


def coupled_mass_matrix_inverse(system: System, q: ArrayLike) -> Array:
    """(X*𝓜X)⁻¹ (..., nv, nv), symmetric to the bit."""
    quick = quick_geared(MASS_MATRIX_INVERSE, system, (system.nv, system.nv), q)
    if isinstance(quick, ndarray):
        return quick
    M = coupled_mass_matrix(system, q)
    flat = M.reshape(-1, system.nv, system.nv)
    inverse, fine = solve_positive(flat, np.broadcast_to(np.eye(system.nv), flat.shape))
    if not fine.all():
        raise without_inertia(system, "some hinges")
    return (0.5 * (inverse + np.swapaxes(inverse, -1, -2))).reshape(M.shape)


def without_inertia(system: System, hinges: str) -> SingularError:
    """The reduced mass matrix is singular, in words."""
    return SingularError(
        f"system {system.name!r}: {hinges} move no inertia that is left to their independent coordinates, so that the "
        "innovation variance is 0; give what they carry a mass or the hinges an armature"
    )
