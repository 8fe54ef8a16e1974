"""Exercise 7. From a chain to a tree.

Two trains meet at a junction and are pushed on as one. Nothing in the proof of the
smoother asked for a single child. Generalise exercises 1 and 2: parent[k] > k for every
cart but the last, whose parent is -1.
"""

import numpy as np

import kfdyn as kf


def accelerations(parent, m, r, T):
    """Return a of shape (N,)."""
    raise NotImplementedError("add what arrives from all children; hand the costate to all of them")


def check(answer):
    """Hold it against kfdyn's engine on random trees."""
    rng = np.random.default_rng(0)
    for n in (2, 3, 8, 40):
        parent = [int(rng.integers(k + 1, n)) for k in range(n - 1)] + [-1]
        m, r = rng.uniform(0.1, 3, (2, n))
        T = rng.normal(size=n)
        one = np.ones((n, 1, 1))
        ss = kf.StateSpace(parent, one, one, one * m[:, None, None], one * r[:, None, None])
        expected = kf.innovations_factor(ss).solve(T)
        np.testing.assert_allclose(answer(parent, m, r, T), expected, rtol=1e-9, atol=1e-12)


if __name__ == "__main__":
    from verdict import verdict

    verdict(check, accelerations)
