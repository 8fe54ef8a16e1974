"""Derivatives of the dynamics where loops leave fewer motions."""

from __future__ import annotations

import numpy as np

from kfdyn.arrays import Array
from kfdyn.dynamics.derivatives import forces_that_push, inverse_dynamics_derivatives
from kfdyn.dynamics.inverse import inverse_dynamics
from kfdyn.dynamics.loops.closed import by_cut, mass_matrix_inverse
from kfdyn.dynamics.loops.cut_joint import Cut
from kfdyn.dynamics.solving.forest import States
from kfdyn.multibody.calls.arguments import expect_finite
from kfdyn.multibody.loops.closure import Ranked, loop_slices
from kfdyn.multibody.loops.loop_tables import loop_readings
from kfdyn.multibody.loops.row_derivatives import LoopMotion


def forward_dynamics_derivatives_of(states: States) -> list[Array]:
    """∂a/∂q, ∂a/∂v and ∂a/∂τ (size, nv, nv) with loops, of rows J and forces f.

    ::

        ∂a = −𝓜c⁻¹ (∂τ − ∂(J*f)) − 𝓜⁻¹J*Ω⁺ ∂(Ja + J̇v)
    """
    system, nv = states.system, states.system.nv
    q, v, forces, gravity = states.part(slice(None))
    v = np.zeros_like(states["tau"]) if v is None else v
    a, f = by_cut(system, (q, v, states["tau"], forces, gravity), least_norm=True)
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
