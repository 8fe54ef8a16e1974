"""A frame on a bent body: where it is, how the modes move it, and how that map changes."""

from __future__ import annotations

import numpy as np

from kfdyn.arrays import Array
from kfdyn.multibody.flexible.body import Shape
from kfdyn.spatial import quaternion_exp, quaternion_to_matrix, skew


def attachment_pose(shape: Shape, eta: Array) -> Array:
    """q of a free hinge (..., 7) at the undeformed place: Ψη + ½η*Bη, and exp(Π_ω η)."""
    shift = eta @ shape.shift.T + 0.5 * np.einsum("...i,aij,...j->...a", eta, shape.bend, eta)
    return np.concatenate([shift, quaternion_exp(eta @ shape.turn.T)], axis=-1)


def attachment_map(shape: Shape, eta: Array) -> Array:
    """X (..., 6, n): rates of the modes to v = [body-frame ω; body-frame velocity] of that free hinge."""
    theta = eta @ shape.turn.T
    back = np.swapaxes(quaternion_to_matrix(quaternion_exp(theta)), -1, -2)
    return np.concatenate([right_jacobian(theta) @ shape.turn, back @ _shift(shape, eta)], axis=-2)


def attachment_drift(shape: Shape, eta: Array, rate: Array) -> Array:
    """Ẋη̇ (..., 6), what the free hinge's v changes by while η̇ stays the same."""
    theta, dtheta = eta @ shape.turn.T, rate @ shape.turn.T
    omega = np.einsum("...ab,...b->...a", right_jacobian(theta), dtheta)
    back = np.swapaxes(quaternion_to_matrix(quaternion_exp(theta)), -1, -2)
    moved = np.einsum("...ab,...bn,...n->...a", back, _shift(shape, eta), rate)
    bent = np.einsum("...ab,bij,...i,...j->...a", back, shape.bend, rate, rate)
    turned = np.einsum("...ab,...b->...a", right_jacobian_rate(theta, dtheta), dtheta)
    return np.concatenate([turned, bent - np.cross(omega, moved)], axis=-1)


def right_jacobian(theta: Array) -> Array:
    """J_r with body-frame angular velocity J_r θ̇ of exp(θ~): 1 − a θ~ + b θ~², (..., 3, 3)."""
    a, b, _, _ = _coefficients(theta)
    S = skew(theta)
    return np.eye(3) - a[..., None, None] * S + b[..., None, None] * S @ S


def right_jacobian_rate(theta: Array, dtheta: Array) -> Array:
    """dJ_r/dt for θ̇."""
    a, b, da, db = _coefficients(theta)
    along = np.sum(theta * dtheta, axis=-1)  # t ṫ
    S, dS = skew(theta), skew(dtheta)
    wide = (..., None, None)
    return -a[wide] * dS + b[wide] * (dS @ S + S @ dS) + along[wide] * (db[wide] * S @ S - da[wide] * S)


def _coefficients(theta: Array) -> tuple[Array, Array, Array, Array]:
    """a = (1 − cos t)/t², b = (t − sin t)/t³, and a'/t, b'/t; by series where t is small."""
    t2 = np.sum(theta * theta, axis=-1)
    small = t2 < 1e-2
    t = np.sqrt(np.where(small, 1.0, t2))
    s, c = np.sin(t), np.cos(t)
    a, b = (1 - c) / t**2, (t - s) / t**3
    da, db = (s / t**2 - 2 * a / t) / t, ((1 - c) / t**3 - 3 * b / t) / t
    x = np.where(small, t2, 0.0)
    return (
        np.where(small, 1 / 2 - x / 24 + x**2 / 720 - x**3 / 40320 + x**4 / 3628800, a),
        np.where(small, 1 / 6 - x / 120 + x**2 / 5040 - x**3 / 362880 + x**4 / 39916800, b),
        np.where(small, -1 / 12 + x / 180 - x**2 / 6720 + x**3 / 453600 - x**4 / 47900160, da),
        np.where(small, -1 / 60 + x / 1260 - x**2 / 60480 + x**3 / 4989600 - x**4 / 622702080, db),
    )


def _shift(shape: Shape, eta: Array) -> Array:
    """Ψ + Bη, (..., 3, n)."""
    return shape.shift + np.einsum("aij,...j->...ai", shape.bend, eta)
