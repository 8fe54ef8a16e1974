"""Every public function of a system says in words that a path, or nothing, is none."""

import inspect

import pytest

import kfdyn as kf
from kfdyn.errors import ModelError


def _functions():
    for name in kf.__all__:
        thing = getattr(kf, name)
        if inspect.isfunction(thing) and next(iter(inspect.signature(thing).parameters), None) == "system":
            yield name


NAMES = sorted(set(_functions()) - {"cross_check"})  # which takes models of estimation, too, and says so


def test_there_are_many():
    assert len(NAMES) > 45


@pytest.mark.parametrize("name", NAMES)
def test_a_path_is_no_system(name):
    function = getattr(kf, name)
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
