"""The quick look at covariance blocks: what it passes is positive definite, and it says nothing of the rest."""

import numpy as np
import pytest

from kfdyn.estimation.model.blocks import Blocks
from kfdyn.estimation.model.validation import _CLEARLY_POSITIVE as PART
from kfdyn.estimation.recursions.linalg.covariances import (
    LEAST_TILED,
    clearly_noisy,
    clearly_positive,
    surely_semidefinite,
)
from kfdyn.sweeps import Tag


def asked(blocks, plain=False):
    sizes = np.array([len(b) for b in blocks])
    look = clearly_positive.plain if plain else clearly_positive
    return look(np.concatenate([b.ravel() for b in blocks]), sizes, PART, np.empty(int(sizes.max()) ** 2))


def covariance(rng, n):
    root = rng.normal(size=(n, n))
    whole = root @ root.T + 0.1 * np.eye(n)
    return 10.0 ** rng.uniform(-6, 6) * (whole + whole.T)


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_it_passes_what_is_positive_and_nothing_else(seed, plain):
    rng = np.random.default_rng(seed)
    blocks = [covariance(rng, int(n)) for n in rng.integers(0, 7, 30)]
    blocks += [np.zeros((4, 4)), np.zeros((0, 0))]
    assert asked(blocks, plain) == 1
    k = int(np.argmax([len(b) > 1 for b in blocks]))
    good, n = blocks[k], len(blocks[k])

    def instead(block):
        return asked([*blocks[:k], block, *blocks[k + 1 :]], plain)

    values, vectors = np.linalg.eigh(good)
    values[0] = -1e-3 * values[-1]
    indefinite = (vectors * values) @ vectors.T
    assert instead(0.5 * (indefinite + indefinite.T)) == 0
    skew = good.copy()
    skew[0, 1] = np.nextafter(skew[0, 1], np.inf)
    assert instead(skew) == 0
    singular = np.outer(good[0], good[0])
    assert instead(singular) == 0  # it may well be a covariance: eigenvalues are asked
    assert instead(good * np.where(np.eye(n, dtype=bool), np.nan, 1.0)) == 0
    zero_variance = good.copy()
    zero_variance[0, 0] = 0.0
    assert instead(zero_variance) == 0


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_noise_is_clear_where_the_dense_matrix_says_so(seed, plain):
    """Of random nodes, none, or one without noise in some direction, or one with next to nothing beside P."""
    rng = np.random.default_rng(seed)
    n, m = rng.integers(1, 5, 6), rng.integers(0, 4, 6)
    n[2], m[2] = 4, 2
    H = [rng.normal(size=(b, a)) for a, b in zip(n, m)]
    H[1], m[1], n[0], m[0] = np.zeros((2, n[1])), 2, 3, 1
    H[0] = rng.normal(size=(1, 3))
    Q, R, P = ([covariance(rng, k) for k in sizes] for sizes in (n, m, n))

    def clear():
        ragged = (
            Blocks(np.concatenate([b.ravel() for b in blocks]), rows, cols).ragged
            for blocks, rows, cols in ((H, m, n), (Q, n, n), (R, m, m))
        )
        look = clearly_noisy.plain if plain else clearly_noisy
        return look(
            *ragged, np.concatenate([b.ravel() for b in P]), 1e-8, np.empty(int(m.max()) * int(m.max() + n.max()))
        )

    for k in range(6):
        Q[k], R[k], P[k] = np.eye(n[k]), np.eye(m[k]), np.eye(n[k])
    assert clear() == 1
    R[2] = np.zeros((2, 2))
    assert clear() == 1  # H Q H* is regular
    H[2][1] = 2.0 * H[2][0]
    assert clear() == 0
    R[2] = np.diag([1.0, 0.0])
    assert clear() == 1
    P[0] *= 1e12
    assert clear() == 0


@pytest.mark.parametrize("way", ["lanes", "one by one", "plain"])
@pytest.mark.parametrize("n", [2, 5, 12, 30])
def test_semidefinite_blocks_pass_and_become_symmetric_and_others_do_not(n, way):
    """Products of full and of low rank in any units, zeros; and one block that is none, wherever it is."""
    rng = np.random.default_rng(n)
    lanes = 8 if way == "lanes" and n < LEAST_TILED else 1
    count = 19 if way != "plain" else 3

    def root():
        unit = 10.0 ** rng.uniform(-6, 6, size=(n, 1))
        return unit * rng.normal(size=(n, rng.integers(0, n + 1)))

    blocks = np.array([b @ b.T for b in (root() for _ in range(count))])
    blocks[1, 0], blocks[1, :, 0] = 0.0, 0.0

    def look(given):
        flat, sizes = given.reshape(-1).copy(), np.full(len(given), n)
        function = surely_semidefinite.plain if way == "plain" else surely_semidefinite
        tag = Tag(n) if lanes > 1 else None
        return function(Tag(lanes), tag, flat, sizes, np.empty(lanes * n * n)), flat.reshape(given.shape)

    good, found = look(blocks)
    assert good == 1 and (found == found.transpose(0, 2, 1)).all()
    np.testing.assert_array_equal(found, 0.5 * (blocks + blocks.transpose(0, 2, 1)))
    for k in (0, count // 2, count - 1):
        whole = rng.normal(size=(n, n))
        values, vectors = np.linalg.eigh(whole @ whole.T)
        values[0] = -1e-9 * values[-1]
        indefinite = (vectors * values) @ vectors.T
        skew = np.eye(n)
        skew[0, 1] = 1e-8
        no_variance = np.eye(n)
        no_variance[1, 1], no_variance[0, 1], no_variance[1, 0] = 0.0, 1e-9, 1e-9
        for wrong in (0.5 * (indefinite + indefinite.T), skew, no_variance, np.full((n, n), np.nan), -np.eye(n)):
            assert look(np.concatenate([blocks[:k], wrong[None], blocks[k + 1 :]]))[0] == 0


def test_blocks_of_different_sizes_are_looked_at_one_by_one():
    blocks = [covariance(np.random.default_rng(n), n) for n in (1, 4, 0, 26, 3)]
    sizes = np.array([len(b) for b in blocks])
    flat = np.concatenate([b.ravel() for b in blocks])
    assert surely_semidefinite(Tag(1), None, flat, sizes, np.empty(26 * 26)) == 1
    flat[-1] = -1.0
    assert surely_semidefinite(Tag(1), None, flat, sizes, np.empty(26 * 26)) == 0
