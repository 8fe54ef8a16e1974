"""The README's example runs as printed and is right; its figures are measured, its claims about others are true."""

import contextlib
import importlib.util
import io
import re
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import kfdyn as kf

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
ROOMS = ["estimation", "estimation.consistency", "estimation.dense", "spatial"]
ROOMS += ["multibody", "multibody.models", "io", "dynamics", "duality", "viz"]


def blocks(text, language):
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def example():
    """The example's standard output and its variables."""
    (source,) = blocks(README, "python")
    names: dict = {}
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(source, "README.md", "exec"), names)
    return out.getvalue(), names


def test_the_example_prints_what_the_readme_shows(example):
    (shown,) = blocks(README, "text")
    assert example[0] == shown


def test_the_example_is_right(example):
    """Pinocchio reads the arm from a file and finds the same accelerations, and the same D from its own recursion."""
    pin = pytest.importorskip("pinocchio")
    _, names = example
    arm, smooth = names["arm"], names["smooth"]
    model = pin.buildModelFromXML(kf.save_urdf(arm))
    model.armature = arm.armature
    there = kf.to_pinocchio(arm, model, names["q"], names["v"], tau=names["tau"])
    data = model.createData()
    a = pin.aba(model, data, there.q, there.v, there.tau)
    np.testing.assert_allclose(smooth.a, a, rtol=1e-12)
    felt = [joint.Dinv[0, 0] ** -1 for joint in list(data.joints)[1:]]
    np.testing.assert_allclose([D[0, 0] for D in names["filt"].D], felt, rtol=1e-12)


def test_the_example_has_ten_lines():
    (source,) = blocks(README, "python")
    assert len([line for line in source.splitlines() if line.strip()]) <= 10


def test_speeds_are_those_that_were_measured():
    """The tables are what docs/readme_speed.py writes from benchmarks/results; run it after a benchmark."""
    path = ROOT / "docs" / "readme_speed.py"
    speed = importlib.util.module_from_spec(importlib.util.spec_from_file_location("readme_speed", path))
    speed.__spec__.loader.exec_module(speed)
    assert speed.filled(ROOT / "README.md") == README  # the pages' own: tests/docs/test_recorded_numbers.py


def row(name):
    """Cells of the row of the README's comparison that begins with ``name``, by the columns' heads."""
    lines = [line for line in README.splitlines() if line.startswith("|")]
    heads = next(line for line in lines if "Pinocchio" in line).split("|")[2:-1]
    cells = next(line for line in lines if line.startswith(f"| {name}")).split("|")[2:-1]
    return {head.strip(): cell.strip() for head, cell in zip(heads, cells)}


def test_what_is_said_of_pinocchio():
    pin = pytest.importorskip("pinocchio")
    assert row("contact")["Pinocchio"] == "yes"
    assert hasattr(pin, "constraintDynamics") and hasattr(pin, "RigidConstraintModel")
    assert row("derivatives")["Pinocchio"] == "analytical"
    assert hasattr(pin, "computeABADerivatives")
    parallel = {name for name in dir(pin) if name.endswith("InParallel")}
    assert row("a batch")["Pinocchio"] == "ABA, RNEA"
    assert parallel <= {"abaInParallel", "rneaInParallel", "computeCollisionsInParallel"}
    assert row("functions for log det")["Pinocchio"] == "no"
    assert not [name for name in dir(pin) if "logdet" in name.lower()]


def test_what_is_said_of_mujoco():
    mujoco = pytest.importorskip("mujoco")
    assert row("contact")["MuJoCo"] == "yes"
    assert row("derivatives")["MuJoCo"] == "finite differences"
    assert hasattr(mujoco, "mjd_transitionFD") and hasattr(mujoco, "mjd_inverseFD")
    assert row("a batch")["MuJoCo"] == "rollouts"
    assert importlib.util.find_spec("mujoco.rollout") is not None


def test_nobody_of_the_columns_smooths_or_plans_motions():
    """By their own names: a smoother, a regulator or a planner would be called one."""
    for peer, column in (("pinocchio", "Pinocchio"), ("mujoco", "MuJoCo")):
        module = pytest.importorskip(peer)
        names = {name.lower() for name in dir(module)}
        for word in ("smoother", "kalman", "lqr", "riccati", "ddp", "optimalcontrol"):
            assert not [name for name in names if word in name], (peer, word)
        assert row("smoothing a robot")[column] == row("optimal control")[column] == "no"
    assert row("smoothing a robot")["kfdyn"] == row("optimal control")["kfdyn"] == "yes"
    assert callable(kf.MotionModel) and callable(kf.lqr) and callable(kf.plan_motion)


