"""Many steps in one call: the motion of :func:`kfdyn.simulate` by "euler", under a torque for every step."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kfdyn.bridge.coordinates import brackets, pieces
from kfdyn.bridge.operations import KNOWN, About, Operation, Shape
from kfdyn.dynamics import forward_dynamics
from kfdyn.multibody import integrate
from kfdyn.multibody.parts.hinge import Coordinates
from kfdyn.spatial import skew

Array = NDArray[np.float64]
ROLLOUT, TRANSPORT = "rollout", "transport"
# Terms of a series that are less are left out.
_NOTHING = 1e-18


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
    """∂(q ⊕ w)/∂q and ∂(q ⊕ w)/∂w (..., nv, nv) at steps w (..., nv), in tangent coordinates.

    ::

        δ⁺ = exp(−ad w) δ + Σ (−ad w)^k/(k + 1)! δw        at balls and poses, 1 elsewhere
    """
    system = op.model
    by_q = np.broadcast_to(np.eye(system.nv), (*step.shape, system.nv)).copy()
    by_step = by_q.copy()
    for kind, _, own, rows in pieces(system):
        if kind is Coordinates.SCREWS:
            continue
        w = step[..., own]
        if kind is Coordinates.BALL:
            ad = skew(w)
        else:
            ad = brackets(w @ rows)
            ad = np.linalg.pinv(rows.T) @ ad @ rows.T
        sum_, term, k = np.broadcast_to(np.eye(ad.shape[-1]), ad.shape).copy(), np.eye(ad.shape[-1]), 1
        while k < 3 or np.abs(term).max(initial=0.0) > _NOTHING:
            k += 1
            term = -(term @ ad) / k
            sum_ += term
        by_q[..., own, own], by_step[..., own, own] = np.eye(ad.shape[-1]) - ad @ sum_, sum_
    return by_q, by_step


KNOWN[TRANSPORT] = About(
    lambda op: [(op.model.nv,)], lambda op: [(op.model.nv, op.model.nv)] * 2, transport, configurations=0
)
KNOWN[ROLLOUT] = About(_given, _answers, rolled_out)
