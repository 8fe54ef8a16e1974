"""The cross-check rejects what is wrong, and says what it can see."""

import functools
import re

import numpy as np
import pytest
from duality_cases import heavier, outcomes, with_covariance
from scipy.stats import binom, wishart

import kfdyn as kf
from kfdyn.duality import claims, cross_check, detectable, limits
from kfdyn.duality.hypothesis.roys_test import roys_test
from kfdyn.estimation.consistency import largest_entry_test
from kfdyn.estimation.consistency.null_distributions import LikelihoodRatioNull

PUMA = kf.models.puma560()
Q = np.linspace(-1, 1, 6)


@pytest.fixture(scope="module")
def puma():
    return kf.as_estimation(PUMA, Q)


def rejected(report):
    return {(t.kind, name) for t, p in zip(report.tests, report.adjusted) if p < report.level for name in t.quantities}


@pytest.mark.parametrize("link", range(6))
def test_the_mass_of_one_link_off_by_a_twentieth(puma, link):
    tests, smallest = outcomes(puma, 100_000, 0, truth=heavier(puma, link, 1.05))
    assert smallest < 1e-3
    assert min(t.p_value for t in tests if "x" in t.quantities) < 1e-6  # the link's own force tells at once


def test_a_joint_acceleration_tells_a_wrong_mass(puma):
    """𝓜⁻¹ itself: the second link 5 % heavier is seen in a, by the likelihood ratio and entry by entry."""
    truth = heavier(puma, 1, 1.05)
    tests, _ = outcomes(puma, 200_000, 0, truth=truth)
    p = {t.kind: t.p_value for t in tests if "a" in t.quantities}
    assert p["covariance"] < 1e-6
    assert p["entries"] < 1e-6


def test_a_sign_flipped(puma):
    """One symmetric pair of entries of 𝓜⁻¹ with the wrong sign."""
    inverse = claims(puma)["a"].matrix.copy()
    inverse[1, 2] = inverse[2, 1] = -inverse[1, 2]
    if np.linalg.eigvalsh(inverse)[0] <= 0:
        inverse += 2 * abs(np.linalg.eigvalsh(inverse)[0]) * np.eye(6)
    report = cross_check(puma, samples=10_000, claimed=with_covariance(puma, "a", inverse))
    assert {("covariance", "a"), ("entries", "a")} <= rejected(report)
    assert not report.passed
    assert not report.groups[0].passed  # and a no longer shares the statistic of T
    assert any("one number" in line for line in report.rejected)


def test_the_printed_covariance_of_the_filter_estimate(puma):
    """ATBI:cov-z, erratum: φKD^-1K*φ* as printed on the slide is rejected; φKDK*φ* is not."""
    from kfdyn.duality.symbols import Symbols

    s = Symbols(puma)
    gathered = s.phi @ s.K
    right, printed = gathered @ s.D @ gathered.T, gathered @ s.D_inv @ gathered.T
    np.testing.assert_allclose(claims(puma)["z"].matrix, right, rtol=0, atol=1e-10 * np.abs(right).max())
    report = cross_check(puma, samples=2000, claimed=with_covariance(puma, "z", printed))
    assert {("covariance", "z"), ("entries", "z")} <= rejected(report)
    _, smallest = outcomes(puma, 2000, 0, claimed=with_covariance(puma, "z", right))
    assert smallest > 1e-3


def test_a_wrong_mean(puma):
    """The moving arm checked by the model of the arm at rest."""
    moving = kf.as_estimation(PUMA, Q, np.ones(6))
    tests, _ = outcomes(puma, 2000, 0, truth=moving)
    for name in ("x", "T", "eps", "a"):
        assert min(t.p_value for t in tests if t.kind.startswith("mean") and name in t.quantities) < 1e-8


