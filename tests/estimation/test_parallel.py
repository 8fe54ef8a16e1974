"""The filter in blocks gives what the serial one gives, mass-less nodes and missing measurements included."""

from time import process_time

import numpy as np
import pytest
from random_models import close, random_case

import kfdyn as kf
from kfdyn.errors import ModelError

one = np.ones((1, 1))


def chain_case(seed, N, numbering=None, **kind):
    rng = np.random.default_rng(seed)
    order = np.arange(N) if numbering is None else rng.permutation(N)
    parent = np.full(N, -1)
    parent[order[:-1]] = order[1:]
    return random_case(seed, N, parent=list(parent), **kind)


def same(found, filt):
    for name in ("z", "z_plus", "P", "P_plus"):
        close(getattr(found, name).flat, getattr(filt, name).flat)
    assert np.isclose(found.llf, filt.llf, rtol=1e-11)


@pytest.mark.parametrize("blocks", [1, 2, 5, 40])
@pytest.mark.parametrize("numbering", [None, "random"])
def test_blocks_give_what_the_whole_chain_gives(blocks, numbering):
    """Ragged sizes, every matrix different, some outputs missing."""
    case = chain_case(blocks, 40, numbering)
    T = np.where(np.random.default_rng(1).random(case.T.size) < 0.2, np.nan, case.T)
    found = kf.parallel_filter(case.ss, T, case.xi, blocks=blocks)
    assert 1 <= len(found.starts) <= blocks
    same(found, kf.kalman_filter(case.ss, T, case.xi))


def test_a_mass_less_node_goes_with_the_one_before_it():
    """R = 0 everywhere and no process noise at two nodes of three: no block may begin there."""
    N = 30
    Q = np.zeros((N, 2, 2))
    Q[::3] = np.eye(2)
    rng = np.random.default_rng(2)
    phi, H = rng.normal(size=(N, 2, 2)), [rng.normal(size=(1 if k % 3 < 2 else 0, 2)) for k in range(N)]
    ss = kf.StateSpace(kf.Tree.chain(N), phi, H, Q)
    T = rng.normal(size=ss.n_outputs)
    found = kf.parallel_filter(ss, T, blocks=7)
    assert len(found.starts) > 3 and all(s % 3 != 1 for s in found.starts[1:])
    same(found, kf.kalman_filter(ss, T))


def test_the_model_s_own_input_counts():
    ss = kf.StateSpace.chain(one, one, one, one, [3.0], one, steps=50, inputs=np.ones((49, 1)))
    T = np.arange(50.0)
    same(kf.parallel_filter(ss, T, blocks=4), kf.kalman_filter(ss, T))


def test_what_it_does_not_take_is_refused():
    case = random_case(0, 9)
    with pytest.raises(ModelError, match="takes chains without"):
        kf.parallel_filter(case.ss, case.T)
    walk = kf.StateSpace.chain(one, one, one, one, [0.0], one, steps=9)
    with pytest.raises(ModelError, match="takes one T"):
        kf.parallel_filter(walk, np.ones((2, 9)))
    with pytest.raises(ModelError, match="blocks must be"):
        kf.parallel_filter(walk, np.ones(9), blocks=0)
    with pytest.raises(ModelError, match="flat prior"):
        kf.parallel_filter(kf.StateSpace.chain(one, one, one, one, steps=9), np.ones(9))


@pytest.mark.slow
@pytest.mark.parametrize("n", [2, 6])
def test_the_work_of_blocks_is_bounded(n):
    """What the blocks cost in all, by processor time: the gain is the number of cores over this."""
    N = 40_000
    rng = np.random.default_rng(0)
    B = rng.normal(size=(N, n, n))
    phi = rng.normal(size=(N, n, n)) / (2 * np.sqrt(n))
    ss = kf.StateSpace(kf.Tree.chain(N), phi, rng.normal(size=(N, 1, n)), B @ B.transpose(0, 2, 1), np.ones((N, 1, 1)))
    T = rng.normal(size=N)

    def seconds(run):
        best = np.inf
        for _ in range(7):
            ss._cache.clear()
            start = process_time()
            run()
            best = min(best, process_time() - start)
        return best

    serial = seconds(lambda: kf.kalman_filter(ss, T))
    blocks = seconds(lambda: kf.parallel_filter(ss, T, blocks=8))
    print(f"serial {serial * 1e3:.0f} ms, eight blocks {blocks * 1e3:.0f} ms of work: {blocks / serial:.2f}×")
    assert 1.5 * serial < blocks < 15 * serial  # "several times", the docstring says


@pytest.mark.parametrize("units", [(1, 1e-3, 1e3), (1, 1e-4, 1e4), (1e-9, 1, 1e9)])
def test_units_do_not_matter(units):
    V, Vi = np.diag(units), np.diag(1 / np.array(units))
    F = np.array([[1, 1, 0.5], [0, 1, 1], [0, 0, 1]])
    T = np.random.default_rng(0).normal(size=60).cumsum()
    ss = kf.StateSpace.chain(V @ F @ Vi, [[1.0, 0, 0]] @ Vi, 0.1 * V @ V, one, np.zeros(3), V @ V, steps=60)
    assert np.isclose(kf.parallel_filter(ss, T, blocks=6).llf, kf.kalman_filter(ss, T).llf, rtol=1e-12, atol=0)
