"""Models with more exact outputs than directions of noise: refused by every method, wherever rounding falls."""

from contextlib import suppress

import numpy as np
import pytest

import kfdyn as kf
from kfdyn.errors import SingularError

METHODS = "block", "univariate", "square_root"


def low_rank(rng, size, rank):
    B = 10.0 ** rng.uniform(-2, 2) * rng.normal(size=(size, rank))
    return B @ B.T


def singular_model(seed, most):
    """A chain or tree of which some subtree has more outputs than noise; drawn again until it does."""
    rng = np.random.default_rng(seed)
    while True:
        N = int(rng.integers(1, most))
        reach = 1 if rng.random() < 0.5 else 4
        parent = [int(rng.integers(k + 1, min(N, k + 1 + reach))) for k in range(N - 1)] + [-1]
        n = rng.integers(1, 6, N)
        m = [int(rng.integers(0, size + 1)) for size in n]
        noise = [int(rng.integers(0, size + 1)) for size in n]
        measured = [int(rng.integers(0, size + 1)) if rng.random() < 0.3 else 0 for size in m]
        spare, failed = np.array(noise) + measured - m, False
        for k, p in enumerate(parent):
            failed |= spare[k] < 0
            if p >= 0:
                spare[p] += spare[k]
        if failed:
            break
    scale = 10.0 ** rng.uniform(-1, 1)
    phi = [None if p < 0 else scale * rng.normal(size=(n[p], n[k])) for k, p in enumerate(parent)]
    H = [10.0 ** rng.uniform(-2, 2) * rng.normal(size=(m[k], n[k])) for k in range(N)]
    Q = [low_rank(rng, size, rank) for size, rank in zip(n, noise)]
    R = [low_rank(rng, size, rank) for size, rank in zip(m, measured)]
    return kf.StateSpace(parent, phi, H, Q, R)


def answered(seed, most):
    ss, found = singular_model(seed, most), []
    for method in METHODS:
        with suppress(SingularError):
            found.append((seed, method, kf.kalman_filter(ss, np.ones(ss.n_outputs), method=method).llf))
    return found


@pytest.mark.parametrize("most", [4, 10, 30])
def test_more_outputs_than_noise_are_refused(most):
    assert [a for seed in range(60) for a in answered(seed, most)] == []


@pytest.mark.slow
def test_ten_thousand_singular_models_are_refused():
    assert [a for seed in range(10_000) for a in answered(seed, (4, 8, 8, 30)[seed % 4])] == []


@pytest.mark.parametrize("method", METHODS)
def test_the_same_measured_twice_with_gains_that_amplify(method):
    """A state known exactly from outputs that are nearly parallel, measured once more after a step without noise."""
    H = np.array([[1.0, 1.0], [1.0, 1.0 + 1e-3]])
    turn = np.array([[0.6, -0.8], [0.8, 0.6]])
    none = np.zeros((2, 2))
    ss = kf.StateSpace.chain(turn, [H, H, H], none, none, [0.0, 0.0], [[2.0, 0.3], [0.3, 1.0]])
    with pytest.raises(SingularError, match="node 1"):
        kf.kalman_filter(ss, np.ones(6), method=method)


@pytest.mark.parametrize("method", METHODS)
def test_noise_that_arrives_later_is_enough(method):
    """Exact outputs of a position whose speed alone is noisy: the noise of a step is seen two steps on."""
    F, H = np.array([[1.0, 1.0], [0.0, 1.0]]), np.array([[1.0, 0.0]])
    Q = np.diag([0.0, 1e-9])
    ss = kf.StateSpace.chain(F, H, Q, [[0.0]], [0.0, 0.0], np.eye(2), steps=40)
    T = np.cumsum(np.random.default_rng(1).normal(size=40))
    e, d = np.concatenate([T[:1], T[1:2] - T[0], np.diff(T, 2)]), np.array([1.0, 1.0] + [1e-9] * 38)
    expected = -0.5 * np.sum(np.log(2 * np.pi * d) + e**2 / d)
    assert kf.kalman_filter(ss, T, method=method).llf == pytest.approx(expected, rel=1e-6)  # 1e9 of an ulp cancels
