"""Covariances that are products of large numbers with small ones, as what they are: changes of the posterior mean.

Where a row or a branch knows much, C Λ and P⁺A Λ(p) cancel, and so does A Λ(p) A* where a child's trait is a
combination of its parent's that is known far better than those. With a force f on a state, −f x added to what is
minimised, all three are derivatives of the posterior mean, which can be found with all its digits::

    Λ = ∂x̂(k)/∂f(k)        C Λ = (∂x̂(k)/∂y)*        P⁺A Λ(p) = −(∂x̂(p)/∂u(k))*

That is one posterior mean for each row of each block that asks for it, O(N) each, all of them a batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kfdyn.estimation.inference.filter import kalman_filter
from kfdyn.estimation.inference.smoother import bryson_frazier
from kfdyn.estimation.model.blocks import Blocks, FloatArray, IntArray

if TYPE_CHECKING:
    from kfdyn.estimation.branching.square_root_dual import RootedDual

_EPS = float(np.finfo(float).eps)
_CANCELS = 1e-10  # relative error of a product beyond which the mean is differentiated
_PASSES = 3
_CONVERGED = 1e-9  # of every answer: the next pass would change no digit
_AT_ONCE = 10**6  # numbers of a batch of posterior means
_MOST = 10**7  # of all of them, some seconds; in larger trees products stay, and the second opinion tells of them


class Given(NamedTuple):
    """What the mean depends on, (batch, Σn + Σc): u of the branches and y of the rows, and forces on nodes."""

    data: FloatArray
    force: FloatArray


def posterior_covariances(dual: RootedDual) -> Blocks:
    """Λ of the tree's nodes, (n_k, n_k)."""
    Lambda, tree, A, B = dual.swept_Lambda, dual.smooth.ss.tree, dual.branches.A, dual.branches.B
    out = Lambda.like(Lambda.flat.copy())
    deviation = Blocks(np.sqrt(np.maximum(Lambda.diagonals(), 0.0)), Lambda.rows)
    P = dual.smooth.filt.covariances.P.diagonals()[: deviation.flat.size]
    mixed = _EPS * P * deviation.flat**2 > _CANCELS
    bad = np.zeros(len(Lambda), dtype=bool)
    bad[np.repeat(np.arange(bad.size), Lambda.rows)[mixed]] = True
    for nodes, a in A.grouped():
        n, above = a.shape[1:]
        if above:
            taken = (np.abs(a) @ _get(deviation, tree.parent[nodes], above)[..., None])[..., 0]
            added = np.sqrt((_get(B, nodes, n, n) ** 2).sum(axis=2))
            own = _get(deviation, nodes, n)
            bad[nodes] |= (_EPS * (taken + added) ** 2 > _CANCELS * own**2).any(axis=1)
    if bad.any():
        for k in tree.order[::-1]:  # what is wrong at a node is wrong outward of it
            if k < bad.size and tree.parent[k] >= 0:
                bad[k] |= bad[tree.parent[k]]
        for n in np.unique(Lambda.rows[bad]).tolist():
            nodes = _affordable(dual, np.flatnonzero(bad & (Lambda.rows == n)), n)
            found = _responses(dual, nodes, nodes, n, n, by_force=True)
            _put(out, nodes, 0.5 * (found + found.transpose(0, 2, 1)))
    return out


class ForceStateCovariances(NamedTuple):
    """P⁺A Λ(p) of the branches, (n_k, n_p), and C Λ of each group of rows, (g, c, n)."""

    branches: Blocks
    rows: list[FloatArray]


def force_state_covariances(dual: RootedDual) -> ForceStateCovariances:
    """All of them: as products, and where those cancel as derivatives of the posterior mean."""
    tree, Lambda, A = dual.smooth.ss.tree, dual.Lambda, dual.branches.A
    S, P_plus = dual.smooth.S, dual.smooth.filt.covariances.P_plus
    branches = Blocks(np.zeros(A.flat.size), A.rows, A.cols)
    for nodes, a in A.grouped():
        n, above = a.shape[1:]
        if above:
            p = tree.parent[nodes]
            cov, information = _get(Lambda, p, above, above), _get(P_plus, nodes, n, n)
            value = information @ a @ cov
            bad = _affordable(dual, _cancels(np.abs(information) @ np.abs(a), cov, _get(S, nodes, n, n)), n)
            value[bad] = -_responses(dual, nodes[bad], p[bad], n, above)
            _put(branches, nodes, value)
    found = []
    for first, rows in zip(dual.first_leaves, dual.noisy):
        g, c, n = rows.C.shape
        leaves, cov = first + np.arange(g), _get(Lambda, rows.at, n, n)
        value = rows.C @ cov
        bad = _affordable(dual, _cancels(np.abs(rows.C), cov, _get(S, leaves, c, c)), c)
        value[bad] = _responses(dual, leaves[bad], rows.at[bad], c, n)
        found.append(value)
    return ForceStateCovariances(branches, found)


