"""The faces of a report: one line, one page, a notebook; and what it takes to repeat it."""

import numpy as np
import pytest

import kfdyn as kf
from kfdyn.errors import ModelError

ARM, Q, V = kf.models.double_pendulum(), [0.1 + 0.2, 0.4], [1.0, -2.0]


@pytest.fixture(scope="module")
def report():
    return kf.cross_check(ARM, Q, V, samples=2000, seed=7)


def test_it_says_how_to_repeat_it(report):
    """Every digit of q and v, seed, samples and versions, in words and as data."""
    text = " ".join(str(report).split())
    assert "To repeat: q = 0.30000000000000004 0.4; v = 1.0 -2.0; seed 7, 2,000 samples; kfdyn " in text
    assert f"numpy {np.__version__}" in text
    words = report.recipe().split("q = ")[1].split(";")[0].split()
    again = kf.cross_check(ARM, [float(word) for word in words], report.v, samples=report.requested, seed=report.seed)
    assert again.to_json() == report.to_json()
    still = kf.cross_check(ARM, Q, samples=500)
    assert still.v is None
    assert "v = " not in still.recipe()


def test_its_repr_is_one_line(report):
    assert repr(report) == f"Report(PASSED: double pendulum, 2,000 samples, {len(report.tests)} tests)"


def test_a_notebook_shows_it_once(run_notebook, tmp_path):
    """In a real kernel: one output for the report, nothing displayed beside it, and print prints."""
    nbformat = pytest.importorskip("nbformat")
    cells = [
        "import kfdyn as kf\nreport = kf.cross_check(kf.models.pendulum(), [0.3], samples=500)",
        "report",
        "print(report)",
    ]
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    run_notebook(book, tmp_path)
    loaded, shown, printed = (cell.outputs for cell in book.cells)
    assert [out.output_type for out in loaded if out.output_type != "stream"] == []
    (result,) = shown
    assert result.output_type == "execute_result"
    assert result.data["text/html"].count("<table>") == 1
    assert result.data["text/plain"].startswith("Report(PASSED: pendulum")
    (stream,) = printed
    assert stream.output_type == "stream"
    assert stream.text.count("PASSED") == 1


def test_html_is_escaped_and_tells_the_verdict(report):
    html = report._repr_html_()
    assert "PASSED" in html
    assert html.count("<tr>") == 10
    evil = kf.System(ARM.bodies, name="<script>alert(1)</script>")
    assert "<script>" not in kf.cross_check(evil, Q, samples=500)._repr_html_()


def test_a_system_without_dofs_gets_words():
    post = kf.System([kf.Body("post", np.eye(6), kf.Hinge.fixed())], name="post")
    with pytest.raises(ModelError, match=r"nothing moves in .post..*floating_base=True"):
        kf.cross_check(post, [])


def test_a_model_without_outputs_is_checked_for_what_it_has():
    ss = kf.StateSpace([-1], [None], [np.zeros((0, 2))], [np.eye(2)])
    report = kf.cross_check(ss, samples=500)
    assert report.passed
    assert "PASSED" in str(report)
