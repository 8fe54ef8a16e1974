"""The associative scan against the engine, and against itself in another order."""

import numpy as np
import pytest

import kfdyn as kf
from kfdyn.errors import SingularError
from kfdyn.textbook import scan


def random_steps(seed, N):
    """A chain of N steps whose sizes and matrices all differ, as arguments of `element` and as a model with T."""
    rng = np.random.default_rng(seed)
    n, m = rng.integers(1, 5, N), rng.integers(1, 4, N)

    def covariance(size):
        root = rng.normal(size=(size, size))
        return root @ root.T + 0.1 * np.eye(size)

    before = [0, *n[:-1].tolist()]
    phi = [rng.normal(size=(k, above)) for k, above in zip(n, before)]
    H = [rng.normal(size=(a, b)) for a, b in zip(m, n)]
    Q, R = [covariance(k) for k in n], [covariance(k) for k in m]
    xi, T = [rng.normal(size=k) for k in n], [rng.normal(size=k) for k in m]
    elements = [scan.element(*step) for step in zip(phi, H, Q, R, xi, T)]
    ss = kf.StateSpace([*range(1, N), -1], [*phi[1:], None], H, Q, R, xi=np.concatenate(xi))
    return elements, ss, np.concatenate(T)


@pytest.mark.parametrize("seed", range(3))
def test_the_scan_is_the_filter(seed):
    elements, ss, T = random_steps(seed, 21)
    filt = kf.kalman_filter(ss, T)
    found = scan.scan(elements)
    assert len(found) == 21
    for k, one in enumerate(found):
        np.testing.assert_allclose(one.b, filt.z_plus[k], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(one.C, filt.P_plus[k], rtol=1e-9, atol=1e-9)


def test_combining_is_associative():
    a, b, c = random_steps(5, 4)[0][1:]
    left, right = scan.combine(scan.combine(a, b), c), scan.combine(a, scan.combine(b, c))
    for one, other in zip(left, right):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-11)


def test_a_step_without_noise_has_no_element():
    one, none = np.ones((1, 1)), np.zeros((1, 1))
    with pytest.raises(SingularError, match="H Q H"):
        scan.element(one, one, none, none, np.zeros(1), np.zeros(1))
