"""The filter of a long chain in blocks, on all cores: each block is summarised, then run with what came before it.

A block is an affine map with information on what comes in (THEORY sections 8 and 15): filtered from P_in = 0, once for
T and once for each state that may come in, it gives the element::

    x_out | x_in ~ N(A x_in + b, C),      log p(T | x_in) = ℓ₀ − ½ x_in*J x_in + h*x_in

Elements of blocks follow one another quickly; with the true x_in each block is then filtered as usual.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.errors import ModelError
from kfdyn.estimation.flat.filtering import whitened
from kfdyn.estimation.flat.prior import expect_proper
from kfdyn.estimation.inference.cancellation import warn_of_the_worst
from kfdyn.estimation.inference.filter import kalman_filter
from kfdyn.estimation.inference.filtered import Filtered
from kfdyn.estimation.model.blocks import Blocks, FloatArray, IntArray
from kfdyn.estimation.model.model_arguments import expect_model
from kfdyn.estimation.model.state_space import StateSpace
from kfdyn.estimation.model.tree import Tree
from kfdyn.sweeps.thread_pool import POOL, threads

_LEAST = 512  # nodes of a block: fewer are filtered sooner than they are handed to a thread


class ParallelFiltered(NamedTuple):
    """What the filter in blocks returns: the states and covariances of :class:`Filtered`, and the log-likelihood.

    ``z``, ``z_plus`` (n_k,) and ``P``, ``P_plus`` (n_k, n_k) are Blocks by node; ``llf`` is a number; ``starts`` are
    the places along the chain where blocks begin.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> one = [[1.0]]
    >>> walk = kf.StateSpace.chain(one, one, one, one, x0=[0.0], P0=one, steps=2000)
    >>> found = kf.parallel_filter(walk, np.ones(2000), blocks=3)
    >>> len(found.starts), round(found.P[1999].item(), 9)
    (3, 1.618033989)
    """

    z: Blocks
    z_plus: Blocks
    P: Blocks
    P_plus: Blocks
    llf: float
    starts: IntArray


class _Element(NamedTuple):
    """What a block does to what comes in; ``llf`` is that for x_in = 0."""

    A: FloatArray
    b: FloatArray
    C: FloatArray
    J: FloatArray
    h: FloatArray
    llf: float


def parallel_filter(
    ss: StateSpace, T: ArrayLike, xi: ArrayLike | None = None, *, blocks: int | None = None
) -> ParallelFiltered:
    """Filter a chain in blocks on all cores.

    ::

        x̂_in = z + P^½ M⁻¹ P^½*(h − J z),   M = 1 + P^½*J P^½,   z_out = A x̂_in + b,   P_out = A P^½M⁻¹P^½*A* + C

    Parameters
    ----------
    ss : StateSpace
        A chain; trees have their own parallelism, one branch beside the other.
    T : array, shape (Σm_k,)
        Measurements, NaN where missing.
    xi : array, shape (Σn_k,), optional
        Known input; replaces the model's own.
    blocks : int, optional
        Number of blocks; by default one for each thread, none shorter than 512 nodes.

    Returns
    -------
    ParallelFiltered
        The same numbers as :func:`kalman_filter`, to rounding.

    Raises
    ------
    SingularError
        If some D(k) is not positive definite.

    Notes
    -----
    Every block but the first is filtered twice, the first time with n more vectors: five to ten times the work of the
    serial filter, as ``kfdyn bench forms`` measures it for n = 2 and 6, so it pays on machines with more cores than
    that and on no others; the serial filter is the quicker one on a laptop. A block begins at a node whose own noise
    makes D regular; a mass-less node goes with the one before it. Source: THEORY section 15; Särkkä and
    García-Fernández (2021) for the elements.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> one = [[1.0]]
    >>> walk = kf.StateSpace.chain(one, one, one, one, x0=[0.0], P0=one, steps=2000)
    >>> T = np.sin(np.arange(2000.0))
    >>> bool(np.isclose(kf.parallel_filter(walk, T, blocks=4).llf, kf.kalman_filter(walk, T).llf, rtol=1e-12))
    True
    """
    expect_model(ss)
    expect_proper(ss, "a block of it")
    if not ss.tree.is_chain or ss.eta is not None:
        raise ModelError("the filter in blocks takes chains without η; use kalman_filter for trees, and for robots")
    measured = ss.check_outputs(T, "T", allow_nan=True)
    if measured.ndim != 1:
        raise ModelError("the filter in blocks takes one T; a batch fills all cores by itself, with kalman_filter")
    known = ss.xi if xi is None else ss.check_states(xi, "xi")
    inputs = np.zeros(ss.n_states) if known is None else known
    N = len(ss)
    count = blocks if blocks is not None else max(1, min(threads(), N // _LEAST))
    if not isinstance(count, int | np.integer) or count < 1:
        raise ModelError(f"blocks must be a number of 1 or more, got {blocks!r}")
    order = ss.tree.order
    starts = _starts(ss, order, min(int(count), N))
    parts = [order[a:b] for a, b in zip(starts, [*starts[1:], N])]
    workers = max(1, min(len(parts), threads()))

    def summary(i: int) -> Any:
        """Block 0 is run; it has nothing to wait for."""
        if i == 0:
            return _run(ss, measured, inputs, parts[0], None, None)
        return _element(ss, measured, inputs, parts[i], parts[i - 1][-1])

    head, *elements = POOL.map(summary, range(len(parts)), workers)
    z, P, llf = head.z_plus[-1], head.P_plus[-1], float(head.llf)
    incoming = []
    for element in elements:
        incoming.append((z, P))
        z, P, gain = _follow(element, z, P)
        llf += gain
    done = POOL.map(
        lambda i: _run(ss, measured, inputs, parts[i], parts[i - 1][-1], incoming[i - 1]), range(1, len(parts)), workers
    )
    done = [head, *done]
    warn_of_the_worst([filt.covariances for filt in done], 2, lambda part, node: ss.tree.label(int(parts[part][node])))
    return _gathered(ss, parts, done, llf, np.array(starts))


def _starts(ss: StateSpace, order: IntArray, count: int) -> list[int]:
    """Where blocks begin: evenly, but at nodes whose own noise makes D regular."""
    out = [0]
    for start in np.linspace(0, len(order), count, endpoint=False)[1:].astype(int).tolist():
        while start < len(order) and not _regular(ss, int(order[start])):
            start += 1
        if out[-1] < start < len(order):
            out.append(start)
    return out


def _regular(ss: StateSpace, k: int) -> bool:
    W = ss.H[k] @ ss.Q[k] @ ss.H[k].T + ss.R[k]
    if not len(W):
        return True
    scale = np.sqrt(np.maximum(np.diag(W), 0.0))
    return bool((scale > 0.0).all() and np.linalg.eigvalsh(W / np.outer(scale, scale))[0] > 1e-10)


def _places(blocks: Blocks, nodes: IntArray) -> IntArray | slice:
    """Where the numbers of some nodes' blocks lie, one block after the other; a slice where nodes are consecutive."""
    if (np.diff(nodes) == 1).all():
        return slice(int(blocks.offsets[nodes[0]]), int(blocks.offsets[nodes[-1] + 1]))
    sizes = (blocks.rows if blocks.cols is None else blocks.rows * blocks.cols)[nodes]
    ends = np.cumsum(sizes)
    return np.repeat(blocks.offsets[nodes] - (ends - sizes), sizes) + np.arange(int(ends[-1]))


