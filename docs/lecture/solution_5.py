"""Solution 5. The cross-check, with numpy alone.

T has the mass matrix for its covariance, a its inverse; the error falls as one over the
root of n.
"""

import numpy as np
from exercise_5 import check


def draw_torques(ss, rng, n):
    """Return n draws of T, shape (n, N), for a chain whose node k has the parent k - 1."""
    size = len(ss.tree)
    T = np.zeros((n, size))
    x = np.zeros((n, 6))
    for k in reversed(range(size)):
        w = rng.normal(size=(n, 6)) @ np.linalg.cholesky(ss.Q[k]).T
        x = x + w  # force through hinge k, at hinge k
        T[:, k] = x @ ss.H[k][0] + np.sqrt(ss.R[k][0, 0]) * rng.normal(size=n)
        if k > 0:
            x = x @ ss.phi[k].T  # the same force, at hinge k - 1
    return T


if __name__ == "__main__":
    from verdict import verdict

    verdict(check, draw_torques)
