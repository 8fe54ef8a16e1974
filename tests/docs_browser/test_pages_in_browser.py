"""Every page of the built documentation, in a headless Chromium without a network.

Equations are rendered by the bundled MathJax, images load, links lead somewhere, the console is silent, and nothing
is asked of another machine.
"""

import re
from functools import cache

import pytest
from explore_page import PAGE
from page_audit import ROOT, audit, broken_links

pytestmark = pytest.mark.slow

PAGES = sorted(page.relative_to(ROOT).as_posix() for page in ROOT.rglob("*.html") if "_static" not in page.parts)


@cache
def ids_of(path):
    return set(re.findall(r'\bid="([^"]+)"', path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("name", PAGES or ["index.html"])
def test_page_renders(name, browser, docs, mathjax):
    complaints, report = audit(browser, docs / name, docs)
    complaints += broken_links(report, docs / name, ids_of)
    assert complaints == []


def test_the_pages_with_formulas_and_figures_were_among_them(browser, docs, mathjax):
    """What is checked is there to be checked: the theory has equations, the gallery pictures."""
    assert len(PAGES) > 150
    assert audit(browser, docs / "theory.html", docs)[1]["formulas"] > 50
    assert audit(browser, docs / "gallery" / "index.html", docs)[1]["pictures"] >= 16
    assert audit(browser, docs / "gallery" / "plot_nile.html", docs)[1]["pictures"] >= 1


def test_the_page_to_drag_is_the_one_that_pages_and_slides_link_to(docs):
    assert (docs / "explore.html").read_bytes() == PAGE.read_bytes()


@pytest.mark.parametrize(
    "name", [name for name in PAGES if name.startswith("gallery/plot_")] or ["gallery/plot_nile.html"]
)
def test_the_figure_comes_before_the_script(name, docs):
    text = (docs / name).read_text(encoding="utf-8")
    figure = re.search(r"sphx-glr-(?:single-img|animation)", text)
    assert figure, "a gallery page without a figure"
    assert text.index("</h1>") < figure.start() < text.index('<div class="highlight-Python')
