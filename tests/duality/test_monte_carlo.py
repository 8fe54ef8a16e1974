"""The stream of samples: memory that does not grow, threads and chunks that change nothing, sums that are exact."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import kfdyn as kf
from kfdyn.duality import cross_check
from kfdyn.duality.monte_carlo import Plan, chunk_size, stream
from kfdyn.sweeps.thread_pool import alone, threads

ARM, Q, V = kf.models.double_pendulum(), [0.3, 0.4], [1.0, -2.0]

PEAK = """
import resource, sys, kfdyn as kf
arm, q, v = kf.models.pendulum(), [0.3], [1.0]
kf.cross_check(arm, q, v, samples=200_000)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
report = kf.cross_check(arm, q, v, samples=int(sys.argv[1]))
print(report.passed, report.samples, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is counted in kilobytes on Linux")
def test_five_million_samples_take_no_more_memory_than_two_hundred_thousand():
    """One vector of five million samples is 40 MB, and there are 44 of them; the peak may grow by 16 MB."""
    command = [sys.executable, "-c", PEAK, str(5_000_000)]
    one = os.environ | {"KFDYN_NUM_THREADS": "1"}  # each thread has a chunk in memory, and more cores have more threads
    done = subprocess.run(
        command, capture_output=True, encoding="utf-8", check=True, cwd=Path(__file__).parents[2], env=one
    )
    passed, samples, grown = done.stdout.split()
    assert (passed, samples) == ("True", "5000000")
    assert int(grown) < 16_000


def test_number_of_threads_changes_nothing(monkeypatch):
    ss = kf.as_estimation(ARM, Q, V)
    samples = 5 * chunk_size(ss) + 11
    said = []
    for number in ("1", "2", "5"):
        monkeypatch.setenv("KFDYN_NUM_THREADS", number)
        said.append(cross_check(ss, samples=samples, seed=8).to_json())
    assert said[0] == said[1] == said[2]


def test_a_thread_may_keep_its_sweeps_to_itself(monkeypatch):
    monkeypatch.setenv("KFDYN_NUM_THREADS", "3")
    assert threads() == 3
    with alone():
        assert threads() == 1
    assert threads() == 3


def test_moments_are_sums_over_the_samples():
    """Chunk by chunk against all samples at once, by numpy."""
    from kfdyn.duality.quantities import claims, sample

    ss = kf.as_estimation(ARM, Q, V)
    size, plan = chunk_size(ss), Plan.of(ss, ss, 2)
    samples = 2 * size + 5
    total = None
    for chunk in stream(plan, samples):
        total = chunk if total is None else total + chunk
    drawn = [
        sample(ss, ss, np.random.default_rng(np.random.SeedSequence(2, spawn_key=(index,))), n)
        for index, n in enumerate((size, size, 5))
    ]
    assert total.n == samples == total.histogram.sum()
    for name, claim in claims(ss).items():
        y = np.concatenate([one[name] for one in drawn]) - claim.mean
        np.testing.assert_allclose(total.sums[name].total, y.sum(0), rtol=0, atol=1e-9 * np.abs(y).sum(0).max())
        scatter = np.einsum("ij,ik->jk", y, y)
        np.testing.assert_allclose(total.sums[name].scatter, scatter, rtol=0, atol=1e-12 * np.abs(scatter).max())


def test_a_report_survives_json():
    import json

    report = cross_check(ARM, Q, V, samples=2000)
    content = json.loads(report.to_json())
    assert json.loads(json.dumps(content)) == content
    for test, stored in zip(report.tests, content["tests"]):
        assert (test.kind, list(test.quantities), test.p_value) == (
            stored["kind"], stored["quantities"], stored["p_value"]
        )  # fmt: skip
    assert [p["gap"] for p in content["parties"]] == [p.gap for p in report.parties]
    assert all(p["gap"] <= p["tolerance"] for p in content["parties"])
    np.testing.assert_array_equal(content["convergence"], report.convergence)


def test_a_claim_that_is_no_covariance_is_rejected_and_shown(tmp_path):
    """A sign lost in 𝓜⁻¹: no samples have a negative variance, and the report says so in all its faces."""
    from dataclasses import replace

    from kfdyn.duality import claims
    from kfdyn.duality.noise_operators import Given

    ss = kf.as_estimation(ARM, Q)
    claim = claims(ss)["a"]
    wrong = replace(claim, covariance=Given(-claim.matrix, ss.arrays.output))
    report = cross_check(ss, samples=500, claimed={"a": wrong})
    assert not report.passed
    said = f"negative variance: {-claim.matrix[0, 0]:.3g} at (0, 0)"
    assert any(said in line for line in report.rejected)
    assert not any("not finite" in line for line in report.rejected)
    assert "REJECTED" in str(report)
    assert report.to_json()
    assert report.save_figures(tmp_path)
