"""The lecture's exercises wait to be solved, its solutions solve them, and the checks find a wrong answer."""

import functools
import importlib
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import kfdyn as kf

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
    (name,) = set(own) & {name for name, value in vars(solution).items() if callable(value)} - {"check"}
    return exercise, solution, name


def test_every_exercise_has_a_solution_and_its_place_on_the_pages():
    assert len(NUMBERS) >= 9
    assert sorted(path.stem.removeprefix("solution_") for path in LECTURE.glob("solution_*.py")) == NUMBERS
    pages = {name: (LECTURE / f"{name}.md").read_text(encoding="utf-8") for name in ("exercises", "solutions")}
    assert re.findall(r"literalinclude\} solution_(\w+)\.py", pages["solutions"]) == NUMBERS
    assert re.findall(r"literalinclude\} exercise_(\w+)\.py", pages["exercises"]) == NUMBERS
    assert re.findall(r"\{download\}`notebook <exercise_(\w+)\.ipynb>`", pages["exercises"]) == NUMBERS


@pytest.mark.parametrize("number", NUMBERS)
def test_solution(number):
    exercise, solution, name = loaded(number)
    exercise.check(getattr(solution, name))


def test_lists_are_right_where_arrays_are():
    exercise, solution, _ = loaded("1")
    exercise.check(lambda m, r: [x.tolist() for x in solution.filter_of_train(m, r)])


@pytest.mark.parametrize("number", NUMBERS)
def test_exercise_waits_for_an_answer(number):
    exercise, _, name = loaded(number)
    with pytest.raises(NotImplementedError, match=r"\w{3}"):
        exercise.check(getattr(exercise, name))


@pytest.mark.parametrize("number", sorted(set(NUMBERS) - {"8", "9"}))
def test_the_check_finds_a_wrong_answer(number):
    """Every number of the answer one part in twenty too large."""
    exercise, solution, name = loaded(number)
    answer = getattr(solution, name)
    with pytest.raises(AssertionError):
        exercise.check(lambda *given: np.asarray(answer(*given)) * 1.05)


@pytest.mark.parametrize("wrong", ["P", "D", "G", "P_plus"])
def test_the_verdict_names_what_is_wrong(wrong, capsys):
    exercise, solution, name = loaded("1")

    def answer(m, r):
        found = zip(("P", "D", "G", "P_plus"), map(np.asarray, getattr(solution, name)(m, r)))
        return tuple(1.05 * x if letter == wrong else x for letter, x in found)

    importlib.import_module("verdict").verdict(exercise.check, answer)
    assert f"{wrong} is wrong" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("claim", "lines", "complaint"),
    [
        ("tau G = G", ["tau G", "G"], "tau G = G does not follow by one rule"),  # a step left out: the claim itself
        ("tau G = G", ["tau G", "G G H", "G"], "tau G = G G H does not follow"),  # matrices do not commute
        ("tau P = P tau*", ["tau P", "G H P", "P H* Dinv H P"], "does not end with its right side"),
        ("tau P = P tau*", ["P tau*", "tau P"], "does not begin with its left side"),
        ("taubar* H* = 0", ["taubar* H*", "H* - tau* H*", "H* - G* H* H*", "0"], "H. - G. H. H. does not follow"),
        ("P taubar* = taubar P", [], "no proof of P taubar"),
        ("tau G = G", ["tau G", "G X G", "G"], "no such letter: X"),
    ],
)
def test_a_proof_with_a_hole_is_found(claim, lines, complaint):
    exercise, solution, _ = loaded("8")
    given = solution.proofs() | {claim: lines}
    with pytest.raises(AssertionError, match=complaint):
        exercise.check(lambda: given)