def test_what_is_said_of_the_smoothers():
    """A position known exactly, a constant speed: filterpy's smoother inverts a singular matrix, others do not."""
    filterpy = pytest.importorskip("filterpy.kalman")
    statsmodels = pytest.importorskip("statsmodels.tsa.statespace.kalman_smoother")
    F, H, none, P0 = np.array([[1.0, 1.0], [0.0, 1.0]]), np.array([[1.0, 0.0]]), np.zeros((2, 2)), np.diag([0.0, 1.0])

    ss = kf.StateSpace.chain(F, H, none, [[0.0]], np.zeros(2), F @ P0 @ F.T, steps=3)
    single = np.array([0.5, np.nan, np.nan])  # the rest is known then
    smooth = kf.bryson_frazier(ss, kf.kalman_filter(ss, single))
    np.testing.assert_allclose(smooth.x.stacked(), [[0.5, 0.5], [1.0, 0.5], [1.5, 0.5]])
    assert row("smoother with R = 0")["kfdyn"] == "yes"

    peer = statsmodels.KalmanSmoother(
        k_endog=1, k_states=2, design=H, transition=F, selection=np.eye(2), state_cov=none, obs_cov=np.zeros((1, 1))
    )
    peer.bind(single.copy())
    peer.initialize_known(np.zeros(2), F @ P0 @ F.T)
    np.testing.assert_allclose(peer.smooth().smoothed_state, smooth.x.stacked().T, atol=1e-12)
    assert row("smoother with R = 0")["statsmodels"] == "yes"

    other = filterpy.KalmanFilter(2, 1)
    other.F, other.H, other.Q, other.R, other.P = F, H, none, np.zeros((1, 1)), P0
    mean, cov, _, _ = other.batch_filter([0.5, None, None])
    with pytest.raises(np.linalg.LinAlgError):
        other.rts_smoother(mean, cov)
    assert row("smoother with R = 0")["filterpy"] == "no"
    assert row("nonlinear")["filterpy"] == "yes"
    assert hasattr(filterpy, "UnscentedKalmanFilter")


def test_the_commands_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for command in re.findall(r"make ([a-z-]+)", "".join(blocks(README, "sh"))):
        assert re.search(rf"^{command}:", makefile, re.MULTILINE), command


def test_the_links_lead_somewhere():
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", README):
        assert (ROOT / target).exists(), target


def test_every_public_name_has_its_place_in_the_reference():
    text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    listed, room = [], ""
    for line in text.splitlines():
        if heading := re.fullmatch(r"\.\. currentmodule:: ([\w.]+)", line):
            room = heading[1]
        elif entry := re.fullmatch(r"(?:   |\.\. py:data:: )([\w.]+)", line):
            listed.append(f"{room}.{entry[1]}")
    assert len(listed) == len(set(listed))
    for room in ROOMS:
        home = importlib.import_module(f"kfdyn.{room}")
        names = {name for name in home.__all__ if not isinstance(getattr(home, name), ModuleType)}
        assert {f"kfdyn.{room}.{name}" for name in names} - set(listed) == set()
    from kfdyn import errors

    own = [
        name
        for name, value in vars(errors).items()
        if getattr(value, "__module__", "") == errors.__name__ and isinstance(value, type)
    ]

    assert {f"kfdyn.errors.{name}" for name in own} <= set(listed)
    short = {name.rpartition(".")[2] for name in listed}
    named = {name for name in kf.__all__ if not isinstance(getattr(kf, name), ModuleType)}
    assert named - {"__version__"} - short == set()


def test_what_the_reference_has_in_one_room_alone_is_not_at_the_door():
    text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    for room, table in re.findall(r"\nIn `kfdyn\.(\w+)` alone:\n\n```\{eval-rst\}(.*?)```", text, re.S):
        home = importlib.import_module(f"kfdyn.{room}")
        for name in re.findall(r"^   (\w+)$", table, re.M):
            assert hasattr(home, name) and name not in kf.__all__, name


def test_the_words_of_the_report_are_found():
    """Whoever comes with Rodriguez's paper finds its letters and its words, and the pages about it."""
    for words in (
        "| φ, H |",
        "| Kalman gain | G",
        "Riccati",
        "(docs/textbook.md)",
        "(docs/atlas.md)",
        "(docs/errata.md)",
    ):
        assert words in README
    assert "`out=`" in README
