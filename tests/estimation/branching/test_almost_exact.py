"""Observations with next to no noise: likelihood and score beside the dense normal in 120 digits, down to R = 1e-20."""

import mpmath as mp
import numpy as np
import pytest
from outward_cases import Outward, dense, digits

import kfdyn as kf

STEP = mp.mpf(10) ** -50


def on(newick, error, rate=1.0, y=(1.0, 2.0, 4.0), root_cov=None, inner=()):
    """Brownian motion on a tree as a case for the dense normal; ``inner`` nodes are observed too."""
    tree = kf.Phylogeny.from_newick(newick)
    rate, error = np.atleast_2d(rate), np.diag(np.atleast_1d(error).astype(float))
    d, N = len(rate), len(tree.parent)
    seen = [k in tree.tips or tree.names[k] in inner for k in range(N)]
    return Outward(
        tree.parent.tolist(), [np.eye(d)] * N, [length * rate for length in tree.length],
        [np.eye(d)[: d * s] for s in seen], [error[: d * s, : d * s] for s in seen],
        np.zeros(N * d), np.zeros(d), root_cov, np.asarray(y, float),
    )  # fmt: skip


def derivative(case, name, k, i, j):
    """∂ℓ/∂ of one entry of a block, of both where it is symmetric."""
    with mp.workdps(120):
        block = digits(getattr(case, name)[k]).copy()
        block[i, j] += STEP
        if name in "WR" and i != j:
            block[j, i] += STEP
        blocks = list(getattr(case, name))
        blocks[k] = block
        return float((dense(case._replace(**{name: blocks}), False).llf - dense(case, False).llf) / STEP)


def expect_right(case, digits_=1e-9, names="RWC"):
    post = case.model().smooth(case.y)
    assert np.isclose(post.llf, float(dense(case).llf), rtol=1e-10, atol=1e-10)
    for name in names:
        for k, got in enumerate(getattr(post.score, name)):
            if name == "W" and case.parent[k] < 0:
                continue
            for i, j in np.ndindex(*got.shape):
                want = derivative(case, name, k, i, j)
                twice = 2.0 if name in "WR" and i != j else 1.0
                assert abs(twice * got[i, j] - want) <= digits_ * max(1.0, abs(want)), (name, k, i, j)


@pytest.mark.parametrize("root_cov", [None, np.eye(1)], ids=["flat", "known"])
@pytest.mark.parametrize("error", [0.0, *10.0 ** np.arange(-20, 1)])
def test_the_score_is_right_for_every_noise(error, root_cov):
    expect_right(on("((A:1,B:1)AB:1,C:2);", error, root_cov=root_cov))


def test_the_noise_of_no_noise_has_the_slope_of_the_exact_tips():
    tree = kf.Phylogeny.from_newick("((A:1,B:1)AB:1,C:2);")
    exact = tree.brownian().smooth([1.0, 2.0, 4.0]).score.R.flat
    assert round(exact[0], 4) == 0.0816
    for error in 10.0 ** np.arange(-20, -9):
        near = tree.brownian(error=error).smooth([1.0, 2.0, 4.0]).score.R.flat
        np.testing.assert_allclose(near, exact, rtol=0, atol=1e-13 + 2.0 * error)


@pytest.mark.parametrize("root_cov", [None, np.eye(2)], ids=["flat", "known"])
@pytest.mark.parametrize("error", [(1e-9, 1e-9), (1e-9, 1.0), (1e-9, 0.0), (1e-8, 1e-3), (1e-5, 1e-7)])
def test_several_traits_one_of_them_almost_exact(error, root_cov):
    """Also where the other is exact or not, and between the two."""
    rng = np.random.default_rng(3)
    y = rng.normal(size=6)
    rate, bound = [[1.0, 0.3], [0.3, 2.0]], 5.0 * np.finfo(float).eps / min(e for e in error if e)  # of C Λ
    expect_right(on("((A:1,B:1)AB:1,C:2);", error, rate, y, root_cov), max(bound, 1e-9))
    y[3] = np.nan
    expect_right(on("((A:1,B:1)AB:1,C:2);", error, rate, y, root_cov), max(bound, 1e-9))


