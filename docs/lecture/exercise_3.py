"""Exercise 3. The innovations covariance is a Schur complement.

A double pendulum: the inertia that the shoulder feels, with the elbow free, is what
elimination of the elbow leaves of the mass matrix. Take the blocks of the model from
kfdyn, run the two steps of the filter yourself, 6 x 6 matrices now, and return D of both
hinges. With the elbow straight or folded the shoulder feels only the upper mass. Why?
"""

import numpy as np

import kfdyn as kf


def felt(ss):
    """Return [D(shoulder), D(elbow)] of a model with nodes 0 (shoulder) and 1 (elbow), 1 the child of 0."""
    raise NotImplementedError("ss.Q[1], ss.H[1], ss.phi[1], ss.Q[0], ss.H[0] are all you need")


def check(answer):
    """Hold it against the mass matrix, and against the closed form 1 + sin(q)^2."""
    swing = kf.models.double_pendulum()  # two masses of 1 kg on rods of 1 m
    rng = np.random.default_rng(0)
    for q in rng.uniform(-np.pi, np.pi, (50, 2)):
        M = kf.mass_matrix(swing, q)
        shoulder, elbow = answer(kf.as_estimation(swing, q))
        np.testing.assert_allclose(elbow, M[1, 1], rtol=1e-9, err_msg="D of the elbow is wrong")
        np.testing.assert_allclose(
            shoulder, M[0, 0] - M[0, 1] ** 2 / M[1, 1], rtol=1e-9, err_msg="D of the shoulder is wrong"
        )
        np.testing.assert_allclose(shoulder, 1 + np.sin(q[1]) ** 2, rtol=1e-9)


if __name__ == "__main__":
    from verdict import verdict

    verdict(check, felt)
