"""R86 section 8: forward dynamics by inward filtering (8.2)-(8.9) and outward smoothing (8.10)-(8.13)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from kfdyn.textbook.algebra import Array, identity, inverse, zeros
from kfdyn.textbook.r86.motion import Chain


class Filtered(NamedTuple):
    """Everything the filtering stage computes; lists indexed 1 to N, slot 0 is the initial condition or None.

    Attributes
    ----------
    z_minus, z_plus : list of (6,)
        Predicted and updated spatial forces.
    P_minus, P_plus : list of (6, 6)
        Predicted and updated spatial inertias: articulated bodies, which the report once calls composite.
    D, G : list of (1, 1), (6, 1)
        Inertia along the joint axis, and the gain.
    e_minus, e_plus : list of (1,)
        Innovations and residuals.

    Examples
    --------
    >>> import kfdyn as kf
    >>> r86 = kf.textbook.r86
    >>> chain = r86.chain_of(r86.arm_of(kf.models.double_pendulum()), [0.0, 0.0], [0.0, 0.0])
    >>> r86.filter_8(chain, [0.0, 0.0]).D[2]
    array([[1.]])
    """

    z_minus: list[Any]
    P_minus: list[Any]
    D: list[Any]
    G: list[Any]
    e_minus: list[Any]
    z_plus: list[Any]
    e_plus: list[Any]
    P_plus: list[Any]


class Smoothed(NamedTuple):
    """Results of the smoothing stage; lists indexed 0 to N as in the paper.

    Attributes
    ----------
    lam_plus, lam_minus : list of (6,)
        Spatial accelerations λ⁺ and λ⁻ on the two sides of each joint.
    u_ddot : (N,)
        Joint accelerations, from the tip to the base.

    Examples
    --------
    >>> import kfdyn as kf
    >>> r86 = kf.textbook.r86
    >>> chain = r86.chain_of(r86.arm_of(kf.models.double_pendulum()), [0.0, 0.0], [0.0, 0.0])
    >>> r86.smoother_8(chain, r86.filter_8(chain, [0.0, 0.0])).u_ddot
    array([0., 0.])
    """

    lam_plus: list[Any]
    lam_minus: list[Any]
    u_ddot: Any


def state_prediction_8_3(phi: Array, z_plus: Array, xi: Array) -> Array:
    """z_k⁻ = φ z_{k−1}⁺ + ξ_k."""
    return phi @ z_plus + xi


def inertia_prediction_8_4(phi: Array, P_plus: Array, M: Array) -> Array:
    """P_k⁻ = φ P_{k−1}⁺ φ* + M_k."""
    return phi @ P_plus @ phi.T + M


def gain_8_5(P_minus: Array, H: Array) -> tuple[Array, Array]:
    """D = H P⁻ H*, G = P⁻ H* D⁻¹."""
    D = H @ P_minus @ H.T
    return D, P_minus @ H.T @ inverse(D, "the inertia about a joint axis")


def innovation_8_6(tau: Any, H: Array, z_minus: Array) -> Array:
    """e⁻ = τ − H z⁻; the report prints x for z."""
    return tau - H @ z_minus


def inertia_update_8_9(P_minus: Array, H: Array, D: Array) -> Array:
    """P⁺ = P⁻ − P⁻ H* D⁻¹ H P⁻."""
    return P_minus - P_minus @ H.T @ inverse(D) @ H @ P_minus


def state_update_8_7(z_minus: Array, G: Array, e_minus: Array, P_plus: Array, eta: Array) -> Array:
    """z⁺ = z⁻ + G e⁻ + P⁺ η."""
    return z_minus + G @ e_minus + P_plus @ eta


def residual_8_8(D: Array, e_minus: Array) -> Array:
    """e⁺ = D⁻¹ e⁻."""
    return inverse(D) @ e_minus


def inertia_updates_8_25(P_minus: Array, G: Array, H: Array) -> tuple[Array, Array, Array]:
    """P⁺ = (I − GH) P⁻ = P⁻ (I − GH)* = (I − GH) P⁻ (I − GH)*."""
    closed = np.eye(len(P_minus), dtype=P_minus.dtype) - G @ H
    return closed @ P_minus, P_minus @ closed.T, closed @ P_minus @ closed.T


def filter_8(chain: Chain, tau: Any) -> Filtered:
    """Run the filtering stage (8.2)-(8.9) over (N,) moments from the tip to the base. O(N).

    Notes
    -----
    O(N). Source: R86 (8.2)-(8.9).

    Examples
    --------
    >>> import kfdyn as kf
    >>> r86 = kf.textbook.r86
    >>> chain = r86.chain_of(r86.arm_of(kf.models.double_pendulum()), [0.0, 0.0], [0.0, 0.0])
    >>> r86.filter_8(chain, [1.0, 0.0]).e_plus[1]
    array([1.])
    """
    f = Filtered(*([None] for _ in Filtered._fields))
    f.z_plus[0], f.P_plus[0] = zeros(6, chain.phi[1]), zeros((6, 6), chain.phi[1])  # (8.2)
    for k in range(1, chain.N + 1):
        f.z_minus.append(state_prediction_8_3(chain.phi[k], f.z_plus[k - 1], chain.xi[k]))
        f.P_minus.append(inertia_prediction_8_4(chain.phi[k], f.P_plus[k - 1], chain.M[k]))
        D, G = gain_8_5(f.P_minus[k], chain.H[k])
        f.D.append(D)
        f.G.append(G)
        f.e_minus.append(innovation_8_6(tau[k - 1], chain.H[k], f.z_minus[k]))
        f.P_plus.append(inertia_update_8_9(f.P_minus[k], chain.H[k], D))
        f.z_plus.append(state_update_8_7(f.z_minus[k], G, f.e_minus[k], f.P_plus[k], chain.eta[k]))
        f.e_plus.append(residual_8_8(D, f.e_minus[k]))
    return f


def smoother_8(chain: Chain, filtered: Filtered) -> Smoothed:
    """Run the smoothing stage (8.10)-(8.13) for ü (N,) from the base to the tip. O(N).

    Parameters
    ----------
    filtered : Filtered
        Of :func:`filter_8`: gains and residuals are used.

    Notes
    -----
    O(N). Source: R86 (8.10)-(8.13).

    Examples
    --------
    >>> import kfdyn as kf
    >>> r86 = kf.textbook.r86
    >>> chain = r86.chain_of(r86.arm_of(kf.models.double_pendulum()), [0.0, 0.0], [0.0, 0.0])
    >>> r86.smoother_8(chain, r86.filter_8(chain, [1.0, 0.0])).u_ddot.round(9)
    array([ 5., -2.])
    """
    N = chain.N
    plus: list[Any] = [None] * (N + 1)
    minus: list[Any] = [None] * (N + 1)
    u_ddot: list[Any] = [None] * (N + 1)
    plus[N] = zeros(6, chain.phi[1])  # (8.10)
    for k in range(N, 0, -1):
        u_ddot[k] = (filtered.e_plus[k] - filtered.G[k].T @ (plus[k] + chain.eta[k]))[0]  # (8.12)
        minus[k] = plus[k] + chain.eta[k] + chain.H[k][0] * u_ddot[k]  # (8.13)
        plus[k - 1] = chain.phi[k].T @ minus[k]  # (8.11)
    return Smoothed(plus, minus, np.array(u_ddot[1:]))


def co_state_update_8_13(chain: Chain, filtered: Filtered, smoothed: Smoothed, k: int) -> Array:
    """λ⁻ = (I − GH)* (λ⁺ + η) + H* e⁺: the second form of (8.13)."""
    closed = identity(6, chain.phi[1]) - filtered.G[k] @ chain.H[k]
    return closed.T @ (smoothed.lam_plus[k] + chain.eta[k]) + chain.H[k].T @ filtered.e_plus[k]


def forward_dynamics_8(chain: Chain, tau: Any) -> Array:
    """Return ü (N,) by filtering inward and smoothing outward, O(N). R86 Result 8.1.

    Notes
    -----
    O(N). Source: R86 Result 8.1.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> r86, system = kf.textbook.r86, kf.models.double_pendulum()
    >>> q, v, tau = np.array([0.3, -0.2]), np.array([1.0, 2.0]), np.array([0.5, 0.1])
    >>> chain = r86.chain_of(r86.arm_of(system), q[::-1], v[::-1])
    >>> a = r86.forward_dynamics_8(chain, tau[::-1])[::-1]
    >>> bool(np.allclose(a, kf.forward_dynamics(system, q, v, tau)))
    True
    """
    return smoother_8(chain, filter_8(chain, tau)).u_ddot
