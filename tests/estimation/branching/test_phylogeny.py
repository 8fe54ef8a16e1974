"""Phylogenies: the ready-made models against the covariances of the tips written out."""

import numpy as np
import pytest
from scipy.integrate import quad_vec
from scipy.linalg import expm

import kfdyn as kf
from kfdyn.errors import ModelError, ShapeError, SingularError, TreeError
from kfdyn.estimation.branching.transitions import pulled


def random_phylogeny(rng, tips):
    """A random binary tree with names, exponential lengths."""
    parent = np.full(2 * tips - 1, -1)
    alive = list(range(tips))
    for k in range(tips, 2 * tips - 1):
        for _ in range(2):
            parent[alive.pop(rng.integers(len(alive)))] = k
        alive.append(k)
    names = tuple(f"t{k}" for k in range(2 * tips - 1))
    return kf.Phylogeny(parent, rng.exponential(size=2 * tips - 1), names)


def shared(tree):
    """Time from the root that each two tips have in common, by walking up."""
    tips, heights = tree.tips, tree.heights
    out = np.zeros((tips.size, tips.size))
    for i, a in enumerate(tips):
        for j, b in enumerate(tips):
            out[i, j] = heights[tree.tree.nearest_common_ancestor(int(a), int(b))]
    return out


def normal_llf(y, mean, V):
    e = y - mean
    return -0.5 * (e @ np.linalg.solve(V, e) + np.linalg.slogdet(V)[1] + e.size * np.log(2 * np.pi))


def test_brownian_motion_of_one_trait():
    rng = np.random.default_rng(0)
    tree = random_phylogeny(rng, 30)
    y = rng.normal(size=30)
    model = tree.brownian(0.7, root_mean=0.3, root_cov=0.2)
    assert np.isclose(model.smooth(y).llf, normal_llf(y, 0.3, 0.7 * shared(tree) + 0.2), rtol=1e-11)
    noisy = tree.brownian(0.7, error=0.1, root_mean=0.3, root_cov=0.0).smooth(y)
    assert np.isclose(noisy.llf, normal_llf(y, 0.3, 0.7 * shared(tree) + 0.1 * np.eye(30)), rtol=1e-11)


def test_flat_root_is_the_mean_of_generalised_least_squares():
    rng = np.random.default_rng(1)
    tree = random_phylogeny(rng, 25)
    y, V, one = rng.normal(size=25) + 50.0, shared(tree), np.ones(25)
    post = tree.brownian().smooth(y)
    root = tree.tree.roots[0]
    information = one @ np.linalg.solve(V, one)
    assert np.isclose(post.mean[root].item(), one @ np.linalg.solve(V, y) / information, rtol=1e-12)
    assert np.isclose(post.cov[root].item(), 1.0 / information, rtol=1e-12)
    e = y - post.mean[root]
    want = -0.5 * (e @ np.linalg.solve(V, e) + np.linalg.slogdet(V)[1] + np.log(information) + 25 * np.log(2 * np.pi))
    assert np.isclose(post.llf, want, rtol=1e-11)


def test_several_traits_some_of_them_missing():
    rng = np.random.default_rng(2)
    tree = random_phylogeny(rng, 12)
    B = rng.normal(size=(3, 3))
    rate, table = B @ B.T, rng.normal(size=(12, 3))
    table[rng.random(table.shape) < 0.3] = np.nan
    y = tree.traits({tree.names[k]: table[i] for i, k in enumerate(tree.tips)})
    post = tree.brownian(rate, root_cov=np.eye(3)).smooth(y)
    V = np.kron(shared(tree), rate) + np.kron(np.ones((12, 12)), np.eye(3))
    seen = ~np.isnan(y)
    assert np.isclose(post.llf, normal_llf(y[seen], 0.0, V[np.ix_(seen, seen)]), rtol=1e-10)
    imputed = V[np.ix_(~seen, seen)] @ np.linalg.solve(V[np.ix_(seen, seen)], y[seen])
    got = np.concatenate([post.mean[k] for k in tree.tips])
    np.testing.assert_allclose(got[~seen], imputed, rtol=0, atol=1e-10)
    np.testing.assert_allclose(got[seen], y[seen], rtol=0, atol=1e-12)


