"""Scatter of a stacked sample, node by node, without the scatter between strangers."""

import numba as nb


@nb.njit(cache=True, nogil=True)
def node_scatter(y, start, parent, nodes, edges):
    """Add Σ y_k y_k* to ``nodes[k]`` and Σ y_k y_p(k)* to ``edges[k]`` over the rows of y (samples, d).

    ``start`` (N + 1,) tells where node k's entries are; n_k (n_k + n_p) multiplications a node and row.
    """
    for row in range(y.shape[0]):
        for k in range(parent.size):
            a, b = start[k], start[k + 1]
            p = parent[k]
            for i in range(a, b):
                value = y[row, i]
                for j in range(a, b):
                    nodes[k, i - a, j - a] += value * y[row, j]
                if p >= 0:
                    above = start[p]
                    for j in range(above, start[p + 1]):
                        edges[k, i - a, j - above] += value * y[row, j]
