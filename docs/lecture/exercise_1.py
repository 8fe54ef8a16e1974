"""Exercise 1. The filter of a train, by hand.

Carts of masses m[0], ..., m[N-1] stand on a rail, from the tail to the wall. Between cart
k and the next one towards the wall is a motor, which pushes them apart with the force
T[k]; its rotor has the inertance r[k]. The force in a coupling is a scalar state, so that
phi = H = 1, Q = m, R = r.

Write the Riccati recursion: what every motor has to move.
"""

import numpy as np


def filter_of_train(m, r):
    """Return P, D, G, P_plus, each of shape (N,)."""
    raise NotImplementedError("four lines in a loop from the tail, k = 0, to the wall")


def check(answer):
    """Hold it against the numbers of the lecture, and against a dense factorisation."""
    P, D, _, P_plus = map(np.array, answer([2.0, 1.0, 3.0], [1.0, 1.0, 1.0]))  # lists are as good
    np.testing.assert_allclose(P, [2, 5 / 3, 29 / 8], err_msg="P is wrong")
    np.testing.assert_allclose(D, [3, 8 / 3, 37 / 8], err_msg="D is wrong")
    np.testing.assert_allclose(P_plus, [2 / 3, 5 / 8, 29 / 37], err_msg="P_plus is wrong")
    rng = np.random.default_rng(0)
    for n in (1, 2, 10, 50):
        m, r = rng.uniform(0.1, 3, (2, n))
        P, D, G, P_plus = map(np.array, answer(m, r))
        phi = np.tril(np.ones((n, n)))
        mass_matrix = phi @ np.diag(m) @ phi.T + np.diag(r)
        factor = np.linalg.cholesky(mass_matrix)
        np.testing.assert_allclose(D, np.diag(factor) ** 2, err_msg="D is wrong")
        np.testing.assert_allclose(P_plus, 1 / (1 / P + 1 / r), err_msg="P_plus is wrong")  # P and r in parallel
        np.testing.assert_allclose(G * D, P, err_msg="G is wrong")


if __name__ == "__main__":
    from verdict import verdict

    verdict(check, filter_of_train)
