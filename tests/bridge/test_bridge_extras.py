"""The bridge is imported only when asked for, and says what it lacks."""

import subprocess
import sys

import pytest


def test_nothing_of_a_framework_is_imported_before_it_is_asked_for():
    code = "import sys, kfdyn, kfdyn.bridge; print({'jax', 'torch'} & set(sys.modules))"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True).stdout
    assert told == "set()\n"


@pytest.mark.parametrize("name", ["jax", "torch"])
def test_a_missing_framework_is_named(name):
    code = f"import sys; sys.modules['{name}'] = None; import kfdyn.bridge.{name}"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8").stderr.splitlines()[-1]
    cure = f'pip install ".[{name}]" in the folder of kfdyn\'s sources'
    assert told == f"ModuleNotFoundError: kfdyn.bridge.{name} needs {name}: {cure}"
