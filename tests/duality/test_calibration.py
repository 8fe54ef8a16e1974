"""p-values of the cross-check are uniform when the model is right, and the verdict keeps its level."""

import json
from pathlib import Path

import numpy as np
import pytest
from duality_cases import outcomes
from scipy.stats import binom, kstest

import kfdyn as kf

STUDY = Path(__file__).parents[2] / "docs" / "cross_check_study.json"
EXACT = ("covariance", "mean", "whiteness", "NIS", "NEES")


def test_p_values_are_uniform_and_the_verdict_keeps_its_level():
    """120 seeds of a small arm in motion, few samples: exact tests uniform, the others not too often small."""
    ss = kf.as_estimation(kf.models.double_pendulum(), [0.3, 0.4], [1.0, -2.0])
    p_values, smallest = {}, []
    for seed in range(120):
        tests, least = outcomes(ss, 60, seed)
        smallest.append(least)
        for test in tests:
            p_values.setdefault((test.kind, test.quantities), []).append(test.p_value)
    for (kind, quantities), values in p_values.items():
        if kind in EXACT:
            assert kstest(values, "uniform").pvalue > 1e-4, (kind, quantities)
        assert np.mean(np.array(values) < 0.05) < 0.05 + 5 * np.sqrt(0.05 / 120), (kind, quantities)
    # the verdict at 5 %: Holm's bound, within what 120 runs can tell
    assert sum(p < 0.05 for p in smallest) <= binom.ppf(1 - 1e-6, 120, 0.05)


def test_the_stored_study_says_what_the_documentation_says():
    """Dimensions 1 to 300, uniform; the verdict at 0.1 % over many seeds."""
    study = json.loads(STUDY.read_text(encoding="utf-8"))
    assert {row["dimension"] for row in study["uniformity"]} >= {1, 10, 100, 300}
    for row in study["uniformity"]:
        assert row["kolmogorov_p"] > 1e-3, row
    verdict = study["verdict"]
    assert verdict["runs"] >= 5000
    assert binom.sf(verdict["rejected"] - 1, verdict["runs"], verdict["level"]) > 1e-3
    for row in study["power"]:
        assert row["rejected"] == row["runs"], row


def test_the_stored_study_of_poses_says_what_the_documentation_says():
    """Public robots in neutral and right-angle poses: rejected no more often than the level allows."""
    rows = json.loads(STUDY.read_text(encoding="utf-8"))["right_angles"]
    checks, rejected = (sum(row[key] for row in rows) for key in ("checks", "rejected"))
    assert checks >= 1300
    assert binom.sf(rejected - 1, checks, 1e-3) > 0.05
    assert all(row["complete"] for row in rows)  # "all robots", the page says
    page = " ".join(STUDY.with_name("cross_check.md").read_text(encoding="utf-8").split())
    robots, singular = (sum(row[key] for row in rows) for key in ("robots", "singular"))
    assert f"{rejected or 'none'} of {checks:,} checks of {robots} models was rejected" in page
    assert f"{singular} poses" in page


@pytest.mark.slow
def test_the_study_can_be_made_again():
    """The first runs of the stored study, seed by seed, to the last digit but three."""
    import runpy

    module = runpy.run_path(str(STUDY.with_suffix(".py")))
    study = json.loads(STUDY.read_text(encoding="utf-8"))
    for row in study["uniformity"]:
        if row["dimension"] <= 30:
            again = module["uniformity"](row["dimension"], runs=20)
            assert again["first_p_values"] == pytest.approx(row["first_p_values"], rel=1e-6)
