"""Solution 6. The misprint.

z has the unit of x, whose covariance is an inertia. D is an inertia about the hinge, and
K carries from there to the state; only K D K* has the unit of cov[x].
"""

import numpy as np
from exercise_6 import check
from scipy.linalg import block_diag

import kfdyn as kf


def covariance_of_estimate(ss):
    """Return cov[z], dense, for a model without known inputs."""
    operators, cov = kf.Operators(ss), kf.riccati(ss)
    D = block_diag(*[np.asarray(cov.D[k]) for k in range(len(ss.tree))])
    carried = operators.phi.dense() @ operators.K.dense()
    return carried @ D @ carried.T


if __name__ == "__main__":
    from verdict import verdict

    verdict(check, covariance_of_estimate)
