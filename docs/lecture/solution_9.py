"""Solution 9. The order of the inertias.

P - P+ = G D G* is what the hinge takes up. P - Q is what arrives from the children, P+ =
taubar P taubar* + G R G*, shifted. R - P is what all the hinges further out have taken up:
one column for each of their coordinates.
"""

import numpy as np
from exercise_9 import check


def factors(ss, cov):
    """Return three lists of L(k), of P - P+, P - Q and R - P; cov.P[k], D, G, P_plus are those of the filter."""
    n = len(ss.tree)
    through, after, added, lost = ([None] * n for _ in range(4))
    none = np.zeros((6, 0))
    for k in ss.tree.order:  # every child before its parent
        G, H = cov.G[k], ss.H[k]
        through[k] = G @ np.linalg.cholesky(cov.D[k])
        taubar = np.eye(6) - G @ H
        rotor = G @ np.sqrt(ss.R[k])  # diagonal
        after[k] = np.hstack([taubar @ np.linalg.cholesky(cov.P[k]), rotor])
        children = ss.tree.children(k)
        added[k] = np.hstack([none, *(ss.phi[j] @ after[j] for j in children)])
        lost[k] = np.hstack([none, *(ss.phi[j] @ np.hstack([lost[j], through[j]]) for j in children)])
    return through, added, lost


if __name__ == "__main__":
    from verdict import verdict

    verdict(check, factors)
