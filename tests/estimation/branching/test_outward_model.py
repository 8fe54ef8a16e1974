"""Posterior and likelihood of outward trees against the dense normal in 120 digits, and what is refused."""

import copy
import pickle

import mpmath as mp
import numpy as np
import pytest
from outward_cases import Outward, dense, random_outward
from random_models import random_matrix

import kfdyn as kf
from kfdyn.errors import ModelError, ShapeError, SingularError

one, none = np.eye(1), np.zeros((0, 1))


def solved(case):
    """The posterior of a case and the dense one; None where the data are singular, which the dense one must say too."""
    try:
        post = case.model().smooth(case.y)
    except SingularError:
        assert singular(case)
        return None
    return post, dense(case)


def singular(case):
    """Whether the data have no density, or leave a flat root open, by the dense normal."""
    try:
        known = dense(case)
    except (ValueError, ZeroDivisionError):
        return True
    return known.condition > 1e12 or np.abs(known.cov).max() > 1e20


def agrees(post, known, case):
    # the amplification of rounding by the data's own covariance
    bound = 1e-12 * max(10.0, known.condition) * max(1.0, np.abs(known.mean).max())
    assert bound < 1e-6
    np.testing.assert_allclose(post.mean.flat, known.mean, rtol=0, atol=bound)
    at = np.concatenate([[0], np.cumsum(case.model().n)])
    for k in range(len(case.parent)):
        own = slice(at[k], at[k + 1])
        np.testing.assert_allclose(
            post.cov[k], known.cov[own, own], rtol=0, atol=bound * max(1, np.abs(known.cov).max())
        )
    assert abs(post.llf - float(known.llf)) <= bound * max(1.0, abs(post.llf))


@pytest.mark.parametrize("flat", [False, True])
def test_posterior_is_that_of_the_dense_normal_with_exact_singular_and_missing_data(flat):
    done = 0
    for seed in range(40):
        case = random_outward(seed, flat)
        found = solved(case)
        if found is not None and found[1].condition < 1e4:
            agrees(*found, case)
            done += 1
    assert done > 12


@pytest.mark.parametrize("flat", [False, True])
def test_regular_trees_agree_to_ten_digits(flat):
    done = 0
    for seed in range(30):
        case = random_outward(seed, flat, ("full",), ("full",))
        found = solved(case)
        if found is None:
            continue
        post, known = found
        scale = max(1.0, np.abs(known.mean).max(), np.abs(known.cov).max())
        if scale < 1e3:
            np.testing.assert_allclose(post.mean.flat, known.mean, rtol=0, atol=1e-10 * scale)
            np.testing.assert_allclose(post.cov.diagonals(), np.diag(known.cov), rtol=0, atol=1e-10 * scale)
            assert abs(post.llf - float(known.llf)) <= 1e-10 * max(1.0, abs(post.llf))
            done += 1
    assert done > 15


def test_inner_branches_without_length_hand_exact_data_to_the_ancestors():
    """Tip 0 hangs on 2, 2 on 3, both without length: what is read at 0 is known at 2 and at 3."""
    W = [0 * one, one, 0 * one, one, one]
    tree = kf.OutwardTree([2, 3, 3, 4, -1], [one] * 5, W, [one, one, none, none, none], root_cov=one)
    post = tree.smooth([1.5, 4.0])
    for k in (0, 2, 3):
        assert post.mean[k] == 1.5 and post.cov[k] == 0.0
    V = np.array([[2.0, 2.0], [2.0, 3.0]])
    y = np.array([1.5, 4.0])
    assert np.isclose(post.llf, -0.5 * (y @ np.linalg.solve(V, y) + np.log(np.linalg.det(2 * np.pi * V))), rtol=1e-13)
    assert np.isclose(post.mean[4].item(), 0.75, rtol=1e-13)


