"""Property tests with every index checked: the recursions run as they stand, on Python's own numbers."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SAMPLE = [
    "tests/estimation/test_riccati.py::test_covariances_are_conditional",
    "tests/estimation/test_filtering.py::test_states_and_innovations",
    "tests/estimation/test_smoothing.py::test_smoother_is_the_posterior",
    "tests/dynamics/test_forward.py::test_dense_solve",
    "tests/dynamics/test_hybrid.py::test_locked_hinge_is_a_weld",
]
MORE = [
    *(f"tests/estimation/test_{name}.py" for name in ("riccati", "filtering", "smoothing", "identities", "factor")),
    *(f"tests/dynamics/test_{name}.py" for name in ("forward", "inverse", "hybrid", "mass_matrix")),
]


def checked(*arguments):
    """Run tests where KFDYN_CHECK is set from the start."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", *arguments]
    told = os.environ | {"KFDYN_CHECK": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=told, capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout or "[100%]" in done.stdout


@pytest.mark.parametrize(("value", "on"), [("1", True), ("yes", True), ("0", False), ("false", False), ("No", False)])
def test_what_turns_it_on(value, on):
    command = [sys.executable, "-c", "from kfdyn.sweeps.jit import Checks; print(Checks.on)"]
    told = os.environ | {"KFDYN_CHECK": value, "PYTHONPATH": str(ROOT)}
    assert subprocess.run(command, env=told, capture_output=True, encoding="utf-8").stdout.strip() == str(on)


def test_a_sample_passes():
    checked(*SAMPLE)


@pytest.mark.slow
def test_whole_files_pass():
    """All but what is about threads, of which plain numbers have none."""
    checked("-k", "not thread", *MORE)
