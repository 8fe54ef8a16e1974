"""The score of outward trees against differences in 120 digits, along random directions of every block."""

import mpmath as mp
import numpy as np
import pytest
from outward_cases import dense, digits, random_outward

import kfdyn as kf
from kfdyn.errors import ModelError, SingularError

STEP = mp.mpf(10) ** -22


def moved(case, name, direction):
    """The case with one argument moved by STEP, in 120 digits."""
    with mp.workdps(120):
        if name == "mean":
            mean, roots = digits(case.mean) + STEP * digits(direction), case.root_mean
            root = case.parent.index(-1)
            at = np.concatenate([[0], np.cumsum([c.shape[1] for c in case.C])])
            roots = [mp.mpf(r) + STEP * direction[at[root] + i] for i, r in enumerate(roots)]
            return case._replace(mean=mean, root_mean=roots)
        blocks = [b if d is None else digits(b) + STEP * digits(d) for b, d in zip(getattr(case, name), direction)]
        out = case._replace(**{name: blocks})
        if name == "W" and case.root_cov is not None:
            root = case.parent.index(-1)
            out = out._replace(root_cov=digits(case.root_cov) + STEP * digits(direction[root]))
        return out


def directions(case, rng):
    def symmetric(a):
        b = rng.normal(size=a.shape)
        return b @ b.T

    return {
        "A": [None if a is None else rng.normal(size=a.shape) for a in case.A],
        "W": [symmetric(w) for w in case.W],
        "C": [rng.normal(size=c.shape) for c in case.C],
        "R": [symmetric(r) for r in case.R],
        "mean": rng.normal(size=case.mean.size),
    }


def along(score, name, direction):
    if name == "mean":
        return score.mean @ direction
    return sum(float((g * d).sum()) for g, d in zip(getattr(score, name), direction) if d is not None)


def differences(case, tolerance):
    """How many directions agreed; None where the model has no likelihood or the score says it is not available."""
    try:
        score = case.model().smooth(case.y).score
    except (SingularError, ModelError):
        return None
    known = dense(case)
    if known.condition > 1e4:
        return None
    for name, direction in directions(case, np.random.default_rng(1)).items():
        with mp.workdps(120):
            want = float((dense(moved(case, name, direction), posterior=False).llf - known.llf) / STEP)
        assert abs(along(score, name, direction) - want) <= tolerance * max(1.0, abs(want)), name
    return 1


@pytest.mark.parametrize("flat", [False, True])
def test_score_is_the_derivative_of_the_log_likelihood(flat):
    """R = 0, singular and zero W, missing data and flat roots; the bound grows with the condition of the data."""
    done = [differences(random_outward(seed, flat, most=6), 1e-8) for seed in range(20)]
    assert done.count(1) >= 7


@pytest.mark.slow
@pytest.mark.parametrize("flat", [False, True])
def test_score_on_many_trees(flat):
    done = [differences(random_outward(seed, flat), 1e-7) for seed in range(100, 250)]
    assert done.count(1) >= 40


def test_what_the_score_does_not_cover_is_said():
    one, none = np.eye(1), np.zeros((0, 1))
    W = [0 * one, one, 0 * one, one, one]
    tree = kf.OutwardTree([2, 3, 3, 4, -1], [one] * 5, W, [one, one, none, none, none], root_cov=one)
    with pytest.raises(ModelError, match="score is not available"):
        _ = tree.smooth([1.5, 4.0]).score


def test_a_tip_without_length_has_a_score():
    """Its reading falls on the parent; noise on the one is noise on the other."""
    one, none = np.eye(1), np.zeros((0, 1))
    tree = kf.OutwardTree([2, 2, -1], [one] * 3, [0 * one, one, one], [one, one, none], root_cov=one)
    score = tree.smooth([1.0, 3.0]).score
    V, y = np.array([[1.0, 1.0], [1.0, 2.0]]), np.array([1.0, 3.0])
    rho = np.linalg.solve(V, y)
    want = 0.5 * (np.outer(rho, rho) - np.linalg.inv(V))
    np.testing.assert_allclose([score.W[0].item(), score.W[1].item()], np.diag(want), rtol=1e-12)
    np.testing.assert_allclose([score.R[0].item(), score.R[1].item()], np.diag(want), rtol=1e-12)
    assert np.isclose(score.W[2].item(), want.sum(), rtol=1e-12)
