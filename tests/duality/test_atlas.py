"""The atlas is complete and true: code and test exist, and the test names the id."""

import ast
import re
import runpy
from pathlib import Path

import pytest

from kfdyn.duality.atlas import SOURCES, atlas

ROOT = Path(__file__).parents[2]
LATER = {"SKO:embedding", "SKO:cut-joint", "SKO:geared", "SKO:flexible", "R86:11-SYM", "R86:12-FAST"}
RESULTS = list(atlas().values())


def test_every_result_is_there_once():
    counts = {source: sum(result.source == source for result in RESULTS) for source in SOURCES}
    assert counts == {"R86": 43, "ATBI": 29, "SKO": 37, "SRB": 15, "PART": 17}
    assert len(RESULTS) == 141
    assert {result.id for result in RESULTS if result.is_open} <= LATER


@pytest.mark.parametrize("result", [r for r in RESULTS if not r.is_open], ids=lambda r: r.id)
def test_code_and_test_exist_and_the_test_names_the_id(result):
    assert result.resolve() is not None
    path, name = result.test.split("::")
    source = (ROOT / path).read_text(encoding="utf-8")
    functions = [n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.FunctionDef) and n.name == name]
    assert functions, f"{path} has no {name}"
    text = ast.get_source_segment(source, functions[0])
    # "PART:1" must not be found in "PART:18", nor "R86:9.4" in "R86:9.4-9.7"
    assert re.search(re.escape(result.id) + r"(?![\w-])(?![.,]\d)", text), f"{result.test} does not name {result.id}"


@pytest.mark.parametrize("name", ["dictionary.md", "atlas.md"])
def test_generated_pages_are_up_to_date(name):
    pages = runpy.run_path(str(ROOT / "docs" / "duality_pages.py"))["pages"]()
    assert (ROOT / "docs" / name).read_text(encoding="utf-8") == pages[name], "run python docs/duality_pages.py"
