"""Logs against models: right ones pass as often as they should, wrong ones are named, in Python and in the shell."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import kfdyn as kf
from kfdyn import cli
from kfdyn.errors import ModelError
from kfdyn.multibody.system import rebuilt

sys.path.insert(0, str(Path(__file__).parent))
from test_identify import drawn, driven, moves_of, two_rods

TRUE = [0.3, -0.2, 0.0, 0.0]


def log(seed, N=200, **options):
    model = moves_of(two_rods(), method="implicit", **options)
    tau = driven(N)
    return drawn(model, N, np.random.default_rng(seed), tau, TRUE), tau


def test_a_right_model_passes_and_limits_are_those_of_the_estimate():
    readings, tau = log(3)
    report = kf.motion.check_log(moves_of(two_rods(), method="implicit"), readings, tau[:-1], fit_noise=False)
    assert report.passed, report.table()
    assert set(report.residuals) == {"encoders", "gyro"}
    mass = next(one for one in report.suspects if one.name == "lower/mass")
    found = kf.identify(moves_of(two_rods(), method="implicit"), readings, tau[:-1], ["lower/mass"])
    assert mass.limit == pytest.approx(3.605 * found.stderr[0], rel=0.1)  # of the means alone
    assert mass.value + mass.wanted == pytest.approx(found.params[0], abs=0.3 * found.stderr[0])
    assert "PASSED" in report.table()


def test_a_mass_off_by_its_limit_is_noticed_and_noise_is_not_blamed():
    wrong, hits = two_rods(masses=(1.2, 0.83)), 0
    for seed in range(4):
        readings, tau = log(seed)
        report = kf.motion.check_log(moves_of(wrong, method="implicit"), readings, tau[:-1])
        lower = next(one for one in report.suspects if one.name == "lower/mass")
        hits += lower.p_value < 0.05 and lower.wanted < 0.0
        assert lower.limit < 0.03  # so it is to be noticed
    assert hits == 4


def test_bad_input_of_check_log():
    with pytest.raises(ModelError, match=r"takes a kf\.MotionModel"):
        kf.motion.check_log(two_rods(), [], None)
    with pytest.raises(ModelError, match="level must lie"):
        kf.motion.check_log(moves_of(two_rods()), [], None, level=2.0)


# --- the command


def written(path, system, seed):
    """A log as a file, of encoders and torques alone."""
    N, names = 250, system.hinge_names
    model = kf.MotionModel(system, 0.01, [kf.sensors.JointPosition(1e-6)], [0.04] * 2, method="implicit", damping=True)
    tau = driven(N)
    (q,) = drawn(model, N, np.random.default_rng(seed), tau, TRUE)
    q[17, 1] = np.nan
    header = ",".join(["t", *(f"q:{name}" for name in names), *(f"tau:{name}" for name in names)])
    rows = [",".join("" if np.isnan(x) else f"{x:.9g}" for x in row) for row in np.c_[0.01 * np.arange(N), q, tau]]
    path.write_text("\n".join([header, *rows]) + "\n")


def test_command_passes_rejects_and_complains(tmp_path, capsys):
    system = two_rods()
    heavy = rebuilt(
        tuple(replace(b, inertia=b.inertia * (1.2 if b.name == "lower" else 1.0)) for b in system.bodies),
        system.gravity, {}, system.name, "refuse",
    )  # fmt: skip
    for name, robot in (("right", system), ("wrong", heavy)):
        (tmp_path / f"{name}.urdf").write_text(kf.save_urdf(robot))
    file = tmp_path / "log.csv"
    written(file, system, 5)
    assert cli.main(["check-log", str(tmp_path / "right.urdf"), str(file)]) == 0
    assert "PASSED" in capsys.readouterr().out
    arguments = ["check-log", str(tmp_path / "wrong.urdf"), str(file), "--json"]
    assert cli.main(arguments) == 1
    found = json.loads(capsys.readouterr().out)
    assert not found["passed"] and found["p_values"]["lower/mass"] < 1e-6
    file.write_text(file.read_text().replace("tau:elbow", "torque"))
    assert cli.main(arguments) == 2
    assert "tau:elbow" in capsys.readouterr().err
