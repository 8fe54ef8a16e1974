"""Scatter of a stacked sample, node by node, without the scatter between strangers."""

import numba as nb

from kfdyn._kernels.compiler import KEPT


@nb.njit(cache=KEPT, nogil=True, fastmath={"reassoc", "contract", "nsz"})
def node_scatter(y, start, parent, nodes, edges):
    """Add Σ y_k y_k* to ``nodes[k]`` and Σ y_k y_p(k)* to ``edges[k]`` over the columns of y (d, samples).

    ``start`` (N + 1,) tells where node k's entries are. Samples lie side by side: each entry is a product of two
    contiguous vectors: ½n_k(n_k + 1) + n_k n_p of them a node.
    """
    for k in range(parent.size):
        a, b = start[k], start[k + 1]
        p = parent[k]
        for i in range(a, b):
            for j in range(a, i + 1):
                total = 0.0
                for row in range(y.shape[1]):
                    total += y[i, row] * y[j, row]
                nodes[k, i - a, j - a] += total
                if i != j:
                    nodes[k, j - a, i - a] += total
            if p >= 0:
                above = start[p]
                for j in range(above, start[p + 1]):
                    total = 0.0
                    for row in range(y.shape[1]):
                        total += y[i, row] * y[j, row]
                    edges[k, i - a, j - above] += total