@pytest.mark.parametrize("lam", [0.0, 0.35, 1.0])
def test_pagels_lambda_shrinks_what_tips_share(lam):
    rng = np.random.default_rng(3)
    tree = random_phylogeny(rng, 15)
    y, V = rng.normal(size=15), shared(tree)
    shrunk = lam * V + (1 - lam) * np.diag(np.diag(V))
    post = tree.pagel(lam, 1.3, root_mean=0.0, root_cov=0.0).smooth(y)
    assert np.isclose(post.llf, normal_llf(y, 0.0, 1.3 * shrunk), rtol=1e-10)


def test_lambda_out_of_range_is_refused():
    tree = kf.Phylogeny.from_newick("((A:1,B:1):1,C:2);")
    assert tree.largest_lambda() == 2.0
    with pytest.raises(ModelError, match="between 0 and 2"):
        tree.pagel(2.1)
    with pytest.raises(ModelError, match="negative length; choose it between 0 and 2"):
        tree.pagel(-0.1)


def test_ornstein_uhlenbeck_has_martins_and_hansens_covariance():
    rng = np.random.default_rng(4)
    tree = random_phylogeny(rng, 20)
    y, V, a = rng.normal(size=20), shared(tree), 0.8
    apart = np.diag(V)[:, None] + np.diag(V)[None, :] - 2 * V
    want = np.exp(-a * apart) * (1 - np.exp(-2 * a * V)) / (2 * a)
    post = tree.ornstein_uhlenbeck(1.5, a, 2.0, root_mean=2.0, root_cov=0.0).smooth(y)
    assert np.isclose(post.llf, normal_llf(y, 2.0, 1.5 * want), rtol=1e-11)
    slow = tree.ornstein_uhlenbeck(1.5, 0.0, 2.0, root_mean=2.0, root_cov=0.0).smooth(y)
    assert np.isclose(slow.llf, tree.brownian(1.5, root_mean=2.0, root_cov=0.0).smooth(y).llf, rtol=1e-13)


def test_transitions_of_a_matrix_pull_are_the_integral():
    rng = np.random.default_rng(5)
    pull = np.array([[0.9, 0.4], [-0.2, 0.3]])
    B = rng.normal(size=(2, 2))
    rate, times = B @ B.T, np.array([0.0, 1e-7, 0.4, 30.0])
    A, W = pulled(times, rate, pull)
    for t, a, w in zip(times, A, W):
        np.testing.assert_allclose(a, expm(-pull * t), rtol=1e-12, atol=1e-13)
        want = quad_vec(lambda s: expm(-pull * s) @ rate @ expm(-pull * s).T, 0.0, t, epsabs=1e-13, epsrel=1e-13)[0]
        np.testing.assert_allclose(w, want, rtol=1e-11, atol=1e-18)
    diagonal = pulled(times, rate, np.array([0.5, 0.0]))
    matrix = pulled(times, rate, np.diag([0.5, 0.0]))
    np.testing.assert_allclose(diagonal[1], matrix[1], rtol=1e-12, atol=1e-18)


def test_one_optimum_for_each_branch():
    tree = kf.Phylogeny.from_newick("(A:1,B:1);")
    optimum = np.array([[1.0], [5.0], [0.0]])
    post = tree.ornstein_uhlenbeck(1.0, 0.5, optimum, root_mean=0.0, root_cov=0.0).smooth([np.nan, np.nan])
    np.testing.assert_allclose(
        [post.mean[0].item(), post.mean[1].item()], (1 - np.exp(-0.5)) * optimum[:2, 0], rtol=1e-12
    )


def test_a_hundred_thousand_tips():
    """Independent contrasts (Felsenstein 1985) give the likelihood of a binary tree by another road."""
    rng = np.random.default_rng(6)
    tips = 100_000
    parent, alive = np.full(2 * tips - 1, -1), np.arange(tips)
    picks, count = rng.random((tips - 1, 2)), tips
    children = np.empty((tips - 1, 2), dtype=int)
    for k in range(tips - 1):
        for side in range(2):
            i = int(picks[k, side] * count)
            children[k, side] = alive[i]
            alive[i] = alive[count - 1]
            count -= 1
        alive[count] = tips + k
        count += 1
    parent[children[:, 0]] = parent[children[:, 1]] = np.arange(tips, 2 * tips - 1)
    tree = kf.Phylogeny(parent, rng.exponential(size=2 * tips - 1), ("",) * (2 * tips - 1))
    y = rng.normal(size=tips)
    post = tree.brownian().smooth(y)
    value, length = np.concatenate([y, np.zeros(tips - 1)]), tree.length.copy()
    twice = 0.0
    for k, (a, b) in enumerate(children.tolist(), tips):
        v = length[a] + length[b]
        twice += (value[a] - value[b]) ** 2 / v + np.log(v)
        value[k] = (length[b] * value[a] + length[a] * value[b]) / v
        length[k] += length[a] * length[b] / v
    root = 2 * tips - 2
    assert np.isclose(post.mean[root].item(), value[root], rtol=1e-10)
    # the flat root: the contrasts' density, times that of the root's estimate without its variance
    assert np.isclose(post.llf, -0.5 * (twice + tips * np.log(2 * np.pi)), rtol=1e-12)
    assert np.isclose(post.cov[root].item(), length[root] - tree.length[root], rtol=1e-10)