def _model(ss: StateSpace, nodes: IntArray, Q_first: FloatArray | None) -> StateSpace:
    """Some nodes, one after the other, as a chain of their own; ``Q_first`` is added to the first one's Q."""
    n, m = ss.n[nodes].copy(), ss.m[nodes].copy()
    above = np.append(n[1:], 0)
    phi = Blocks(ss.phi.flat, above, n, np.append(ss.phi.offsets[nodes], 0))
    H, Q, R = (b.flat[_places(b, nodes)] for b in (ss.H, ss.Q, ss.R))
    if Q_first is not None:
        Q = Q.copy()
        Q[: Q_first.size] += Q_first.ravel()
    return StateSpace.trusted(Tree.chain(len(nodes)), n, m, phi, H, Q, R)


def _given(ss: StateSpace, T: FloatArray, xi: FloatArray, nodes: IntArray) -> tuple[FloatArray, FloatArray]:
    """T and ξ of some nodes."""
    return T[_places(ss.output_blocks(T), nodes)], xi[_places(ss.state_blocks(xi), nodes)]


def _run(
    ss: StateSpace,
    T: FloatArray,
    xi: FloatArray,
    nodes: IntArray,
    before: int | None,
    came: tuple[FloatArray, FloatArray] | None,
) -> Filtered:
    """Filter a block after what came in from the node before it."""
    own_T, own_xi = _given(ss, T, xi, nodes)
    if before is None or came is None:
        return kalman_filter(_model(ss, nodes, None), own_T, own_xi)
    step, (z, P) = ss.phi[before], came
    own_xi = own_xi.copy()
    own_xi[: len(step)] += step @ z
    added = step @ P @ step.T
    return kalman_filter(_model(ss, nodes, 0.5 * (added + added.T)), own_T, own_xi)


