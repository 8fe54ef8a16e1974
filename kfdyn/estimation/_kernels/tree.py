"""Gather order, depth and children of a forest in O(N)."""

import kfdyn._kernels.compiler  # isort: skip  # noqa: F401

from numba import njit, types

from kfdyn._kernels.sizes import SWEEP
from kfdyn.estimation._kernels.emit import down, either, emitted, loop, when
from kfdyn.estimation._kernels.values import choice, count, local


@njit(**SWEEP)
def orders(parent, start, filled, children, order, depth):
    """Fill order, depth, where each node's children start, and the children; returns how many nodes were reached.

    ``order`` visits children before parents. A numbering that already does, or does so backwards, is
    kept: memory is then walked in one direction. Fewer nodes reached than there are means a loop. ``start``, ``filled``
    and ``depth`` arrive as zeros.
    """
    return _orders(parent, start, filled, children, order, depth)


@emitted(types.intp)
def _orders(parent, start, filled, children, order, depth):
    n = parent.size
    upward, downward = local(0), local(0)  # edges that lead to a larger number, and to a smaller one
    for k in loop(n):
        p = parent[k]
        with when(p >= 0):
            start[p + 1] += 1
            upward += count(p > k)
            downward += count(p < k)
    for k in loop(n):
        start[k + 1] += start[k]
    for k in loop(n):
        p = parent[k]
        with when(p >= 0):
            children[start[p] + filled[p]] = k
            filled[p] += 1
    reached = local(0)
    with either((upward == start[n]) | (downward == start[n])) as (sorted_, any_):
        with sorted_:
            for k in loop(n):
                order[k] = choice(upward == start[n], k, n - 1 - k)
            reached.set(n)
        with any_:  # parents first from the roots, then reversed
            for k in loop(n):
                with when(parent[k] < 0):
                    order[reached] = k
                    reached += 1
            for i in loop(reached):  # which grows
                k = order[i]
                for at in loop(start[k + 1], start[k]):
                    order[reached] = children[at]
                    reached += 1
            for i in loop(reached):
                other = reached - 1 - i
                with when(i < other):
                    k = order[i]
                    order[i] = order[other]
                    order[other] = k
    for i in down(reached):
        p = parent[order[i]]
        with when(p >= 0):
            depth[order[i]] = depth[p] + 1
    return reached