def test_coloured_innovations():
    """A filter with the wrong gain: ε no longer white across the tree, and only then is whiteness rejected."""
    arm, q = kf.models.double_pendulum(), [0.3, 0.4]
    ss = kf.as_estimation(arm, q)
    truth = heavier(ss, 1, 1.5)
    for model, white in ((ss, True), (truth, False)):
        tests, _ = outcomes(ss, 20_000, 0, truth=model)
        (p,) = (t.p_value for t in tests if t.kind == "whiteness")
        assert (p > 1e-4) == white


def test_detectable_errors_are_detected():
    """At the error it names, at least 0.95 of the runs reject; at a quarter of it, almost none."""
    ss = kf.as_estimation(kf.models.double_pendulum(), [0.3, 0.4])
    inverse, n, runs = claims(ss)["a"].matrix, 4000, 25
    tests, _ = outcomes(ss, n, 0)
    found = detectable(2, n, len(tests))
    assert 0 < found.whole < found.entry < 1

    def rejections(matrix):
        claimed = with_covariance(ss, "a", matrix)
        return sum(outcomes(ss, n, seed, claimed=claimed)[1] < 1e-3 for seed in range(1, runs + 1))

    entry = inverse.copy()
    entry[0, 0] /= 1 + found.entry
    assert rejections(entry) >= 0.8 * runs  # 24 expected; fewer than 20 once in 1e3, and the seeds are fixed
    assert rejections(inverse / (1 + found.whole)) >= 0.8 * runs
    assert rejections(inverse / (1 + found.whole / 4)) <= 0.2 * runs


def test_detectable_error_falls_with_the_root_of_the_samples():
    coarse, fine = detectable(7, 10_000, 30), detectable(7, 1_000_000, 30)
    assert coarse.entry / fine.entry == pytest.approx(10, rel=0.06)  # few samples need more than their share
    assert coarse.whole / fine.whole == pytest.approx(10, rel=0.03)
    coarse, fine = detectable(7, 10**6, 30), detectable(7, 10**8, 30)
    assert coarse.entry / fine.entry == pytest.approx(10, rel=0.01)
    assert coarse.whole / fine.whole == pytest.approx(10, rel=0.01)


# --- the limits hold for few samples, whichever of claim and truth is the larger

ERRORS = ("variance", "best pair", "worst pair", "direction", "whole")


@functools.cache
def cases(size):
    """Covariances with few samples, from hardly correlated to strongly."""
    if size == 2:
        return kf.mass_matrix_inverse(kf.models.double_pendulum(), [0.3, 0.4]), 100
    if size == 3:
        return np.eye(3) + 0.2, 500
    return kf.mass_matrix_inverse(kf.models.uniform_chain(4), [0.3, -0.2, 0.5, 0.4]), 400


def error_of(what, Sigma, found):
    """The error in Σ of the size that is said to be seen, where it is hardest to see (or easiest)."""
    deviation, inverse = np.sqrt(np.diag(Sigma)), np.linalg.inv(Sigma)
    if what == "whole":
        return found.whole * Sigma
    if what == "direction":
        v = np.linalg.cholesky(Sigma) @ np.ones(len(Sigma)) / np.sqrt(len(Sigma))
        return found.rank_one * np.outer(v, v)
    error = np.zeros_like(Sigma)
    if what == "variance":
        k = int(np.argmin(np.diag(inverse) * deviation**2))
        error[k, k] = found.variance[1] * Sigma[k, k]
        return error
    information = (np.outer(np.diag(inverse), np.diag(inverse)) + inverse**2) * np.outer(deviation, deviation) ** 2
    above = list(zip(*np.triu_indices(len(Sigma), 1)))
    i, j = (min if what == "worst pair" else max)(above, key=lambda at: information[at])
    error[i, j] = error[j, i] = found.off_diagonal[what == "worst pair"] * deviation[i] * deviation[j]
    return error