@pytest.mark.parametrize("root_cov", [None, np.eye(1)], ids=["flat", "known"])
@pytest.mark.parametrize("error", [1e-20, 1e-15, 1e-9])
@pytest.mark.parametrize(
    "newick",
    [
        "((A:1e-10,B:1)AB:1,C:2);",  # the branch is next to nothing too: the parent has the row
        "((A:1e-10,B:1)AB:1e-9,C:2);",  # and the parent's: the root has it
        "(((A:1e-12,B:1)x:1e-10)y:0,C:2);",
        "((A:0,B:1)AB:1,C:2);",
        "(A:1e-13,B:1,C:2);",  # on a flat root there is no branch to solve it with
    ],
)
def test_short_branches_hand_the_rows_on(newick, error, root_cov):
    expect_right(on(newick, error, root_cov=root_cov), names="R" if ":0," in newick else "RW")


@pytest.mark.parametrize("root_cov", [None, np.eye(1)], ids=["flat", "known"])
@pytest.mark.parametrize("error", [1e-20, 1e-13, 1e-7])
def test_inner_nodes_may_be_observed_too(error, root_cov):
    expect_right(on("((A:1,B:1)AB:1,C:2)r;", error, y=[1.0, 2.0, 3.0, 4.0], root_cov=root_cov, inner=("AB",)))
    expect_right(on("((A:1,B:1)AB:1,C:2)r;", error, y=[1.0, 2.0, 4.0, 3.0], root_cov=root_cov, inner=("r",)))


def test_data_that_alone_tell_the_root_have_no_slope():
    """One tip: whatever the noise, it is the root's estimate, and the likelihood of nothing else."""
    tree = kf.Phylogeny.from_newick("(A:1,B:1);")
    for error in (1e-20, 1e-6, 1.0):
        score = tree.brownian(error=error).smooth([1.0, np.nan]).score
        np.testing.assert_allclose(score.R.flat, 0.0, rtol=0, atol=1e-15)
        assert abs(score.W[0].item()) < 1e-15


@pytest.mark.parametrize("root_cov", [None, np.eye(1)], ids=["flat", "known"])
@pytest.mark.parametrize("error", [0.0, 1e-20])
@pytest.mark.parametrize("y", [(1.0, 1.0 + 1e-6, 4.0), (1.0, 2.0, 4.0)], ids=["near", "far"])
def test_a_stem_between_what_is_known_to_1e12_and_what_is_not(y, error, root_cov):
    """Two tips and their parent within 1e-12 of the root: the stem's slope is a difference of numbers of 1e12."""
    expect_right(on("((A:1e-12,B:1e-12)AB:1e-12,C:2);", error, y=y, root_cov=root_cov), names="RW")


def scattered(seed):
    """A random tree with noises of 1e-20 among branches of 1e-14, and data drawn from it."""
    rng = np.random.default_rng(seed)
    N = int(rng.integers(3, 8))
    parent = [*(int(rng.integers(k + 1, N)) for k in range(N - 1)), -1]
    W = rng.choice([1.0, 1e-14, 1e-14, 0.5, 1e-7], size=N)
    seen = [k not in parent or rng.random() < 0.2 for k in range(N)]
    R = rng.choice([1e-20, 1e-20, 1.0, 1e-10], size=N)
    x = rng.normal(size=N)
    for k in range(N - 2, -1, -1):
        x[k] = x[parent[k]] + np.sqrt(W[k]) * x[k]
    y = (x + np.sqrt(R) * rng.normal(size=N))[seen]
    root_cov = None if seed % 2 else np.eye(1)
    blocks = [np.eye(1)[: int(s)] for s in seen]
    noises = [r * b[:, : len(b)] for r, b in zip(R, blocks)]
    return Outward(
        parent, [np.eye(1)] * N, [w * np.eye(1) for w in W], blocks, noises, np.zeros(N), np.zeros(1), root_cov, y
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(24))
def test_noises_of_1e_20_among_branches_of_1e_14(seed):
    """Entries beside the terms that they are differences of: ½(ρρ* − N) may be small where neither is.

    Innovations, forces and N were differences of numbers up to 1e14 times as large; some entries had no right digit.
    """
    case = scattered(seed)
    post = case.model().smooth(case.y)
    for name in "RW":
        for k, got in enumerate(getattr(post.score, name)):
            if got.size and not (name == "W" and case.parent[k] < 0):
                want = derivative(case, name, k, 0, 0)
                term = 0.5 * post.score.mean[k] ** 2 if name == "W" else 0.0
                assert abs(got.item() - want) <= 1e-7 * max(1.0, abs(want), term), (name, k)