def test_names_are_looked_up_and_checked():
    tree = kf.Phylogeny.from_newick("((A:1,B:1)AB:1,C:2);")
    assert tree.node("AB") == 2
    np.testing.assert_array_equal(tree.traits({"C": 3.0, "A": 1.0}), [1.0, np.nan, 3.0])
    with pytest.raises(TreeError, match="no node is called 'D'"):
        tree.node("D")
    with pytest.raises(TreeError, match="is no tip"):
        tree.traits({"AB": 1.0})
    with pytest.raises(ShapeError, match="has 2 traits where the others have 1"):
        tree.traits({"A": 1.0, "B": [1.0, 2.0]})
    with pytest.raises(TreeError, match="has no length"):
        kf.Phylogeny.from_newick("(A,B:1);")
    with pytest.raises(TreeError, match="length must hold 2"):
        kf.Phylogeny(np.array([1, -1]), np.array([-1.0, 0.0]), ("a", "b")).brownian()
    with pytest.raises(ShapeError, match="rate must be"):
        tree.brownian(np.ones((2, 3)))
    with pytest.raises(ShapeError, match="optimum must be"):
        tree.ornstein_uhlenbeck(optimum=[1.0, 2.0, 3.0, 4.0])
    with pytest.raises(ShapeError, match="pull must be"):
        tree.ornstein_uhlenbeck(pull=[1.0, 2.0])


def test_lists_are_taken_and_bad_input_is_named():
    lists = kf.Phylogeny([2, 2, -1], [1.0, 1.0, 0.0], ["a", "b", "r"])
    values = {"a": 1.0, "b": 3.0}
    assert lists.brownian().smooth(lists.traits(values)).mean[2] == 2.0
    assert lists.names == ("a", "b", "r")
    with pytest.raises(ModelError, match="between 0 and inf"):
        kf.Phylogeny.from_newick("A;").pagel(-1)
    with pytest.raises(TreeError, match="must be a str, not NoneType"):
        kf.Phylogeny.from_newick(None)


def test_only_names_that_are_asked_for_must_differ():
    """RAxML and IQ-TREE label inner nodes by their support, which repeats."""
    tree = kf.Phylogeny.from_newick("(((A:1,B:1)95:1,(C:1,D:1)95:1)C:1,95:3,(E:1,E:2)F:1);")
    np.testing.assert_array_equal(tree.traits({"A": 1.0, "B": 2.0, "D": 4.0})[:4], [1.0, 2.0, np.nan, 4.0])
    assert tree.node("B") == 1 and tree.node("F") == tree.names.index("F")
    with pytest.raises(TreeError, match="nodes 2, 5 and 7 are called '95'; rename"):
        tree.node("95")
    with pytest.raises(TreeError, match="nodes 8 and 9 are called 'E'"):
        tree.traits({"E": 1.0})
    # a trait is a tip's: inner nodes of the same name do not matter
    np.testing.assert_array_equal(tree.traits({"95": 5.0, "C": 3.0})[:5], [np.nan, np.nan, 3.0, np.nan, 5.0])
    with pytest.raises(TreeError, match="9 nodes are called 'x'"):
        kf.Phylogeny.from_newick("(" + ",".join(["x:1"] * 9) + ");").node("x")


def test_arguments_of_the_wrong_kind_get_words():
    tree = kf.Phylogeny.from_newick("((A:1,B:1)AB:1,C:2);")
    with pytest.raises(ShapeError, match=r"traits must map names of tips to numbers, as \{'A': 1.0\}; got list"):
        tree.traits([1.0, 2.0, 3.0])
    with pytest.raises(ShapeError, match=r"lam must be one number.* got shape \(1,\)"):
        tree.pagel([0.5])
    with pytest.raises(ShapeError, match="lam must be an array of real numbers"):
        tree.pagel("half")


