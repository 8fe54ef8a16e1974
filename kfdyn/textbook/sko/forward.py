"""Forward dynamics of any SKO model in O(N), O(N²), O(N³) and in operator form; hybrid dynamics (SKO 76-81, 88)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from kfdyn.textbook.algebra import Array, identity, inverse, solve, zeros
from kfdyn.textbook.sko.inverse import bias, composite_bodies, mass_matrix
from kfdyn.textbook.sko.sko_model import Model, operators


class Articulated(NamedTuple):
    """Articulated inertias and what follows from them; one entry a node.

    Attributes
    ----------
    P, P_plus : list of (n_k, n_k)
        Outboard and inboard side of the hinge.
    D, D_inverse, G : list of (m_k, m_k), (m_k, m_k), (n_k, m_k)
        Innovations covariance, its inverse, gain.
    H : list of (m_k, n_k)
        The joint maps that were used.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> sko = kf.textbook.sko
    >>> ss = kf.as_estimation(kf.models.puma560(), np.full(6, 0.3))
    >>> bool(np.allclose(sko.articulated(sko.model_of(ss)).D[0], kf.riccati(ss).D[0]))
    True
    """

    P: list[Any]
    P_plus: list[Any]
    D: list[Any]
    D_inverse: list[Any]
    G: list[Any]
    H: list[Any]

    def tau_bar(self, k: int) -> Array:
        """τ̄(k) = 1 − G H, (n_k, n_k)."""
        return np.eye(len(self.P[k]), dtype=self.P[k].dtype) - self.G[k] @ self.H[k]


def articulated(model: Model, H: list[Any] | None = None, R: list[Any] | None = None) -> Articulated:
    """Compute P, D, G, τ̄ and P⁺ from the tips to the base (ABA; n_k by n_k blocks), O(N). SKO "riccati-gather".

    Parameters
    ----------
    H, R : list, optional
        Instead of the model's: of the free dofs, in hybrid dynamics.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> sko = kf.textbook.sko
    >>> model = sko.model_of(kf.as_estimation(kf.models.puma560(), np.full(6, 0.3)))
    >>> found = sko.articulated(model)
    >>> bool(np.allclose(np.prod([D[0, 0] for D in found.D]), np.linalg.det(sko.mass_matrix(model))))
    True
    """
    H, R = model.H if H is None else H, model.R if R is None else R
    out = Articulated(*([None] * len(model.M) for _ in Articulated._fields))
    for k in model.inward:
        P = model.M[k]
        for j in model.children(k):
            P = P + model.A[j] @ out.P_plus[j] @ model.A[j].T
        D = H[k] @ P @ H[k].T + R[k]
        D_inverse = inverse(D, f"D of node {k}")
        G = P @ H[k].T @ D_inverse
        out.P[k], out.D[k], out.D_inverse[k], out.G[k], out.H[k] = P, D, D_inverse, G, H[k]
        out.P_plus[k] = P - G @ (H[k] @ P)
    return out


def forward_dynamics(model: Model, T: Any) -> Array:
    """Return θ̈ (Σm_k,) by the articulated-body recursions (ABA), O(N), with Jain's split of the biases. SKO 81.

    ::

        𝔷 = Σ A 𝔷⁺ + P a + b,   ε = T − H𝔷,   ν = D⁻¹ε,   𝔷⁺ = 𝔷 + Gε
        α⁺ = A*α(p),            θ̈ = ν − G*α⁺,              α = α⁺ + H*θ̈ + a

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> sko, arm = kf.textbook.sko, kf.models.puma560()
    >>> q, v, T = np.full(6, 0.3), np.arange(6.0), np.ones(6)
    >>> a = sko.forward_dynamics(sko.model_of(kf.as_estimation(arm, q, v)), T)
    >>> bool(np.allclose(a, kf.forward_dynamics(arm, q, v, T)))
    True
    """
    cov, given = articulated(model), model.by_node(T)
    z_plus: list[Any] = [None] * len(model.M)
    nu: list[Any] = [None] * len(model.M)
    for k in model.inward:
        z = cov.P[k] @ model.a[k] + model.b[k]
        for j in model.children(k):
            z = z + model.A[j] @ z_plus[j]
        eps = given[k] - model.H[k] @ z
        nu[k] = cov.D_inverse[k] @ eps
        z_plus[k] = z + cov.G[k] @ eps
    alpha: list[Any] = [None] * len(model.M)
    theta_ddot: list[Any] = [None] * len(model.M)
    for k in model.outward:
        p = model.parent[k]
        alpha_plus = model.A[k].T @ alpha[p] if p >= 0 else zeros(len(model.M[k]), model.M[k])
        theta_ddot[k] = nu[k] - cov.G[k].T @ alpha_plus
        alpha[k] = alpha_plus + model.H[k].T @ theta_ddot[k] + model.a[k]
    return np.concatenate(theta_ddot)


def forward_dynamics_inverse_first(model: Model, T: Any) -> Array:
    """Return θ̈ (Σm_k,) with the biases taken from T first: inverse dynamics, then the filter without them. R86 11.

    ::

        C = T at θ̈ = 0;     θ̈ = 𝓜⁻¹(T − C) by filter and smoother with a = b = 0

    Notes
    -----
    O(N), but two passes more. R86 11 sets its own single pass, biases inside, against this way; :mod:`counting
    <kfdyn.textbook.counting>` says by how much.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> sko = kf.textbook.sko
    >>> model = sko.model_of(kf.as_estimation(kf.models.puma560(), np.full(6, 0.3), np.arange(6.0)))
    >>> both = sko.forward_dynamics_inverse_first(model, np.ones(6)), sko.forward_dynamics(model, np.ones(6))
    >>> bool(np.allclose(*both))
    True
    """
    still = model._replace(a=[zeros(len(a), a) for a in model.a], b=[zeros(len(b), b) for b in model.b])
    return forward_dynamics(still, np.asarray(T) - bias(model))


def forward_dynamics_quadratic(model: Model, T: Any) -> Array:
    """Return θ̈ (Σm_k,) in O(N depth): the innovations factor from composite bodies, and two triangular solves.

    ::

        S(k) = Σ A (S + G D G*) A*,   (ℛ − S)H* = G D,   L(j,k) = H(j) A(j,k) G(k),   𝓜 = L D L*

    S is the covariance of the filter's estimate: what composite bodies overstate. The biases come from Newton-Euler.

    Notes
    -----
    O(N²) on a chain. Source: SKO 88, "O(N²) forward dynamics".

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> sko = kf.textbook.sko
    >>> model = sko.model_of(kf.as_estimation(kf.models.puma560(), np.full(6, 0.3), np.arange(6.0)))
    >>> bool(np.allclose(sko.forward_dynamics_quadratic(model, np.ones(6)), sko.forward_dynamics(model, np.ones(6))))
    True
    """
    comp = composite_bodies(model)
    y = model.by_node(np.asarray(T) - bias(model))
    S: list[Any] = [None] * len(model.M)
    D_inverse: list[Any] = [None] * len(model.M)
    L: dict[tuple[int, int], Any] = {}
    passed: list[Any] = [None] * len(model.M)
    for k in model.inward:
        S[k] = zeros(model.M[k].shape, model.M[k])
        for j in model.children(k):
            S[k] = S[k] + model.A[j] @ passed[j] @ model.A[j].T
        X = (comp[k] - S[k]) @ model.H[k].T
        D_inverse[k] = inverse(model.H[k] @ X + model.R[k], f"D of node {k}")
        G = X @ D_inverse[k]
        passed[k] = S[k] + X @ G.T
        j = k
        while model.parent[j] >= 0:  # the column of L below the node, by a walk to the root
            G = model.A[j] @ G
            j = model.parent[j]
            L[j, k] = model.H[j] @ G
    for k in model.inward:  # L ε = y
        j = model.parent[k]
        while j >= 0:
            y[j] = y[j] - L[j, k] @ y[k]
            j = model.parent[j]
    x = [D_inverse[k] @ y[k] for k in range(len(y))]
    for k in model.outward:  # L* θ̈ = D⁻¹ ε
        j = model.parent[k]
        while j >= 0:
            x[k] = x[k] - L[j, k].T @ x[j]
            j = model.parent[j]
    return np.concatenate(x)


def forward_dynamics_cubic(model: Model, T: Any) -> Array:
    """Return θ̈ (Σm_k,) = 𝓜⁻¹(T − C), 𝓜 by composite bodies and Gauss, O(N³): what R86 11 calls the usual approach.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> sko = kf.textbook.sko
    >>> model = sko.model_of(kf.as_estimation(kf.models.puma560(), np.full(6, 0.3), np.arange(6.0)))
    >>> bool(np.allclose(sko.forward_dynamics_cubic(model, np.ones(6)), sko.forward_dynamics(model, np.ones(6))))
    True
    """
    return inverse(mass_matrix(model), "the mass matrix") @ (np.asarray(T) - bias(model))


def forward_dynamics_operators(model: Model, T: Any) -> Array:
    """Return θ̈ (Σm_k,) = [1 − HψK]*D⁻¹[T − Hψ(KT + Pa + b)] − K*ψ*a, every operator written out. SKO 79.

    Notes
    -----
    O(N³): for checking. K = ℰ_A G, ψ = (1 − ℰ_A τ̄)⁻¹.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> sko = kf.textbook.sko
    >>> model = sko.model_of(kf.as_estimation(kf.models.uniform_chain(4), np.full(4, 0.3), np.ones(4)))
    >>> bool(np.allclose(sko.forward_dynamics_operators(model, np.ones(4)), sko.forward_dynamics(model, np.ones(4))))
    True
    """
    E, _, H, _, _ = operators(model)
    cov = articulated(model)
    G, P, D_inverse = (_diagonal(blocks) for blocks in (cov.G, cov.P, cov.D_inverse))
    a, b, T = np.concatenate(model.a), np.concatenate(model.b), np.asarray(T)
    K = E @ G
    one = identity(len(E), E)
    psi = solve(one - E @ (one - G @ H), one)
    whiten = identity(len(H), E) - H @ psi @ K
    return whiten.T @ D_inverse @ (T - H @ psi @ (K @ T + P @ a + b)) - K.T @ psi.T @ a


def hybrid_dynamics(model: Model, T: Any, theta_ddot: Any, prescribed: Any) -> tuple[Array, Array]:
    """Return T and θ̈ (Σm_k,) of every dof, given θ̈ of some and T of the others: one gather, one scatter, O(N). SKO 88.

    Parameters
    ----------
    T : (Σm_k,)
        Generalised forces; read where a dof is free.
    theta_ddot : (Σm_k,)
        Generalised accelerations; read where a dof is prescribed.
    prescribed : (Σm_k,)
        True where the motion is given; a hinge may be split.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> sko, arm = kf.textbook.sko, kf.models.puma560()
    >>> q, v, given = np.full(6, 0.3), np.arange(6.0), np.array([True, False, True, False, False, True])
    >>> mine = sko.hybrid_dynamics(sko.model_of(kf.as_estimation(arm, q, v)), np.ones(6), np.ones(6), given)
    >>> bool(np.allclose(mine, kf.hybrid_dynamics(arm, q, v, np.ones(6), np.ones(6), given)))
    True
    """
    free = [~np.asarray(mask, bool) for mask in model.by_node(prescribed)]
    force, wanted = model.by_node(T), model.by_node(theta_ddot)
    N = range(len(model.M))
    H_free = [model.H[k][free[k]] for k in N]
    cov = articulated(model, H_free, [model.R[k][np.ix_(free[k], free[k])] for k in N])
    known = [model.H[k][~free[k]].T @ wanted[k][~free[k]] for k in N]  # H_p* θ̈_p joins the Coriolis acceleration
    z: list[Any] = [None] * len(N)
    z_plus: list[Any] = [None] * len(N)
    nu: list[Any] = [None] * len(N)
    for k in model.inward:
        z[k] = cov.P[k] @ (model.a[k] + known[k]) + model.b[k]
        for j in model.children(k):
            z[k] = z[k] + model.A[j] @ z_plus[j]
        rotor = model.R[k][np.ix_(free[k], ~free[k])] @ wanted[k][~free[k]]
        eps = force[k][free[k]] - H_free[k] @ z[k] - rotor
        nu[k], z_plus[k] = cov.D_inverse[k] @ eps, z[k] + cov.G[k] @ eps
    alpha_of: list[Any] = [None] * len(N)
    out_T: list[Any] = [None] * len(N)
    out_a: list[Any] = [None] * len(N)
    for k in model.outward:
        p = model.parent[k]
        plus = model.A[k].T @ alpha_of[p] if p >= 0 else zeros(len(model.M[k]), model.M[k])
        own = np.array(wanted[k], copy=True)
        own[free[k]] = nu[k] - cov.G[k].T @ plus
        alpha_of[k] = plus + model.H[k].T @ own + model.a[k]
        f = z[k] - cov.P[k] @ (model.a[k] + known[k]) + cov.P[k] @ alpha_of[k]  # f = z + Pα
        out_T[k], out_a[k] = model.H[k] @ f + model.R[k] @ own, own
    return np.concatenate(out_T), np.concatenate(out_a)


def _diagonal(blocks: list[Any]) -> Array:
    rows, columns = sum(len(x) for x in blocks), sum(x.shape[1] for x in blocks)
    out, i, j = zeros((rows, columns), blocks[0]), 0, 0
    for x in blocks:
        out[i : i + len(x), j : j + x.shape[1]] = x
        i, j = i + len(x), j + x.shape[1]
    return out
