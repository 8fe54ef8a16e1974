"""Composite body inertias in world orientation, as 6 x 6 blocks (R86 7.9)."""

from typing import Any

from numba import njit

from kfdyn._kernels.compiler import KEPT
from kfdyn.multibody._kernels.vectors import add, dot, get, scale

SWEEP: dict[str, Any] = {"cache": KEPT, "nogil": True, "error_model": "numpy"}


@njit(**SWEEP)
def composite_inertias(layout, l, inertia):
    """R(p) += phi(p,k) R(k) phi*(p,k), leaves to roots; ``inertia`` (batch, n, 6, 6) arrives as M (R86 7.9).

    A rigid body's inertia about a point is m, h = m p and J; about a point -l away it is

        m,   h + m l,   J + 2 (l.h) 1 - l h* - h l* + m (l.l 1 - l l*)

    About 60 flops per body, an eighth of the congruence.
    """
    for b in range(len(inertia)):
        for step in range(layout.order.size):
            k = layout.order[layout.order.size - 1 - step]
            p = layout.parent[k]
            if p < 0:
                continue
            own, above = inertia[b, k], inertia[b, p]
            m, r = own[3, 3], get(l[b], k)
            h = (own[2, 4], own[0, 5], own[1, 3])
            moved = add(h, scale(m, r))
            spread = dot(r, add(h, moved))
            for i in range(3):
                above[i, i] += spread
                above[3 + i, 3 + i] += m
                for j in range(3):
                    above[i, j] += own[i, j] - r[i] * h[j] - moved[i] * r[j]
            for i, j, along in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
                x = moved[along]
                above[i, 3 + j] -= x
                above[3 + j, i] -= x
                above[j, 3 + i] += x
                above[3 + i, j] += x
