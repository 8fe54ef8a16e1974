"""Calls into the compiled entries of systems with couplings: what they take, or None where there is no quick answer."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kfdyn.multibody import System
from kfdyn.multibody.entries import FINE, Later

Array = NDArray[np.float64]

GEARED_FORWARD = Later("kfdyn.dynamics.recursions.geared", "GEARED_FORWARD")
GEARED_INVERSE = Later("kfdyn.dynamics.recursions.geared", "GEARED_INVERSE")
GEARED_MASS_MATRIX = Later("kfdyn.dynamics.recursions.geared", "GEARED_MASS_MATRIX")
GEARED_MASS_MATRIX_INVERSE = Later("kfdyn.dynamics.recursions.geared", "GEARED_MASS_MATRIX_INVERSE")


@lru_cache(maxsize=64)
def gears(system: System) -> tuple[Any, ...]:
    """Sizes of q and v, and X row by row: where its terms start, their columns and ratios; offsets of positions."""
    e, tree = system._expansion, system.open_tree
    starts, columns, ratios, offsets = [0], [], [], np.zeros(tree.nq)
    offsets[e.coupled_q] = e.offset
    for count, plain, here, coupled, own in (
        (tree.nq, e.plain_q, e.here_q, e.coupled_q, e.own_q),
        (tree.nv, e.plain_v, e.here_v, e.coupled_v, e.own_v),
    ):
        rows: list[list[tuple[int, float]]] = [[] for _ in range(count)]
        for i, j in zip(plain.tolist(), here.tolist()):
            rows[i].append((j, 1.0))
        for i, ratio in zip(coupled.tolist(), e.block):
            rows[i] += [(int(own[k]), float(ratio[k])) for k in np.flatnonzero(ratio)]
        for terms in rows:
            columns += [j for j, _ in terms]
            ratios += [ratio for _, ratio in terms]
            starts.append(len(columns))
    return e.nq, e.nv, np.array(starts), np.array(columns, dtype=np.int64), np.array(ratios), offsets


def quick_geared(entry: Later, system: System, tail: tuple[int, ...], q: Any, *more: Any) -> Array | None:
    """What an entry answers (..., *tail) to q (..., nq) and what else it takes; None where it has no answer."""
    if type(system) is not System or type(q) is not np.ndarray or not q.ndim:  # bodies that bend go another way
        return None
    tree, given = system.open_tree, gears(system)
    if q.ndim == 1:
        found: Array | None = entry.one(tree, *given, q, *more)
        if found is not None:
            return found
    answer = np.empty((*q.shape[:-1], *tail))
    rows = int(np.prod(q.shape[:-1]))
    return answer if entry(tree, rows, *given, q, *more, answer) == FINE else None
