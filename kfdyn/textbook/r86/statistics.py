"""R86 section 9: the same recursions read as Kalman filter and Bryson-Frazier smoother of a random process."""

from __future__ import annotations

from typing import Any

import numpy as np

from kfdyn.textbook.algebra import Array, block, identity, solve, zeros
from kfdyn.textbook.r86.forward import Filtered
from kfdyn.textbook.r86.inverse import kernel_7_7, transition
from kfdyn.textbook.r86.motion import Chain


def draw_9_1_to_9_3(chain: Chain, rng: np.random.Generator) -> tuple[list[Any], Array]:
    """One draw of x_k = φ x_{k−1} + w_k, w ~ N(ξ, M), and of τ_k = H_k x_k: (list x, (N,) τ). R86 (9.1)-(9.3)."""
    x: list[Any] = [np.zeros(6)]
    for k in range(1, chain.N + 1):
        values, vectors = np.linalg.eigh(chain.M[k])
        w = chain.xi[k] + vectors @ (np.sqrt(np.maximum(values, 0)) * rng.standard_normal(6))
        x.append(chain.phi[k] @ x[k - 1] + w)
    return x, np.array([chain.H[k][0] @ x[k] for k in range(1, chain.N + 1)])


def mean_and_covariance(chain: Chain) -> tuple[Array, Array, Array]:
    """E x (6N,), cov x (6N, 6N) and the map H (N, 6N) of the process (9.1)-(9.3), from sums over φ alone."""
    N, every = chain.N, range(1, chain.N + 1)
    mean = np.concatenate(
        [np.sum([transition(chain, k, i) @ chain.xi[i] for i in range(1, k + 1)], axis=0) for k in every]
    )
    cov = block([[kernel_7_7(chain, k, i) for i in every] for k in every])
    H = zeros((N, 6 * N), chain.phi[1])
    for k in every:
        H[k - 1, 6 * (k - 1) : 6 * k] = chain.H[k][0]
    return mean, cov, H


def conditional(chain: Chain, tau: Any, k: int, given: int) -> tuple[Array, Array]:
    """E(x_k | τ_1 … τ_given) and its error covariance, by conditioning the joint Gaussian.

    The definitions: (9.4), (9.6) with given = k − 1; (9.10), (9.12) with given = k; (9.13), (9.17) with given = N.
    """
    mean, cov, H = mean_and_covariance(chain)
    own, H = slice(6 * (k - 1), 6 * k), H[:given]
    S, C = H @ cov @ H.T, cov[own] @ H.T
    known = np.asarray(tau[:given]) - H @ mean
    return mean[own] + C @ solve(S, known), cov[own, own] - C @ solve(S, C.T)


def innovation_9_5(chain: Chain, tau: Any, k: int) -> Array:
    """e_k⁻ = τ_k − H_k z_k⁻ with z⁻ the conditional mean (9.4)."""
    return tau[k - 1] - chain.H[k] @ conditional(chain, tau, k, k - 1)[0]


def innovation_covariance_9_7(chain: Chain, k: int) -> Array:
    """E e⁻e⁻* = H P⁻ H* with P⁻ the error covariance (9.6)."""
    P = conditional(chain, zeros(chain.N, chain.phi[1]), k, k - 1)[1]
    return chain.H[k] @ P @ chain.H[k].T


def update_9_9(P_minus: Array, H: Array, D: Array) -> Array:
    """P⁺ = P⁻ − P⁻ H* D⁻¹ H P⁻; the report prints H and H* in each other's place."""
    return P_minus - P_minus @ H.T @ solve(D, H @ P_minus)


def smoothed_9_14(filtered: Filtered, lam_minus: list[Any], k: int) -> Array:
    """x̂_k = z_k + P_k λ_k. R86 (9.14), and (8.1)."""
    return filtered.z_minus[k] + filtered.P_minus[k] @ lam_minus[k]


def co_states_9_15_9_16(chain: Chain, filtered: Filtered) -> list[Any]:
    """λ_k⁺ = φ*λ_{k+1}⁻, λ_k⁻ = (I − GH)*λ_k⁺ + H*e_k⁺, for η = 0. R86 (9.15)-(9.16)."""
    lam: list[Any] = [None] * (chain.N + 1)
    above = zeros(6, chain.phi[1])
    for k in range(chain.N, 0, -1):
        closed = identity(6, chain.phi[1]) - filtered.G[k] @ chain.H[k]
        lam[k] = closed.T @ above + chain.H[k].T @ filtered.e_plus[k]
        above = chain.phi[k].T @ lam[k]
    return lam


def co_state_covariances_9_20_9_21(chain: Chain, filtered: Filtered) -> tuple[list[Any], list[Any]]:
    """Λ⁺ = φ*Λ⁻φ, Λ⁻ = (I − GH)*Λ⁺(I − GH) + H*D⁻¹H: the lists Λ⁻ and Λ⁺. R86 (9.20)-(9.21), (10.30)-(10.31)."""
    minus: list[Any] = [None] * (chain.N + 1)
    plus: list[Any] = [None] * (chain.N + 1)
    plus[chain.N] = zeros((6, 6), chain.phi[1])
    for k in range(chain.N, 0, -1):
        H, closed = chain.H[k], identity(6, chain.phi[1]) - filtered.G[k] @ chain.H[k]
        minus[k] = closed.T @ plus[k] @ closed + H.T @ solve(filtered.D[k], H)
        plus[k - 1] = chain.phi[k].T @ minus[k] @ chain.phi[k]
    return minus, plus


def smoothed_covariance_9_18(P: Array, Lambda: Array) -> Array:
    """S = P − P Λ P. R86 (9.18)."""
    return P - P @ Lambda @ P
