"""Traits mixed by A, C or W whose variances differ by up to 1e16, beside a dense normal in 250 digits.

The gradient is that of the normal density, ∂ℓ/∂V = ½(vv* − V⁻¹) with v = V⁻¹(y − mean), led back to every block: no
sweep, no square root, no differences.
"""

import warnings
from pathlib import Path

import mpmath as mp
import numpy as np
import pytest
from mixed_cases import errors, exact_answer, mixed

import kfdyn as kf
from kfdyn.errors import LostDigitsWarning

TOLERABLE = 1e-5


def answer(case):
    """The posterior with its score, and what was said of lost digits."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        post = case.model().smooth(case.y)
        _ = post.score
    assert all(issubclass(w.category, LostDigitsWarning) for w in told)
    return post, [str(w.message) for w in told]


@pytest.mark.parametrize("first", range(0, 96, 12))
def test_every_answer_is_right(first):
    """Variances from 1e-14 to 3 and noises from 1e-16 on, in random directions: eight of 96 were wrong in silence."""
    for seed in range(first, first + 12):
        case = mixed(seed, -14, -16)
        try:
            post, told = answer(case)
        except kf.errors.SingularError:  # data that leave a flat root open
            assert max(mp.mpf(x) for x in np.diag(exact_answer(case).cov[-1])) > 1e40
            continue
        found = errors(case, post)
        assert max(found.values()) <= 1e-6, (seed, found)
        assert not told, (seed, told)


@pytest.mark.parametrize("seed", [25, 67, 147, 155, 165, 199])
def test_scores_that_were_wrong_by_up_to_1e13(seed):
    case = mixed(seed, -14, -16)
    post, told = answer(case)
    found = errors(case, post)
    assert max(found.values()) <= 1e-6, found
    assert not told


@pytest.mark.parametrize("seed", [21, 77, 79, 109, 121, 127, 133, 135, 140, 336])
def test_likelihoods_and_covariances_that_were_wrong_by_up_to_1e_3(seed):
    case = mixed(seed, -14, -16)
    post, _ = answer(case)
    found = errors(case, post)
    assert max(found.values()) <= 1e-6, found


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 400, 50))
def test_what_is_lost_beyond_that_is_said(first):
    """Variances down to 1e-20 and noises to 1e-24: of 338 trees 15 have fewer than five digits, and are told of, unless
    four and a half are left."""
    for seed in range(first, first + 50):
        try:
            case = mixed(seed, -20, -24)
            post, told = answer(case)
        except (np.linalg.LinAlgError, kf.errors.SingularError):
            continue
        found = errors(case, post)
        assert told or max(found.values()) <= 3.0 * TOLERABLE, (seed, found)


@pytest.mark.parametrize(
    ("branches", "noises", "seed"),
    [(-20, -24, 114), (-10, -20, 98), (-20, -24, 574), (-20, -24, 982), (-20, -24, 1102), (-20, -24, 1290)],
)
def test_states_read_with_next_to_no_noise_keep_their_covariances(branches, noises, seed):
    """Of 1 − ΓC rounding is all that is left where R is 1e-20 of W: covariances were off by up to 6e-4, in silence."""
    case = mixed(seed, branches, noises)
    post, told = answer(case)
    assert max(errors(case, post).values()) <= 1e-8
    assert not told


@pytest.mark.parametrize(
    ("branches", "noises", "seed"), [(-20, -16, 5), (-20, -24, 147), (-20, -24, 1137), (-20, -24, 1407)]
)
def test_noises_that_are_all_but_singular_keep_their_digits(branches, noises, seed):
    """R with an eigenvalue of 1e-13 of the others was taken to be exact: scores and covariances were off by up to 1."""
    case = mixed(seed, branches, noises)
    assert max(errors(case, answer(case)[0]).values()) <= 1e-6


@pytest.mark.parametrize("seed", [575, 1058, 1274, 1434])
def test_covariances_that_may_be_singular_are_told_of(seed):
    """A W or R with an eigenvalue of 1e-14 of the others is taken to be singular; as given it is not: that matters."""
    case = mixed(seed, -20, -24)
    post, told = answer(case)
    assert max(errors(case, post).values()) > TOLERABLE
    assert any("all but singular" in said for said in told)


@pytest.mark.parametrize("seed", [51, 165, 223, 235, 398])
def test_lost_digits_are_said_and_where(seed):
    case = mixed(seed, -20, -24)
    with pytest.warns(LostDigitsWarning, match=r"loses about \d+ of its 16 digits at node \d") as told:
        _ = case.model().smooth(case.y).score
    assert all(w.filename == __file__ for w in told)
    assert max(errors(case, answer(case)[0]).values()) > TOLERABLE


@pytest.mark.parametrize("file", ["{}_study.py", "{}-study/study.py", "my_functools/study.py"])
def test_a_script_is_told_whatever_the_name_of_its_file(file):
    """It may begin with the path of the package: who calls is told by the names of modules."""
    case = mixed(51, -20, -24)
    script = compile("case.model().smooth(case.y).score", file.format(Path(kf.__file__).parent), "exec")
    with pytest.warns(LostDigitsWarning) as told:
        exec(script, {"__name__": "__main__", "case": case})
    assert {w.filename for w in told} == {script.co_filename}
    with warnings.catch_warnings():  # the package itself
        warnings.simplefilter("error")
        exec(script, {"__name__": "kfdyn.estimation.fitting.fit", "case": case})


def test_a_fit_does_not_ask_twice_and_is_not_told(monkeypatch):
    from kfdyn.estimation.branching import rounding_estimate

    case = mixed(51, -20, -24)

    def build(theta):
        return case._replace(W=[np.exp(theta[0]) * w for w in case.W]).model()

    def never(post):
        raise AssertionError("the package asked for a second opinion")

    monkeypatch.setattr(rounding_estimate, "_in_other_units", never)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isfinite(kf.fit(build, [0.0], case.y).llf)


@pytest.mark.parametrize("seed", range(40))
def test_a_tree_in_other_units_is_the_same_tree(seed):
    """The other tree's posterior, led back, is the dense normal's; else warnings would be false ones."""
    from outward_cases import random_outward

    from kfdyn.estimation.branching.rounding_estimate import _in_other_units, _posterior_differences, _score_differences

    case = random_outward(seed, seed % 2 == 0)
    try:
        post = case.model().smooth(case.y)
        score = post.score
        other = _in_other_units(post)
        found = [*_posterior_differences(post, other), *_score_differences(post, score, other)]
    except (kf.errors.SingularError, kf.errors.ModelError):
        return
    assert max(d.error for d in found) < 1e-6, found


@pytest.mark.parametrize("seed", [35, 47, 83])
@pytest.mark.parametrize("name", ["W", "R"])
def test_errors_of_a_score_are_told_beside_its_terms(seed, name):
    """½(ρρ* − N) may be a hundredth of its terms, and be no less right for that; a false warning hung on the processor.

    A score that is wrong by 1e-4 of the terms of every entry has an error of 1e-4, not one of a hundred times as much.
    """
    from kfdyn.estimation.branching.rounding_estimate import _in_other_units, _score_differences

    case = mixed(seed, -14, -16)
    post = case.model().smooth(case.y)
    terms = np.concatenate([size.ravel() for size in exact_answer(case).sizes[name]])
    blocks = getattr(post.score, name)
    wrong = post.score._replace(**{name: blocks.like(blocks.flat + 1e-4 * terms)})
    found = {d.what: d.error for d in _score_differences(post, wrong, _in_other_units(post))}
    assert 0.3e-4 < found.pop(f"score.{name}") < 1.5e-4
    assert max(found.values()) < 1e-6


def test_ordinary_models_get_no_warning():
    """Brownian traits with correlations and units of their own, exact tips and noises of 1e-10 of the rate."""
    rng = np.random.default_rng(5)
    tree = kf.Phylogeny.from_newick("(((A:1,B:0.5)x:2,(C:0.1,D:3)y:1)z:0.3,(E:1,F:1e-3)w:2);")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for trial in range(60):
            L = rng.normal(size=(3, 3)) * 10.0 ** rng.uniform(-6, 6, size=3)[:, None]
            rate, part = L @ L.T, (0.0, 1e-10, 1e-6, 0.1)[trial % 4]
            y = tree.traits({tip: L @ rng.normal(size=3) for tip in "ABCDEF"})
            _ = tree.brownian(rate, error=part * np.diag(rate)).smooth(y).score


def test_batches_are_solved_together():
    case = mixed(155, -14, -16)
    rows = np.stack([case.y, 2.0 * case.y])
    post, one = case.model().smooth(rows), case.model().smooth(2.0 * case.y)
    np.testing.assert_allclose(post.llf[1], one.llf, rtol=1e-12)
    np.testing.assert_allclose(post.score.R.flat[1], one.score.R.flat, rtol=1e-6)
    np.testing.assert_allclose(post.mean.flat[1], one.mean.flat, rtol=1e-12)


def test_no_covariances_no_score():
    case = mixed(155, -14, -16)
    post = case.model().smooth(case.y, covariances=False)
    assert abs(post.llf - float(exact_answer(case).llf)) < 1e-6 * abs(post.llf)
    with pytest.raises(kf.errors.ModelError, match="switched off"):
        _ = post.cov


@pytest.mark.parametrize("batch", [(0,), (3, 0)])
def test_no_series_is_a_batch_too(batch):
    case = mixed(155, -14, -16)
    post = case.model().smooth(np.zeros((*batch, case.y.size)))
    assert post.llf.shape == batch and post.score.W.flat.shape[:-1] == batch
