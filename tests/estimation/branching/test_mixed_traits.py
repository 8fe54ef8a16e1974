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
from kfdyn.errors import LostDigitsWarning, ModelError, SingularError

TOLERABLE = 1e-5


def answer(case):
    """The posterior with its score, and what was said of lost digits."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        post = case.model().smooth(case.y)
        _ = post.score
    assert all(issubclass(w.category, LostDigitsWarning) for w in told)
    return post, [str(w.message) for w in told]


def right_told_or_refused(seed, branches, noises):
    """Whether a tree was answered: then every entry is right, but for score.C where a warning says so."""
    try:
        case = mixed(seed, branches, noises)
        post, told = answer(case)
    except np.linalg.LinAlgError:  # of the data that were to be drawn
        return False
    except ModelError as error:
        if "all but singular" in str(error) or "next to nothing" in str(error):
            return False
        raise
    except SingularError:  # data that leave a flat root open
        assert max(mp.mpf(x) for x in np.diag(exact_answer(case).cov[-1])) > 1e40
        return False
    found = errors(case, post)
    assert found.pop("C") <= 0.3 * TOLERABLE or told, (seed, found)
    assert max(found.values()) <= 1e-6, (seed, found)
    return True


@pytest.mark.parametrize("first", range(0, 96, 12))
def test_every_answer_is_right_or_said_not_to_be(first):
    """Variances from 1e-14 to 3 and noises from 1e-16 on, in random directions."""
    assert sum(right_told_or_refused(seed, -14, -16) for seed in range(first, first + 12)) >= 2


@pytest.mark.parametrize("seed", [5, 24, 28, 44, 81])
def test_those_that_are_not_refused_among_variances_of_1e_20(seed):
    assert right_told_or_refused(seed, -20, -24)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 400, 50))
def test_it_holds_for_variances_down_to_1e_20(first):
    assert sum(right_told_or_refused(seed, -20, -24) for seed in range(first, first + 50)) > 3


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_variances_that_differ_by_a_thousand_million_need_no_warning(first):
    for seed in range(first, first + 20):
        case = mixed(seed, -9, -9)
        try:
            post, told = answer(case)
        except SingularError:
            continue
        assert not told and max(errors(case, post).values()) <= 1e-6, seed


@pytest.mark.parametrize("seed", [25, 67, 89])
def test_lost_digits_are_said_and_where(seed):
    case = mixed(seed, -14, -16)
    with pytest.warns(LostDigitsWarning, match=r"score.C may lose \d+ of its 16 digits at node \d") as told:
        _ = case.model().smooth(case.y).score
    assert all(w.filename == __file__ for w in told)


@pytest.mark.parametrize("file", ["{}_study.py", "{}-study/study.py", "my_functools/study.py"])
def test_a_script_is_told_whatever_the_name_of_its_file(file):
    """It may begin with the path of the package: who calls is told by the names of modules."""
    case = mixed(67, -14, -16)
    script = compile("case.model().smooth(case.y).score", file.format(Path(kf.__file__).parent), "exec")
    with pytest.warns(LostDigitsWarning) as told:
        exec(script, {"__name__": "__main__", "case": case})
    assert {w.filename for w in told} == {script.co_filename}
    with warnings.catch_warnings():  # the package itself
        warnings.simplefilter("error")
        exec(script, {"__name__": "kfdyn.estimation.fitting.fit", "case": case})


def test_a_fit_is_not_told():
    case = mixed(67, -14, -16)

    def build(theta):
        return case._replace(W=[np.exp(theta[0]) * w for w in case.W]).model()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isfinite(kf.fit(build, [0.0], case.y).llf)


def test_what_is_all_but_singular_or_all_but_exact_is_refused_by_name():
    tree = kf.Phylogeny.from_newick("((A:1,B:1)AB:1,C:2);")
    near = np.array([[1.0, 1.0 - 1e-12], [1.0 - 1e-12, 1.0]])
    with pytest.raises(ModelError, match=r"^node 0 \('A'\): W is all but singular: .* an eigenvalue of 1e-12"):
        tree.brownian(near)
    with pytest.raises(ModelError, match=r"R is all but singular.*give one that is singular"):
        tree.brownian(np.eye(2), error=near)
    with pytest.raises(ModelError, match=r"node 0 \('A'\): the noise R of its observation 1 is 1e-11.*give R = 0"):
        tree.brownian(np.eye(2), error=[1.0, 1e-11])
    with pytest.raises(ModelError, match="or at least 1e-21"):
        tree.brownian(error=1e-22)
    for fine in (np.ones((2, 2)), np.diag([1.0, 1e-30])):  # singular, and a trait in other units
        assert np.isfinite(tree.brownian(fine + np.eye(2) * (fine[0, 1] == 0), error=0.1).smooth(np.ones(6)).llf)


def test_ordinary_models_get_no_warning():
    """Brownian traits with correlations and units of their own, exact tips and noises of 1e-9 of the rate."""
    rng = np.random.default_rng(5)
    tree = kf.Phylogeny.from_newick("(((A:1,B:0.5)x:2,(C:0.1,D:3)y:1)z:0.3,(E:1,F:1e-3)w:2);")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for trial in range(60):
            L = rng.normal(size=(3, 3)) * 10.0 ** rng.uniform(-6, 6, size=3)[:, None]
            rate, part = L @ L.T, (0.0, 1e-9, 1e-6, 0.1)[trial % 4]
            y = tree.traits({tip: L @ rng.normal(size=3) for tip in "ABCDEF"})
            _ = tree.brownian(rate, error=part * np.diag(rate)).smooth(y).score


def test_batches_are_solved_together():
    case = mixed(155, -9, -9)
    rows = np.stack([case.y, 2.0 * case.y])
    post, one = case.model().smooth(rows), case.model().smooth(2.0 * case.y)
    np.testing.assert_allclose(post.llf[1], one.llf, rtol=1e-12)
    np.testing.assert_allclose(post.score.R.flat[1], one.score.R.flat, rtol=1e-6)
    np.testing.assert_allclose(post.mean.flat[1], one.mean.flat, rtol=1e-12)


def test_no_covariances_no_score():
    case = mixed(155, -9, -9)
    post = case.model().smooth(case.y, covariances=False)
    assert abs(post.llf - float(exact_answer(case).llf)) < 1e-6 * abs(post.llf)
    with pytest.raises(kf.errors.ModelError, match="switched off"):
        _ = post.cov


@pytest.mark.parametrize("batch", [(0,), (3, 0)])
def test_no_series_is_a_batch_too(batch):
    case = mixed(155, -9, -9)
    post = case.model().smooth(np.zeros((*batch, case.y.size)))
    assert post.llf.shape == batch and post.score.W.flat.shape[:-1] == batch
