"""The audit of the pages finds each fault it is there to find, planted in a page of its own."""

import shutil

import pytest
from page_audit import audit, broken_links

pytestmark = pytest.mark.slow

SHELL = """<!doctype html><html><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{title}</title>{head}</head>
<body><p id="here">text</p>{body}</body></html>"""
DOT = "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' width='1' height='1'/%3E"

FAULTS = {
    "image": ('<img src="missing.png">', "image does not load"),
    "lost_request": ('<img src="missing.png">', "request failed"),
    "console": ("<script>console.error('lost')</script>", "console error: lost"),
    "exception": ("<script>nowhere.to.go</script>", "exception: ReferenceError"),
    "network": (
        '<script src="https://cdn.example.org/a.js"></script>',
        "asks the network: https://cdn.example.org/a.js",
    ),
    "font": ("<style>@import url('http://fonts.example.org/x.css');</style>", "asks the network: http://fonts"),
    "outside": ('<img src="../outside.png">', "asks for a file outside"),
    "wide": ('<div style="width:3000px">x</div>', "wider than its window"),
    "phone": ('<div style="width:600px">x</div>', "wider than a phone"),
    "unrendered": (r'<span class="math notranslate">\(x^2\)</span>', r"formula not rendered: \(x^2\)"),
    "raw": (r"<p>so \(x^2\) it is</p>", "raw TeX"),
    "dollars": ("<p>so $x^2$ it is</p>", "raw TeX"),
    "command": (r"<p>so \mathcal M is</p>", "raw TeX"),
}
FORMULAS = {
    "syntax": (r"\(x^2^3\)", "formula with an error"),
    "undefined": (r"\(\nosuchmacro x\)", "formula with an error"),
}


def page(folder, body, head="", title="page"):
    root = folder / "site"
    root.mkdir(exist_ok=True)
    path = root / "page.html"
    path.write_text(SHELL.format(title=title, head=head, body=body), encoding="utf-8")
    return path


def typeset(folder, mathjax, formula):
    path = page(folder, f'<span class="math notranslate">{formula}</span>', '<script src="mathjax.js"></script>')
    shutil.copy(mathjax, path.parent / "mathjax.js")
    return path


def test_a_good_page_passes(tmp_path, browser):
    path = page(tmp_path, f'<img src="{DOT}"><pre>\\(raw\\)</pre><a href="#here">here</a>')
    complaints, report = audit(browser, path, path.parent)
    assert complaints == [] and broken_links(report, path, None) == []
    assert report["pictures"] == 1


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found(fault, tmp_path, browser):
    body, expected = FAULTS[fault]
    (tmp_path / "outside.png").write_bytes(b"")
    path = page(tmp_path, body)
    complaints, _ = audit(browser, path, path.parent)
    assert any(complaint.startswith(expected) or expected in complaint for complaint in complaints), complaints


def test_a_page_without_title_is_found(tmp_path, browser):
    path = page(tmp_path, "", title="")
    assert audit(browser, path, path.parent)[0] == ["no title"]


@pytest.mark.parametrize(
    ("left", "expected"), [("40px", "equation (7) overprints"), ("600px", "on a phone equation (7)")]
)
def test_a_number_that_is_printed_over_is_found(left, expected, tmp_path, browser, mathjax):
    """At 40 pixels always; further right only where the window is narrow, so that the formula is shifted there."""
    style = f"position:absolute;top:0;left:min({left}, 50vw)"
    body = (
        '<div class="math notranslate" style="position:relative;width:80vw;font-size:40px">'
        f'<span class="eqno" style="{style}">(7)</span>\\[aaaaaaaaaaaa\\]</div>'
    )
    path = page(tmp_path, body, '<script src="mathjax.js"></script>')
    shutil.copy(mathjax, path.parent / "mathjax.js")
    assert any(expected in complaint for complaint in audit(browser, path, path.parent)[0])


def test_a_formula_passes(tmp_path, browser, mathjax):
    path = typeset(tmp_path, mathjax, r"\(\mathcal M = H \varphi M \varphi^* H^* + R\)")
    complaints, report = audit(browser, path, path.parent)
    assert complaints == [] and report["formulas"] == 1


@pytest.mark.parametrize("fault", FORMULAS)
def test_a_wrong_formula_is_found(fault, tmp_path, browser, mathjax):
    formula, expected = FORMULAS[fault]
    path = typeset(tmp_path, mathjax, formula)
    complaints, _ = audit(browser, path, path.parent)
    assert any(complaint.startswith(expected) for complaint in complaints), complaints


def test_broken_links_are_found(tmp_path, browser):
    path = page(tmp_path, '<a href="gone.html">1</a> <a href="#gone">2</a> <a href="https://example.org">3</a>')
    _, report = audit(browser, path, path.parent)
    broken = broken_links(report, path, None)
    assert [text.rpartition("/")[0].rpartition(":")[0][:12] for text in broken] == ["link to a mi"] * 2
    assert "missing file" in broken[0] and "missing anchor" in broken[1]
