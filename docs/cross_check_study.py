"""Calibration and power of the cross-check over many seeds; writes cross_check_study.json beside this file.

    python docs/cross_check_study.py               all of it, half an hour of processor time
    python docs/cross_check_study.py right_angles  one part, the others stay as they are

Dimension d stands for a chain of d hinges: its joint accelerations have d dimensions.
"""

import json
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy.stats import binomtest, kstest

import kfdyn as kf
from kfdyn.duality.hypothesis.hypothesis_tests import judge
from kfdyn.duality.monte_carlo import Plan, stream
from kfdyn.duality.quantities import claims
from kfdyn.errors import KfdynError
from kfdyn.estimation.consistency import covariance_test, holm

HERE = Path(__file__).parent
LEVEL = 1e-3


def smallest_p_value(plan, claimed, samples, seed):
    """The smallest p-value of one run after Holm: below the level, the verdict rejects."""
    plan = replace(plan, seed=seed)
    moments = None
    for chunk in stream(plan, samples):
        moments = chunk if moments is None else moments + chunk
    return float(holm([test.p_value for test in judge(plan, moments, claimed).tests]).min())


def uniformity(dimension, runs):
    """p-values of the likelihood ratio of a against 𝓜⁻¹, with only four samples a dimension."""
    system = kf.models.chain(dimension)
    ss = kf.as_estimation(system, np.linspace(-1, 1, system.nq))
    inverse = np.linalg.inv(kf.mass_matrix(system, np.linspace(-1, 1, system.nq)))
    samples = max(20, 4 * dimension)
    p_values = []
    for seed in range(runs):
        T = kf.draw(ss, np.random.default_rng(seed), samples).T
        bias = kf.Operators(ss)
        mean = bias.H @ (bias.phi @ ((0 if ss.xi is None else ss.xi) + bias.Q @ (bias.phi.H @ ss.eta)))
        a = kf.innovations_factor(ss).solve(T - mean)
        p_values.append(covariance_test(a, inverse).p_value)
    return {
        "dimension": dimension,
        "samples": samples,
        "runs": runs,
        "kolmogorov_p": float(kstest(p_values, "uniform").pvalue),
        "below_5_percent": float(np.mean(np.array(p_values) < 0.05)),
        "first_p_values": p_values[:20],
    }


def verdict(runs, samples=120):
    """How often the whole verdict rejects an honest arm in motion."""
    ss = kf.as_estimation(kf.models.double_pendulum(), [0.3, 0.4], [1.0, -2.0])
    plan, claimed = Plan.of(ss, ss, 0), claims(ss)
    smallest = np.array([smallest_p_value(plan, claimed, samples, seed) for seed in range(runs)])
    rejected = int((smallest < LEVEL).sum())
    low, high = binomtest(rejected, runs).proportion_ci()
    return {
        "level": LEVEL,
        "runs": runs,
        "samples": samples,
        "rejected": rejected,
        "rate": rejected / runs,
        "rate_95_percent": [float(low), float(high)],
        "rejected_at_5_percent": float(np.mean(smallest < 0.05)),
    }


def power(runs, samples=200_000):
    """How often one link of the PUMA, 5 % too heavy, is found."""
    sys.path.append(str(HERE.parent / "tests" / "duality"))
    from duality_cases import heavier

    arm, q = kf.models.puma560(), np.linspace(-1, 1, 6)
    ss = kf.as_estimation(arm, q)
    rows = []
    for link in range(6):
        plan = Plan.of(ss, heavier(ss, link, 1.05), 0)
        found = [smallest_p_value(plan, claims(ss), samples, seed) < LEVEL for seed in range(runs)]
        rows.append({"link": link, "factor": 1.05, "samples": samples, "runs": runs, "rejected": int(sum(found))})
    return rows


def right_angles(poses=6, floating=3, only=""):
    """How often the verdict rejects honest public robots in neutral and right-angle poses, where levers vanish."""
    for room in ("duality", "external"):
        sys.path.append(str(HERE.parent / "tests" / room))
    from robot_agreement import bullet_robots, example_robots, mjcf_models

    warnings.simplefilter("ignore")  # of files that say more than is modelled
    sets = {
        "example-robot-data, fixed base": (example_robots(), poses, False),
        "example-robot-data, floating base": (example_robots(), floating, True),
        "pybullet": (bullet_robots(), 2 * poses, False),
        "gymnasium and dm_control, MJCF": (mjcf_models(), poses, False),
    }
    return [{"set": name, **_at_poses(*arguments)} for name, arguments in sets.items() if only in name]


def _at_poses(files, number, floating_base):
    """Verdicts over all files of a set; a pose in which 𝓜 has no inverse in double precision has none."""
    from right_angle_poses import poses, samples_for

    count = {"robots": 0, "checks": 0, "rejected": 0, "singular": 0, "rejections": []}
    largest = 0.0
    for file in files:
        try:
            system = kf.load(file, floating_base=floating_base)
        except (KfdynError, ValueError):  # nothing moves, or it is no robot that can be
            continue
        count["robots"] += 1
        for i, (q, v) in enumerate(poses(system, number - 1)):
            try:
                report = kf.cross_check(system, q, v, samples=samples_for(system), seed=i)
            except KfdynError:
                if np.linalg.cond(kf.mass_matrix(system, q)) < 1e13:
                    raise
                count["singular"] += 1
                continue
            count["checks"] += 1
            largest = max([largest, *(party.gap / party.tolerance for party in report.parties)])
            if not report.passed:
                count["rejected"] += 1
                count["rejections"].append([file.name, i, report.rejected[0]])
        print(file.name, {key: value for key, value in count.items() if key != "rejections"}, flush=True)
    return {"poses": number, **count, "complete": True, "largest_gap_of_what_rounding_excuses": largest}


def costs():
    """Processor seconds of checks, and megabytes that each takes beyond a short one of the same model."""
    import resource
    import time

    sys.path.append(str(HERE.parent / "tests" / "external"))
    from robot_agreement import example_robots

    warnings.simplefilter("ignore")
    file = next(file for file in example_robots() if file.name == "talos_reduced.urdf")
    rows = []
    for name, system, samples in (
        ("pendulum", kf.models.pendulum(), 10**6),
        ("pendulum", kf.models.pendulum(), 10**8),
        ("TALOS, reduced, floating base", kf.load(file, floating_base=True), 200_000),
        ("random tree of 300 bodies", kf.models.random_tree(300, seed=0), 200_000),
    ):
        q = system.random_configuration(np.random.default_rng(0))
        kf.cross_check(system, q, samples=20_000, progress=False)
        memory, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
        report = kf.cross_check(system, q, samples=samples, progress=False)
        rows.append(
            {
                "model": name,
                "joints": system.nv,
                "samples": report.samples,
                "processor_seconds": time.process_time() - start,
                "megabytes": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory) / 1024,
                "passed": report.passed,
            }
        )
        print(rows[-1], flush=True)
    return rows


if __name__ == "__main__":
    parts = {
        "power": lambda: power(5),
        "uniformity": lambda: [uniformity(d, 400 if d <= 30 else 100) for d in (1, 2, 3, 5, 10, 30, 100, 300)],
        "verdict": lambda: verdict(10_000),
        "right_angles": right_angles,
        "costs": costs,
    }
    stored = HERE / "cross_check_study.json"
    study = json.loads(stored.read_text()) if stored.exists() else {}
    for part in sys.argv[1:] or parts:
        study[part] = parts[part]()
        print(part, json.dumps(study[part])[:300], flush=True)
    stored.write_text(json.dumps(study, indent=1) + "\n")
