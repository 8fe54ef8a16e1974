"""The command line: what it says, what it writes, what it returns, and that its checks can fail."""

import os
import subprocess
import sys

import numpy as np
import pinocchio as pin
import pytest

import kfdyn as kf
from kfdyn import cli


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """One run of the demo as a user pipes it, to a reader without Greek letters: the process and its folder."""
    folder = tmp_path_factory.mktemp("demo")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "kfdyn", "demo", "--output", folder / "new" / "figures"],
        env=os.environ | {"PYTHONIOENCODING": "ascii", "TERM": "xterm-256color"},
        capture_output=True,
        text=True,
        cwd=folder,
    )
    return done, folder / "new" / "figures"


def test_demo_passes_its_checks(shown):
    done, _ = shown
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("holds") == 7
    assert "FAILS" not in done.stdout
    assert "-641.58558" in done.stdout


def test_demo_pipes_plain_text(shown):
    done, _ = shown
    assert "\x1b" not in done.stdout
    assert max(map(len, done.stdout.splitlines()[:-1])) <= 80  # the last line names the files
    assert done.stderr == ""


def test_demo_writes_its_figures_and_names_them(shown):
    done, folder = shown
    assert sorted(path.name for path in folder.iterdir()) == ["arm.png", "nile.png"]
    for path in folder.iterdir():
        assert path.read_bytes().startswith(b"\x89PNG")
        assert str(path) in done.stdout


def test_a_wrong_model_fails_the_demo(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(cli, "NILE_Q", 1600.0)  # far enough: the likelihood is flat at the published maximum
    assert cli.main(["demo", "--output", str(tmp_path)]) == 1
    assert capsys.readouterr().out.count("FAILS") == 1


def test_a_wrong_inverse_fails_the_demo(tmp_path, monkeypatch, capsys):
    right = kf.InnovationsFactor.inverse

    def wrong(self):
        out = right(self)
        out[0, -1] += 1e-9 * np.sqrt(out[0, 0] * out[-1, -1])
        return out

    monkeypatch.setattr(kf.InnovationsFactor, "inverse", wrong)
    assert cli.main(["demo", "--output", str(tmp_path)]) == 1
    assert capsys.readouterr().out.count("FAILS") == 1


def test_wrong_samples_fail_the_demo(tmp_path, monkeypatch, capsys):
    right = kf.InnovationsFactor.solve
    monkeypatch.setattr(kf.InnovationsFactor, "solve", lambda self, T: 1.02 * right(self, T))
    assert cli.main(["demo", "--output", str(tmp_path)]) == 1
    assert capsys.readouterr().out.count("FAILS") == 1


@pytest.mark.parametrize(
    ("argv", "status"), [([], 2), (["dance"], 2), (["demo", "--colour"], 2), (["--version"], 0), (["demo", "-h"], 0)]
)
def test_usage(argv, status, capsys):
    assert cli.main(argv) == status
    said = capsys.readouterr()
    assert "kfdyn" in (said.err if status else said.out)


def test_an_output_that_cannot_be_written_is_named(tmp_path, capsys):
    in_the_way = tmp_path / "file"
    in_the_way.write_text("")
    assert cli.main(["demo", "--output", str(in_the_way)]) == 1
    assert str(in_the_way) in capsys.readouterr().err


def test_the_command_line_loads_nothing_heavy():
    code = "import sys, kfdyn.cli; print(*{'rich', 'matplotlib', 'numba', 'scipy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_the_arm_is_the_robot_it_says():
    """Its output covariance is the mass matrix that Pinocchio finds for the same hinges and rods."""
    model = pin.Model()
    joints = {"x": pin.JointModelRX, "y": pin.JointModelRY, "z": pin.JointModelRZ}
    ids = {-1: 0}
    for k, (name, parent, axis, lever, rod, mass) in enumerate(cli.ARM):
        ids[k] = model.addJoint(ids[parent], joints[axis](), pin.SE3(np.eye(3), np.array(lever)), name)
        rod = np.array(rod)
        about_centre = mass * ((rod @ rod * np.eye(3) - np.outer(rod, rod)) / 12 + 0.03**2 * np.eye(3))
        model.appendBodyToJoint(ids[k], pin.Inertia(mass, rod / 2, about_centre), pin.SE3.Identity())
    expected = pin.crba(model, model.createData(), np.zeros(model.nv))
    expected = np.triu(expected) + np.triu(expected, 1).T
    order = [model.joints[ids[k]].idx_v for k in range(len(cli.ARM))]
    ours = np.linalg.inv(kf.innovations_factor(kf.StateSpace(*cli.arm_blocks())).inverse())
    np.testing.assert_allclose(ours, expected[np.ix_(order, order)], rtol=1e-11, atol=1e-13)
