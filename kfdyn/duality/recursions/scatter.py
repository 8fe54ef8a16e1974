"""Accumulate the scatter matrix of each node, and of each node with its parent."""

from kfdyn.sweeps import if_, local, loop, sweep


@sweep
def node_scatter(y, start, parent, nodes, edges, most):
    """Add Σ y_k y_k* to block k of ``nodes`` and Σ y_k y_p(k)* to block k of ``edges`` over the columns of y.

    y is (d, samples), ``start`` (N + 1,) tells where node k's entries are, a block is (most, most). Samples lie side by
    side: each entry is a product of two contiguous vectors, ½n_k(n_k + 1) + n_k n_p of them a node.
    """
    samples = y.shape[1]
    for k in loop(parent.size):
        first, last, p = start[k], start[k + 1], parent[k]
        own, edge = nodes.matrix(k * most * most, most, most), edges.matrix(k * most * most, most, most)
        for i in loop(last, first):
            for j in loop(i + 1, first):
                total = own[i - first, j - first] + dot(samples, y.part(i * samples), y.part(j * samples))
                own[i - first, j - first] = total
                own[j - first, i - first] = total
            for _ in if_(p >= 0):
                above = start[p]
                for j in loop(start[p + 1], above):
                    product = dot(samples, y.part(i * samples), y.part(j * samples))
                    edge[i - first, j - above] = edge[i - first, j - above] + product


def dot(n, x, y):
    """Return x* y."""
    s = local(0.0)
    for i in loop(n):
        s += x[i] * y[i]
    return s
