"""Exercise 5. The cross-check, with numpy alone.

Draw random forces w(k) ~ N(0, Q(k)) on the links of an arm, add them up to the forces in
the joints, x(k) = sum of phi x(child) + w(k), and project them to torques, T(k) = H(k)
x(k) + r(k) with r(k) ~ N(0, R(k)). Do not use kf.draw. What is the covariance of T? What
is that of the accelerations?
"""

import numpy as np

import kfdyn as kf


def draw_torques(ss, rng, n):
    """Return n draws of T, shape (n, N), for a chain whose node k has the parent k - 1."""
    raise NotImplementedError("np.linalg.cholesky, and a loop from the tip, k = N - 1, to the base, k = 0")


def check(answer):
    """Accelerations must have the inverse mass matrix for their covariance, up to sampling error."""
    arm, rng = kf.models.stanford_arm(), np.random.default_rng(0)
    q, still = np.full(6, 0.4), np.zeros(6)
    ss = kf.as_estimation(arm, q, gravity=np.zeros(3))
    inverse = np.linalg.inv(kf.mass_matrix(arm, q))
    unit = np.sqrt(np.diag(inverse))
    correlation = inverse / np.outer(unit, unit)
    for n in (1000, 10_000, 100_000):
        a = kf.forward_dynamics(arm, q, still, answer(ss, rng, n), gravity=np.zeros(3))
        error = a.T @ a / n / np.outer(unit, unit) - correlation
        standard = np.sqrt((1 + correlation**2) / n)  # of an entry of a sample covariance
        worst = abs(error / standard).max()
        print(f"{n:7d} draws: largest error {abs(error).max():.4f}, {worst:.1f} standard errors")
        assert worst < 4.5, "the accelerations do not have the covariance that they should"


if __name__ == "__main__":
    from verdict import verdict

    verdict(check, draw_torques)
