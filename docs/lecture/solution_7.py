"""Solution 7. From a chain to a tree.

A junction adds up the inertias and the forces that arrive, and hands its acceleration to
all who came.
"""

import numpy as np
from exercise_7 import check


def accelerations(parent, m, r, T):
    """Return a of shape (N,)."""
    n = len(m)
    P, z, costate, a, eps, D, G = np.zeros((7, n))
    P += m
    for k in range(n):  # every child before its parent
        D[k] = P[k] + r[k]
        G[k] = P[k] / D[k]
        eps[k] = T[k] - z[k]
        if parent[k] >= 0:
            P[parent[k]] += P[k] - G[k] * P[k]
            z[parent[k]] += z[k] + G[k] * eps[k]
    for k in reversed(range(n)):  # every parent before its children
        above = costate[parent[k]] if parent[k] >= 0 else 0.0
        a[k] = eps[k] / D[k] - G[k] * above
        costate[k] = above + a[k]
    return a


if __name__ == "__main__":
    from verdict import verdict

    verdict(check, accelerations)
