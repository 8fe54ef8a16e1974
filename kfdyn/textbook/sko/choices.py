"""One system, several models: another base body (SKO 15), and Newton-Euler, Kane and Lagrange (SKO 10, 83)."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from kfdyn.errors import ModelError
from kfdyn.textbook.algebra import Array, block, identity, inverse, solve, zeros
from kfdyn.textbook.sko.sko_model import Model, operators


def reroot(model: Model, T: Any, base: int) -> tuple[Model, Array]:
    """Give a free-floating system another body as its base: edges on the path are turned round. SKO 15.

    ::

        V(k) = A*V(p) + H*β    becomes    V(p) = A⁻*V(k) − A⁻*H*β

    so A'(k,p) = A⁻¹(p,k), H'(p) = −H(k) A⁻¹, a'(p) = −A⁻*a(k); the hinge's force, rate and rotor stay what they were.

    Parameters
    ----------
    model : Model
        One tree whose root moves freely: m = n there. A(p, k) on the path must be invertible.
    T : (Σm_k,)
        Generalised forces; the root's is a force on the body that was the root, whoever is the base.
    base : int
        The new root.

    Returns
    -------
    Model, (Σm_k,)
        The model with the same numbers for the bodies, and its generalised forces. The hinge between two bodies of the
        path now belongs to the one that was the parent.

    Notes
    -----
    "A multibody system's SKO model is not unique, and depends on the choice of base body" (SKO 15). Accelerations of
    hinges and bodies and forces in hinges are the same. A free root's a (gravity) only tells its θ̈ from its
    acceleration, so the new root needs none.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> sko = kf.textbook.sko
    >>> robot = kf.models.free_flyer()
    >>> model = sko.model_of(kf.as_estimation(robot, robot.neutral()))
    >>> other, T = sko.reroot(model, np.zeros(robot.nv), 2)
    >>> other.parent[2], len(other.H[2])
    (-1, 6)
    """
    roots = [k for k, p in enumerate(model.parent) if p < 0]
    if len(roots) != 1 or len(model.H[roots[0]]) != len(model.M[roots[0]]):
        raise ModelError("only one tree whose root has as many dofs as states, a free body, can be given another base")
    root, path, k = roots[0], [base], base
    while model.parent[k] >= 0:
        k = model.parent[k]
        path.append(k)
    parent, A, H, R, a = (list(x) for x in (model.parent, model.A, model.H, model.R, model.a))
    forces, b = model.by_node(T), list(model.b)
    b[root] = b[root] - solve(model.H[root], forces[root], "H of the root")
    for k, p in pairwise(path):
        back = solve(model.A[k], identity(len(model.A[k]), model.A[k]), f"A of node {k}, which is on the path,")
        parent[p], A[p], H[p], R[p] = k, back, -model.H[k] @ back, model.R[k]
        a[p] = -back.T @ model.a[k]
    moved = list(forces)
    for k, p in pairwise(path):
        moved[p] = forces[k]
    n, like = len(model.M[base]), model.M[base]
    parent[base], A[base], H[base], R[base] = -1, None, identity(n, like), zeros((n, n), like)
    a[base], moved[base] = zeros(n, like), zeros(n, like)
    return Model(parent, A, H, list(model.M), R, a, b), np.concatenate(moved)


def newton_euler_absolute(model: Model, T: Any) -> tuple[Array, Array]:
    """Return θ̈ (Σm_k,) and hinge forces f (Σn_k,) with every body's velocity a coordinate: free bodies and constraints.

    ::

        M α + b = f − A-shifted f of the children,   H f + R θ̈ = T,   α = A*α(p) + H*θ̈ + a

    all at once: the "DAE rabbit hole" of SKO 10, a system of 2 Σn_k + Σm_k equations, O(N³).

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> sko = kf.textbook.sko
    >>> model = sko.model_of(kf.as_estimation(kf.models.puma560(), np.full(6, 0.3), np.arange(6.0)))
    >>> a, f = sko.newton_euler_absolute(model, np.ones(6))
    >>> bool(np.allclose(a, sko.forward_dynamics(model, np.ones(6))))
    True
    """
    E, _, H, M, R = operators(model)
    n, m = len(M), len(H)
    one, a, b = identity(n, E), np.concatenate(model.a), np.concatenate(model.b)
    system = block(
        [
            [M, E - one, zeros((n, m), E)],  # M α + b = (1 − ℰ) f
            [one - E.T, zeros((n, n), E), -H.T],  # (1 − ℰ)* α = H*θ̈ + a
            [zeros((m, n), E), H, R],  # H f + R θ̈ = T
        ]
    )
    y = solve(system, np.concatenate([-b, a, np.asarray(T)]))
    return y[2 * n :], y[n : 2 * n]


def kane(model: Model, T: Any) -> Array:
    """Return θ̈ (Σm_k,) by Kane's method: partial velocities C = A*H*, 𝓜 = C*MC, active and inertia forces. SKO 10.

    Notes
    -----
    O(N³); C is tall, and its factors A* and H* are not used separately: that is the step to Newton-Euler.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> sko = kf.textbook.sko
    >>> model = sko.model_of(kf.as_estimation(kf.models.puma560(), np.full(6, 0.3), np.arange(6.0)))
    >>> bool(np.allclose(sko.kane(model, np.ones(6)), sko.forward_dynamics(model, np.ones(6))))
    True
    """
    _, A, H, M, R = operators(model)
    C = A.T @ H.T  # partial velocities: V = C β
    drift = A.T @ np.concatenate(model.a)  # what α has without θ̈
    inertia_forces = C.T @ (M @ drift + np.concatenate(model.b))
    return solve(C.T @ M @ C + R, np.asarray(T) - inertia_forces)


def lagrange(mass_matrix: Callable[[Any], Any], potential: Callable[[Any], Any], q: Any, v: Any, tau: Any) -> Array:
    """Return q̈ (n,) by Lagrange's equations d/dt ∂L/∂v − ∂L/∂q = τ for L = ½ v*𝓜(q)v − U(q). SKO 10.

    Parameters
    ----------
    mass_matrix, potential : callable
        𝓜(q) (n, n) and U(q), analytic in q: they are called with complex q.
    q, v, tau : (n,)
        Coordinates that are true coordinates (v = q̇), rates, generalised forces.

    Notes
    -----
    Derivatives by complex steps, exact to rounding.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> kf.textbook.sko.lagrange(lambda q: np.array([[2.0]]), lambda q: 3.0 * q[0] ** 2, [1.0], [0.0], [0.0])
    array([-3.])
    """
    q, v, step = np.asarray(q, float), np.asarray(v, float), 1e-30
    n = len(q)
    tilted = [q + 1j * step * np.eye(n)[i] for i in range(n)]
    dM = np.array([np.imag(mass_matrix(x)) / step for x in tilted])  # dM[i] = ∂𝓜/∂q_i
    dU = np.array([np.imag(potential(x)) / step for x in tilted])
    gyroscopic = np.einsum("ijk,i,k->j", dM, v, v) - np.einsum("ijk,j,k->i", dM, v, v) / 2
    return np.linalg.solve(np.real(mass_matrix(q)), np.asarray(tau) - gyroscopic - dU)


def projected_dynamics(M: Array, J: Array, drift: Array, T: Any, C: Array) -> Array:
    """Return q̈ (n,) of a system with J q̈ + J̇v = 0, the equations projected and no multipliers. SKO topic 10.

    ::

        (Π𝓜 + 1 − Π) q̈ = Π (T − C) − J⁺ J̇v,     J⁺ = J*(JJ*)⁻¹,     Π = 1 − J⁺J

    Parameters
    ----------
    M, C, T : (n, n), (n,), (n,)
        Mass matrix, biases and generalised forces of the system without the constraints.
    J, drift : (r, n), (r,)
        Independent rows, and J̇v.

    Notes
    -----
    O(n³). Unlike 𝓜, Π𝓜 + 1 − Π may be regular where 𝓜 is not.

    Examples
    --------
    Two equal carts tied together share the force:

    >>> import numpy as np, kfdyn as kf
    >>> sko = kf.textbook.sko
    >>> sko.projected_dynamics(np.eye(2), np.array([[1.0, -1.0]]), np.zeros(1), np.array([1.0, 0.0]), np.zeros(2))
    array([0.5, 0.5])
    """
    plus = J.T @ inverse(J @ J.T, "JJ*")
    one = identity(len(M), M)
    Pi = one - plus @ J
    return solve(Pi @ M + one - Pi, Pi @ (np.asarray(T) - C) - plus @ drift, "the projected mass matrix")
