"""The benchmarks themselves: they run, count what the kernels do, and say what they wrote."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import kfdyn as kf
from kfdyn import cli

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks import counting, operations  # noqa: E402
from benchmarks.__main__ import PARTS  # noqa: E402
from benchmarks.report import Report  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results"


@pytest.mark.parametrize("system", [kf.models.chain(5), kf.models.humanoid()], ids=lambda s: s.name)
def test_what_is_counted_is_the_kernel(system):
    """The counted run answers as the compiled one does, and counts something at every body."""
    rng = np.random.default_rng(0)
    q, v, u = system.random_configuration(rng), *rng.normal(size=(2, system.nv))
    expected = {
        "forward_dynamics": kf.forward_dynamics(system, q, v, u),
        "inverse_dynamics": kf.inverse_dynamics(system, q, v, u),
        "mass_matrix": kf.mass_matrix(system, q).ravel(),
        "mass_matrix_inverse": kf.mass_matrix_inverse(system, q).ravel(),
    }
    for call, answer in expected.items():
        done, found = counting.counted(system, call, q, *((v, u) if "dynamics" in call else ()))
        np.testing.assert_allclose(found, answer, rtol=0, atol=1e-12 * np.abs(answer).max())
        assert done["multiply"] > 50 * system.n_bodies and done["add"] > 50 * system.n_bodies


def test_numbers_count_each_operation_once():
    counting.Number.done.clear()
    x = counting.Number(2.0)
    y = 3.0 * x + x - 1.0
    assert ((4.0 / y) + y * y).value == 4 / 7 + 49
    assert counting.Number.done == {"multiply": 2, "add": 3, "divide": 1}


def test_operations_grow_with_links_as_the_textbook_s_do():
    """Linear for the sweeps: twice the links, twice the operations of a link; the textbook's are fewer or alike.

    The bound on rounding of forward dynamics keeps the largest gain, and a product with one that is 0 or 1 is not
    counted: a few operations more or fewer in a thousand, by the numbers of the chain.
    """
    for call in ("forward dynamics", "inverse dynamics"):
        short, middle, long = (operations.counts(kf.models.chain(n), call) for n in (5, 10, 15))
        for of in (0, 1):
            first, second = middle[of] - short[of], long[of] - middle[of]
            assert second == first if call == "inverse dynamics" else abs(second - first) < 0.005 * first
        slope = operations.TEXTBOOK[call][0](2) - operations.TEXTBOOK[call][0](1)
        assert (middle[0] - short[0]) / 5 < 1.3 * slope


def test_a_report_says_the_same_three_times(tmp_path, capsys):
    report = Report(
        "part", "Title", ["robot", "call", "µs"], [["arm", "fd", "1.5"]], {"cores": "2"}, ["Remark."], words=2
    )
    report.write(tmp_path)
    text = (tmp_path / "part.md").read_text(encoding="utf-8")
    assert "| --- | --- | ---: |" in text and "| arm | fd | 1.5 |" in text and "- Remark." in text
    assert json.loads((tmp_path / "part.json").read_text(encoding="utf-8"))["title"] == "Title"
    report.show()
    assert "1.5" in capsys.readouterr().out


def test_what_is_recorded_is_what_the_page_shows(capsys):
    page = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    for part in PARTS:
        assert f"results/{part}.md" in page
        assert (RESULTS / f"{part}.md").exists()
    assert cli.main(["bench", "engine", "--recorded"]) == 0
    assert capsys.readouterr().out.strip() == (RESULTS / "engine.md").read_text(encoding="utf-8").strip()
    assert cli.main(["bench", "juggling", "--recorded"]) == 2
    assert "no results of 'juggling'" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize(
    "part",
    [
        "dynamics",
        "calls",
        "steps",
        "operations",
        "bodies",
        "compilation",
        "rebuilding",
        "forms",
        "fits",
        "sizes",
        "motions",
    ],
)
def test_a_part_runs_at_small_size(part, tmp_path, monkeypatch):
    from importlib import import_module

    monkeypatch.chdir(ROOT)
    report = import_module(f"benchmarks.{part}").run(quick=True)
    report.write(tmp_path)
    assert (tmp_path / f"{part}.md").exists() and len(report.rows) > 2
