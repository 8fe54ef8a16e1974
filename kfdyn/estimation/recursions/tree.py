"""Gather order, depth and children of a forest in O(N)."""

from kfdyn.sweeps import down, if_, if_else, local, loop, sweep, to_int, where


@sweep(tags=0)
def orders(parent, start, filled, children, order, depth):
    """Fill order, depth, where each node's children start, and the children; returns how many nodes were reached.

    ``order`` visits children before parents. A numbering that already does, or does so backwards, is
    kept: memory is then walked in one direction. Fewer nodes reached than there are means a loop. ``start``, ``filled``
    and ``depth`` arrive as zeros.
    """
    n = parent.size
    upward, downward = local(0), local(0)  # edges that lead to a larger number, and to a smaller one
    for k in loop(n):
        p = parent[k]
        for _ in if_(p >= 0):
            start[p + 1] += 1
            upward += to_int(p > k)
            downward += to_int(p < k)
    for k in loop(n):
        start[k + 1] += start[k]
    for k in loop(n):
        p = parent[k]
        for _ in if_(p >= 0):
            children[start[p] + filled[p]] = k
            filled[p] += 1
    reached = local(0)
    for sorted_ in if_else((upward == start[n]) | (downward == start[n])):
        if sorted_:
            for k in loop(n):
                order[k] = where(upward == start[n], k, n - 1 - k)
            reached.set(n)
            continue
        for k in loop(n):  # parents first from the roots, then reversed
            for _ in if_(parent[k] < 0):
                order[reached] = k
                reached += 1
        for i in loop(reached):  # which grows
            k = order[i]
            for at in loop(start[k + 1], start[k]):
                order[reached] = children[at]
                reached += 1
        for i in loop(reached):
            other = reached - 1 - i
            for _ in if_(i < other):
                k = order[i]
                order[i] = order[other]
                order[other] = k
    for i in down(reached):
        p = parent[order[i]]
        for _ in if_(p >= 0):
            depth[order[i]] = depth[p] + 1
    return reached
