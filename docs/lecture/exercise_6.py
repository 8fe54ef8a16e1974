"""Exercise 6. Find the misprint.

A lecture that this package is built on prints the covariance of the filter's estimate z
as phi K D^-1 K* phi*. Is it that, or phi K D K* phi*? Decide by units in your head, then
by samples. Return the right one as a dense matrix.
"""

import numpy as np

import kfdyn as kf


def covariance_of_estimate(ss):
    """Return cov[z], dense, for a model without known inputs."""
    raise NotImplementedError("kf.Operators(ss) has phi and K with .dense(); kf.riccati(ss) has D")


def check(answer):
    """Filter many draws and compare entry by entry."""
    rng = np.random.default_rng(0)
    n = 50_000
    tree = kf.models.random_tree(4, seed=3)
    ss = kf.as_estimation(tree, tree.random_configuration(rng), gravity=np.zeros(3))
    z = kf.kalman_filter(ss, kf.draw(ss, rng, n).T).z.flat
    sampled, expected = z.T @ z / n, answer(ss)
    variance = np.diag(expected)
    standard = np.sqrt((np.outer(variance, variance) + expected**2) / n)
    known = standard < 1e-9 * variance.max()  # nothing is known outboard of a tip: z = 0 there
    np.testing.assert_allclose(sampled[known], 0, atol=1e-9 * variance.max())
    assert np.all(abs(sampled - expected)[~known] < 5 * standard[~known]), (
        "the samples disagree: it is the other one, or neither"
    )


if __name__ == "__main__":
    from verdict import verdict

    verdict(check, covariance_of_estimate)
