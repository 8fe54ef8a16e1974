"""R86 sections 4 and 5: velocities and accelerations outward, forces inward, and the bias terms ξ and η.

Derivatives are those seen from the link's own frame: λ = [ω̇ | v̇], and the inertial acceleration is v̇ + ω × v.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from kfdyn.errors import ShapeError
from kfdyn.textbook.algebra import Array, cross, zeros
from kfdyn.textbook.r86.links import Arm, Link, change_of_frame, spatial_inertia_3_1, transition_3_5


class Chain(NamedTuple):
    """An arm in one state, for sections 6 to 10. Lists are indexed 1 to N as in the paper; slot 0 is joint 0.

    Attributes
    ----------
    N : int
        How many links.
    phi : list of (6, 6)
        φ_{k,k−1}, the change from link k − 1's frame to link k's included.
    H : list of (1, 6)
        H_k = [h_k* | 0].
    M : list of (6, 6)
        Spatial inertias (3.1).
    xi, eta : list of (6,)
        Bias spatial forces (4.4) and bias spatial accelerations (5.6).

    Examples
    --------
    >>> import kfdyn as kf
    >>> r86 = kf.textbook.r86
    >>> chain = r86.chain_of(r86.arm_of(kf.models.uniform_chain(3)), [0.1, 0.2, 0.3], [0.0, 0.0, 0.0])
    >>> chain.N, chain.H[1].shape, chain.M[0] is None
    (3, (1, 6), True)
    """

    N: int
    phi: list[Any]
    H: list[Any]
    M: list[Any]
    xi: list[Any]
    eta: list[Any]


def velocities_5_1_to_5_3(N: int, phi: list[Any], H: list[Any], u_dot: Any) -> tuple[list[Any], list[Any]]:
    """V_{k−1}⁺ = φ*V_k⁻, V_k⁻ = V_k⁺ + H*u̇_k, V_N⁺ = 0: the lists V⁻ and V⁺. R86 (5.1)-(5.3)."""
    minus: list[Any] = [None] * (N + 1)
    plus: list[Any] = [None] * (N + 1)
    plus[N] = zeros(6, phi[1])
    for k in range(N, 0, -1):
        minus[k] = plus[k] + H[k][0] * u_dot[k - 1]
        plus[k - 1] = phi[k].T @ minus[k]
    return minus, plus


def bias_force_4_4(link: Link, V: Array, T: Array, f: Array) -> Array:
    """ξ (6,) from the link's spatial velocity at its joint, external moment T and force f at the mass centre.

    ::

        ξ = [ω × Iω + m p × (ω × v⁻) − T − p × f;  m ω × (v⁻ + ω × p) − f]          R86 (4.4)

    The report prints m ω × v⁻ in the second row, without ω × p, by which accelerations are wrong.
    """
    p, omega, v = np.asarray(link.p), V[:3], V[3:]
    moment = cross(omega, np.asarray(link.I) @ omega) + link.m * cross(p, cross(omega, v)) - T - cross(p, f)
    force = link.m * cross(omega, v + cross(omega, p)) - f
    return np.concatenate([moment, force])


def bias_force_4_4_as_printed(link: Link, V: Array, T: Array, f: Array) -> Array:
    """ξ with m ω × v⁻ for m ω × v: what the report has. For the errata."""
    xi = bias_force_4_4(link, V, T, f)
    xi[3:] = link.m * cross(V[:3], V[3:]) - f
    return xi


def bias_acceleration_5_6(V_plus: Array, h: Array, u_dot: Any) -> Array:
    """η = [ω⁺ × h u̇; v⁺ × h u̇], (6,). R86 (5.6)."""
    turn = np.asarray(h) * u_dot
    return np.concatenate([cross(V_plus[:3], turn), cross(V_plus[3:], turn)])


def accelerations_5_4_5_5(chain: Chain, u_ddot: Any) -> tuple[list[Any], list[Any]]:
    """λ_{k−1}⁺ = φ*λ_k⁻, λ_k⁻ = λ_k⁺ + H*ü_k + η_k, λ_N⁺ = 0: the lists λ⁻ and λ⁺. R86 (5.4)-(5.5)."""
    N = chain.N
    minus: list[Any] = [None] * (N + 1)
    plus: list[Any] = [None] * (N + 1)
    plus[N] = zeros(6, chain.phi[1])
    for k in range(N, 0, -1):
        minus[k] = plus[k] + chain.H[k][0] * u_ddot[k - 1] + chain.eta[k]
        plus[k - 1] = chain.phi[k].T @ minus[k]
    return minus, plus


def forces_4_1_to_4_3(chain: Chain, lam: list[Any]) -> list[Any]:
    """x_k⁻ = φ_{k,k−1} x_{k−1}⁺ + M_k λ_k⁻ + ξ_k, x⁺ = x⁻, x_0⁺ = 0. R86 (4.1)-(4.3)."""
    x: list[Any] = [zeros(6, chain.phi[1])]
    for k in range(1, chain.N + 1):
        x.append(chain.phi[k] @ x[k - 1] + chain.M[k] @ lam[k] + chain.xi[k])
    return x


def chain_of(
    arm: Arm, u: Any, u_dot: Any, *, cosine: Any = np.cos, sine: Any = np.sin, as_printed: bool = False
) -> Chain:
    """The arm with joint angles u and rates u̇: φ, H, M, ξ and η of every link.

    Parameters
    ----------
    arm : Arm
        The arm.
    u, u_dot : (N,)
        Joint angles and rates, from the tip to the base as everything in the paper.
    cosine, sine : callable
        Of a number of the kind u holds; NumPy's unless given.
    as_printed : bool
        Take (4.4) as the report prints it, to see what the slip does.

    Returns
    -------
    Chain
        The data of the two-point boundary-value problem (6.1)-(6.6).

    Notes
    -----
    O(N). Source: R86 sections 3 to 5; gravity is the external force m g at the mass centre.

    Examples
    --------
    >>> import kfdyn as kf
    >>> r86 = kf.textbook.r86
    >>> arm = r86.arm_of(kf.models.double_pendulum())
    >>> chain = r86.chain_of(arm, [0.3, -0.2], [1.0, 2.0])
    >>> r86.forward_dynamics_8(chain, [0.0, 0.0]).shape
    (2,)
    """
    N = arm.N
    if len(u) != N or len(u_dot) != N:
        raise ShapeError(f"u and u_dot must have {N} entries, one a joint, got {len(u)} and {len(u_dot)}")
    none: list[Any] = [None]
    C = none + [change_of_frame(arm.link(k), cosine(u[k - 1]), sine(u[k - 1])) for k in range(1, N + 1)]
    shift = none + [transition_3_5(arm.link(k).L) for k in range(1, N + 1)]
    phi = none + [shift[k] @ C[k - 1] if k > 1 else shift[k] @ np.eye(6, dtype=C[1].dtype) for k in range(1, N + 1)]
    H = none + [np.concatenate([np.asarray(arm.link(k).h), np.zeros(3, int)])[None, :] for k in range(1, N + 1)]
    minus, plus = velocities_5_1_to_5_3(N, phi, H, u_dot)
    xi, eta, M = list(none), list(none), list(none)
    down: list[Any] = [None] * (N + 2)
    down[N + 1] = np.asarray(arm.gravity)
    for k in range(N, 0, -1):
        down[k] = C[k][:3, :3].T @ down[k + 1]  # gravity in the frame of link k
    bias = bias_force_4_4_as_printed if as_printed else bias_force_4_4
    for k in range(1, N + 1):
        link = arm.link(k)
        M.append(spatial_inertia_3_1(link))
        xi.append(bias(link, minus[k], zeros(3, phi[1]), down[k] * link.m))
        eta.append(bias_acceleration_5_6(plus[k], link.h, u_dot[k - 1]))
    return Chain(N, phi, H, M, xi, eta)