def p_value(what, S, claim, n):
    """Of the test that sees such an error first."""
    inverse = np.linalg.inv(claim)
    if what in ("variance", "best pair", "worst pair"):
        return largest_entry_test(inverse @ (n * S) @ inverse, inverse, n).p_value
    root = np.linalg.inv(np.linalg.cholesky(claim))
    whitened = root @ S @ root.T
    if what == "direction":
        return roys_test(whitened, n).p_value
    ratio = n * (np.trace(whitened) - np.linalg.slogdet(whitened)[1] - len(S))
    return float(LikelihoodRatioNull.covariance(len(S), n).sf(ratio))


@pytest.mark.parametrize("size", [2, 3, 4])
@pytest.mark.parametrize("what", ERRORS)
def test_limits_hold_for_either_sign(what, size):
    """Drawn from Wishart's law: at the limit the harder sign is rejected in 0.95 of the runs, the other more often."""
    Sigma, n = cases(size)
    runs, tests, level = 300, 30, 1e-3
    error = error_of(what, Sigma, limits(Sigma, n, tests, level))
    found = []
    for claim, truth in (
        (Sigma, Sigma + error),
        (Sigma, Sigma - error),
        (Sigma + error, Sigma),
        (Sigma - error, Sigma),
    ):
        if min(np.linalg.eigvalsh(claim)[0], np.linalg.eigvalsh(truth)[0]) <= 0:
            continue  # no covariance at all
        drawn = wishart(n, truth).rvs(runs, random_state=np.random.default_rng(size)) / n
        found.append(sum(p_value(what, S, claim, n) < level / tests for S in drawn))
    assert min(found) >= binom.ppf(1e-3, runs, 0.95)
    if what != "direction":  # of which the limit is a bound
        assert min(found) <= binom.isf(1e-3, runs, 0.95)


@pytest.mark.parametrize(("d", "n"), [(1, 1), (1, 2), (2, 2), (2, 3), (6, 6), (6, 8)])
def test_hardly_any_samples_see_hardly_anything(d, n):
    """Fewer than anybody should take, but allowed: numbers that are large, and no failure."""
    found, claimed = detectable(d, n, 30), limits(np.eye(d), n, 30)
    sizes = [found.entry, found.whole, *claimed.variance, claimed.rank_one, claimed.whole]
    assert min(sizes) > 5 and np.isfinite(sizes).all()
    assert d == 1 or 0.5 < claimed.off_diagonal[0] <= 1.0  # more would be no covariance


@pytest.mark.slow
def test_the_printed_limits_hold():
    """What the verdict prints, read off it and claimed, too much and too little: 150 runs of the whole check each."""
    arm, q, n, runs = kf.models.double_pendulum(), [0.3, 0.4], 2000, 150
    inverse = kf.mass_matrix_inverse(arm, q)
    said = cross_check(arm, q, samples=n, claimed={"a": inverse}).verdict().splitlines()[-1]
    entry, pair, whole = (
        float(re.search(rf"([\d.]+) % {words}", said).group(1)) / 100
        for words in ("in one variance", "of the two deviations", "in all of it")
    )
    first, both = np.diag([1.0, 0.0]), np.array([[0.0, 1.0], [1.0, 0.0]])
    deviation = np.sqrt(np.diag(inverse))
    for error in (entry * first * inverse, pair * both * np.outer(deviation, deviation), whole * inverse):
        for sign in (1, -1):
            claim = {"a": inverse + sign * error}
            found = sum(not cross_check(arm, q, samples=n, seed=seed, claimed=claim).passed for seed in range(runs))
            assert found >= binom.ppf(1e-3, runs, 0.95), (error, sign)


def test_limits_are_rounded_up():
    """2.101 % must not be printed as 2.1 %."""
    from kfdyn.duality.report import _percent

    assert _percent(0.02101) == "2.2 %"
    assert _percent(0.0210, 0.099) == "2.1 to 9.9 %"
    assert _percent(0.0000123401) == "0.0013 %"
    assert _percent(1.234) == "130 %"
