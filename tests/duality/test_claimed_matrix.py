"""Somebody else's 𝓜⁻¹ or 𝓜: tested by samples, with limits that hold; and compared exactly, as it comes."""

import functools
import operator

import numpy as np
import pytest

import kfdyn as kf
from kfdyn.duality import claims, cross_check
from kfdyn.duality.claimed_matrix import take_claims
from kfdyn.duality.hypothesis.detectable_errors import limits
from kfdyn.duality.hypothesis.hypothesis_tests import judge
from kfdyn.duality.monte_carlo import Plan, stream
from kfdyn.errors import ModelError, ShapeError
from kfdyn.estimation.consistency import holm

ARM = kf.models.uniform_chain(4)  # no rotors: accelerations of neighbours are strongly correlated
Q = np.array([0.3, -0.2, 0.5, 0.4])
INVERSE = np.linalg.inv(kf.mass_matrix(ARM, Q))
N = 40_000


def claim(matrix, samples=N, seed=0, name="a"):
    return cross_check(ARM, Q, samples=samples, seed=seed, claimed={name: matrix})


def found(report):
    return {t.kind for t, p in zip(report.tests, report.adjusted) if p < report.level}


def off(i, j, part):
    wrong = INVERSE.copy()
    wrong[i, j] *= 1 + part
    wrong[j, i] = wrong[i, j]
    return wrong


def test_right_matrices_pass_and_are_judged_by_samples_alone():
    """A part in a million is invisible to samples, and nothing else looks at the claim."""
    for name, matrix in (("a", INVERSE), ("T", kf.mass_matrix(ARM, Q)), ("a", INVERSE * (1 + 1e-6))):
        report = claim(matrix, name=name)
        assert report.passed, report.verdict()
        assert {"single entry", "low rank"} <= {t.kind for t in report.tests if name in t.quantities}
        assert all(name not in group.quantities for group in report.groups)
        assert "as claimed was tested by samples" in report.verdict()
    np.testing.assert_allclose(report.findings["a"].covariance, INVERSE * (1 + 1e-6), rtol=1e-12)


def test_one_percent_off_one_entry():
    """Invisible in the sampled covariance, plain in the torques that the claim makes of the accelerations."""
    wrong = off(0, 1, 0.01)
    report = claim(wrong)
    assert not report.passed
    assert "single entry" in found(report)
    assert "entries" not in found(report)
    first, second = ARM.hinge_names[:2]
    (said,) = [line for line in report.rejected if line.startswith("single entry of a")]
    assert f"(entry ({first}, {second}) should differ by " in said
    found_error = float(said.split("differ by ")[1].split(" ±")[0])
    assert found_error == pytest.approx(INVERSE[0, 1] - wrong[0, 1], rel=0.3)
    seen, of = report.claimed["a"][1].one_percent
    assert (seen, of) == (5, 6)


def test_limits_hold():
    """An error at the printed limit is found in at least 0.8 of the runs, and one of a fifth of it in almost none."""
    ss, seeds = kf.as_estimation(ARM, Q), range(12)
    own, drawn = claims(ss), []
    for plan in (Plan.of(ss, ss, seed) for seed in seeds):
        drawn.append((plan, functools.reduce(operator.add, stream(plan, N))))

    def rejections(error):
        """In how many of the runs a matrix that is off by so much is rejected; the samples are the same for all."""
        taken, notes = take_claims({"a": INVERSE - error}, own, ss, 1e-12)
        return sum(min(holm([t.p_value for t in judge(*run, {**own, **taken}, notes).tests])) < 1e-3 for run in drawn)

    runs, tests = len(seeds), len(claim(INVERSE, samples=500).tests)
    limit = limits(INVERSE, N, tests)
    inverse = np.linalg.inv(INVERSE)
    deviation = np.sqrt(np.diag(INVERSE))
    sharp = np.sqrt(np.outer(np.diag(inverse), np.diag(inverse)) + inverse**2) * np.outer(deviation, deviation)
    above = [(i, j) for i in range(4) for j in range(i + 1, 4)]
    worst, best = min(above, key=lambda at: sharp[at]), max(above, key=lambda at: sharp[at])

    for (i, j), size in ((best, limit.off_diagonal[0]), (worst, limit.off_diagonal[1])):
        error = np.zeros((4, 4))
        error[i, j] = error[j, i] = size * deviation[i] * deviation[j]
        assert rejections(error) >= 0.8 * runs, (i, j)
        assert rejections(error / 5) <= 0.2 * runs, (i, j)
    k = int(np.argmin(np.diag(inverse) * deviation**2))
    error = np.zeros((4, 4))
    error[k, k] = limit.variance[1] * INVERSE[k, k]
    assert rejections(error) >= 0.8 * runs
    v = np.linalg.cholesky(INVERSE) @ np.array([0.5, -0.5, 0.5, 0.5])
    assert rejections(limit.rank_one / (1 + limit.rank_one) * np.outer(v, v)) >= 0.8 * runs
    assert rejections(limit.whole * INVERSE) >= 0.8 * runs


