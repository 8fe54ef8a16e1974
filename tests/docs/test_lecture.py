"""The lecture's exercises wait to be solved, its solutions solve them, and the checks find a wrong answer."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

LECTURE = Path(__file__).parents[2] / "docs" / "lecture"
NUMBERS = sorted(path.stem.removeprefix("exercise_") for path in LECTURE.glob("exercise_*.py"))


def run(script, source=None):
    """Run a script of the lecture as a student would, or a source beside it."""
    command = [sys.executable, script] if source is None else [sys.executable, "-c", source]
    return subprocess.run(
        command,
        cwd=LECTURE,
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_every_exercise_has_a_solution_and_its_place_on_the_pages():
    assert len(NUMBERS) >= 7
    assert sorted(path.stem.removeprefix("solution_") for path in LECTURE.glob("solution_*.py")) == NUMBERS
    pages = {name: (LECTURE / f"{name}.md").read_text(encoding="utf-8") for name in ("exercises", "solutions")}
    assert re.findall(r"literalinclude\} solution_(\w+)\.py", pages["solutions"]) == NUMBERS
    assert re.findall(r"literalinclude\} exercise_(\w+)\.py", pages["exercises"]) == NUMBERS


@pytest.mark.parametrize("number", NUMBERS)
def test_solution(number):
    done = run(f"solution_{number}.py")
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("right\n")


@pytest.mark.parametrize("number", NUMBERS)
def test_exercise_waits_for_an_answer(number):
    done = run(f"exercise_{number}.py")
    assert done.returncode == 1
    assert "NotImplementedError: " in done.stderr


# Runs the check on the solution with every number of its answer made one part in twenty too large.
WRONG = """
import numpy as np
import exercise_{0} as exercise, solution_{0} as solution
name = next(name for name in vars(solution) if name in vars(exercise) and name not in ("check", "np", "kf")
            and not name.startswith("_"))
exercise.check(lambda *given: np.asarray(getattr(solution, name)(*given)) * 1.05)
"""


@pytest.mark.parametrize("number", NUMBERS)
def test_the_check_finds_a_wrong_answer(number):
    done = run(None, WRONG.format(number))
    assert done.returncode == 1
    assert "AssertionError" in done.stderr, done.stderr


def test_the_numbers_on_the_blackboard():
    """The 3 x 3 mass matrix of the lecture, its determinant and its elimination."""
    phi = np.tril(np.ones((3, 3)))
    M = phi @ np.diag([2.0, 1.0, 3.0]) @ phi.T + np.eye(3)
    np.testing.assert_array_equal(M, [[3, 2, 2], [2, 4, 3], [2, 3, 7]])
    np.testing.assert_allclose(np.linalg.det(M), 37)
    np.testing.assert_allclose(np.diag(np.linalg.cholesky(M)) ** 2, [3, 8 / 3, 37 / 8])