def test_almost_exact_tips_lose_no_digits():
    """The information 1e14 on a tip must not drown what the branch adds."""
    rng = np.random.default_rng(3)
    parent, y = [4, 4, 5, 5, 6, 6, -1], rng.normal(size=4) + 1e3
    C = [one] * 4 + [none] * 3
    W = [w * one for w in rng.uniform(0.5, 2.0, 7)]
    exact = kf.OutwardTree(parent, [one] * 7, W, C).smooth(y)
    near = kf.OutwardTree(parent, [one] * 7, W, C, [1e-14 * np.eye(len(c)) for c in C]).smooth(y)
    np.testing.assert_allclose(near.mean.flat, exact.mean.flat, rtol=1e-12)
    np.testing.assert_allclose(near.cov.flat[4:], exact.cov.flat[4:], rtol=1e-12)
    assert np.isclose(near.llf, exact.llf, rtol=0, atol=1e-9)


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_units_of_the_states_do_not_matter(unit):
    rng = np.random.default_rng(8)
    B = rng.normal(size=(3, 2, 2))
    A, W = [random_matrix(rng, 2, 2) for _ in range(3)], [b @ b.T for b in B]
    C, y = [np.eye(2), np.eye(2), np.zeros((0, 2))], rng.normal(size=4)
    plain = kf.OutwardTree([2, 2, -1], A, W, C).smooth(y)
    s = np.diag([unit, 1.0 / unit])
    i = np.linalg.inv(s)
    other = kf.OutwardTree([2, 2, -1], [s @ a @ i for a in A], [s @ w @ s for w in W], [c @ i for c in C]).smooth(y)
    np.testing.assert_allclose(i @ other.mean[2], plain.mean[2], rtol=1e-10)
    np.testing.assert_allclose(i @ other.cov[2] @ i, plain.cov[2], rtol=1e-10, atol=1e-12)
    # the flat root is flat in other units: log det of the change
    assert np.isclose(other.llf - np.log(np.linalg.det(s)), plain.llf, rtol=1e-10)


def test_a_batch_is_one_tree_after_the_other():
    case = random_outward(5, False, ("full", "singular"))
    y = np.stack([case.y, 2 * case.y, case.y - 1]).reshape(3, 1, -1)
    post, model = case.model().smooth(y), case.model()
    assert post.llf.shape == (3, 1) and post.mean[0].shape == (3, 1, model.n[0])
    for i in range(3):
        alone = model.smooth(y[i, 0])
        np.testing.assert_allclose(post.mean.flat[i, 0], alone.mean.flat, rtol=1e-12, atol=1e-12)
        assert np.isclose(post.llf[i, 0], alone.llf, rtol=1e-12)
        np.testing.assert_allclose(post.score.W.flat[i, 0], alone.score.W.flat, rtol=1e-10, atol=1e-10)


def test_no_data_at_all_gives_the_prior():
    tree = kf.OutwardTree([1, -1], [2 * one] * 2, [one] * 2, [one, none], root_mean=[3.0], root_cov=one)
    post = tree.smooth([np.nan])
    assert post.llf == 0.0 and post.mean[0] == 6.0 and post.cov[0] == 5.0


def test_an_unresolved_direction_of_a_flat_root_is_named():
    C = [np.array([[1.0, 1.0]]), np.array([[2.0, 2.0]]), np.zeros((0, 2))]
    tree = kf.OutwardTree([2, 2, -1], [np.eye(2)] * 3, [np.eye(2)] * 3, C, [one, one, np.zeros((0, 0))])
    with pytest.raises(SingularError, match=r"node 2: .*direction \[1, -1\]") as error:
        tree.smooth([1.0, 2.0])
    assert error.value.node == 2


def test_exact_data_that_say_a_thing_twice_are_refused():
    tree = kf.OutwardTree([2, 2, -1], [one] * 3, [0 * one] * 3, [one, one, none])
    with pytest.raises(SingularError, match="say the same thing twice"):
        tree.smooth([1.0, 1.0])


