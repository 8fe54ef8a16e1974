"""Many steps in one call: the motion of :func:`kfdyn.simulate` by "euler", under a torque for every step."""

from __future__ import annotations

import numpy as np

from kfdyn.arrays import Array
from kfdyn.bridge.operations import KNOWN, About, Operation, Shape
from kfdyn.dynamics import forward_dynamics
from kfdyn.multibody import integrate, integrate_derivatives

ROLLOUT, TRANSPORT = "rollout", "transport"


def rolled_out(op: Operation, q: Array, v: Array, tau: Array) -> tuple[Array, Array]:
    """States q (..., T + 1, nq), v (..., T + 1, nv): v⁺ = v + h a(q, v, τ), q⁺ = q ⊕ h v⁺, for τ (..., T, nv)."""
    system, h = op.model, op.more[0]
    steps = tau.shape[-2]
    lead = np.broadcast_shapes(q.shape[:-1], v.shape[:-1], tau.shape[:-2])
    q_all, v_all = np.empty((steps + 1, *lead, system.nq)), np.empty((steps + 1, *lead, system.nv))
    q_all[0], v_all[0] = q, v
    torques = np.ascontiguousarray(np.moveaxis(np.broadcast_to(tau, (*lead, *tau.shape[-2:])), -2, 0))
    for k in range(steps):
        v_all[k + 1] = v_all[k] + h * forward_dynamics(system, q_all[k], v_all[k], torques[k])
        q_all[k + 1] = integrate(system, q_all[k], h * v_all[k + 1])
    return np.moveaxis(q_all, 0, -2), np.moveaxis(v_all, 0, -2)


def _given(op: Operation) -> list[Shape]:
    return [(op.model.nq,), (op.model.nv,), (op.more[1], op.model.nv)]


def _answers(op: Operation) -> list[Shape]:
    return [(op.more[1] + 1, op.model.nq), (op.more[1] + 1, op.model.nv)]


def transport(op: Operation, step: Array) -> tuple[Array, Array]:
    """∂(q ⊕ w)/∂q and ∂(q ⊕ w)/∂w (..., nv, nv) at steps w (..., nv), in tangent coordinates."""
    first, second = integrate_derivatives(op.model, op.model.neutral(), step)
    return first, second


KNOWN[TRANSPORT] = About(
    lambda op: [(op.model.nv,)], lambda op: [(op.model.nv, op.model.nv)] * 2, transport, configurations=0
)
KNOWN[ROLLOUT] = About(_given, _answers, rolled_out)
