"""R86 section 7: inverse dynamics, and the elements of M(u) and V(u, u̇) through the transition matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from kfdyn.textbook.algebra import Array, zeros
from kfdyn.textbook.r86.motion import Chain, accelerations_5_4_5_5, forces_4_1_to_4_3


def inverse_dynamics_7(chain: Chain, u_ddot: Any) -> Array:
    """Return τ (N,) for given ü: outward (6.3)-(6.4), then inward (6.1)-(6.2), (6.5). O(N). R86 7.

    Notes
    -----
    O(N). Source: R86 section 7.

    Examples
    --------
    >>> import kfdyn as kf
    >>> r86 = kf.textbook.r86
    >>> chain = r86.chain_of(r86.arm_of(kf.models.double_pendulum()), [0.0, 0.0], [0.0, 0.0])
    >>> r86.inverse_dynamics_7(chain, [0.0, 1.0])
    array([2., 5.])
    """
    lam, _ = accelerations_5_4_5_5(chain, u_ddot)
    x = forces_4_1_to_4_3(chain, lam)
    return np.array([chain.H[k][0] @ x[k] for k in range(1, chain.N + 1)])


def transition(chain: Chain, k: int, j: int) -> Array:
    """φ_{k,j} = φ_{k,k−1} … φ_{j+1,j} for k ≥ j, (6, 6). R86 (3.6)."""
    out = np.eye(6, dtype=chain.phi[1].dtype)
    for i in range(k, j, -1):
        out = out @ chain.phi[i]
    return out


def co_state_7_2(chain: Chain, u_ddot: Any, j: int) -> Array:
    """λ_j⁻ = Σ_{i≥j} φ*_{i,j} (H_i*ü_i + η_i). R86 (7.2)."""
    terms = [transition(chain, i, j).T @ (chain.H[i][0] * u_ddot[i - 1] + chain.eta[i]) for i in range(j, chain.N + 1)]
    return np.sum(terms, axis=0)


def state_7_3(chain: Chain, lam: list[Any], k: int) -> Array:
    """x_k⁻ = Σ_{j≤k} φ_{k,j} (M_j λ_j⁻ + ξ_j). R86 (7.3)."""
    return np.sum([transition(chain, k, j) @ (chain.M[j] @ lam[j] + chain.xi[j]) for j in range(1, k + 1)], axis=0)


def state_7_4(chain: Chain, u_ddot: Any, k: int) -> Array:
    """x_k⁻ with (7.2) put into (7.3): the double sum over j ≤ k and i ≥ j. R86 (7.4)."""
    out = zeros(6, chain.phi[1])
    for j in range(1, k + 1):
        to_k = transition(chain, k, j)
        for i in range(j, chain.N + 1):
            drive = chain.H[i][0] * u_ddot[i - 1] + chain.eta[i]
            out = out + to_k @ chain.M[j] @ transition(chain, i, j).T @ drive
        out = out + to_k @ chain.xi[j]
    return out


def state_7_6(chain: Chain, u_ddot: Any, k: int) -> Array:
    """x_k⁻ = Σ_i r_{k,i} (H_i*ü_i + η_i) + Σ_{i≤k} φ_{k,i} ξ_i: the sums in the other order (7.5). R86 (7.6)."""
    driven = [kernel_7_7(chain, k, i) @ (chain.H[i][0] * u_ddot[i - 1] + chain.eta[i]) for i in range(1, chain.N + 1)]
    carried = [transition(chain, k, i) @ chain.xi[i] for i in range(1, k + 1)]
    return np.sum(driven + carried, axis=0)


def kernel_7_7(chain: Chain, k: int, i: int) -> Array:
    """r_{k,i} = Σ_{j ≤ min(i,k)} φ_{k,j} M_j φ*_{i,j}, (6, 6). R86 (7.7)."""
    terms = [transition(chain, k, j) @ chain.M[j] @ transition(chain, i, j).T for j in range(1, min(i, k) + 1)]
    return np.sum(terms, axis=0)


def kernel_table(chain: Chain, k: int, i: int) -> Array:
    """r_{k,i} = φ_{k,i} r_{i,i} for i ≤ k, r_{k,k} φ*_{i,k} for i ≥ k. The table before R86 (7.8)."""
    r = composites_7_9(chain)
    return transition(chain, k, i) @ r[i] if i <= k else r[k] @ transition(chain, i, k).T


def composite_7_8(chain: Chain, k: int) -> Array:
    """r_{k,k} = Σ_{j≤k} φ_{k,j} M_j φ*_{k,j}: the composite inertia as a sum. R86 (7.8)."""
    return np.sum([transition(chain, k, j) @ chain.M[j] @ transition(chain, k, j).T for j in range(1, k + 1)], axis=0)


def composites_7_9(chain: Chain) -> list[Any]:
    """r_{k+1,k+1} = φ r_{k,k} φ* + M_{k+1}, a list over k = 1 … N. R86 (7.9): the covariance of the state."""
    r: list[Any] = [None, chain.M[1]]
    for k in range(2, chain.N + 1):
        r.append(chain.phi[k] @ r[k - 1] @ chain.phi[k].T + chain.M[k])
    return r


def inertia_matrix_7_11(chain: Chain) -> Array:
    """m_{k,i} = H_k r_{k,i} H_i*, (N, N). R86 (7.11)."""
    every = range(1, chain.N + 1)
    return np.array([[chain.H[k][0] @ kernel_table(chain, k, i) @ chain.H[i][0] for i in every] for k in every])


def bias_moments_7_11(chain: Chain) -> Array:
    """V^k = Σ_i H_k r_{k,i} η_i + Σ_{i≤k} H_k φ_{k,i} ξ_i, (N,). R86 (7.11)."""
    every = range(1, chain.N + 1)
    return np.array(
        [
            sum(chain.H[k][0] @ kernel_table(chain, k, i) @ chain.eta[i] for i in every)
            + sum(chain.H[k][0] @ transition(chain, k, i) @ chain.xi[i] for i in range(1, k + 1))
            for k in every
        ]
    )


def equation_of_motion_7_1(chain: Chain, u_ddot: Any) -> Array:
    """M(u) ü + V(u, u̇) = τ, (N,). R86 (7.1)."""
    return inertia_matrix_7_11(chain) @ np.asarray(u_ddot) + bias_moments_7_11(chain)
