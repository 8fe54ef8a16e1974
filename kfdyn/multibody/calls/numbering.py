"""Bodies in the order that sweeps take them: numbers, kinds of hinges, branches, and slots to hand sums on in."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kfdyn.multibody.calls.layout import Layout
from kfdyn.multibody.parts.hinge import Coordinates

Index = NDArray[np.int64]


def numbered(layout: Layout, turned: bool) -> tuple[dict[str, Index], Index]:
    """Count bodies, each followed by all that is outboard of it, and their dofs; note what each hinge is."""
    n = layout.parent.size
    index = {
        name: np.zeros(n + 1, np.int64)
        for name in (
            "parent", "kind", "twisted", "q", "v", "v_end", "body", "arrives", "base", "leaves", "loose", "end",
            "column", "own_end", "column_end", "snap", "looks_at",
        )
    }  # fmt: skip
    children: list[list[int]] = [[] for _ in range(n + 1)]
    for k in layout.order.tolist():
        children[int(layout.parent[k]) + 1].append(k)
    parent, v_start, q_start = layout.parent.tolist(), layout.v_start.tolist(), layout.q_start.tolist()
    kinds, place = _kinds(layout), [0] * (n + 1)
    if not turned:
        kinds = np.where(kinds == 0, 2, kinds)  # a revolute hinge is a hinge of one screw
    kinds = kinds.tolist()
    entries: list[int] = []
    index["looks_at"][:] = -1
    waiting, t = children[0][:], 0
    while waiting:
        k = waiting.pop()
        t += 1
        place[k + 1] = t
        up = place[parent[k] + 1]
        index["body"][t], index["parent"][t], index["kind"][t] = k, up, kinds[k]
        index["q"][t], index["v"][t], index["v_end"][t] = q_start[k], v_start[k], v_start[k + 1]
        if index["looks_at"][up] < 0 and kinds[k] == 0:
            index["looks_at"][up] = k
        index["column"][t] = len(entries)
        entries.extend(range(v_start[k], v_start[k + 1]))
        index["own_end"][t] = len(entries)
        waiting.extend(children[k + 1])
    return index, np.array(entries, np.int64)


def _kinds(layout: Layout) -> Index:
    """What each hinge is: REVOLUTE, SLIDE, SCREWS, BALL or POSE."""
    single = np.diff(layout.v_start) == 1
    first = np.minimum(layout.v_start[:-1], max(len(layout.screws) - 1, 0))
    screws = layout.screws[first] if len(layout.screws) else np.zeros((len(single), 6))
    turns, slides = screws[:, :3].any(axis=1), screws[:, 3:].any(axis=1)
    kind = np.where(single & ~turns, 1, np.where(single & ~slides, 0, 2))
    return np.where(
        layout.coordinates == Coordinates.SCREWS, kind, np.where(layout.coordinates == Coordinates.POSE, 4, 3)
    ).astype(np.int64)


def close_branches(index: dict[str, Index]) -> int:
    """Where what is outboard of each body ends, and where branches are kept; how many columns are kept in all."""
    n = len(index["parent"]) - 1
    end, column_end = np.arange(1, n + 2), index["own_end"].copy()
    for t in range(n, 0, -1):
        up = index["parent"][t]
        end[up], column_end[up] = max(end[up], end[t]), max(column_end[up], column_end[t])
    snaps = 0
    for t in range(1, n + 1):
        index["snap"][t] = -1
        if end[t] > t + 1 and end[t + 1] < end[t]:  # more than one child
            index["snap"][t] = snaps
            snaps += int(column_end[t] - index["own_end"][t])
    index["end"], index["column_end"] = end, column_end
    return snaps


def hand_out_slots(index: dict[str, Index]) -> int:
    """Hand a body's slot on to its parent, so that a chain needs one and a tree as many as branches are open."""
    n = len(index["parent"]) - 1
    parent, slot, used = index["parent"].tolist(), [0] * (n + 1), 1
    free: list[int] = []
    for t in range(n, 0, -1):
        p, own = parent[t], slot[t]
        index["arrives"][t] = own
        if p > 0 and slot[p] == 0:
            if own == 0 and free:
                own = free.pop()
            elif own == 0:
                own, used = used, used + 1
            slot[p] = own
            index["leaves"][t] = own
        else:
            index["base"][t] = index["leaves"][t] = slot[p]
            if own > 0:
                free.append(own)
    return used
