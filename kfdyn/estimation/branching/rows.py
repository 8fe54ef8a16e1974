"""Split the observations of an outward tree into whitened noisy rows and exact rows, grouped by shape."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from kfdyn.errors import ModelError
from kfdyn.estimation.branching.factors import variances
from kfdyn.estimation.model.blocks import Blocks, FloatArray, IntArray, offsets_of
from kfdyn.estimation.model.tree import Tree


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows y = C x + e with e of unit covariance (noisy) or zero (exact), at nodes of one size.

    Attributes
    ----------
    at : (g,)
        The nodes.
    C : (g, c, n)
        What the rows see of the node's state.
    y : (batch, g, c)
        What they read.
    made : (g, c, o), outputs : (g, o), or None
        The outputs they were made of: row = made @ output. None for rows that a branch has left on its parent.
    child : (g,), or None
        The child that left them.
    """

    at: IntArray
    C: FloatArray
    y: FloatArray
    made: FloatArray | None = None
    outputs: IntArray | None = None
    child: IntArray | None = None

    def take(self, members: IntArray) -> Rows:
        """Return the rows of some of the nodes."""
        made = None if self.made is None else self.made[members]
        outputs, child = (None if v is None else v[members] for v in (self.outputs, self.child))
        return Rows(self.at[members], self.C[members], self.y[:, members], made, outputs, child)


def split_rows(tree: Tree, C: Blocks, R: Blocks, y: FloatArray) -> tuple[list[Rows], list[Rows], float]:
    """Split y (batch, Σm), NaN missing, into noisy rows, whitened, and exact ones; with the log det divided out."""
    found: tuple[list[Rows], list[Rows]] = ([], [])
    total = 0.0
    start = offsets_of(C.rows)
    for nodes, kept in _groups(C, np.asarray(~np.isnan(y).any(axis=0)), start):
        m, n = int(C.rows[nodes[0]]), C.width(nodes[0])
        c = C.flat[C.places(nodes, m * n)].reshape(-1, m, n)[:, kept]
        r = R.flat[R.places(nodes, m * m)].reshape(-1, m, m)[:, kept][:, :, kept]
        outputs = start[nodes][:, None] + kept
        for part, exact, made, logdet in _combinations(r):
            total += logdet
            read = np.einsum("gco,bgo->bgc", made, y[:, outputs[part]])
            rows = Rows(nodes[part], made @ c[part], read, made, outputs[part])
            if exact:
                _expect_maps(tree, rows)
            found[exact].append(rows)
    return (*found, total)


def _groups(C: Blocks, seen: np.ndarray, start: IntArray) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield (nodes, kept outputs) of all nodes with equal sizes and equal pattern of missing outputs."""
    assert C.cols is not None
    most = int(C.rows.max(initial=0))
    within = np.arange(most)
    there = within < C.rows[:, None]
    pattern = np.zeros(there.shape, dtype=bool)
    pattern[there] = seen[np.minimum(start[:-1, None] + within, max(seen.size - 1, 0))[there]]
    key = np.concatenate([pattern, np.stack([C.rows, C.cols], axis=1)], axis=1)
    nodes = np.flatnonzero(pattern.any(axis=1))
    if not nodes.size:
        return
    if (key[nodes] == key[nodes[0]]).all():  # no sorting of a million equal tips
        yield nodes, np.flatnonzero(pattern[nodes[0]])
        return
    kinds, group = np.unique(key[nodes], axis=0, return_inverse=True)
    for i, kind in enumerate(kinds):
        yield nodes[group.ravel() == i], np.flatnonzero(kind[:most])


def _combinations(r: FloatArray) -> Iterator[tuple[IntArray, bool, FloatArray, float]]:
    """Yield (members, whether exact, combinations of outputs, log det) of noise covariances r (g, o, o).

    Noisy outputs are whitened by L⁻¹, r = L L*; a singular r is turned into noisy and exact combinations.
    """
    o = r.shape[1]
    zero = ~r.any(axis=(1, 2))
    if zero.any():
        yield np.flatnonzero(zero), True, np.broadcast_to(np.eye(o), (int(zero.sum()), o, o)), 0.0
    left = np.flatnonzero(~zero)
    if not left.size:
        return
    if o == 1:
        yield left, False, 1.0 / np.sqrt(r[left]), float(np.log(r[left]).sum())
        return
    unit, value, vector = _noises(r[left])
    rank = (value > 0.0).sum(axis=1)
    for c in np.unique(rank).tolist():
        i = np.flatnonzero(rank == c)
        part, size = value[i, o - c :], unit[i]
        scale = 2.0 * float(np.log(size).sum())
        if c == o:
            L = np.linalg.cholesky(r[left[i]] / (size[:, :, None] * size[:, None, :]))
            logdet = 2.0 * float(np.log(np.diagonal(L, axis1=1, axis2=2)).sum()) + scale
            yield left[i], False, np.linalg.inv(L) / size[:, None, :], logdet
            continue
        turn = vector[i].transpose(0, 2, 1) / size[:, None, :]
        yield left[i], False, turn[:, o - c :] / np.sqrt(part)[:, :, None], float(np.log(part).sum()) + scale
        yield left[i], True, turn[:, : o - c], 0.0


def _noises(r: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return deviations (g, o) of the outputs, 1 where there is no noise, and the correlations' eigenpairs.

    In units of its own deviation every output's noise is 1, so that eigenvalues tell which combinations are exact and
    not which trait was written in large numbers. An output without noise gets a negative eigenvalue for itself, lest
    the vectors mix it with combinations of the others.
    """
    deviation = np.sqrt(np.maximum(np.diagonal(r, axis1=1, axis2=2), 0.0))
    unit = np.where(deviation > 0.0, deviation, 1.0)
    correlation = r / (unit[:, :, None] * unit[:, None, :])
    o = np.arange(r.shape[1])
    correlation[:, o, o] = np.where(deviation > 0.0, correlation[:, o, o], -1.0 - o)
    return unit, *variances(correlation)


def _expect_maps(tree: Tree, rows: Rows) -> None:
    """Refuse an exact output that sees no state."""
    blind = np.flatnonzero(~np.all(np.any(rows.C, axis=2), axis=1))
    if blind.size:
        raise ModelError(
            f"{tree.label(int(rows.at[blind[0]]))} has an exact output whose row of C is zero, so it measures nothing; "
            "remove the output, or give it a noise R"
        )


def get_blocks(blocks: Blocks, nodes: IntArray, *shape: int) -> FloatArray:
    """Return the blocks of some nodes of one shape, (..., g, *shape)."""
    flat = blocks.flat[..., blocks.places(nodes, int(np.prod(shape)))]
    return flat.reshape(*blocks.flat.shape[:-1], nodes.size, *shape)


def put_blocks(blocks: Blocks, nodes: IntArray, value: FloatArray) -> None:
    """Replace the blocks of some nodes by value (..., g, r, c)."""
    size = value.shape[-2] * value.shape[-1]
    blocks.flat[..., blocks.places(nodes, size)] = value.reshape(*value.shape[:-2], size)


def outer(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return the products a b* of stacked vectors."""
    return a[..., :, None] * b[..., None, :]


def adjoint(a: FloatArray) -> FloatArray:
    """Return the transposes of stacked matrices."""
    return np.swapaxes(a, -1, -2)
