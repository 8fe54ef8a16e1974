"""Names that are imported on first use: each is found, kept, listed, and no other is."""

import importlib
import subprocess
import sys

import pytest

PACKAGES = ("kfdyn", "kfdyn.dynamics", "kfdyn.estimation", "kfdyn.sweeps")


@pytest.mark.parametrize("name", PACKAGES)
def test_every_name_is_found_kept_and_listed(name):
    package = importlib.import_module(name)
    for each in package.__all__:
        value = getattr(package, each)
        assert vars(package)[each] is value, each
    assert set(package.__all__) <= set(dir(package))


@pytest.mark.parametrize("name", PACKAGES)
def test_no_other_name_is(name):
    with pytest.raises(AttributeError, match=rf"^module '{name}' has no attribute 'nonsense'$"):
        _ = importlib.import_module(name).nonsense


def test_nothing_is_imported_before_it_is_asked_for():
    code = "import sys, kfdyn; print(sorted(m for m in sys.modules if m.startswith(('kfdyn', 'numpy'))))"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True).stdout
    assert told == "['kfdyn', 'kfdyn.lazy']\n"


@pytest.mark.parametrize("room", ["duality", "dynamics", "estimation", "explore", "io", "multibody", "spatial"])
def test_a_room_is_there_before_anything_was_used(room):
    """As the pages write it, kf.io.read_sensors, in a process that has loaded nothing yet."""
    code = f"import kfdyn as kf; print(kf.{room}.__name__)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True).stdout
    assert told == f"kfdyn.{room}\n"


@pytest.mark.parametrize("name", PACKAGES)
def test_only_what_is_for_the_user_is_listed(name):
    package = importlib.import_module(name)
    assert not {"lazy", "on_first_use", "_names", "_PLACES", "_NAMES_OF", "_ROOMS"} & set(dir(package))


def test_rooms_are_listed():
    assert {"io", "viz", "duality"} <= set(dir(importlib.import_module("kfdyn")))
    assert {"series", "dense", "consistency"} <= set(dir(importlib.import_module("kfdyn.estimation")))
