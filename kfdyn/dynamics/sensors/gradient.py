"""The score: gradient of the log-likelihood with respect to covariances, biases and inertias, from the same blocks.

    ∂ℓ/∂y = m,   ∂ℓ/∂bias = −m,   ∂ℓ/∂R = ½(mm* − cov m),   ∂ℓ/∂M(k) = −(λα* + Z_λα),   ∂ℓ/∂ξ(k) = −λ

THEORY sections 10 and 11.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kfdyn.dynamics.sensors.covariances import local_multipliers
from kfdyn.dynamics.sensors.elimination.factor import Factor
from kfdyn.dynamics.sensors.elimination.solutions import solutions
from kfdyn.dynamics.sensors.sensor import Array
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
    for members, factor, answer, every in solutions(est.problem, spreads=True):
        for local in every:
            for i, seen, spread in local_multipliers(factor, local):
                m = est.flat(est.multipliers[i])[members][:, seen]
                block = 0.5 * (m[:, :, None] * m[:, None] - spread)
                est.flat(cov[i])[members[:, None, None], seen[:, None], seen] = block
            if local.k == system.n_bodies:  # the world has no inertia
                continue
            lam, alpha = answer.lam[:, local.k, :, 0], answer.alpha[:, local.k, :, 0]
            pull = lam[:, :, None] * alpha[:, None] + local.z[:, 6:12, :6]
            est.flat(inertia)[members, local.k] = _inertial(factor, local.k, pull, lam)
    return SensorGradient(list(est.multipliers), [-m for m in est.multipliers], cov, inertia)


def _inertial(factor: Factor, k: int, pull: Array, lam: Array) -> Array:
    """−⟨λα* + Z_λα, ∂M⟩ − λ·∂ξ for the ten parameters, (B, 10), in the body's axes."""
    R = factor.terms.rotation[:, k]
    both = np.zeros((len(R), 6, 6))
    both[:, :3, :3] = both[:, 3:, 3:] = R
    back = both.swapaxes(-1, -2)
    G, own = back @ pull @ both, (back @ lam[..., None])[..., 0]
    w = (R.swapaxes(-1, -2) @ factor.terms.velocity[:, k, :3, None])[..., 0]
    return -np.einsum("bij,pij->bp", G, BASIS) - np.einsum("bi,bpi->bp", own, _gyroscopic(w))


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
    """∂ξ/∂π (B, 10, 6) of ξ = [ω × Jω; ω × (ω × h)]."""
    out = np.zeros((len(w), 10, 6))
    for i in range(3):
        out[:, 1 + i, 3:] = np.cross(w, np.cross(w, np.eye(3)[i]))
    for p in range(4, 10):
        out[:, p, :3] = np.cross(w, w @ BASIS[p, :3, :3])
    return out
