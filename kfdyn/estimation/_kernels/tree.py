"""Gather order, depth and children of a forest in O(N)."""

import numpy as np
from numba import njit

from kfdyn.estimation._kernels.sizes import SWEEP


@njit(**SWEEP)
def orders(parent):
    """(order, depth, child start, children, nodes reached).

    ``order`` visits children before parents. A numbering that already does, or does so backwards, is
    kept: memory is then walked in one direction. Fewer nodes reached than there are means a loop.
    """
    n = parent.size
    start = np.zeros(n + 1, np.int64)
    ascending, descending = True, True
    for k in range(n):
        p = parent[k]
        if p >= 0:
            start[p + 1] += 1
            ascending &= p > k
            descending &= p < k
    for k in range(n):
        start[k + 1] += start[k]
    filled = np.zeros(n, np.int64)
    children = np.empty(start[n], np.int64)
    for k in range(n):
        p = parent[k]
        if p >= 0:
            children[start[p] + filled[p]] = k
            filled[p] += 1

    order = np.empty(n, np.int64)
    reached = n
    if ascending:
        for k in range(n):
            order[k] = k
    elif descending:
        for k in range(n):
            order[k] = n - 1 - k
    else:  # parents first from the roots, then reversed
        reached = 0
        for k in range(n):
            if parent[k] < 0:
                order[reached] = k
                reached += 1
        done = 0
        while done < reached:
            k = order[done]
            done += 1
            for at in range(start[k], start[k + 1]):
                order[reached] = children[at]
                reached += 1
        for i in range(reached // 2):
            order[i], order[reached - 1 - i] = order[reached - 1 - i], order[i]

    depth = np.zeros(n, np.int64)
    for i in range(reached - 1, -1, -1):
        k = order[i]
        if parent[k] >= 0:
            depth[k] = depth[parent[k]] + 1
    return order, depth, start, children, reached
