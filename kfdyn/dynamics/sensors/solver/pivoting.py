"""Divide unknowns into those that a hinge can decide and those that travel inward until an inboard node can.

The matrix of a node's unknowns is symmetric and indefinite; it may be singular although the whole is not: a force of
which nothing is known is decided by the sensor inboard of it, an exact accelerometer at the tip of an arm by all the
hinges that carry it. So the unknowns are eliminated by symmetric pivoting (Bunch and Parlett 1971), as long as what
they leave behind stays below a bound, and the others are carried on, as multifrontal solvers delay a pivot. It is
always right to carry one on; the bound is for accuracy alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kfdyn.dynamics.sensors.sensor import Array, Index

# Growth of entries that an elimination may bring: when a choice is made, in other states that are to be like the one
# it was made for, and before a state is refused. From node to node it multiplies, and with it what rounding costs.
BOUND, BOUND_ELSEWHERE, BOUND_AGAIN = 5.0, 20.0, 1e3
# The same where something is carried and the choice is to be careful.
CAREFUL = 0.2
# Growth when a choice is made from which it is watched in other states, where nothing is carried.
WATCHED = 1.0
# Largest entry that an elimination may leave behind, in natural scales: beyond, what is zero could not be told.
LARGEST = 1e3
# Condition of a root's matrix, in natural scales, from which it counts as singular: what is carried on because it is
# zero outboard arrives with the rounding of all the eliminations between.
ROOT_CONDITION = 1e12
# Condition of a node's matrix, in natural scales, up to which all its unknowns may be eliminated together.
CONDITION = 1e7
# A pivot below this part of what was summed up for it (and of 1), in natural scales, may be the rounding of zero.
TINY = 1e-10
# Bunch and Parlett's constant, (1 + √17)/8: a single pivot against a pair.
SINGLE = 0.6403882032022076


class Choice(NamedTuple):
    """Indices among the unknowns (u, q̈, m) of a node that are eliminated there, and those carried on; their scales."""

    eliminate: Index
    carry: Index
    scale: Array


def choose(
    matrix: Array,
    scale: Array,
    first: int,
    is_root: bool,
    held: Sequence[int],
    bound: float,
    summed: Array,
) -> Choice:
    """Choose for one node; ``matrix`` (n, n) has the unknowns from row ``first`` on, ``scale`` (n,) their sizes.

    Those ``held`` are carried on in any case; ``bound`` is the growth that an elimination may bring. ``summed`` bounds
    the terms of which the entries among unknowns are sums, as long chains have entries of 1 beside others of 1e9.
    """
    count = len(matrix) - first
    everything = np.arange(count)
    if is_root:
        return Choice(everything, everything[:0], scale[first:])
    G = matrix * np.outer(scale, scale)
    size = sizes(G, first)
    terms = np.maximum(np.abs(G[first:, first:]), summed * np.outer(scale[first:], scale[first:]))
    even = np.ones(len(G))
    even[first:] = 1.0 / np.sqrt(np.maximum(1.0, terms.max(1, initial=0.0)))
    left, done = [i for i in range(first, len(matrix)) if i not in held], []
    if _all_at_once(G, size, left, even, bound):
        left, done = [], left
    while left:
        pivot = _pivot(G, left)
        rest = [i for i in range(len(G)) if i not in pivot and i not in done]
        block, beside = G[np.ix_(pivot, pivot)], G[np.ix_(pivot, rest)]
        if np.abs(block * np.outer(even[pivot], even[pivot])).max() < TINY or not abs(np.linalg.det(block)) > 0:
            break
        update = beside.T @ np.linalg.solve(block, beside)
        if growth(update, size[np.ix_(rest, rest)]) > bound:
            break
        G[np.ix_(rest, rest)] -= update
        done += pivot
        left = [i for i in left if i not in pivot]
    return Choice(np.sort(np.array(done, int)) - first, np.sort(np.array([*left, *held], int)) - first, scale[first:])


def _all_at_once(G: Array, size: Array, every: list[int], even: Array, bound: float) -> bool:
    """Tell whether all unknowns may go: the growth that they bring together matters, not one after the other."""
    block, rest = G[np.ix_(every, every)], [i for i in range(len(G)) if i not in every]
    values = np.linalg.svd(block * np.outer(even[every], even[every]), compute_uv=False)
    if not every or not values[-1] > max(values[0] / CONDITION, 10 * TINY):  # else it may be the rounding of zero
        return False
    beside = G[np.ix_(every, rest)]
    return growth(beside.T @ np.linalg.solve(block, beside), size[np.ix_(rest, rest)]) <= bound


def sizes(G: Array, first: int) -> Array:
    """Return the sizes of the entries of G, block by block: α and λ, and the unknowns; at least 1."""
    out = np.ones_like(G)
    cuts = (slice(0, first // 2), slice(first // 2, first), slice(first, len(G)))
    for a in cuts:
        for b in cuts:
            out[a, b] = max(1.0, np.abs(G[a, b]).max(initial=0.0))
    return out


def growth(update: Array, size: Array) -> float:
    """Largest entry of an update against what was there; infinite where it is too large for rounding to be seen."""
    largest = np.abs(update).max(initial=0.0)
    return float((np.abs(update) / size).max(initial=0.0)) if largest <= LARGEST else np.inf


def _pivot(G: Array, left: list[int]) -> list[int]:
    """The largest entry on the diagonal, or the pair of the largest beside it, whichever bounds the growth."""
    inner = np.abs(G[np.ix_(left, left)])
    diagonal = inner.diagonal().copy()
    np.fill_diagonal(inner, 0.0)
    one = int(diagonal.argmax())
    if diagonal[one] >= SINGLE * inner.max(initial=0.0):
        return [left[one]]
    i, j = divmod(int(inner.argmax()), len(left))
    return [left[i], left[j]]
