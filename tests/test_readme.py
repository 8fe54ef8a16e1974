"""The examples of the README and of the guide run as printed, print what they show, and are right."""

import contextlib
import doctest
import importlib
import io
import re
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import kfdyn as kf

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
GUIDE = ("load", "inspect", "simulate")
ROOMS = ["estimation", "estimation.consistency", "estimation.dense", "spatial", "spatial.single_body"]
ROOMS += ["multibody", "multibody.models", "io", "dynamics", "duality", "viz"]


def blocks(text, language):
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def example():
    """The example's standard output and its variables."""
    (source,) = blocks(README, "python")
    names: dict = {}
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(source, "README.md", "exec"), names)
    return out.getvalue(), names


def test_the_example_prints_what_the_readme_shows(example):
    (shown,) = blocks(README, "text")
    assert example[0] == shown


def test_the_example_is_right(example):
    """Pinocchio reads the arm from a file and finds the same accelerations, and the same D from its own recursion."""
    pin = pytest.importorskip("pinocchio")
    _, names = example
    arm, smooth = names["arm"], names["smooth"]
    model = pin.buildModelFromXML(kf.save_urdf(arm))
    model.armature = arm.armature
    there = kf.to_pinocchio(arm, model, names["q"], names["v"], tau=names["tau"])
    data = model.createData()
    a = pin.aba(model, data, there.q, there.v, there.tau)
    np.testing.assert_allclose(smooth.a, a, rtol=1e-12)
    felt = [joint.Dinv[0, 0] ** -1 for joint in list(data.joints)[1:]]
    np.testing.assert_allclose([D[0, 0] for D in names["filt"].D], felt, rtol=1e-12)


@pytest.mark.parametrize("page", GUIDE)
def test_the_guide_runs_as_printed(page):
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    test = doctest.DocTestParser().get_doctest("\n".join(blocks(text, "pycon")), {}, page, f"{page}.md", 0)
    assert len(test.examples) > 5
    failed, _ = doctest.DocTestRunner(verbose=False).run(test)
    assert failed == 0


def test_the_commands_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for command in re.findall(r"make ([a-z-]+)", "".join(blocks(README, "sh"))):
        assert re.search(rf"^{command}:", makefile, re.MULTILINE), command


def test_the_links_lead_somewhere():
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", README):
        assert (ROOT / target).exists(), target


def test_every_public_name_has_its_place_in_the_reference():
    text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    listed, room = [], ""
    for line in text.splitlines():
        if heading := re.fullmatch(r"\.\. currentmodule:: ([\w.]+)", line):
            room = heading[1]
        elif entry := re.fullmatch(r"(?:   |\.\. py:data:: )([\w.]+)", line):
            listed.append(f"{room}.{entry[1]}")
    assert len(listed) == len(set(listed))
    for room in ROOMS:
        home = importlib.import_module(f"kfdyn.{room}")
        names = {name for name in home.__all__ if not isinstance(getattr(home, name), ModuleType)}
        assert {f"kfdyn.{room}.{name}" for name in names} - set(listed) == set()
    from kfdyn import errors

    assert {f"kfdyn.errors.{name}" for name, value in vars(errors).items() if isinstance(value, type)} <= set(listed)
    short = {name.rpartition(".")[2] for name in listed}
    assert {name for name in kf.__all__ if name not in ("__version__", "models")} - short == set()
