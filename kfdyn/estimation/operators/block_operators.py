"""Multiply by the blocks of a model, node by node or along the tree."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from kfdyn.errors import ShapeError
from kfdyn.estimation.inference.batching import as_rows, count_rows, over_rows
from kfdyn.estimation.inference.filter_covariances import Riccati, common_sizes
from kfdyn.estimation.model.blocks import Blocks, FloatArray, IntArray, offsets_of
from kfdyn.estimation.model.state_space import StateSpace
from kfdyn.estimation.operators.operator import Operator, Rows
from kfdyn.estimation.recursions.linalg.ragged import Parts, Ragged


def block_diagonal(blocks: Blocks) -> Operator:
    """Make the block-diagonal operator of unbatched matrix blocks."""
    if blocks.cols is None:
        raise ShapeError("a block-diagonal operator is made of matrices, not of vectors")
    rows, cols = offsets_of(blocks.rows), offsets_of(blocks.cols)
    return _of_blocks(blocks.ragged, (int(rows[-1]), int(cols[-1])), rows, cols)


def one_step(ss: StateSpace) -> Operator:
    """Make ℰ_φ of a model: φ(p(k),k) at (p(k),k)."""
    order, start = ss.tree.order, ss.arrays.state
    steps, parent = ss.phi.ragged, np.maximum(ss.tree.parent, 0)  # a root's block has no rows
    arrays = (numbers[order] for numbers in (steps.at, steps.rows, steps.cols))  # sums as in every gather
    shape = ss.n_states, ss.n_states
    return _of_blocks(Ragged(steps.flat, *arrays), shape, start[parent[order]], start[order])


def closed_loop(cov: Riccati) -> Blocks:
    """Return the closed-loop steps φ(p(k), k) τ̄(k) = φ − K H."""
    from kfdyn.estimation.recursions.linalg.products import node_products

    phi = cov.ss.phi.packed()
    KH = phi.like(np.empty_like(phi.flat))
    node_products(cov.K.ragged, cov.ss.H.ragged, KH.ragged)
    return phi.like(phi.flat - KH.flat)


def congruence(H: Blocks, inner: Blocks, added: FloatArray) -> Blocks:
    """Return the blocks H(k) Y(k) H*(k) + R(k), vectorised over nodes of equal size."""
    out = Blocks(added.copy(), H.rows, H.rows)
    for nodes, h in H.grouped():
        count, m, n = h.shape
        y = inner.flat[inner.places(nodes, n * n)].reshape(count, n, n)
        out.flat[out.places(nodes, m * m)] += (h @ y @ h.transpose(0, 2, 1)).reshape(count, m * m)
    return out


def lower_inverse(L: FloatArray) -> FloatArray:
    """Return L⁻¹ of lower triangles (..., m, m), row by row, without pivots, which would mix units."""
    inverse = np.zeros_like(L)
    for i, unit in enumerate(np.eye(L.shape[-1])):
        known = L[..., i : i + 1, :i] @ inverse[..., :i, :]
        inverse[..., i, :] = (unit - known[..., 0, :]) / L[..., i, i, None]
    return inverse


def states_of(ss: StateSpace, x: FloatArray) -> FloatArray:
    """Return φ Q x for vectors (..., Σn_k), in one gather."""
    return swept(ss, x, (ss.H.flat, 0, 0), inward=True, weighted=True)


def costates_of(ss: StateSpace, x: FloatArray) -> FloatArray:
    """Return φ* x for vectors (..., Σn_k), in one scatter."""
    return swept(ss, x, (ss.H.flat, 0, 0), inward=False)


def swept(
    ss: StateSpace, x: FloatArray, given: tuple[FloatArray, int, int], *, inward: bool, weighted: bool = False
) -> FloatArray:
    """Return A x or A* x, see :mod:`~kfdyn.estimation.recursions.linalg.products`; ``given``: G, closed, strict."""
    products, weigh = _products()
    y = np.empty(x.size)
    product = products.Product(as_rows(x), y, *given)
    tags = (common_sizes(ss), weigh if weighted else None) if inward else (common_sizes(ss),)
    kernel = products.gather if inward else products.scatter
    over_rows(
        count_rows(x.shape[:-1]),
        products.Flow.size(ss.n_states, ss.common.most_states, ss.common.most_outputs),
        lambda lanes, share: kernel(lanes, *tags, ss.address, product, share),
    )
    return y.reshape(x.shape)


@cache
def _products() -> Any:
    """Import the sweeps once: an import at each call would take as long as a short product."""
    from kfdyn.estimation.recursions.linalg import products
    from kfdyn.sweeps import Tag

    return products, Tag(1)


def _of_blocks(blocks: Ragged, shape: tuple[int, int], rows: IntArray, cols: IntArray) -> Operator:
    """Make the operator with block k of a Ragged at (rows[k], cols[k]) for every k, and zeros elsewhere."""
    products, _ = _products()
    work = products.pair_size(max(int(sizes.max(initial=0)) for sizes in (blocks.rows, blocks.cols)))

    def run(turned: bool) -> Rows:
        to, source = (cols, rows) if turned else (rows, cols)
        height, width = shape[::-1] if turned else shape

        def rows_of(x: FloatArray) -> FloatArray:
            y = np.zeros((*x.shape[:-1], height))
            known, found = Parts(as_rows(x), source, width), Parts(y.reshape(-1), to, height)
            over_rows(
                count_rows(x.shape[:-1]),
                work,
                lambda lanes, share: products.add_products(lanes, blocks, known, found, int(turned), share),
            )
            return y

        return rows_of

    return Operator(shape, run(False), run(True))
