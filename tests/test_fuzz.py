"""make test draws the same examples everywhere; make fuzz new ones, which it counts, and says how to repeat one."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
CANARY = "tests/fuzz_canary.py"


def run(*command, **env):
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("KFDYN_", "PYTEST_"))}
    return subprocess.run([sys.executable, *command], cwd=ROOT, env=clean | env, capture_output=True, text=True)


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
