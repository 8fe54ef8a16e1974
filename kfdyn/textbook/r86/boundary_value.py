"""R86 section 6: the two-point boundary-value problem, its residuals and its solution as one linear system."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from kfdyn.textbook.algebra import identity, solve, zeros
from kfdyn.textbook.r86.motion import Chain

#: R86 Table 6.1: what stands for what, and where a :class:`Chain` or a solution keeps it.
TABLE_6_1 = (
    ("States", "x", "Spatial Forces"),
    ("Co-States", "lam", "Spatial Accelerations"),
    ("Measurements", "tau", "Active Moments"),
    ("Transition Matrix", "phi", "Spatial Transition Matrix"),
    ("Process Error Covariance", "M", "Spatial Inertia Matrix"),
    ("Known Deterministic Input", "xi", "Bias Spatial Force"),
    ("State to Output Map", "H", "Projection from State to Joint Axis"),
)


class Solution(NamedTuple):
    """A solution of (6.1)-(6.6): spatial forces x, spatial accelerations λ⁻ and joint accelerations ü.

    Attributes
    ----------
    x, lam : list of (6,)
        Indexed 1 to N; slot 0 is unused.
    u_ddot : (N,)
        From the tip to the base.

    Examples
    --------
    >>> import kfdyn as kf
    >>> r86 = kf.textbook.r86
    >>> chain = r86.chain_of(r86.arm_of(kf.models.double_pendulum()), [0.3, -0.2], [1.0, 2.0])
    >>> solution = r86.boundary_value_6(chain, [0.0, 0.0])
    >>> float(max(abs(r).max() for r in r86.residuals_6_1_to_6_6(chain, [0.0, 0.0], solution).values())) < 1e-12
    True
    """

    x: list[Any]
    lam: list[Any]
    u_ddot: Any


def boundary_value_6(chain: Chain, tau: Any) -> Solution:
    """Solve (6.1)-(6.6) whole for x, λ and ü (N,): 13 N equations, by elimination; O(N³).

    Notes
    -----
    Source: R86 (6.1)-(6.6). Neither a filter nor a recursion, so it is the oracle of both.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> r86 = kf.textbook.r86
    >>> chain = r86.chain_of(r86.arm_of(kf.models.double_pendulum()), [0.3, -0.2], [1.0, 2.0])
    >>> bool(np.allclose(r86.boundary_value_6(chain, [1.0, 2.0]).u_ddot, r86.forward_dynamics_8(chain, [1.0, 2.0])))
    True
    """
    N = chain.N
    like = chain.phi[1]
    A, b, one = zeros((13 * N, 13 * N), like), zeros(13 * N, like), identity(6, like)

    def x(k: int) -> slice:
        return slice(6 * (k - 1), 6 * k)

    def lam(k: int) -> slice:
        return slice(6 * (N + k - 1), 6 * (N + k))

    for k in range(1, N + 1):
        u = 12 * N + k - 1
        A[x(k), x(k)], A[x(k), lam(k)], b[x(k)] = one, -chain.M[k], chain.xi[k]  # (6.1), (6.2)
        if k > 1:
            A[x(k), x(k - 1)] = -chain.phi[k]
        A[lam(k), lam(k)], A[lam(k), u], b[lam(k)] = one, -chain.H[k][0], chain.eta[k]  # (6.3), (6.4)
        if k < N:
            A[lam(k), lam(k + 1)] = -chain.phi[k + 1].T
        A[u, x(k)], b[u] = chain.H[k][0], tau[k - 1]  # (6.5)
    y = solve(A, b)
    return Solution([None, *y[: 6 * N].reshape(N, 6)], [None, *y[6 * N : 12 * N].reshape(N, 6)], y[12 * N :])


def residuals_6_1_to_6_6(chain: Chain, tau: Any, solution: Solution) -> dict[str, Any]:
    """Residuals of the equations for a given solution, by equation number."""
    x, lam, u_ddot = solution
    N, k_all = chain.N, range(1, chain.N + 1)
    nothing = zeros(6, chain.phi[1])
    x_outer = [nothing, nothing, *x[1:N]]  # x_{k−1}⁺ at slot k, x_0⁺ = 0  (6.6)
    lam_plus = [None, *(chain.phi[k + 1].T @ lam[k + 1] for k in range(1, N)), nothing]  # (6.3), λ_N⁺ = 0
    return {
        "6.1": np.array([x[k] - chain.phi[k] @ x_outer[k] - chain.M[k] @ lam[k] - chain.xi[k] for k in k_all]),
        "6.4": np.array([lam[k] - lam_plus[k] - chain.H[k][0] * u_ddot[k - 1] - chain.eta[k] for k in k_all]),
        "6.5": np.array([chain.H[k][0] @ x[k] - tau[k - 1] for k in k_all]),
    }