def _cancels(factor: FloatArray, cov: FloatArray, N: FloatArray) -> IntArray:
    """Which of the products of a factor, of which the size is given, and cov have an error that counts beside √N √Λ."""
    deviation, force = (np.sqrt(np.maximum(np.diagonal(x, axis1=1, axis2=2), 0.0)) for x in (cov, N))
    error = _EPS * (factor @ deviation[..., None])[..., 0]
    return np.flatnonzero((error > _CANCELS * force).any(axis=1))


def _affordable(dual: RootedDual, asked: IntArray, n: int) -> IntArray:
    """All of the blocks of n rows that ask for the mean's derivative; none where that would take too long."""
    return asked if asked.size * n * dual.smooth.ss.n_states <= _MOST else asked[:0]


def _responses(
    dual: RootedDual, source: IntArray, at: IntArray, n: int, answers: int, by_force: bool = False
) -> FloatArray:
    """∂x̂(at)/∂ of unit forces, or of unit data, at nodes or leaves ``source`` of n numbers: (count, n, answers)."""
    ss = dual.smooth.ss
    start = ss.arrays.state
    out = np.empty((source.size, n, answers))
    count = max(1, _AT_ONCE // (n * ss.n_states))
    for first in range(0, source.size, count):
        some = slice(first, first + count)
        g = source[some].size
        unit = np.zeros((g, n, ss.n_states))
        unit[np.arange(g)[:, None], np.arange(n), start[source[some]][:, None] + np.arange(n)] = 1.0
        inputs = unit.reshape(g * n, -1)
        none = np.zeros_like(inputs)
        asked = np.repeat(start[at[some]][:, None] + np.arange(answers), n, axis=0)
        x = _mean(dual, Given(none, inputs) if by_force else Given(inputs, none), asked)
        out[some] = x.reshape(g, n, answers)
    return out


def _mean(dual: RootedDual, given: Given, asked: IntArray) -> FloatArray:
    """The posterior mean (batch, answers) of the states asked for (batch, answers).

    In passes that each find what the last has left, of those for which that is still a digit.
    """
    ss, states = dual.smooth.ss, dual.mean.flat.shape[1]
    x, moving = np.zeros((len(given.data), states)), np.arange(len(given.data))
    for _ in range(_PASSES):
        data, force = given.data[moving], given.force[moving]
        eta, xi = _left(dual, data, x[moving]) if x.any() else data, -force
        xi[:, states:] = -eta[:, states:]
        eta[:, states:] = 0.0
        filt = kalman_filter(ss, np.zeros((moving.size, ss.n_outputs)), xi, eta, method="square_root")
        step = bryson_frazier(ss, filt).costate.flat[:, :states]
        x[moving] += step
        rows = np.arange(moving.size)[:, None]
        found, change = x[moving][rows, asked[moving]], step[rows, asked[moving]]
        moving = moving[(np.abs(change) > _CONVERGED * np.abs(found)).any(axis=1)]
        if not moving.size:
            break
    return x[np.arange(len(x))[:, None], asked]


def _left(dual: RootedDual, data: FloatArray, x: FloatArray) -> FloatArray:
    """u + A x(p) − x of the branches and y − C x of the rows, in as many digits as there are."""
    tree, place, start = dual.smooth.ss.tree, Blocks(x, dual.mean.rows), x.shape[1]
    # the batch last: inner loops over a node's few states are slow
    known, out = (np.ascontiguousarray(v.T).astype(np.longdouble) for v in (x, data))
    out[:start] -= known
    for nodes, a in dual.branches.A.grouped():
        n, above = a.shape[1:]
        if above:
            taken = known[place.places(tree.parent[nodes], above)].reshape(nodes.size, above, -1)
            out[place.places(nodes, n).ravel()] += np.einsum("gij,gjb->gib", a, taken).reshape(nodes.size * n, -1)
    for rows in dual.noisy:
        g, c, n = rows.C.shape
        seen = np.einsum("gcn,gnb->gcb", rows.C, known[place.places(rows.at, n)].reshape(g, n, -1))
        out[start : start + g * c] -= seen.reshape(g * c, -1)
        start += g * c
    for k in tree.roots if dual.flat_roots else ():  # which may be anywhere
        out[place.offsets[k] : place.offsets[k + 1]] = 0.0
    return np.ascontiguousarray(out.T.astype(float))


def _get(blocks: Blocks, nodes: IntArray, *shape: int) -> FloatArray:
    return blocks.flat[blocks.places(nodes, int(np.prod(shape)))].reshape(nodes.size, *shape)


def _put(blocks: Blocks, nodes: IntArray, value: FloatArray) -> None:
    blocks.flat[blocks.places(nodes, value.shape[1] * value.shape[2])] = value.reshape(
        nodes.size, value.shape[1] * value.shape[2]
    )