@pytest.mark.parametrize("length", [np.nan, np.inf, -1.0])
def test_the_length_of_a_root_is_ignored_by_every_model(length):
    parent, names = np.array([2, 2, -1]), ("a", "b", "c")
    odd, plain = (kf.Phylogeny(parent, np.array([1.0, 2.0, root]), names) for root in (length, 0.0))
    for model in (
        lambda t: t.ornstein_uhlenbeck(1.0, 0.5, 2.0),
        lambda t: t.ornstein_uhlenbeck(np.eye(2), np.array([[0.5, 0.1], [0.0, 0.2]]), 2.0),
        lambda t: t.brownian(),
    ):
        y = np.arange(float(model(plain).n_outputs))
        assert model(odd).smooth(y).llf == model(plain).smooth(y).llf
    with pytest.raises(TreeError, match="a root's is ignored"):
        kf.Phylogeny(parent, np.array([1.0, np.nan, 0.0]), names).ornstein_uhlenbeck()


def test_words_name_what_was_given():
    tree = kf.Phylogeny.from_newick("((A:1,B:1):1,C:2);")
    with pytest.raises(TreeError, match=r"the tips are A, B, C$"):
        tree.traits({"D": 1.0})
    for rate in (-1.0, np.nan, np.inf, [1.0, -2.0]):
        with pytest.raises(ModelError, match="rate must be a variance"):
            tree.brownian(rate)
    with pytest.raises(ModelError, match="error must be a variance"):
        tree.brownian(1.0, error=-0.1)
    with pytest.raises(SingularError, match=r"^node 4: its prior is flat"):  # a root without a name
        tree.brownian(1.0).smooth(tree.traits({}))


def test_ornstein_uhlenbecks_root_is_stationary():
    """Under a flat root the likelihood grew with the pull for ever."""
    rng = np.random.default_rng(7)
    tree = random_phylogeny(rng, 12)
    y, V = rng.normal(size=12), shared(tree)
    apart = np.diag(V)[:, None] + np.diag(V)[None, :] - 2 * V
    for a in (0.1, 1.0, 30.0, 1e3, 1e6):
        found = tree.ornstein_uhlenbeck(1.5, a, 2.0).smooth(y).llf
        assert found == pytest.approx(normal_llf(y, 2.0, 1.5 / (2 * a) * np.exp(-a * apart)), rel=1e-11)
    fit = kf.fit(
        lambda t: tree.ornstein_uhlenbeck(t[0], t[1], t[2]), [1.0, 1.0, 0.0], y, bounds=[(0, None), (0, None), None]
    )
    assert np.isfinite(fit.llf) and fit.llf < normal_llf(y, y.mean(), y.var() * np.eye(12)) + 3.0
    pull, B = np.array([[0.9, 0.4], [-0.2, 0.3]]), rng.normal(size=(2, 2))
    model = tree.ornstein_uhlenbeck(B @ B.T, pull, [1.0, 2.0])
    np.testing.assert_allclose(pull @ model.root_cov + model.root_cov @ pull.T, B @ B.T, rtol=1e-12)
    np.testing.assert_allclose(model.mean[-2:], [1.0, 2.0])
    for wrong in (0.0, -1.0, [1.0, 0.0]):
        with pytest.raises(ModelError, match=r"no stationary state.* root_cov=None for a flat root"):
            tree.ornstein_uhlenbeck(np.eye(2), wrong)
    assert tree.ornstein_uhlenbeck(1.0, 0.0, root_cov=None).root_cov is None


@pytest.mark.parametrize("lam", [1.0, 0.4])
def test_a_flat_root_is_restricted_maximum_likelihood(lam):
    """REML is the likelihood of contrasts: orthonormal differences of the tips, which hold no root."""
    rng = np.random.default_rng(8)
    tree = random_phylogeny(rng, 15)
    y, V = rng.normal(size=15), shared(tree)
    V = lam * V + (1 - lam) * np.diag(np.diag(V))
    K = np.linalg.svd(np.ones((1, 15)))[2][1:]
    for rate in (0.5, 1.0, 4.0):
        reml = normal_llf(K @ y, 0.0, rate * K @ V @ K.T)
        constant = -0.5 * np.log(2 * np.pi) - 0.5 * np.log(15.0)
        assert tree.pagel(lam, rate).smooth(y).llf == pytest.approx(reml + constant, rel=1e-12)
