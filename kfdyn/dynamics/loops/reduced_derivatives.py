"""Derivatives of the dynamics in the coordinates that couplings leave."""

from __future__ import annotations

import numpy as np

from kfdyn.arrays import Array
from kfdyn.dynamics.derivatives import inverse_dynamics_derivatives
from kfdyn.dynamics.inverse import inverse_dynamics
from kfdyn.dynamics.loops.reduced import dense_forward, dense_inverse
from kfdyn.dynamics.solving.forest import States
from kfdyn.multibody.calls.overflow import expect_finite
from kfdyn.multibody.coordinates.expansion import Bent


def explain_forward_dynamics_derivatives(states: States) -> dict[str, Array]:
    """The same with couplings, whose forward dynamics and 𝓜⁻¹ have engines of their own."""
    system = states.system
    q, v, _, gravity = states.part(slice(None))
    a = expect_finite(system, dense_forward(states), "the acceleration", **states.arrays)
    inverse = dense_inverse(states)
    dtau_dq, dtau_dv, _ = inverse_dynamics_derivatives(system, q, v, a, gravity)
    return {"∂a/∂q": -inverse @ dtau_dq, "∂a/∂v": -inverse @ dtau_dv, "the inverse of the mass matrix": inverse}


def explain_inverse_dynamics_derivatives(states: States) -> dict[str, Array]:
    """∂τ/∂q, ∂τ/∂v and ∂τ/∂a (size, nv, nv) where hinges follow curves, of the tree's at (q_tree, X v, X a + Ẋv).

    ::

        ∂τ/∂q = X*(∂_qτ X + ∂_vτ Y + 𝓜 Z) + diag((∂X/∂q_j)*τ),   Y = ∂(Xv)/∂q,   Z = ∂(Xa + Ẋv)/∂q
        ∂τ/∂v = X*(∂_vτ X + 2 𝓜 Y),                              ∂τ/∂a = X*𝓜X
    """
    system, q, a, gravity = states.system, states["q"], states["a"], states.arrays.get("gravity")
    v = states.arrays.get("v", np.zeros_like(a))
    here = Bent(system._expansion, q)
    tree, q_tree, v_tree, a_tree = system.opened(q, v=v, a=a)
    with np.errstate(over="ignore", invalid="ignore"):
        by_q, by_v, by_a = inverse_dynamics_derivatives(tree, q_tree, v_tree, a_tree, gravity)
        tau, s, X = inverse_dynamics(tree, q_tree, v_tree, a_tree, None, gravity), v[:, here.leads], here.X
        second, Xt = here.slopes(2), np.swapaxes(X, -1, -2)
        Y, Z = here.spread(second * s), here.spread(second * a[:, here.leads] + here.slopes(3) * s**2)
        turned = here.turned(tau)[..., None] * np.eye(system.nv)
        found = [Xt @ (by_q @ X + by_v @ Y + by_a @ Z) + turned, Xt @ (by_v @ X + 2.0 * by_a @ Y), here.matrix(by_a)]
    for x in found:
        expect_finite(system, x, "a derivative", **states.arrays)
    return dict(zip(("∂τ/∂q", "∂τ/∂v", "∂τ/∂a"), found))
