"""The cross-check rejects what is wrong, and says what it can see."""

import numpy as np
import pytest
from duality_cases import heavier, outcomes, with_covariance

import kfdyn as kf
from kfdyn.duality import claims, cross_check, detectable

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
    assert coarse.entry / fine.entry == pytest.approx(10, rel=0.01)
    assert coarse.whole / fine.whole == pytest.approx(10, rel=0.02)
