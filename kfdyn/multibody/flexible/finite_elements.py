"""A flexible body from finite-element matrices, reduced by Craig and Bampton."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfdyn.arrays import Array
from kfdyn.errors import ModelError, ShapeError
from kfdyn.multibody.flexible.body import FlexibleBody, expect_count


def from_finite_elements(
    name: str,
    nodes: ArrayLike,
    mass: Any,
    stiffness: Any,
    *,
    clamped: Sequence[int],
    modes: int = 4,
    interface: Sequence[int] = (),
    damping: float = 0.0,
    **body: Any,
) -> FlexibleBody:
    """Reduce a model of three translations a node to modes clamped at the hinge.

    Free nodes move by fixed-interface modes (the lowest ``modes`` with ``interface`` held too) and by the static shapes
    of a unit displacement of each interface node (Craig and Bampton 1968); without interface nodes these are the
    clamped modes.

    Parameters
    ----------
    name : str
        Of the body.
    nodes : (N, 3)
        In the body's frame, whose origin is the inboard hinge.
    mass, stiffness : (3N, 3N) array or scipy sparse matrix
        Dofs node by node, x, y, z. The mass matrix must be the same for the three directions, as lumped and consistent
        ones of solids are.
    clamped : sequence of int
        Nodes held by the hinge.
    modes : int
        Number of fixed-interface modes.
    interface : sequence of int
        Nodes where children or loads are attached.
    damping : float
        Damping ratio.
    **body
        Of :class:`FlexibleBody`.

    Returns
    -------
    FlexibleBody
        With ``modes + 3 len(interface)`` modes. Nodes do not turn: children are attached without the rotation of the
        body there.

    Examples
    --------
    Two masses on springs to the hinge, which is node 0:

    >>> import numpy as np
    >>> K = np.kron([[2.0, -1, -1], [-1, 2, -1], [-1, -1, 2]], np.eye(3))
    >>> body = from_finite_elements("spring", [[0, 0, 0], [1, 0, 0], [2, 0, 0]], np.eye(9), K, clamped=[0], modes=3)
    >>> body.frequencies.round(6)
    array([1., 1., 1.])
    """
    import scipy.sparse as sp
    from scipy.sparse.linalg import eigsh, splu

    r = np.asarray(nodes, dtype=float)
    N, where = len(r), f"flexible body {name!r}"
    K: Any
    M: Any
    K, M = (sp.csc_matrix(x) for x in (stiffness, mass))
    if r.ndim != 2 or r.shape[1] != 3 or K.shape != (3 * N, 3 * N) or M.shape != (3 * N, 3 * N):
        raise ShapeError(
            f"{where}: nodes must be (N, 3), mass and stiffness (3N, 3N), got {r.shape}, {M.shape}, {K.shape}"
        )
    for matrix, what in ((K, "stiffness"), (M, "mass")):
        if matrix.nnz and not np.isfinite(matrix.data).all():
            raise ModelError(f"{where}: {what} has entries that are not finite")
        if abs(matrix - matrix.T).max() > 1e-9 * abs(matrix).max():
            raise ModelError(f"{where}: {what} is not symmetric")
    weights = _scalar_mass(M, N, where)
    held, shown = _indices(clamped, N, where, "clamped"), _indices(interface, N, where, "interface")
    if not len(held):
        raise ModelError(
            f"{where}: no node is clamped, so the modes would be those of a free body; name the hinge's nodes"
        )
    if set(held) & set(shown):
        raise ModelError(f"{where}: node {sorted(set(held) & set(shown))[0]} is both clamped and interface")
    inner = np.setdiff1d(np.arange(N), np.concatenate([held, shown]))
    i, b = (np.ravel(3 * np.asarray(x, dtype=int)[:, None] + np.arange(3)) for x in (inner, shown))
    expect_count(modes, f"{where}: modes")
    if modes > i.size:
        raise ModelError(f"{where}: {modes} modes are asked for, but only {i.size} dofs are free")
    basis = np.zeros((3 * N, modes + b.size))
    Kii, Mii = K[np.ix_(i, i)].tocsc(), M[np.ix_(i, i)].tocsc()
    if modes:
        basis[i, :modes] = _lowest(Kii, Mii, modes, eigsh, where)
    if b.size:
        basis[b, modes + np.arange(b.size)] = 1.0
        if i.size:
            basis[i, modes:] = -splu(Kii).solve(K[np.ix_(i, b)].toarray())
    reduced = basis.T @ (K @ basis)
    return FlexibleBody(name, weights, r, basis.reshape(N, 3, -1), 0.5 * (reduced + reduced.T), damping, **body)


def _lowest(K: Any, M: Any, count: int, eigsh: Any, where: str) -> Array:
    """The lowest modes; dense where the sparse solver does not apply (nearly all modes)."""
    from scipy.linalg import LinAlgError, eigh

    try:
        if count < K.shape[0] - 1 and K.shape[0] > 60:
            start = 1.0 + np.arange(K.shape[0]) / K.shape[0]  # not drawn: the same modes at every call
            shapes = eigsh(K, count, M, sigma=0.0, which="LM", v0=start)[1]
        else:
            shapes = eigh(K.toarray(), M.toarray(), subset_by_index=[0, count - 1])[1]
        largest = np.abs(shapes).argmax(axis=0)
        return np.asarray(shapes * np.sign(shapes[largest, np.arange(count)]))
    except (RuntimeError, LinAlgError) as error:
        raise ModelError(
            f"{where}: the held model has no modes ({error}); is the stiffness singular, that is, too few nodes "
            "clamped, or a node without mass?"
        ) from None


def _scalar_mass(M: Any, N: int, where: str) -> Array:
    """(N,) or (N, N): what the mass matrix has in each of the three directions."""
    dense = M.toarray().reshape(N, 3, N, 3)
    one = dense[:, 0, :, 0]
    expected = one[:, None, :, None] * np.eye(3)[None, :, None, :]
    if np.abs(dense - expected).max() > 1e-9 * np.abs(one).max():
        raise ModelError(
            f"{where}: the mass matrix differs between directions or couples them; lump it to one mass a node"
        )
    return np.diag(one).copy() if not np.any(one - np.diag(np.diag(one))) else one


def _indices(nodes: Sequence[int], N: int, where: str, what: str) -> NDArray[np.int64]:
    index = np.unique(np.asarray(nodes, dtype=np.int64))
    if index.size and (index[0] < 0 or index[-1] >= N):
        raise ModelError(
            f"{where}: {what} names node {index[-1] if index[-1] >= N else index[0]}, there are 0 to {N - 1}"
        )
    return index
