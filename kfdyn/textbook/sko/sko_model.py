"""An SKO model: a tree and the triple (H, A, M) on it, with rotors R and biases a, b (SKO 13, 86)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from kfdyn.errors import ShapeError, TreeError
from kfdyn.textbook.algebra import Array, identity, solve, zeros


class Model(NamedTuple):
    """(H, A, M) on a forest; every block may have its own size, A(p, k) need be neither square nor invertible.

    Attributes
    ----------
    parent : list of int
        p(k), −1 at a root; any numbering.
    A : list of (n_p, n_k)
        A(p(k), k), Jain's name for φ on trees; None at a root.
    H, M, R : list of (m_k, n_k), (n_k, n_k), (m_k, m_k)
        Joint maps, inertias, rotors.
    a, b : list of (n_k,)
        Coriolis accelerations and gyroscopic forces.

    Examples
    --------
    >>> import kfdyn as kf
    >>> ss = kf.as_estimation(kf.models.puma560(), [0.1] * 6)
    >>> model = kf.textbook.sko.model_of(ss)
    >>> len(model.parent), model.H[2].shape
    (6, (1, 6))
    """

    parent: list[int]
    A: list[Any]
    H: list[Any]
    M: list[Any]
    R: list[Any]
    a: list[Any]
    b: list[Any]

    @property
    def outward(self) -> list[int]:
        """The nodes, every parent before its children."""
        order = [k for k, p in enumerate(self.parent) if p < 0]
        for k in order:  # grows while it is read
            order += self.children(k)
        if len(order) < len(self.parent):
            raise TreeError("the parents form a loop, which has no SKO model; cut one of its edges")
        return order

    @property
    def inward(self) -> list[int]:
        """The nodes, every child before its parent."""
        return self.outward[::-1]

    def children(self, k: int) -> list[int]:
        """C(k)."""
        return [j for j, p in enumerate(self.parent) if p == k]

    def by_node(self, T: Any) -> list[Any]:
        """A stacked vector of outputs as a list over the nodes."""
        T, at, out = np.asarray(T), 0, []
        if len(T) != sum(len(H) for H in self.H):
            raise ShapeError(f"{len(T)} entries were given, but the hinges have {sum(len(H) for H in self.H)} dofs")
        for H in self.H:
            out.append(T[at : at + len(H)])
            at += len(H)
        return out


def model_of(ss: Any) -> Model:
    """Read the SKO model (A is φ, M is Q, a is η, b is ξ) off a :class:`~kfdyn.StateSpace`. SKO 13.

    Parameters
    ----------
    ss : StateSpace
        Anything with ``tree.parent``, blocks ``phi``, ``H``, ``Q``, ``R``, and flat ``xi``, ``eta`` or None.

    Returns
    -------
    Model
        A is φ, M is Q, a is η, b is ξ.

    Notes
    -----
    Source: SKO 13.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> ss = kf.StateSpace([1, -1], np.ones((2, 1, 1)), np.ones((2, 1, 1)), np.ones((2, 1, 1)))
    >>> kf.textbook.sko.mass_matrix(kf.textbook.sko.model_of(ss))
    array([[1., 1.],
           [1., 2.]])
    """
    parent = [int(p) for p in ss.tree.parent]
    nodes = range(len(parent))
    sizes = [np.asarray(ss.H[k]).shape[1] for k in nodes]
    ends = np.cumsum([0, *sizes])

    def blocks(flat: Any) -> list[Any]:
        flat = np.zeros(ends[-1]) if flat is None else np.asarray(flat)
        return [flat[ends[k] : ends[k + 1]] for k in nodes]

    return Model(
        parent,
        [np.array(ss.phi[k]) if parent[k] >= 0 else None for k in nodes],
        [np.array(ss.H[k]) for k in nodes],
        [np.array(ss.Q[k]) for k in nodes],
        [np.array(ss.R[k]) for k in nodes],
        blocks(ss.eta),
        blocks(ss.xi),
    )


def recipe(
    parent: Sequence[int],
    sizes: Sequence[int],
    dofs: Sequence[int],
    velocity: Callable[[int, Any, Any], Any],
    energy: Callable[[int, Any], Any],
) -> Model:
    """Build a model from a tree, the velocity of each node in terms of its parent's, and its kinetic energy. SKO 86.

    ::

        V(k) = A*(p,k) V(p) + H*(k) β(k),     ½ V*M(k)V = energy(k, V)

    Parameters
    ----------
    parent : sequence of int
        The tree.
    sizes, dofs : sequences of int
        n_k and m_k.
    velocity : callable
        ``velocity(k, V_parent, beta)`` (n_k,), linear in both; V_parent is None at a root.
    energy : callable
        ``energy(k, V)``, quadratic.

    Returns
    -------
    Model
        With A, H and M read off by unit vectors, R, a and b zero.

    Notes
    -----
    Whatever satisfies these two lines inherits every algorithm of this module. Source: SKO 86.

    Examples
    --------
    Two carts in line, the second driven against the first: no 6-vectors, no rotations, still an SKO model.

    >>> import kfdyn as kf
    >>> sko = kf.textbook.sko
    >>> def velocity(k, V, beta):
    ...     return beta if V is None else V + beta
    >>> carts = sko.recipe([-1, 0], [1, 1], [1, 1], velocity, lambda k, V: 0.5 * (2.0 + k) * V[0] ** 2)
    >>> sko.mass_matrix(carts)
    array([[5., 3.],
           [3., 3.]])
    """
    A: list[Any] = []
    H, M = [], []
    for k, p in enumerate(parent):
        still = np.zeros(sizes[p]) if p >= 0 else None
        H.append(np.array([velocity(k, still, e) for e in np.eye(dofs[k])]).reshape(dofs[k], sizes[k]))
        unit = np.eye(sizes[k])
        A.append(np.array([velocity(k, e, np.zeros(dofs[k])) for e in np.eye(sizes[p])]) if p >= 0 else None)
        one = [energy(k, e) for e in unit]
        M.append(
            np.array([[energy(k, e + f) - one[i] - one[j] for j, f in enumerate(unit)] for i, e in enumerate(unit)])
        )
    return Model(
        list(parent),
        A,
        H,
        M,
        [np.zeros((m, m)) for m in dofs],
        [np.zeros(n) for n in sizes],
        [np.zeros(n) for n in sizes],
    )


def gather(model: Model, x: list[Any], *, strict: bool = False) -> list[Any]:
    """Return y = A x (n_k,) from the tips to the base, y(k) = Σ A(k,j) y(j) + x(k); ``strict``: y = Ã x. SKO 23, 25.

    Parameters
    ----------
    x : list of (n_k,) or (n_k, ...)
        One array a node.
    strict : bool
        Leave out what a node adds itself: y(k) = Σ A(k,j) [y(j) + x(j)].

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> ss = kf.StateSpace([1, -1], np.ones((2, 1, 1)), np.ones((2, 1, 1)), np.ones((2, 1, 1)))
    >>> kf.textbook.sko.gather(kf.textbook.sko.model_of(ss), [np.array([1.0]), np.array([2.0])])
    [array([1.]), array([3.])]
    """
    out: list[Any] = [None] * len(x)
    for k in model.inward:
        out[k] = 0 * x[k] if strict else x[k]
        for j in model.children(k):
            out[k] = out[k] + model.A[j] @ (out[j] + x[j] if strict else out[j])
    return out


def scatter(model: Model, x: list[Any], *, strict: bool = False) -> list[Any]:
    """Return y = A* x (n_k,) from the base to the tips, y(k) = A*(p,k) y(p) + x(k); ``strict``: y = Ã* x. SKO 19, 25.

    Parameters
    ----------
    x : list of (n_k,)
        One array a node.
    strict : bool
        Leave out what a node adds itself: y(k) = A*(p,k) [y(p) + x(p)].

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> ss = kf.StateSpace([1, -1], np.ones((2, 1, 1)), np.ones((2, 1, 1)), np.ones((2, 1, 1)))
    >>> kf.textbook.sko.scatter(kf.textbook.sko.model_of(ss), [np.array([1.0]), np.array([2.0])])
    [array([3.]), array([2.])]
    """
    out: list[Any] = [None] * len(x)
    for k in model.outward:
        p = model.parent[k]
        out[k] = 0 * x[k] if strict else x[k]
        if p >= 0:
            out[k] = out[k] + model.A[k].T @ (out[p] + x[p] if strict else out[p])
    return out


def operators(model: Model) -> tuple[Array, Array, Array, Array, Array]:
    """Write out the operators ℰ_A, A = (1 − ℰ_A)⁻¹, H, M, R as full matrices, for checking. SKO 12-13."""
    n, m = [len(M) for M in model.M], [len(H) for H in model.H]
    at, to = np.cumsum([0, *n]), np.cumsum([0, *m])
    like = model.M[0]
    E, M = zeros((at[-1], at[-1]), like), zeros((at[-1], at[-1]), like)
    H, R = zeros((to[-1], at[-1]), like), zeros((to[-1], to[-1]), like)
    for k, p in enumerate(model.parent):
        own, out = slice(at[k], at[k + 1]), slice(to[k], to[k + 1])
        M[own, own], H[out, own], R[out, out] = model.M[k], model.H[k], model.R[k]
        if p >= 0:
            E[at[p] : at[p + 1], own] = model.A[k]
    one = identity(at[-1], like)
    return E, solve(one - E, one), H, M, R