def test_bad_input_is_named():
    good = {"parent": [1, -1], "A": [one] * 2, "W": [one] * 2, "C": [one, none]}
    with pytest.raises(ShapeError, match="A of node 0 has shape"):
        kf.OutwardTree(**{**good, "A": [np.ones((2, 1)), None]})
    with pytest.raises(ModelError, match="W of node 0 is not positive semi-definite"):
        kf.OutwardTree(**{**good, "W": [-one, None]})
    with pytest.raises(ShapeError, match="root_cov must have shape"):
        kf.OutwardTree(**good, root_cov=np.eye(2))
    with pytest.raises(ShapeError, match="root_mean must be 1 finite"):
        kf.OutwardTree(**good, root_mean=[1.0, 2.0])
    with pytest.raises(ShapeError, match="mean must stack the 2 states"):
        kf.OutwardTree(**good, mean=[1.0])
    tree = kf.OutwardTree(**good)
    with pytest.raises(ShapeError, match="must stack the 1 observations"):
        tree.smooth([1.0, 2.0])
    with pytest.raises(ModelError, match="infinite"):
        tree.smooth([np.inf])
    with pytest.raises(ModelError, match="row of C is zero"):
        kf.OutwardTree(**{**good, "C": [0 * one, none]}).smooth([1.0])
    with pytest.raises(ModelError, match="covariances were switched off"):
        _ = tree.smooth([1.0], covariances=False).cov
    with pytest.raises(ModelError, match="needs the covariances"):
        _ = tree.smooth([1.0], covariances=False).score
    with pytest.raises(AttributeError, match="immutable"):
        tree.A = None


def test_the_contract_of_the_dense_normal():
    """Five species, written out."""
    up, seen = [2, 2, 4, 4, -1], [one, one, none, one, none]
    y, V = np.array([1.0, 2.0, -1.0]), np.array([[3.0, 2, 1], [2, 3, 1], [1, 1, 2]])
    post = kf.OutwardTree(up, [one] * 5, [one] * 5, seen, root_mean=[0.0], root_cov=one).smooth(y)
    want = -0.5 * (y @ np.linalg.solve(V, y) + np.linalg.slogdet(V)[1] + 3 * np.log(2 * np.pi))
    assert np.isclose(post.llf, want, rtol=1e-14)
    with mp.workdps(30):
        assert post.mean[2].shape == (1,) and post.cov[4].shape == (1, 1)


def test_no_series_is_a_batch_too():
    """An empty batch has the shapes of a full one, with exact tips and with noisy ones."""
    one, none = np.eye(1), np.zeros((0, 1))
    for R in (None, [one, one, np.zeros((0, 0))]):
        tree = kf.OutwardTree([2, 2, -1], [one] * 3, [one] * 3, [one, one, none], R)
        post, full = tree.smooth(np.zeros((0, 2))), tree.smooth(np.zeros((1, 2)))
        assert post.llf.shape == (0,)
        assert post.mean.flat.shape == (0, 3)
        assert np.array_equal(post.cov.flat, full.cov.flat)
        assert post.score.W.flat.shape == (0, *full.score.W.flat.shape[1:])


@pytest.mark.parametrize("unit", [1e2, 1e4, 1e8, 1e60])
@pytest.mark.parametrize(
    "error",
    [np.diag([0.5, 0.7, 0.2]), np.diag([0.5, 0.7, 0.0]), np.outer([1.0, 2.0, 0.5], [1.0, 2.0, 0.5])],
    ids=["noisy", "one exact", "one noise for all"],
)
def test_noises_of_traits_are_compared_in_the_traits_own_units(error, unit):
    """Grams beside kilometres: a noise of 1e-16 may be a large one. The dense normal in 120 digits, in other units."""
    tree = kf.Phylogeny.from_newick("((A:1,B:1)AB:1,C:2,D:0.5);")
    rng = np.random.default_rng(0)
    d = np.array([1.0 / unit, unit, 1.0])
    both = np.outer(d, d)
    rate, y = np.array([[1.0, 0.3, 0.1], [0.3, 2.0, 0.2], [0.1, 0.2, 0.5]]), rng.normal(size=(4, 3))
    mean, cov = rng.normal(size=3), np.diag([3.0, 2.0, 4.0])
    post = tree.brownian(both * rate, error=both * error, root_mean=d * mean, root_cov=both * cov).smooth(
        (d * y).ravel()
    )
    plain = tree.brownian(rate, error=error, root_mean=mean, root_cov=cov)
    known = dense(
        Outward(
            tree.parent.tolist(), list(plain.A), list(plain.W), list(plain.C), list(plain.R), plain.mean, mean, cov,
            y.ravel(),
        )
    )  # fmt: skip
    np.testing.assert_allclose(post.mean.flat.reshape(-1, 3) / d, known.mean.reshape(-1, 3), rtol=1e-11, atol=1e-12)
    for k in range(len(plain)):
        own = slice(3 * k, 3 * k + 3)
        np.testing.assert_allclose(post.cov[k] / both, known.cov[own, own], rtol=0, atol=1e-12)
    assert np.isclose(post.llf, float(known.llf), rtol=1e-12)  # the units' determinant is 1


