"""What the source cites of the theory stands on its page under that number, and the reference links to it."""

import re
from pathlib import Path

import pytest
from theory_links import CITATION, EQUATIONS, cited, linked

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGE = (DOCS / "theory.md").read_text(encoding="utf-8")
SOURCES = sorted((ROOT / "kfdyn").rglob("*.py"))
CITATIONS = [
    (f"{path.relative_to(ROOT)}:{number}", match[0])
    for path in SOURCES
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
    for match in CITATION.finditer(line)
]


def sections_of(page):
    """Numbers of the sections that have a heading, with the target that links go to above it."""
    return re.findall(r"^\(theory-(\d+)\)=\n(?:\([\w-]+\)=\n)*## \1\. \S", page, re.MULTILINE)


def nowhere(page):
    """Citations of sections or equations that the page does not have."""
    sections = set(sections_of(page))
    labels = set(re.findall(r"^:label: (\S+)$", page, re.MULTILINE))
    return [
        (where, text)
        for where, text in CITATIONS
        if set(cited(text)[0]) - sections or {EQUATIONS.get(n) for n in cited(text)[1]} - labels
    ]


def test_every_citation_leads_somewhere():
    assert len(CITATIONS) > 80
    assert nowhere(PAGE) == []


def test_sections_are_numbered_in_order():
    numbers = sections_of(PAGE)
    assert numbers == [str(n) for n in range(1, len(numbers) + 1)]
    assert numbers == re.findall(r"^## (\d+)\.", PAGE, re.MULTILINE)
    assert len(numbers) == len(re.findall(r"^## ", PAGE, re.MULTILINE))


@pytest.mark.parametrize("lost", ["(theory-12)=\n", "## 10. ", ":label: smoothed-cov\n"])
def test_a_lost_heading_would_be_found(lost):
    assert PAGE.count(lost) == 1
    assert nowhere(PAGE.replace(lost, ""))


def test_no_citation_is_broken_over_lines():
    """Links are made line by line."""
    for path in SOURCES:
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"THEORY\s*\n[\s#]*(?:sections?\b|\()", text), path
        assert not re.search(r"THEORY sections?\s*\n", text), path
        assert not re.search(r"THEORY sections [^.;:]*?(?:\band|\bto|,|–)\s*\n\s*\d", text), path


def test_the_reference_links_every_number():
    for where, text in CITATIONS:
        links = linked(text)
        sections, equations = cited(text)
        assert re.findall(r"<theory-(\d+)>", links) == sections, where
        assert re.findall(r":eq:`([\w-]+)`", links) == [EQUATIONS[n] for n in equations], where
        assert sections or equations or ":doc:`THEORY </theory>`" in links, where


def test_links_read_as_the_citation_did():
    assert linked("Source: THEORY section 10; SKO 85.") == "Source: THEORY :ref:`section 10 <theory-10>`; SKO 85."
    assert linked("THEORY sections 3 to 5") == "THEORY sections :ref:`3 <theory-3>` to :ref:`5 <theory-5>`"
    assert linked("(THEORY (2), (3); R86 8.2)") == "(THEORY :eq:`filter-P`, :eq:`filter-z`; R86 8.2)"
    assert linked("THEORY (1), section 3") == "THEORY :eq:`mass`, :ref:`section 3 <theory-3>`"
    assert linked("THEORY (2)–(4)") == "THEORY :eq:`filter-P`–:eq:`smoother`"
    assert linked("THEORY section 4, SKO 48–50") == "THEORY :ref:`section 4 <theory-4>`, SKO 48–50"
    assert linked("Letters are THEORY.md's") == "Letters are :doc:`THEORY </theory>`'s"


def test_the_configuration_uses_them():
    source = (DOCS / "conf.py").read_text(encoding="utf-8")
    assert "from theory_links import linked" in source
    assert 'app.connect("autodoc-process-docstring", link_theory' in source
    assert "linked(part)" in source