@pytest.mark.slow
def test_claims_keep_the_level():
    """Sixty honest claims, few samples, at 5 %."""
    rejected = sum(
        not cross_check(ARM, Q, samples=400, seed=seed, level=0.05, claimed={"a": INVERSE}).passed for seed in range(60)
    )
    assert rejected <= 9  # of 3 expected at most, once in 1e3


@pytest.mark.parametrize("form", [np.triu, np.tril, lambda A: A.astype(np.float32), lambda A: A.tolist()])
def test_claims_come_as_they_are(form):
    report = claim(form(INVERSE), samples=2000)
    assert report.passed, report.verdict()
    np.testing.assert_allclose(report.findings["a"].covariance, INVERSE, rtol=2e-7)


def test_a_claim_that_is_no_covariance():
    for wrong in (-INVERSE, INVERSE + np.triu(0.1 * INVERSE, 1)):
        report = claim(wrong, samples=500)
        assert not report.passed
        assert report.claimed["a"][1] is None
        assert "no limit can be given" in report.verdict()
        assert report.to_json()


def test_bad_claims_name_the_culprit():
    bad = INVERSE.copy()
    bad[1, 2] = np.nan
    for matrix, error, words in (
        (np.eye(3), ShapeError, r"claimed\['a'\].*\(3, 3\)"),
        (bad, ModelError, r"nan at \(1, 2\)"),
        (INVERSE.astype(complex), ModelError, "complex"),
    ):
        with pytest.raises(error, match=words):
            claim(matrix, samples=500)
    with pytest.raises(ModelError, match="no such quantity"):
        cross_check(ARM, Q, samples=500, claimed={"Minv": INVERSE})


# --- peers, exactly


def test_peers_say_what_they_compare():
    given = {
        "whole": INVERSE,
        "upper": np.triu(INVERSE),
        "single": INVERSE.astype(np.float32),
        "off": off(0, 2, 1e-6),
        "mass": kf.mass_matrix(ARM, Q),
    }
    report = cross_check(ARM, Q, samples=500, peers=given)
    said = {p.name: p for p in report.parties}
    assert [said[name].passed for name in given] == [True, True, True, False, False]
    assert said["upper"].subject == "𝓜⁻¹ (upper triangle)"
    assert said["single"].subject == "𝓜⁻¹ (float32)"
    assert said["single"].gap > 1e-9  # not by our rounding, but by theirs
    assert said["off"].where.startswith(f"at ({ARM.hinge_names[0]}, {ARM.hinge_names[2]}): theirs ")
    assert "theirs is 𝓜, not its inverse" in said["mass"].where
    # in single precision, too, an error beyond rounding is found
    wrong = cross_check(ARM, Q, samples=500, peers={"single": off(0, 2, 0.05).astype(np.float32)})
    assert not wrong.passed


@pytest.mark.parametrize("factor", [1e-300, 1e-160, 1e160, 1e300])
def test_a_claim_of_absurd_size_is_rejected_without_a_warning(factor):
    arm = kf.models.double_pendulum()
    Minv = factor * kf.mass_matrix_inverse(arm, [0.3, 0.4])
    report = kf.cross_check(arm, [0.3, 0.4], samples=100, claimed={"a": Minv})
    assert not report.passed
    assert "nan" not in report.verdict()
