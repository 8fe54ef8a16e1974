"""Derivatives of the dynamics where couplings leave fewer coordinates, or loops fewer motions."""

from __future__ import annotations

import numpy as np

from kfdyn.arrays import Array
from kfdyn.dynamics.derivatives import forces_that_push, inverse_dynamics_derivatives
from kfdyn.dynamics.inverse import inverse_dynamics
from kfdyn.dynamics.loops.closed import by_cut, mass_matrix_inverse
from kfdyn.dynamics.loops.cut_joint import Cut
from kfdyn.dynamics.loops.reduced import dense_forward, dense_inverse
from kfdyn.dynamics.solving.forest import States
from kfdyn.multibody.calls.arguments import expect_finite
from kfdyn.multibody.coordinates.expansion import Bent
from kfdyn.multibody.loops.closure import Ranked, loop_slices
from kfdyn.multibody.loops.loop_tables import loop_readings
from kfdyn.multibody.loops.row_derivatives import LoopMotion


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
        tau, X, Xt = inverse_dynamics(tree, q_tree, v_tree, a_tree, None, gravity), here.X, np.swapaxes(here.X, -1, -2)
        Y, Z = here.turned_rates(v), here.turned_accelerations(v, a)
        turned = here.turned(tau)[..., None] * np.eye(system.nv)
        found = [Xt @ (by_q @ X + by_v @ Y + by_a @ Z) + turned, Xt @ (by_v @ X + 2.0 * by_a @ Y), here.matrix(by_a)]
    for x in found:
        expect_finite(system, x, "a derivative", **states.arrays)
    return dict(zip(("∂τ/∂q", "∂τ/∂v", "∂τ/∂a"), found))


def forward_dynamics_derivatives_of(states: States) -> list[Array]:
    """∂a/∂q, ∂a/∂v and ∂a/∂τ (size, nv, nv) with loops, of rows J and forces f.

    ::

        ∂a = −𝓜c⁻¹ (∂τ − ∂(J*f)) − 𝓜⁻¹J*Ω⁺ ∂(Ja + J̇v)
    """
    system, nv = states.system, states.system.nv
    q, v, forces, gravity = states.part(slice(None))
    v = np.zeros_like(states["tau"]) if v is None else v
    a, f = by_cut(system, q, v, states["tau"], forces, gravity, least_norm=True)
    by_q, by_v, _ = inverse_dynamics_derivatives(system.without_loops, q, v, a, gravity)
    by_q = by_q - forces_that_push(states)[1]
    rows = np.empty((states.size, f.shape[1], 2 * nv))
    for loop, own in zip(system.loops, loop_slices(system)):
        motion = LoopMotion(system.without_loops, loop, q, v, a)
        rows[:, own] = motion.accelerations()
        by_q = by_q - motion.forces(f[:, own])
    cut, inverse = Cut(system, q, v), mass_matrix_inverse(system, q)
    caused = cut.W @ (cut.inverse() @ rows)
    found = [-inverse @ by_q - caused[:, :, :nv], -inverse @ by_v - caused[:, :, nv:], inverse]
    return [expect_finite(system, x, "a derivative", **states.arrays) for x in found]


def inverse_dynamics_derivatives_of(states: States) -> list[Array]:
    """∂τ/∂q, ∂τ/∂v and ∂τ/∂a (size, nv, nv) with loops, of the least forces that cause a.

    ::

        τ = Πt,   Π = 1 − J⁺J,   J*f = t − τ,        ∂τ = Π(∂t − ∂(J*f)) − J⁺∂(Jτ)
    """
    system, base = states.system, states.system.without_loops
    q, v, forces, gravity = states.part(slice(None))
    tau = inverse_dynamics(system, q, v, states["a"], forces, gravity)  # refuses accelerations that break a loop
    every = inverse_dynamics(base, q, v, states["a"], forces, gravity)
    by_q, by_v, by_a = inverse_dynamics_derivatives(base, q, v, states["a"], gravity)
    by_q = by_q - forces_that_push(states)[1]
    ranked = Ranked.at(system, q)
    C = ranked.independent()
    K = C @ loop_readings(system, q).J
    square = K @ K.swapaxes(1, 2) + np.logical_not(ranked.kept)[..., None] * np.eye(K.shape[1])
    back = np.linalg.solve(square, K).swapaxes(1, 2)  # K⁺
    f = (C.swapaxes(1, 2) @ (back.swapaxes(1, 2) @ (every - tau)[..., None]))[..., 0]
    rates = np.empty((states.size, f.shape[1], system.nv))
    for loop, own in zip(system.loops, loop_slices(system)):
        motion = LoopMotion(base, loop, q, tau, np.zeros_like(tau))
        rates[:, own] = motion.rates()
        by_q = by_q - motion.forces(f[:, own])
    found = [x - back @ (K @ x) for x in (by_q, by_v, by_a)]
    found[0] -= back @ (C @ rates)
    return [expect_finite(system, x, "a derivative", **states.arrays) for x in found]
