"""Derivatives of the dynamics of systems with couplings: X is constant, so those of the open tree go through it.

    ∂τ/∂q = X* ∂τ_tree/∂q X,   likewise by v,   ∂τ/∂a = X*𝓜X     at the tree's (Xq + offset, Xv, Xa)
    ∂a/∂q = −(X*𝓜X)⁻¹ ∂τ/∂q,   likewise by v,   ∂a/∂τ = (X*𝓜X)⁻¹               THEORY sections 12 and 16

X acts on tangent vectors: hinges with quaternions are not coupled, and their v passes as it is. The accelerations of
the open tree are no part of this: those of a coupled system are X times its own, whatever its tree would do.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kfdyn.dynamics.derivatives import inverse_dynamics_derivatives
from kfdyn.dynamics.forest import States
from kfdyn.dynamics.forward import forward_dynamics
from kfdyn.dynamics.loops.coupled import without_inertia
from kfdyn.dynamics.mass_matrix_inverse import mass_matrix_inverse
from kfdyn.dynamics.positive import solve_positive
from kfdyn.multibody.overflow import expect_finite

Array = NDArray[np.float64]


def coupled_inverse_derivatives(states: States, a: Array) -> list[Array]:
    """∂τ/∂q, ∂τ/∂v and X*𝓜X (size, nv, nv) at accelerations a (size, nv)."""
    system, v = states.system, states.arrays.get("v")
    e = system._expansion
    of_tree = inverse_dynamics_derivatives(
        system.open_tree,
        e.positions(states["q"]),
        None if v is None else e.rates(v),
        e.rates(a),
        states.arrays.get("gravity"),
    )
    by = [e.narrowed(of_tree.dtau_dq), e.narrowed(of_tree.dtau_dv), e.matrix(of_tree.dtau_da)]
    return [expect_finite(system, x, "a derivative", **states.arrays) for x in by]


def coupled_forward_derivatives(states: States) -> list[Array]:
    """∂a/∂q, ∂a/∂v and (X*𝓜X)⁻¹ (size, nv, nv) at the forces among the states."""
    system, nv = states.system, states.system.nv
    q, v, _, gravity = states.part(slice(None))
    a = forward_dynamics(system, q, v, states["tau"], None, gravity)  # it names hinges without inertia
    dtau_dq, dtau_dv, M = coupled_inverse_derivatives(states, a)
    columns, fine = solve_positive(M, -np.concatenate([dtau_dq, dtau_dv], axis=-1))
    if not fine.all():
        raise without_inertia(system, "some hinges")
    expect_finite(system, columns, "a derivative", **states.arrays)
    return [columns[..., :nv], columns[..., nv:], mass_matrix_inverse(system, q)]
