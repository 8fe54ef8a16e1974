"""Logs against models: right ones pass as often as they should, wrong ones are named, in Python and in the shell."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import kfdyn as kf
from kfdyn import cli
from kfdyn.cli.log_file import read_log
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


def _cells(lines, of, rows=range(10_000)):
    """Lines whose cells, in some rows of a file, are of(row, column, cell)."""
    out = [
        ",".join(of(k, i, cell) for i, cell in enumerate(line.split(","))) if k in rows else line
        for k, line in enumerate(lines[1:])
    ]
    return [lines[0], *out]


def _degrees(k, i, cell):
    return f"{np.degrees(float(cell)):.12g}" if i in (1, 2) and cell else cell


def _no_torque(k, i, cell):
    return cell if i < 3 else ""


def _marked(lines):
    return ["\ufeff" + ",".join(f'"{name}"' for name in lines[0].split(",")), *lines[1:]]


#: What loggers write, by what they do to a plain file's lines; options; and what is noted.
WRITTEN = {
    "pandas": (lambda lines: ["," + lines[0], *(f"{i},{line}" for i, line in enumerate(lines[1:]))], {}, ""),
    "quotes and marks": (_marked, {}, ""),
    "semicolons": (lambda lines: [line.replace(",", ";") for line in lines], {}, ""),
    "names": (lambda lines: ["# of a day", lines[0].replace(":", "_").replace("t,", "Time,", 1), *lines[1:]], {}, ""),
    "degrees": (lambda lines: _cells(lines, _degrees), {"degrees": True}, ""),
    "milliseconds": (
        lambda lines: _cells(lines, lambda k, i, x: x if i else f"{1000 * float(x):g}"), {"unit": "ms"}, ""
    ),
    "lost rows": (lambda lines: lines[:50] + lines[53:], {}, "3 rows are missing"),
    "no last torque": (lambda lines: _cells(lines, _no_torque, [249]), {}, ""),
    "uneven": (
        lambda lines: _cells(lines, lambda k, i, x: x if i else f"{float(x) + 2e-4 * (k % 2):g}"), {}, "up to 2 %"
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    folder = tmp_path_factory.mktemp("logs")
    (folder / "robot.urdf").write_text(kf.save_urdf(two_rods()))
    written(folder / "plain.csv", two_rods(), 5)
    return folder, (folder / "plain.csv").read_text().splitlines()


@pytest.mark.parametrize("how", WRITTEN)
def test_logs_are_read_as_loggers_write_them(how, plain):
    folder, lines = plain
    change, options, noted = WRITTEN[how]
    file = folder / "log.csv"
    file.write_text("\n".join(change(lines)) + "\n", encoding="utf-8")
    found = read_log(file, two_rods(), **options)
    known = read_log(folder / "plain.csv", two_rods())
    assert found.dt == pytest.approx(known.dt, rel=1e-4)
    seen = np.isfinite(found.q)
    np.testing.assert_allclose(found.q[seen], known.q[seen], rtol=0, atol=1e-9)
    np.testing.assert_allclose(found.tau[seen[:-1]], known.tau[seen[:-1]], rtol=0, atol=1e-9)
    assert (~seen).sum() == 1 + (6 if how == "lost rows" else 0)
    assert noted in " ".join(found.notes) and bool(found.notes) == bool(noted)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda lines: [lines[0], *reversed(lines[1:])], "times must rise; row 2"),
        (lambda lines: lines[:5], "ten rows are the least"),
        (lambda lines: [*lines, "1,2"], "row 251 has 2 cells under 5 names"),
        (lambda lines: _cells(lines, lambda k, i, x: "x" if i == 1 else x, [8]), "row 9 is 'x'"),
        (lambda lines: _cells(lines, _no_torque, [8]), "gap in row 9"),
        (lambda lines: [lines[0].replace("q:elbow", "q:shoulder"), *lines[1:]], "stand there twice"),
        (lambda lines: _cells(lines, _degrees), "give --degrees"),
        (lambda lines: _cells(lines, lambda k, i, x: "" if i == 2 else x), "q:elbow has no"),
        (lambda lines: [lines[0].replace("elbow", "j2"), *lines[1:]], "q:elbow are missing"),
        (lambda lines: [lines[0].replace("t,", "when,", 1), *lines[1:]], "one column 't' of times"),
        (lambda lines: _cells(lines, lambda k, i, x: x if i else x + "e9"), "--time-unit"),
    ],
)  # fmt: skip
def test_logs_that_cannot_be_read_say_why(change, said, plain):
    folder, lines = plain
    file = folder / "bad.csv"
    file.write_text("\n".join(change(lines)) + "\n")
    with pytest.raises(ModelError, match=said):
        read_log(file, two_rods())
