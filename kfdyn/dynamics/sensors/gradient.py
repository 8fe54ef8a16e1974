"""The score: gradient of the log-likelihood with respect to covariances, biases and inertias, from the same blocks.

    ∂ℓ/∂y = m,   ∂ℓ/∂bias = −m,   ∂ℓ/∂R = ½(mm* − cov m),   ∂ℓ/∂M(k) = −(λα* + Z_λα),   ∂ℓ/∂ξ(k) = −λ

THEORY sections 10 and 11.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kfdyn.dynamics.sensors.sensor import Array
from kfdyn.dynamics.sensors.solver.answers import Solved
from kfdyn.dynamics.sensors.solver.swept import solver_of
from kfdyn.multibody.kinds import expect_rigid
from kfdyn.spatial import skew

if TYPE_CHECKING:
    from kfdyn.dynamics.sensors.result import DynamicsEstimate

#: The entries of :attr:`SensorGradient.inertia`, in order.
PARAMETERS = ("m", "mx", "my", "mz", "Jxx", "Jxy", "Jxz", "Jyy", "Jyz", "Jzz")


class SensorGradient(NamedTuple):
    """Gradient of ``est.llf``, one for each state; sum over the batch for a recording.

    Attributes
    ----------
    readings, bias : list of (..., size)
        With respect to each sensor's readings, and to its bias, the negative of it.
    cov : list of (..., size, size)
        With respect to each sensor's covariance: the directional derivative is Σ cov · dR for symmetric dR. Zero for
        entries that are missing or flat.
    inertia : (..., n_bodies, 10)
        With respect to mass, mass times mass centre, and moments of inertia (xx, xy, xz, yy, yz, zz) about the body's
        origin, in the body's axes.

    Examples
    --------
    A reading that pulls the estimate up pulls the likelihood down:

    >>> import kfdyn as kf
    >>> sensors = [kf.sensors.JointTorque(1.0), kf.sensors.JointAcceleration(3.0)]
    >>> est = kf.estimate_dynamics(kf.models.pendulum(), [0.0], [0.0], sensors, [[0.0], [4.0]])
    >>> g = est.gradient()
    >>> g.readings[1], g.cov[1].round(3), g.inertia.shape
    (array([-1.]), array([[0.375]]), (1, 10))
    """

    readings: list[Array]
    bias: list[Array]
    cov: list[Array]
    inertia: Array


def gradient(est: DynamicsEstimate) -> SensorGradient:
    """Gradient for every state of an estimate; cost that of the marginal covariances."""
    lead, system = est.problem.lead, est.problem.system
    expect_rigid(system, "gradient")
    cov = [np.zeros((*m.shape, m.shape[-1])) for m in est.multipliers]
    inertia = np.zeros((*lead, system.n_bodies, 10))
    for group in est.problem.groups:
        for solved in solver_of(est.problem).solutions(est.problem, group, spreads=True):
            members = solved.members
            for i, seen, spread in solved.few:
                m = solved.multipliers[i][:, seen]
                block = 0.5 * (m[:, :, None] * m[:, None] - spread)
                est.flat(cov[i])[members[:, None, None], seen[:, None], seen] = block
            est.flat(inertia)[members] = _inertial(solved)
    return SensorGradient(list(est.multipliers), [-m for m in est.multipliers], cov, inertia)


def _inertial(solved: Solved) -> Array:
    """−⟨λα* + Z_λα, ∂M⟩ − λ·∂ξ for the ten parameters, (B, n, 10), in the bodies' axes."""
    R, lam = solved.terms.rotation, solved.lam
    both = np.zeros((*R.shape[:2], 6, 6))
    both[..., :3, :3] = both[..., 3:, 3:] = R
    back = both.swapaxes(-1, -2)
    G = back @ (lam[..., :, None] * solved.alpha[..., None, :] + solved.Z[..., 6:, :6]) @ both
    own, w = (back @ lam[..., None])[..., 0], (R.swapaxes(-1, -2) @ solved.terms.velocity[..., :3, None])[..., 0]
    return -np.einsum("bkij,pij->bkp", G, BASIS) - np.einsum("bki,bkpi->bkp", own, _gyroscopic(w))


def _basis() -> Array:
    """∂M/∂π (10, 6, 6) of M = [[J, h~], [−h~, m 1]], h the mass times the mass centre."""
    out = np.zeros((10, 6, 6))
    out[0, 3:, 3:] = np.eye(3)
    for i in range(3):
        h = skew(np.eye(3)[i])
        out[1 + i, :3, 3:], out[1 + i, 3:, :3] = h, -h
    for p, (i, j) in enumerate(((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))):
        out[4 + p, i, j] = out[4 + p, j, i] = 1.0
    return out


BASIS = _basis()


def _gyroscopic(w: Array) -> Array:
    """∂ξ/∂π (B, n, 10, 6) of ξ = [ω × Jω; ω × (ω × h)]."""
    out = np.zeros((*w.shape[:-1], 10, 6))
    for i in range(3):
        out[..., 1 + i, 3:] = np.cross(w, np.cross(w, np.eye(3)[i]))
    for p in range(4, 10):
        out[..., p, :3] = np.cross(w, w @ BASIS[p, :3, :3])
    return out