def _element(ss: StateSpace, T: FloatArray, xi: FloatArray, nodes: IntArray, before: int) -> _Element:
    """What a block does to the state of the node before it: the filter from P_in = 0, and a column for each state."""
    own_T, own_xi = _given(ss, T, xi, nodes)
    model, step = _model(ss, nodes, None), ss.phi[before]
    alone = kalman_filter(model, own_T, own_xi)
    inputs = np.zeros((step.shape[1], model.n_states))
    inputs[:, : len(step)] = step.T
    columns = kalman_filter(model, np.where(alone.observed, 0.0, np.nan), inputs)
    X, e = whitened(columns), whitened(alone)[0]
    return _Element(
        columns.z_plus[-1].T, alone.z_plus[-1], alone.P_plus[-1], X @ X.T, -(X @ e), float(alone.llf)
    )  # fmt: skip


def _follow(element: _Element, z: FloatArray, P: FloatArray) -> tuple[FloatArray, FloatArray, float]:
    """z⁺, P⁺ at the end of a block and its part of the log-likelihood, from those before it."""
    A, b, C, J, h, llf = element
    unit = np.sqrt(np.maximum(np.diagonal(P), 0.0))
    unit[unit == 0.0] = 1.0
    value, vector = np.linalg.eigh(P / np.outer(unit, unit))  # each state in its own deviations, whatever its unit
    root = unit[:, None] * vector * np.sqrt(np.maximum(value, 0.0))
    M = np.eye(len(P)) + root.T @ J @ root
    L = np.linalg.cholesky(M)
    pull = np.linalg.solve(L, root.T @ (h - J @ z))
    x = z + root @ np.linalg.solve(L.T, pull)
    spread = np.linalg.solve(L, root.T @ A.T)
    llf += float(h @ z - 0.5 * z @ J @ z + 0.5 * pull @ pull - np.log(np.diag(L)).sum())
    P_out = spread.T @ spread + C
    return A @ x + b, 0.5 * (P_out + P_out.T), llf


def _gathered(
    ss: StateSpace, parts: list[IntArray], done: list[Filtered], llf: float, starts: IntArray
) -> ParallelFiltered:
    """The blocks' results in node order."""
    z, z_plus = np.empty(ss.n_states), np.empty(ss.n_states)
    P, P_plus = np.empty_like(ss.Q.flat), np.empty_like(ss.Q.flat)
    for nodes, filt in zip(parts, done):
        state, square = _places(ss.state_blocks(z), nodes), _places(ss.Q, nodes)
        z[state], z_plus[state] = filt.z.flat, filt.z_plus.flat
        P[square], P_plus[square] = filt.P.flat, filt.P_plus.flat
    return ParallelFiltered(
        ss.state_blocks(z), ss.state_blocks(z_plus), ss.Q.like(P), ss.Q.like(P_plus), llf, starts
    )  # fmt: skip
