"""Inverse dynamics of any SKO model by Newton-Euler and by composite bodies; velocities, Jacobian, mass matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from kfdyn.textbook.algebra import Array, identity, zeros
from kfdyn.textbook.sko.sko_model import Model, gather, scatter


def velocities(model: Model, beta: Any) -> list[Any]:
    """Return the velocity V = A*H*β (n_k,) of each node. O(N). SKO 13.

    Parameters
    ----------
    beta : (Σm_k,)
        Generalised velocities, stacked node by node.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> sko, arm = kf.textbook.sko, kf.models.puma560()
    >>> q, v = np.full(6, 0.3), np.arange(6.0)
    >>> tip = sko.velocities(sko.model_of(kf.as_estimation(arm, q)), v)[5]
    >>> bool(np.allclose(tip, kf.frame_velocity(arm, q, v, "link_6")))
    True
    """
    return scatter(model, [H.T @ rate for H, rate in zip(model.H, model.by_node(beta))])


def jacobian(model: Model, node: int) -> Array:
    """Return J (n_k, Σm_k) with V(node) = J β by a walk from the node to its root, O(depth). SKO 87.

    Parameters
    ----------
    node : int
        Whose velocity.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> sko, arm, q = kf.textbook.sko, kf.models.puma560(), np.full(6, 0.3)
    >>> J = sko.jacobian(sko.model_of(kf.as_estimation(arm, q)), 5)
    >>> bool(np.allclose(J, kf.jacobian(arm, q, "link_6")))
    True
    """
    columns: list[Any] = [zeros((len(model.M[node]), len(H)), model.M[node]) for H in model.H]
    carried, k = np.eye(len(model.M[node]), dtype=model.M[node].dtype), node
    while k >= 0:
        columns[k] = carried @ model.H[k].T
        if model.parent[k] >= 0:
            carried = carried @ model.A[k].T
        k = model.parent[k]
    return np.concatenate(columns, axis=1)


def newton_euler(model: Model, theta_ddot: Any) -> Array:
    """Return T (Σm_k,) = H A [M A*(H*θ̈ + a) + b] + R θ̈ by one scatter and one gather (RNEA), O(N). SKO 31.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> sko, arm = kf.textbook.sko, kf.models.puma560()
    >>> q, v, a = np.full(6, 0.3), np.arange(6.0), np.ones(6)
    >>> T = sko.newton_euler(sko.model_of(kf.as_estimation(arm, q, v)), a)
    >>> bool(np.allclose(T, kf.inverse_dynamics(arm, q, v, a)))
    True
    """
    wanted = model.by_node(theta_ddot)
    alpha = scatter(model, [H.T @ w + a for H, w, a in zip(model.H, wanted, model.a)])
    f = gather(model, [M @ x + b for M, x, b in zip(model.M, alpha, model.b)])
    return np.concatenate([H @ y + R @ w for H, y, R, w in zip(model.H, f, model.R, wanted)])


def bias(model: Model) -> Array:
    """Return C (Σm_k,) = H A (M A* a + b): Newton-Euler with θ̈ = 0. SKO 30."""
    return newton_euler(model, zeros(sum(len(H) for H in model.H), model.M[0]))


def composite_bodies(model: Model) -> list[Any]:
    """Return the composite inertia ℛ(k) = Σ A(k,j) ℛ(j) A*(k,j) + M(k) (n_k, n_k) of each node, a gather. O(N). SKO 42.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> sko, arm, q = kf.textbook.sko, kf.models.puma560(), np.full(6, 0.3)
    >>> R = sko.composite_bodies(sko.model_of(kf.as_estimation(arm, q)))
    >>> bool(np.allclose(R[0], kf.composite_inertias(kf.as_estimation(arm, q))[0]))
    True
    """
    out: list[Any] = [None] * len(model.M)
    for k in model.inward:
        out[k] = model.M[k]
        for j in model.children(k):
            out[k] = out[k] + model.A[j] @ out[j] @ model.A[j].T
    return out


def composite_inverse_dynamics(model: Model, theta_ddot: Any) -> Array:
    """Return T (Σm_k,) of :func:`newton_euler` by composite bodies, O(N). SKO 88.

    ::

        y(k) = Σ A(k,j) [y(j) + ℛ(j) (H*θ̈ + a)(j)] + b(k),     T = H (ℛα + y) + R θ̈

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> sko, arm = kf.textbook.sko, kf.models.puma560()
    >>> model = sko.model_of(kf.as_estimation(arm, np.full(6, 0.3), np.arange(6.0)))
    >>> bool(np.allclose(sko.composite_inverse_dynamics(model, np.ones(6)), sko.newton_euler(model, np.ones(6))))
    True
    """
    wanted, comp = model.by_node(theta_ddot), composite_bodies(model)
    own = [H.T @ w + a for H, w, a in zip(model.H, wanted, model.a)]
    alpha = scatter(model, own)
    y: list[Any] = [None] * len(model.M)
    for k in model.inward:
        y[k] = model.b[k]
        for j in model.children(k):
            y[k] = y[k] + model.A[j] @ (y[j] + comp[j] @ own[j])
    forces = [comp[k] @ alpha[k] + y[k] for k in range(len(y))]
    return np.concatenate([H @ f + R @ w for H, f, R, w in zip(model.H, forces, model.R, wanted)])


def mass_matrix(model: Model) -> Array:
    """Return 𝓜 (Σm_k, Σm_k) by composite bodies and walks to the root (CRBA), O(N depth). SKO 43.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> sko, arm, q = kf.textbook.sko, kf.models.puma560(), np.full(6, 0.3)
    >>> bool(np.allclose(sko.mass_matrix(sko.model_of(kf.as_estimation(arm, q))), kf.mass_matrix(arm, q)))
    True
    """
    comp, to = composite_bodies(model), np.cumsum([0, *(len(H) for H in model.H)])
    out = zeros((to[-1], to[-1]), model.M[0])
    for k in range(len(model.M)):
        own = slice(to[k], to[k + 1])
        X = comp[k] @ model.H[k].T
        out[own, own] = model.H[k] @ X + model.R[k]
        j = k
        while model.parent[j] >= 0:
            X = model.A[j] @ X
            j = model.parent[j]
            other = slice(to[j], to[j + 1])
            out[other, own] = model.H[j] @ X
            out[own, other] = out[other, own].T
    return out


def mass_matrix_by_columns(model: Model) -> Array:
    """Return 𝓜 (Σm_k, Σm_k) by Newton-Euler for unit accelerations without biases, O(N²). SKO 88.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> sko = kf.textbook.sko
    >>> model = sko.model_of(kf.as_estimation(kf.models.puma560(), np.full(6, 0.3)))
    >>> bool(np.allclose(sko.mass_matrix_by_columns(model), sko.mass_matrix(model)))
    True
    """
    still = model._replace(a=[0 * a for a in model.a], b=[0 * b for b in model.b])
    size = sum(len(H) for H in model.H)
    return np.array([newton_euler(still, unit) for unit in identity(size, model.M[0])]).T.reshape(size, size)
