"""Docstrings keep to the words of CONTRIBUTING.md: plain first lines, and one meaning for each word of the glossary."""

import ast
import re
from pathlib import Path

import kfdyn

ROOT = Path(kfdyn.__file__).parent

#: Rooms that keep to it; the others are to follow.
ROOMS = (
    "cli", "duality", "dynamics", "estimation", "explore", "io", "motion/identification", "motion/planning",
    "multibody", "spatial", "symbolic", "sweeps", "textbook", "viz",
)  # fmt: skip
LEFT = ("check_log.py",)
#: Words that begin a riddle: "What a type is to him who writes a recursion".
RIDDLE = re.compile(r"(?:What|Whether|Who|Whose|Where|Which|When|How|Why|That|So|For|Of)\b")
#: A tree has roots, and equations; a covariance has a factor.
ROOTS = re.compile(r"\broots? of (?:a |the |its )?(?:covariance|Q\b|R\b|P\b)")


def docstrings(folder):
    """(place, docstring) of everything below a folder that has one."""
    for path in sorted(folder.rglob("*.py")):
        if path.name in LEFT:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and (text := ast.get_docstring(node)):
                yield f"{path.relative_to(ROOT)}: {getattr(node, 'name', 'module')}", text


def test_first_lines_are_no_riddles():
    found = [
        f"{place}: {text.partition(chr(10))[0]}"
        for room in ROOMS
        for place, text in docstrings(ROOT / room)
        if RIDDLE.match(text)
    ]
    assert not found, found


def test_covariances_have_factors():
    found = [place for room in ROOMS for place, text in docstrings(ROOT / room) if ROOTS.search(text)]
    assert not found, found


def test_the_tests_can_fail():
    assert RIDDLE.match("Whether one state is a batch of one.") and not RIDDLE.match("Whiten a covariance.")
    assert ROOTS.search("Gather roots of covariances.") and not ROOTS.search("Solve from the roots to the leaves.")


def test_algorithms_bear_the_names_that_people_search_for():
    """Each in a docstring of the package."""
    texts = "\n".join(text for _, text in docstrings(ROOT))
    names = (
        "ABA",
        "RNEA",
        "CRBA",
        "Joseph",
        "RTS",
        "Bryson–Frazier",
        "Cholesky",
        "Schur complement",
        "Riccati",
        "BFGS",
    )
    assert not [name for name in names if name not in texts]
