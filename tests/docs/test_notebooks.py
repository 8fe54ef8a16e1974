"""The exercises as notebooks, in a real Jupyter kernel: unfinished they say what is missing, solved they are right."""

import copy
import json
import os
import re
import sys
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")

ROOT = Path(__file__).parents[2]
LECTURE = ROOT / "docs" / "lecture"
NUMBERS = sorted(path.stem.removeprefix("exercise_") for path in LECTURE.glob("exercise_*.ipynb"))


@pytest.fixture(autouse=True)
def the_copy_under_test(monkeypatch):
    """The kernel imports this kfdyn, wherever another one may be installed."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))


def read(number):
    return nbformat.read(LECTURE / f"exercise_{number}.ipynb", as_version=4)


@pytest.fixture
def said(run_notebook, tmp_path):
    """What is printed by a notebook in a folder that has nothing of the lecture."""

    def run(book):
        nbformat.validate(book)
        run_notebook(book, tmp_path)
        outputs = [output for cell in book.cells if cell.cell_type == "code" for output in cell.outputs]
        assert {output.output_type for output in outputs} == {"stream"}, "something other than print spoke"
        return "".join(output.text for output in outputs if output.name == "stdout")

    return run


def with_answer(book, code):
    """A copy in which the cell to be filled in holds this."""
    book = copy.deepcopy(book)
    (cell,) = [cell for cell in book.cells if cell.id == "answer"]
    cell.source = code
    return book


def solution(book):
    """The code that folds out."""
    (cell,) = [cell for cell in book.cells if cell.id == "solution"]
    assert re.match(r"<details>\n<summary>[^<]+</summary>\n\n", cell.source)
    assert cell.source.endswith("\n\n</details>")
    return re.search(r"```python\n(.*)\n```", cell.source, re.DOTALL)[1]


def test_notebooks_are_what_the_scripts_say(monkeypatch):
    monkeypatch.syspath_prepend(LECTURE)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    import notebooks

    assert [path.stem.removeprefix("exercise_") for path in sorted(LECTURE.glob("exercise_*.py"))] == NUMBERS
    for number in NUMBERS:
        kept = (LECTURE / f"exercise_{number}.ipynb").read_text(encoding="utf-8")
        assert kept == notebooks.written(number), "run: python docs/lecture/notebooks.py"
        assert json.loads(kept)["nbformat"] == 4


@pytest.mark.slow
@pytest.mark.parametrize("number", NUMBERS)
def test_unfinished_it_says_what_is_missing(number, said):
    assert re.fullmatch(r"Still to be written: \w+\. Hint: .+\.\n", said(read(number)))


@pytest.mark.slow
@pytest.mark.parametrize("number", NUMBERS)
def test_what_folds_out_is_right(number, said):
    book = read(number)
    assert said(with_answer(book, solution(book))).endswith("right\n")


def test_one_of_each_and_a_slip(said):
    """In the quick tests one notebook stands for all: unfinished, solved, wrong and broken, no traceback in any."""
    book = read("1")
    (verdict,) = [cell for cell in book.cells if cell.id == "verdict"]
    code = solution(book)
    answers = [code, code.replace("+ r[k]", "+ 2 * r[k]"), code.replace("behind + m[k]", "behind + mass[k]")]
    for answer in answers:
        book.cells += [nbformat.v4.new_code_cell(answer), nbformat.v4.new_code_cell(verdict.source)]
    unfinished, right, *wrong, broken = said(book).splitlines()
    assert unfinished.startswith("Still to be written: filter_of_train. Hint: four lines")
    assert right == "right"
    assert wrong[0].startswith("Not right yet: ")
    expected = r"filter_of_train does not run yet\. NameError in line \d+ .*'mass' is not defined"
    assert re.fullmatch(expected, broken)
