"""The atlas is complete and true: code and test exist, and the test names the id."""

import ast
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from kfdyn.duality.atlas import SOURCES, atlas, evidence

ROOT = Path(__file__).parents[2]
RESULTS = list(atlas().values())


def test_every_result_is_there_once():
    counts = {source: sum(result.source == source for result in RESULTS) for source in SOURCES}
    assert counts == {"R86": 46, "ATBI": 29, "SKO": 38, "SRB": 18, "PART": 19}
    assert len(RESULTS) == 150
    assert not any(result.is_open for result in RESULTS)


@pytest.mark.parametrize("result", [r for r in RESULTS if not r.is_open], ids=lambda r: r.id)
def test_code_and_test_exist_and_the_test_names_the_id(result):
    for name in (result.code, *result.also, *result.sweeps):
        assert result.resolve(name) is not None
    path, name = result.test.split("::")
    source = (ROOT / path).read_text(encoding="utf-8")
    functions = [n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.FunctionDef) and n.name == name]
    assert functions, f"{path} has no {name}"
    text = ast.get_source_segment(source, functions[0])
    # "PART:1" must not be found in "PART:18", nor "R86:9.4" in "R86:9.4-9.7"
    assert re.search(re.escape(result.id) + r"(?![\w-])(?![.,]\d)", text), f"{result.test} does not name {result.id}"


def measured_again(*arguments):
    """Break the code of some entries and run their tests, as ``make atlas`` does for all."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        encoding="utf-8",
    )


#: Entries with a mutant that changes nothing the result speaks of, and why.
INVARIANT = {
    "ATBI:floppy": "f = Pα: with P and α both turned, f is the same",
}
TOOL = ("tests/duality/atlas_evidence.py", "--check", "--ids")


def test_the_evidence_is_of_this_atlas():
    """Every entry was measured: its test passes, runs its code, and kills every mutant."""
    measured = evidence()
    closed = {result.id for result in RESULTS if not result.is_open}
    assert closed == set(measured), "run make atlas"
    weak = {key: one for key, one in measured.items() if not one.proves}
    assert set(weak) == set(INVARIANT), weak
    assert all(one.passes and one.executed and one.killed >= 2 for one in weak.values())
    behind = {result.id for result in RESULTS if result.sweeps}
    assert {key for key, one in measured.items() if one.recursions} == behind, "run make atlas"
    assert all(set(measured[key].recursions) == {"plain", "compiled"} for key in behind)


def test_mutants_are_killed_now():
    """The quick part: three entries measured again, a few seconds."""
    done = measured_again(*TOOL, "R86:4.4", "PART:16", "SRB:parallel-axis")
    assert done.returncode == 0, done.stdout + done.stderr


def test_mutants_of_a_recursion_are_killed_now():
    """The quick part: one entry whose work a recursion does, run on plain numbers and compiled."""
    done = measured_again("tests/duality/sweep_evidence.py", "--check", "--ids", "R86:5.1-5.3")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_every_mutant_of_a_recursion_is_killed():
    """All of them, some ten minutes."""
    done = measured_again("tests/duality/sweep_evidence.py", "--check")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("kind", ["code", "recursions"])
def test_nothing_is_named_in_vain(kind):
    """Every test comes by the code of its entries, and by a formula of each of their recursions; nothing is broken."""
    done = measured_again("tests/duality/atlas_trace.py", kind)
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_is_named_in_vain_is_found():
    """A recursion that another recursion's test does not run; one that has no formula; code that is not called."""
    code = (
        "import sys; sys.path.insert(0, 'tests/duality')\n"
        "from dataclasses import replace\n"
        "import atlas_trace as tool\n"
        "one = tool.atlas()['R86:5.1-5.3']\n"
        "moved = ('kfdyn.estimation.recursions.lyapunov.upward', 'kfdyn.multibody.recursions.frames.frame_velocity')\n"
        "found = tool.named_in_vain([replace(one, sweeps=(*one.sweeps, *moved))], 'recursions')\n"
        "assert [text.split()[1] for text in found] == list(moved), found\n"
        "found = tool.named_in_vain([one, replace(one, code='kfdyn.draw')], 'code')\n"
        "assert [text.split()[1] for text in found] == ['kfdyn.draw'], found\n"
    )
    done = measured_again("-c", code)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_mutant_that_changes_nothing_survives():
    """Else death would mean nothing, neither of plain numbers nor of compiled code."""
    code = (
        "import sys; sys.path.insert(0, 'tests/duality')\n"
        "import sweep_evidence as tool\n"
        "tool.chosen = lambda result, name, kind, ran: [tool.Mutant('none', 'nowhere', lambda: None)]\n"
        "one = tool.atlas()['R86:5.1-5.3']\n"
        "found = tool.measure([one])[one.id]\n"
        "assert set(found) == {'plain', 'compiled'}\n"
        "assert all((part['mutants'], part['killed']) == (len(one.sweeps), 0) for part in found.values()), found\n"
    )
    done = measured_again("-c", code)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_measure_can_fail(tmp_path):
    """A test that neither runs the code nor would notice is found."""
    idle = 'def test_idle():\n    "PART:16"\n    assert True\n'
    (tmp_path / "test_idle.py").write_text(idle, encoding="utf-8")
    code = (
        "import sys; sys.path.insert(0, 'tests/duality')\n"
        "import atlas_evidence as tool\n"
        "from kfdyn.duality.atlas import Result\n"
        f"one = Result('PART', '16', '', 'kfdyn.textbook.part.information_16', '{tmp_path}/test_idle.py::test_idle')\n"
        "found = tool.measure([one])['PART:16']\n"
        "assert not found['executed'] and found['killed'] == 0 < found['mutants'], found\n"
    )
    done = measured_again("-c", code)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("source", SOURCES)
def test_every_mutant_is_killed(source):
    """The whole of a source, some minutes each."""
    ids = [r.id for r in RESULTS if r.source == source and not r.is_open and r.id not in INVARIANT]
    done = measured_again(*TOOL, *ids)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", ["dictionary.md", "atlas.md"])
def test_generated_pages_are_up_to_date(name):
    pages = runpy.run_path(str(ROOT / "docs" / "duality_pages.py"))["pages"]()
    assert (ROOT / "docs" / name).read_text(encoding="utf-8") == pages[name], "run python docs/duality_pages.py"