def test_the_rules_of_the_proofs_are_true_of_a_robot():
    """Every rule and every claim, with the numbers of an arm without rotors: what is proved is mechanics."""
    exercise, _, _ = loaded("8")
    arm = kf.models.random_tree(6, seed=2, armature=False)
    ss = kf.as_estimation(arm, arm.random_configuration(np.random.default_rng(0)))
    cov = kf.riccati(ss)
    for k in range(6):
        values = {"P": cov.P[k], "D": cov.D[k], "G": cov.G[k], "H": ss.H[k], "Dinv": np.linalg.inv(cov.D[k])}
        values["tau"] = values["G"] @ values["H"]
        values["taubar"] = np.eye(6) - values["tau"]
        values = {name: np.asarray(value) for name, value in values.items()}
        sizes = {name: abs(value) for name, value in values.items()}
        sizes["taubar"] = np.eye(6) + sizes["tau"]  # the difference itself may vanish
        for statement in exercise.RULES + exercise.CLAIMS:
            left, right = map(exercise.parse, statement.split("="))
            expected = evaluated(left, values)
            got = evaluated(right, values, np.eye(len(expected)))
            size = evaluated(left, sizes).max(initial=0.0)  # a fixed hinge has no D
            np.testing.assert_allclose(expected - got, 0, atol=1e-10 * size, err_msg=statement)


def evaluated(terms, values, one=None):
    """A sum of products in numbers; the empty product is 1, the empty sum 0."""
    total = 0.0
    for product, factor in terms.items():
        factors = [values[name.removesuffix("*")].T if name.endswith("*") else values[name] for name in product]
        total = total + factor * (functools.reduce(np.matmul, factors) if factors else one)
    return total


@pytest.mark.parametrize("wrong", ["through", "added", "lost", "columns"])
def test_a_wrong_factor_is_found(wrong):
    exercise, solution, _ = loaded("9")

    def answer(ss, cov):
        through, added, lost = solution.factors(ss, cov)
        if wrong == "columns":  # the same product, one column too many
            lost = [np.hstack([L, np.zeros((6, 1))]) for L in lost]
        return [
            [L * (1.05 if wrong == name else 1.0) for L in each]
            for name, each in zip(("through", "added", "lost"), (through, added, lost))
        ]

    with pytest.raises(AssertionError):
        exercise.check(answer)


@pytest.mark.parametrize(("script", "said"), [("solution_1.py", "right"), ("exercise_1.py", "Still to be written: ")])
def test_as_a_student_runs_it(script, said, tmp_path):
    done = subprocess.run([sys.executable, "-B", LECTURE / script], cwd=tmp_path, capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(said)
    assert done.stderr == ""


@pytest.mark.parametrize("number", NUMBERS)
def test_scripts_run_their_check(number):
    """What stands below the functions is the same in all: the verdict on the function."""
    _, _, name = loaded(number)
    for kind in ("exercise", "solution"):
        text = (LECTURE / f"{kind}_{number}.py").read_text(encoding="utf-8")
        end = f'\n\nif __name__ == "__main__":\n    from verdict import verdict\n\n    verdict(check, {name})\n'
        assert text.endswith(end)


@pytest.mark.parametrize("number", NUMBERS)
def test_a_forgotten_return_is_named(number, capsys):
    exercise, _, name = loaded(number)

    def forgetful(*given, **named):
        pass

    forgetful.__name__ = name
    importlib.import_module("verdict").verdict(exercise.check, forgetful)
    assert capsys.readouterr().out.startswith(f"Not right yet: {name} returns nothing; is its last line, return")


def test_the_numbers_on_the_blackboard():
    """The 3 x 3 mass matrix of the lecture, its determinant and its elimination."""
    phi = np.tril(np.ones((3, 3)))
    M = phi @ np.diag([2.0, 1.0, 3.0]) @ phi.T + np.eye(3)
    np.testing.assert_array_equal(M, [[3, 2, 2], [2, 4, 3], [2, 3, 7]])
    np.testing.assert_allclose(np.linalg.det(M), 37)
    np.testing.assert_allclose(np.diag(np.linalg.cholesky(M)) ** 2, [3, 8 / 3, 37 / 8])
