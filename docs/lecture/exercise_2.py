"""Exercise 2. The smoother of a train is its forward dynamics.

Given the motor forces T, find the accelerations a of the motors in two sweeps. Start from
the filter of exercise 1 and add the means, z and eps, then go back from the wall to the
tail with the co-state, which is the acceleration of a cart. No matrix is formed: the last
check has 200,000 carts.
"""

import numpy as np


def accelerations(m, r, T):
    """Return a of shape (N,), with mass_matrix @ a = T."""
    raise NotImplementedError("a sweep to the wall: z, eps; a sweep back: a = eps / D - G costate")


def check(answer):
    """Hold it against a dense solution, and against Newton's law for a long train."""
    rng = np.random.default_rng(0)
    for n in (1, 2, 10, 50):
        m, r = rng.uniform(0.1, 3, (2, n))
        T = rng.normal(size=n)
        phi = np.tril(np.ones((n, n)))
        mass_matrix = phi @ np.diag(m) @ phi.T + np.diag(r)
        np.testing.assert_allclose(answer(m, r, T), np.linalg.solve(mass_matrix, T), rtol=1e-9)
    m, r = rng.uniform(0.1, 3, (2, 200_000))
    T = rng.normal(size=m.size)
    a = answer(m, r, T)
    of_cart = np.cumsum(a[::-1])[::-1]  # from the wall to the tail
    force = np.cumsum(m * of_cart)  # from the tail to the wall
    np.testing.assert_allclose(force + r * a, T, atol=1e-6)


if __name__ == "__main__":
    from verdict import verdict

    verdict(check, accelerations)
