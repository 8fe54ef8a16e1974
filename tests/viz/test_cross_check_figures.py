"""Figures of the cross-check: drawn from a report, written as files, honest about what they show."""

import numpy as np
import pytest

import kfdyn as kf
from kfdyn.duality import cross_check
from kfdyn.viz.cross_check_figures import draw_whiteness


@pytest.fixture(scope="module")
def report():
    return cross_check(kf.models.puma560(), np.linspace(-1, 1, 6), samples=20_000)


def test_all_figures_are_written(report, tmp_path):
    paths = report.save_figures(tmp_path / "figures")
    assert {p.stem for p in paths} == {
        "cross_check", "inverse", "convergence", "whiteness", "nis", "p_values", "dictionary"
    }  # fmt: skip
    assert all(path.stat().st_size > 5000 for path in paths)


def test_panels_show_the_matrices(report):
    figure = report.plot()
    images = [ax.images[0].get_array() for ax in figure.axes if ax.images]
    found = report.findings["a"]
    unit = np.sqrt(np.diag(found.covariance))
    np.testing.assert_allclose(images[0], found.sampled / np.outer(unit, unit))
    np.testing.assert_allclose(images[1], found.covariance / np.outer(unit, unit))
    np.testing.assert_allclose(images[2], found.scores)


def test_convergence_is_one_over_root_n(report):
    n, error = report.convergence.T
    assert n[0] == 8
    assert n[-1] == report.samples
    slope = np.polyfit(np.log(n), np.log(error), 1)[0]
    assert slope == pytest.approx(-0.5, abs=0.12)
    assert error[-1] == pytest.approx(report.findings["a"].error, rel=1e-9)


def test_a_model_too_large_to_show_has_figures_too(monkeypatch, tmp_path):
    from kfdyn.duality import monte_carlo

    monkeypatch.setattr(monte_carlo, "DENSE_STATES", 3)
    monkeypatch.setattr(monte_carlo, "DENSE_OUTPUTS", 1)
    system = kf.models.double_pendulum()
    assert cross_check(system, [0.1, 0.2], samples=500).save_figures(tmp_path)


def test_titles_say_that_matrices_are_scaled(report):
    sampled, inverse, *_ = (ax.get_title() for ax in report.plot().axes)
    assert sampled == r"sampled covariance of a, scaled as $\mathcal{M}^{-1}$"
    assert inverse == r"$\mathcal{M}^{-1}$ by the filter, scaled to unit diagonal"


def test_a_single_pair_of_outputs_has_its_bar():
    """Two outputs have one covariance: a dot, and beside it where 95 of 100 such dots would be."""
    ax = draw_whiteness(cross_check(kf.models.double_pendulum(), [0.3, 0.4], samples=2000))
    (bar,) = ax.collections
    (ends,) = bar.get_segments()
    np.testing.assert_allclose(ends[:, 1], [-1.959964, 1.959964], atol=1e-6)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["N(0, 1), 95 %", "1 pair of outputs"]
