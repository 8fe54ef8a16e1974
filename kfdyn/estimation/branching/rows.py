"""Observed rows of an outward tree: noisy ones whitened, exact ones set apart, in groups of equal shape."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from kfdyn.errors import ModelError
from kfdyn.estimation.branching.factors import Variances, triangle_of, variances
from kfdyn.estimation.inference.filter_covariances import BoolArray
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
    cov : (g, c, c), or None
        The noise of rows that are to be solved together with it; see :mod:`kfdyn.estimation.branching.exact`.
    origin, place : Rows and (g,), or None
        The group that these are a part of, and which ones they are in it.
    """

    at: IntArray
    C: FloatArray
    y: FloatArray
    made: FloatArray | None = None
    outputs: IntArray | None = None
    child: IntArray | None = None
    cov: FloatArray | None = None
    origin: Rows | None = None
    place: IntArray | None = None

    def take(self, members: IntArray) -> Rows:
        """Some of the nodes."""
        made, cov = (None if v is None else v[members] for v in (self.made, self.cov))
        outputs, child, place = (None if v is None else v[members] for v in (self.outputs, self.child, self.place))
        return Rows(
            self.at[members], self.C[members], self.y[:, members], made, outputs, child, cov, self.origin, place
        )

    def with_noise(self, members: IntArray, solved: bool) -> Rows:
        """Some of the rows of unit noise that a branch has left, which they know; to be solved on, or to stay."""
        part, c = self.take(members), self.C.shape[1]
        cov = np.broadcast_to(np.eye(c), (members.size, c, c)) if solved else None
        return replace(part, cov=cov, origin=self, place=members)


def split_rows(
    tree: Tree, C: Blocks, R: Blocks, y: FloatArray, strong: BoolArray | None = None, as_given: bool = False
) -> tuple[list[Rows], list[Rows], float]:
    """Noisy rows, whitened; exact rows; and the log det of the noise divided out. ``y`` (batch, Σm), NaN missing.

    The outputs of ``strong`` nodes (N,) stand among the exact ones, with their noise; see :mod:`.factors` for
    ``as_given``.
    """
    found: tuple[list[Rows], list[Rows]] = ([], [])
    total = 0.0
    start = offsets_of(C.rows)
    for nodes, kept in _groups(C, np.asarray(~np.isnan(y).any(axis=0)), start):
        m, n = int(C.rows[nodes[0]]), C.width(nodes[0])
        c = C.flat[C.places(nodes, m * n)].reshape(-1, m, n)[:, kept]
        r = R.flat[R.places(nodes, m * m)].reshape(-1, m, m)[:, kept][:, :, kept]
        outputs = start[nodes][:, None] + kept
        if strong is not None:
            together = strong[nodes] & r.any(axis=(1, 2))
            if together.any():
                at, o = np.flatnonzero(together), outputs[together]
                made = np.broadcast_to(np.eye(kept.size), (at.size, kept.size, kept.size))
                read = y[:, o].reshape(len(y), *o.shape)
                found[1].append(Rows(nodes[at], c[at], read, made, o, cov=r[at]))
                nodes, outputs, c, r = nodes[~together], outputs[~together], c[~together], r[~together]
        for part, exact, made, logdet in _combinations(r, as_given):
            total += logdet
            read = np.einsum("gco,bgo->bgc", made, y[:, outputs[part]])
            rows = Rows(nodes[part], made @ c[part], read, made, outputs[part])
            if exact:
                _expect_maps(tree, rows)
            found[exact].append(rows)
    return (*found, total)


def _groups(C: Blocks, seen: np.ndarray, start: IntArray) -> Iterator[tuple[IntArray, IntArray]]:
    """(nodes, kept outputs) of all nodes with equal sizes and equal pattern of missing outputs."""
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


def _combinations(r: FloatArray, as_given: bool) -> Iterator[tuple[IntArray, bool, FloatArray, float]]:
    """(members, whether exact, combinations of outputs, log det) of noise covariances r (g, o, o).

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
    unit, (value, vector, sure) = _noises(r[left], as_given)
    kind = 2 * (value > 0.0).sum(axis=1) + sure
    for c, certain in (divmod(k, 2) for k in np.unique(kind).tolist()):
        i = np.flatnonzero(kind == 2 * c + certain)
        part, size = value[i, o - c :], unit[i]
        scale = 2.0 * float(np.log(size).sum())
        if c == o and certain:
            L = triangle_of(r[left[i]], size, part[:, 0])
            logdet = 2.0 * float(np.log(np.diagonal(L, axis1=1, axis2=2)).sum()) + scale
            yield left[i], False, np.linalg.inv(L) / size[:, None, :], logdet
            continue
        logdet = float(np.log(part).sum()) + scale
        turn = vector[i].transpose(0, 2, 1) / size[:, None, :]
        yield left[i], False, turn[:, o - c :] / np.sqrt(part)[:, :, None], logdet
        if c < o:
            yield left[i], True, turn[:, : o - c], 0.0


def _noises(r: FloatArray, as_given: bool) -> tuple[FloatArray, Variances]:
    """Deviations (g, o) of the outputs, 1 where there is no noise, and the correlations' eigenvalues and vectors.

    In units of its own deviation every output's noise is 1, so that eigenvalues tell which combinations are exact and
    not which trait was written in large numbers. An output without noise gets a negative eigenvalue for itself, lest
    the vectors mix it with combinations of the others.
    """
    deviation = np.sqrt(np.maximum(np.diagonal(r, axis1=1, axis2=2), 0.0))
    unit = np.where(deviation > 0.0, deviation, 1.0)
    correlation = r / (unit[:, :, None] * unit[:, None, :])
    o = np.arange(r.shape[1])
    correlation[:, o, o] = np.where(deviation > 0.0, correlation[:, o, o], -1.0 - o)
    return unit, variances(correlation, as_given)


def _expect_maps(tree: Tree, rows: Rows) -> None:
    """An exact output that sees no state has no density."""
    blind = np.flatnonzero(~np.all(np.any(rows.C, axis=2), axis=1))
    if blind.size:
        raise ModelError(
            f"{tree.label(int(rows.at[blind[0]]))} has an exact output whose row of C is zero, so it measures nothing; "
            "remove the output, or give it a noise R"
        )
