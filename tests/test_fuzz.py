"""make test draws the same examples everywhere; make fuzz new ones, which it counts, and says how to repeat one."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

ROOT = Path(__file__).parent.parent
CANARY = "tests/fuzz_canary.py"


def run(*command, **env):
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("KFDYN_", "PYTEST_"))}
    return subprocess.run([sys.executable, *command], cwd=ROOT, env=clean | env, capture_output=True, encoding="utf-8")


def drawn(*options, **env):
    said = run("-m", "pytest", "-s", "-p", "no:cacheprovider", *options, CANARY, **env).stdout
    return re.search(r"drawn (.*)", said).group(1)


def test_fuzz_finds_the_canary_and_says_how_to_repeat_it():
    found = run("tests/fuzz.py", "--seconds", "0.1", "--seed", "5", CANARY)
    assert found.returncode == 1
    assert re.search(r"seed 5: \d+ examples of 1 tests, 1 failed", found.stdout)
    env, command = re.search(r"to repeat it: (\S+) python (.*)", found.stdout).groups()
    again = run(*command.replace("'", "").split(), **dict([env.split("=")]))
    assert again.returncode == 1 and "test_canary" in again.stdout
    falsified = re.search(r"test_canary\([\sE]*n=(\d+)", found.stdout).group(1)
    assert f"n={falsified}" in again.stdout


def test_the_same_examples_without_fuzzing_and_new_ones_with_it():
    first, second = drawn(), drawn(CI="true")
    assert first == second
    assert drawn(KFDYN_EXAMPLES="new") != first


def test_a_slow_machine_is_not_wrong():
    assert settings.default.deadline is None
    assert HealthCheck.too_slow in settings.default.suppress_health_check


def test_examples_do_not_depend_on_what_is_imported(tmp_path, monkeypatch):
    """Hypothesis would draw numbers of a module that the tests before, or of another worker, have not imported."""
    drawn = []

    @settings(derandomize=True, database=None, max_examples=300)
    @given(st.integers(0, 10**6))
    def collect(n):
        drawn.append(n)

    collect()
    first = drawn.copy()
    file = tmp_path / "of_many_numbers.py"
    file.write_text(f"NUMBERS = {[*range(1000, 10**6, 997)]}\n", encoding="utf-8")
    spec = importlib.util.spec_from_file_location(file.stem, file)
    monkeypatch.setitem(sys.modules, file.stem, importlib.util.module_from_spec(spec))
    drawn.clear()
    collect()
    assert drawn == first