def test_many_tips_with_one_exact_trait_are_solved_together():
    """One group for all of them: a tip takes microseconds, as if every trait were noisy."""
    from kfdyn.estimation.branching.rows import split_rows

    tree = kf.Phylogeny.from_newick("(" + ",".join(f"t{i}:1" for i in range(50)) + ");")
    model = tree.brownian(np.eye(2), error=[0.1, 0.0])
    noisy, exact, _ = split_rows(model.tree, model.C, model.R, np.ones((1, 100)))
    assert [rows.at.size for rows in noisy] == [50] and [rows.at.size for rows in exact] == [50]


@pytest.mark.parametrize("flat", [False, True])
def test_a_batch_whose_entries_lack_different_observations(flat):
    """Each entry beside the dense normal of what it has; the score beside the entry alone."""
    case = random_outward(21, flat, ("full",), ("full", "zero"))
    rng = np.random.default_rng(2)
    y = rng.normal(size=(2, 3, case.y.size))
    y[0, 1, 0] = y[1, 2, 0] = y[1, 0, -1] = np.nan
    model = case.model()
    post = model.smooth(y)
    assert [entries.tolist() for entries, _ in post.groups] == [[0, 2, 4], [1, 5], [3]]
    assert post.llf.shape == post.quadratic.shape == (2, 3) and post.cov[0].shape == (2, 3, model.n[0], model.n[0])
    at = np.concatenate([[0], np.cumsum(model.n)])
    for i in np.ndindex(2, 3):
        known, alone = dense(case._replace(y=y[i])), model.smooth(y[i])
        assert np.isclose(post.llf[i], float(known.llf), rtol=1e-10) and np.isclose(post.quadratic[i], alone.quadratic)
        np.testing.assert_allclose(post.mean.flat[i], known.mean, rtol=0, atol=1e-9)
        for k in range(len(model)):
            own = slice(at[k], at[k + 1])
            np.testing.assert_allclose(post.cov[k][i], known.cov[own, own], rtol=0, atol=1e-9)
            np.testing.assert_allclose(post.std[k][i], alone.std[k], rtol=1e-10)
        for name in ("A", "W", "C", "R"):
            got, want = (getattr(p.score, name).flat for p in (post, alone))
            np.testing.assert_allclose(got[i], want, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(post.score.mean[i], alone.score.mean, rtol=1e-10, atol=1e-10)


def test_an_entry_that_leaves_a_flat_root_open_is_named():
    tree = kf.OutwardTree([2, 2, -1], [one] * 3, [one] * 3, [one, one, none])
    with pytest.raises(SingularError, match=r"batch entry \[1\]: node 2: its prior is flat"):
        tree.smooth([[1.0, 2.0], [np.nan, np.nan]])


@pytest.mark.parametrize("again", [lambda x: pickle.loads(pickle.dumps(x)), copy.copy, copy.deepcopy])
@pytest.mark.parametrize("known", [False, True])
def test_a_model_can_be_copied_and_sent_to_another_process(again, known):
    rng = np.random.default_rng(3)
    one, none = np.eye(2), np.zeros((0, 2))
    W = [a @ a.T for a in rng.normal(size=(4, 2, 2))]
    root = {"root_mean": [1.0, 2.0], "root_cov": W[0]} if known else {}
    R = [np.eye(2), 2 * np.eye(2), np.zeros((0, 0)), np.eye(2)]
    model = kf.OutwardTree([2, 2, 3, -1], rng.normal(size=(4, 2, 2)), W, [one, one, none, one], R, **root, names="abcd")
    other = again(model)
    assert other.tree.names == model.tree.names and other.B.flat.tobytes() == model.B.flat.tobytes()
    y = rng.normal(size=(3, 6))
    mine, theirs = model.smooth(y), other.smooth(y)
    assert np.array_equal(mine.llf, theirs.llf)
    assert all(np.array_equal(mine.mean[k], theirs.mean[k]) for k in range(4))
    assert all(np.array_equal(mine.cov[k], theirs.cov[k]) for k in range(4))
    with pytest.raises(AttributeError, match="immutable"):
        other.mean = y
    with pytest.raises(ValueError, match="read-only"):
        other.mean[0] = 1.0
