"""Solution 1. The filter of a train."""

import numpy as np
from exercise_1 import check


def filter_of_train(m, r):
    """Return P, D, G, P_plus, each of shape (N,)."""
    n = len(m)
    P, D, G, P_plus = np.zeros((4, n))
    behind = 0.0  # of the carts behind, what comes through the coupling
    for k in range(n):
        P[k] = behind + m[k]  # prediction: the cart adds its own mass
        D[k] = P[k] + r[k]  # what the motor feels
        G[k] = P[k] / D[k]
        P_plus[k] = P[k] - G[k] * D[k] * G[k]  # = P r / (P + r)
        behind = P_plus[k]
    return P, D, G, P_plus


if __name__ == "__main__":
    from verdict import verdict

    verdict(check, filter_of_train)
