"""The files of the package that the pages about its inside name are there."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = [f"/{path.relative_to(ROOT)}" for path in (ROOT / "kfdyn").rglob("*.py")]


def named(page):
    """Paths of Python files in a page's code, whole or by their last parts."""
    return re.findall(r"`([\w/]+\.py)`", (ROOT / page).read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", ["docs/life_of_a_call.md", "docs/recursions.md", "CONTRIBUTING.md"])
def test_files_exist(page):
    assert named(page)
    for name in named(page):
        assert name == "utils.py" or any(file.endswith(f"/{name}") for file in FILES), name


def test_a_recursion_shares_its_name_with_one_file_of_its_room_at_most():
    assert "shares its name with one other file of its room at most" in (ROOT / "docs/life_of_a_call.md").read_text(
        "utf-8"
    )
    recursions = [file for file in FILES if "/recursions/" in file and not file.endswith("/__init__.py")]
    assert len(recursions) > 70
    for file in recursions:
        _, _, room, *_, name = file.split("/")
        namesakes = [other for other in FILES if other.startswith(f"/kfdyn/{room}/") and other.endswith(f"/{name}")]
        assert len(namesakes) <= 2, namesakes
        assert sum("/recursions/" in other for other in namesakes) == 1, namesakes


def test_most_files_are_as_short_as_promised():
    assert "most have fewer than 200 lines" in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    short = sum((ROOT / file[1:]).read_text(encoding="utf-8").count("\n") < 200 for file in FILES)
    assert short > 0.6 * len(FILES)


def test_functions_stand_where_the_page_says():
    """The life of a call: what a file is named for is in it."""
    for name, file in {
        "FORWARD = Solver(": "dynamics/forward.py",
        "class Kernel": "multibody/calls/kernel.py",
        "class Entry": "sweeps/entry.py",
        "class Solver": "dynamics/solving/solver.py",
        "def own_way": "dynamics/solving/kinds.py",
        "def smooth_node": "estimation/recursions/node_update.py",
        "def smooth_covariance": "estimation/recursions/node_update.py",
        "def kalman_filter": "estimation/inference/filter.py",
    }.items():
        text = (ROOT / "kfdyn" / file).read_text(encoding="utf-8")
        assert any(part in text for part in name.split("|")), (name, file)


def test_every_variable_of_the_environment_is_told():
    asked = {
        name
        for file in FILES
        for name in re.findall(r"environ(?:\.get\(|\[)\"(KFDYN_\w+)", (ROOT / file[1:]).read_text(encoding="utf-8"))
    }
    told = set(re.findall(r"^\| `(KFDYN_\w+)` \|", (ROOT / "docs" / "numerics.md").read_text("utf-8"), re.MULTILINE))
    assert asked == told


def test_extras_are_installed_in_one_way():
    """From the folder of the sources, as the README does: there is no other place to have the package from."""
    texts = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "kfdyn").rglob("*.py")]
    found = [name for text in texts for name in re.findall(r"pip install (\S*\[\w+\]\S*)", text.read_text("utf-8"))]
    assert len(found) > 7
    assert all(re.match(r'\\?"\.\[\w+\]\\?"', name) for name in found), found


def test_the_source_distribution_has_all_that_the_tests_read():
    """Every file beside the package that a test names, and what pytest looks for by itself."""
    about = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    included = {*about["tool"]["hatch"]["build"]["targets"]["sdist"]["include"], "pyproject.toml"}
    texts = [file.read_text(encoding="utf-8") for file in (ROOT / "tests").rglob("*.py")]
    read = {name.partition("/")[0] for text in texts for name in re.findall(r'\bROOT / "([^"]+)"', text)}
    needed = {name for name in read if (ROOT / name).exists()} | {"conftest.py", "tests"}
    assert {"docs", "README.md", "Makefile", "CONTRIBUTING.md"} < needed
    assert needed <= included
