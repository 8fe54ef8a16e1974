"""Covariances of forces with states, which the gradients by A and C are made of, where their products cancel.

C Λ and P⁺A Λ(p) are products of large numbers with small ones where a row or a branch knows much; as a change of the
posterior mean with a datum or with a known part of a branch they are none::

    C Λ = (∂x̂(k)/∂y)*        P⁺A Λ(p) = −(∂x̂(p)/∂u(k))*

That is one posterior mean for each row and branch that asks for it, O(N) each, all of them a batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kfdyn.estimation.blocks import Blocks, FloatArray, IntArray
from kfdyn.estimation.filtering import kalman_filter
from kfdyn.estimation.smoothing import bryson_frazier

if TYPE_CHECKING:
    from kfdyn.estimation.outward.model import OutwardTree
    from kfdyn.estimation.outward.rooted import RootedDual

_EPS = float(np.finfo(float).eps)
_CANCELS = 1e-10  # relative error of a product beyond which the mean is differentiated
_PASSES = 3
_AT_ONCE = 10**7  # numbers of a batch of posterior means
_MOST = 10**9  # of all of them


class ForceStateCovariances(NamedTuple):
    """P⁺A Λ(p) of the branches, (n_k, n_p), and C Λ of each group of rows, (g, c, n)."""

    branches: Blocks
    rows: list[FloatArray]


def leaves_of(dual: RootedDual, first: int) -> list[int]:
    """The first leaf of each group of rows; those of the first begin after ``first`` nodes."""
    sizes = [first, *(rows.at.size for rows in dual.noisy)]
    return np.cumsum(sizes)[:-1].tolist()


def force_state_covariances(model: OutwardTree, dual: RootedDual) -> ForceStateCovariances:
    """All of them: as products, and where those cancel as derivatives of the posterior mean."""
    tree, Lambda, A = model.tree, dual.Lambda, dual.branches.A
    S, P_plus = dual.smooth.S, dual.smooth.filt.covariances.P_plus
    branches = Blocks(np.zeros(A.flat.size), A.rows, A.cols)
    asked = []  # (the unit inputs' states, the nodes whose means answer, where the answers go)
    for nodes, a in A.grouped():
        n, above = a.shape[1:]
        if not above:
            continue
        cov, information = _get(Lambda, tree.parent[nodes], above), _get(P_plus, nodes, n)
        value = information @ a @ cov
        bad = _cancels(information, a, cov, _get(S, nodes, n))
        branches.flat[branches.places(nodes, n * above)] = value.reshape(nodes.size, -1)
        asked.append((-1.0, nodes[bad], tree.parent[nodes[bad]], n, above, branches, nodes[bad]))
    found = []
    for first, rows in zip(leaves_of(dual, len(model)), dual.noisy):
        g, c, n = rows.C.shape
        cov = _get(Lambda, rows.at, n)
        own = Blocks((rows.C @ cov).ravel(), np.full(g, c), np.full(g, n))
        bad = _cancels(np.broadcast_to(np.eye(c), (g, c, c)), rows.C, cov, _get(S, first + np.arange(g), c))
        asked.append((1.0, first + bad, rows.at[bad], c, n, own, bad))
        found.append(own)
    for sign, source, at, n, above, out, places in asked:
        if source.size:
            answer = sign * _responses(model, dual, source, at, n, above)
            out.flat[out.places(places, n * above)] = answer.reshape(places.size, -1)
    return ForceStateCovariances(branches, [own.stacked() for own in found])


def _cancels(information: FloatArray, a: FloatArray, cov: FloatArray, N: FloatArray) -> IntArray:
    """Which of the products of information, a and cov have an error that counts beside √N of a force and √Λ."""
    deviation, force = (np.sqrt(np.maximum(np.diagonal(x, axis1=1, axis2=2), 0.0)) for x in (cov, N))
    terms = np.abs(information) @ (np.abs(a) @ deviation[:, :, None])[..., 0][:, :, None]
    return np.flatnonzero((_EPS * terms[..., 0] > _CANCELS * force).any(axis=1))


def _responses(
    model: OutwardTree, dual: RootedDual, source: IntArray, at: IntArray, n: int, above: int
) -> FloatArray:
    """∂x̂(at)/∂ of unit inputs at nodes or leaves, (count, n, above): of a branch's u, of a leaf's y."""
    ss, states = dual.smooth.ss, int(model.n.sum())
    start = ss.arrays.state
    out = np.empty((source.size, n, above))
    count = max(1, _AT_ONCE // (n * ss.n_states))
    for first in range(0, source.size, count):
        some = slice(first, first + count)
        g = source[some].size
        unit = np.zeros((g, n, ss.n_states))
        unit[np.arange(g)[:, None], np.arange(n), start[source[some]][:, None] + np.arange(n)] = 1.0
        x = _mean(model, dual, unit.reshape(g * n, -1)).reshape(g, n, states)
        out[some] = x[np.arange(g)[:, None], :, start[at[some]][:, None] + np.arange(above)].transpose(0, 2, 1)
    return out


def _mean(model: OutwardTree, dual: RootedDual, given: FloatArray) -> FloatArray:
    """The posterior mean (batch, Σn) for u of the branches and y of the rows, stacked (batch, Σn + Σc)."""
    ss, n = dual.smooth.ss, model.n
    states = int(n.sum())
    x = np.zeros((len(given), states))
    for _ in range(_PASSES):
        left = _left(model, dual, given, x)
        xi, eta = left.copy(), left
        xi[:, :states], eta[:, states:] = 0.0, 0.0
        filt = kalman_filter(ss, np.zeros((len(given), ss.n_outputs)), -xi, eta, method="square_root")
        x = x + bryson_frazier(ss, filt).costate.flat[:, :states]
    return x


def _left(model: OutwardTree, dual: RootedDual, given: FloatArray, x: FloatArray) -> FloatArray:
    """u + A x(p) − x of the branches and y − C x of the rows, in as many digits as there are."""
    n, long = model.n, x.astype(np.longdouble)
    out = given.astype(np.longdouble)
    place = Blocks(x, n)
    states = x.shape[1]
    out[:, :states] -= long
    for nodes, a in dual.branches.A.grouped():
        size, above = a.shape[1:]
        if above:
            known = long[:, place.places(model.tree.parent[nodes], above)]
            out[:, place.places(nodes, size)] += np.einsum("gij,bgj->bgi", a, known)
    for rows in dual.noisy:
        g, c, size = rows.C.shape
        out[:, states : states + g * c] -= np.einsum(
            "gcn,bgn->bgc", rows.C, long[:, place.places(rows.at, size)]
        ).reshape(len(x), -1)
        states += g * c
    if model.root_cov is None:
        for k in model.tree.roots:
            out[:, place.offsets[k] : place.offsets[k + 1]] = 0.0
    return out.astype(float)


def _get(blocks: Blocks, nodes: IntArray, size: int) -> FloatArray:
    return blocks.flat[blocks.places(nodes, size * size)].reshape(nodes.size, size, size)
