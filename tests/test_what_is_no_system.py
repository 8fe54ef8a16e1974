"""Every public function of a system says in words that a path, or nothing, is none."""

import importlib
import inspect

import pytest

import kfdyn as kf
from kfdyn.errors import ModelError

MODULES = ("", "multibody.", "dynamics.", "io.", "symbolic.", "duality.", "explore.")


def _functions():
    seen = {kf.cross_check}  # which takes models of estimation, too, and says so
    for module in MODULES:
        room = importlib.import_module(f"kfdyn.{module}".rstrip("."))
        for name in room.__all__:
            thing = getattr(room, name)
            if not inspect.isfunction(thing) or thing in seen:
                continue
            seen.add(thing)
            if next(iter(inspect.signature(thing).parameters), None) == "system":
                yield module + name


NAMES = sorted(_functions())


def test_there_are_many():
    assert len(NAMES) > 60


@pytest.mark.parametrize("name", NAMES)
def test_a_path_is_no_system(name):
    module, _, called = f"kfdyn.{name}".rpartition(".")
    function = getattr(importlib.import_module(module), called)
    rest = list(inspect.signature(function).parameters.values())[1:]
    needed = [p for p in rest if p.default is p.empty and p.kind is not p.VAR_KEYWORD]
    given = {p.name: 1.0 for p in needed}
    with pytest.raises(ModelError, match=r"system must be a kfdyn\.System, got 'panda\.urdf'; kf\.load reads one"):
        function("panda.urdf", **given)
    with pytest.raises(ModelError, match=r"system must be a kfdyn\.System, got None"):
        function(None, **given)
    with pytest.raises(
        ModelError, match=r"system must be a kfdyn\.System, got <class 'kfdyn\.multibody\.system\.System'>"
    ):
        function(kf.System, **given)
