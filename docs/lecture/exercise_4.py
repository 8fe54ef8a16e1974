"""Exercise 4. A locked hinge is a missing measurement.

Lock some joints of an arm: they cannot move, and what torque holds them is not known. In
the filter nothing is measured there. Return the accelerations of all joints (zero at the
locked ones), using the filter and smoother of kfdyn and NaN. Then think: what does R ->
infinity do instead, and why is it not the same in floating point?
"""

import numpy as np

import kfdyn as kf


def locked_accelerations(system, q, v, tau, locked):
    """Return a (nv,); ``locked`` is a boolean mask (nv,)."""
    raise NotImplementedError("kf.as_estimation, kf.kalman_filter, kf.bryson_frazier")


def check(answer):
    """Strike the rows and columns of the locked joints from the mass matrix."""
    arm = kf.models.puma560()
    rng = np.random.default_rng(0)
    for _ in range(20):
        q, v, tau = rng.normal(size=(3, 6))
        locked = rng.random(6) < 0.4
        free = ~locked
        M, c = kf.mass_matrix(arm, q), kf.bias_forces(arm, q, v)
        expected = np.zeros(6)
        expected[free] = np.linalg.solve(M[np.ix_(free, free)], (tau - c)[free])
        np.testing.assert_allclose(answer(arm, q, v, tau, locked), expected, rtol=1e-8, atol=1e-8)


if __name__ == "__main__":
    from verdict import verdict

    verdict(check, locked_accelerations)
