"""The lecture's exercises wait to be solved, its solutions solve them, and the checks find a wrong answer."""

import importlib
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

LECTURE = Path(__file__).parents[2] / "docs" / "lecture"
NUMBERS = sorted(path.stem.removeprefix("exercise_") for path in LECTURE.glob("exercise_*.py"))


@pytest.fixture(autouse=True)
def lecture_on_path(monkeypatch):
    monkeypatch.syspath_prepend(LECTURE)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)


def loaded(number):
    """Exercise and solution as modules, and the name of the function that both define."""
    exercise, solution = (importlib.import_module(f"{kind}_{number}") for kind in ("exercise", "solution"))
    own = [name for name, value in vars(exercise).items() if getattr(value, "__module__", "") == exercise.__name__]
    (name,) = set(own) - {"check"}
    return exercise, solution, name


def test_every_exercise_has_a_solution_and_its_place_on_the_pages():
    assert len(NUMBERS) >= 7
    assert sorted(path.stem.removeprefix("solution_") for path in LECTURE.glob("solution_*.py")) == NUMBERS
    pages = {name: (LECTURE / f"{name}.md").read_text(encoding="utf-8") for name in ("exercises", "solutions")}
    assert re.findall(r"literalinclude\} solution_(\w+)\.py", pages["solutions"]) == NUMBERS
    assert re.findall(r"literalinclude\} exercise_(\w+)\.py", pages["exercises"]) == NUMBERS


@pytest.mark.parametrize("number", NUMBERS)
def test_solution(number):
    exercise, solution, name = loaded(number)
    exercise.check(getattr(solution, name))


@pytest.mark.parametrize("number", NUMBERS)
def test_exercise_waits_for_an_answer(number):
    exercise, _, name = loaded(number)
    with pytest.raises(NotImplementedError, match=r"\w{3}"):
        exercise.check(getattr(exercise, name))


@pytest.mark.parametrize("number", NUMBERS)
def test_the_check_finds_a_wrong_answer(number):
    """Every number of the answer one part in twenty too large."""
    exercise, solution, name = loaded(number)
    answer = getattr(solution, name)
    with pytest.raises(AssertionError):
        exercise.check(lambda *given: np.asarray(answer(*given)) * 1.05)


@pytest.mark.parametrize(("script", "status"), [("solution_1.py", 0), ("exercise_1.py", 1)])
def test_as_a_student_runs_it(script, status, tmp_path):
    done = subprocess.run([sys.executable, "-B", LECTURE / script], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == status, done.stderr
    assert done.stdout.endswith("right\n") if status == 0 else "NotImplementedError: " in done.stderr


@pytest.mark.parametrize("number", NUMBERS)
def test_scripts_run_their_check(number):
    """What stands below the functions is the same in all: check the function, then say so."""
    _, _, name = loaded(number)
    for kind in ("exercise", "solution"):
        text = (LECTURE / f"{kind}_{number}.py").read_text(encoding="utf-8")
        assert text.endswith(f'\n\nif __name__ == "__main__":\n    check({name})\n    print("right")\n')


def test_the_numbers_on_the_blackboard():
    """The 3 x 3 mass matrix of the lecture, its determinant and its elimination."""
    phi = np.tril(np.ones((3, 3)))
    M = phi @ np.diag([2.0, 1.0, 3.0]) @ phi.T + np.eye(3)
    np.testing.assert_array_equal(M, [[3, 2, 2], [2, 4, 3], [2, 3, 7]])
    np.testing.assert_allclose(np.linalg.det(M), 37)
    np.testing.assert_allclose(np.diag(np.linalg.cholesky(M)) ** 2, [3, 8 / 3, 37 / 8])
