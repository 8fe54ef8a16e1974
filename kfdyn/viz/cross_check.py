"""Figures of the cross-check: sampled covariance beside 𝓜⁻¹, convergence, whiteness, p-values."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kfdyn.viz.style import COLORS
from kfdyn.viz.text import literal

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = NDArray[np.float64]

BLUE, ORANGE, GREY = COLORS["blue"], COLORS["orange"], COLORS["grey"]
_LABELLED = 16  # outputs up to which each gets its name on the axis


#: A :class:`kfdyn.duality.Report`, which this room cannot name: it is read for title, samples, level, tests, findings,
#: histogram, convergence, names and dictionary.
CrossCheck = Any


def draw_report(report: CrossCheck) -> Figure:
    """All figures on one page: (top) sampled covariance of a, 𝓜⁻¹, standardised difference; (bottom) the rest."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 8), layout="constrained")
    axes = figure.subplots(2, 3)
    _inverse_panels(axes[0], report)
    draw_convergence(report, axes[1, 0])
    draw_whiteness(report, axes[1, 1])
    draw_p_values(report, axes[1, 2])
    figure.suptitle(f"{literal(report.title)}: the inverse mass matrix is a covariance ({report.samples:,} samples)")
    return figure


def draw_inverse(report: CrossCheck) -> Figure:
    """Sampled covariance of a, 𝓜⁻¹, and their difference in standard errors."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 4.4), layout="constrained")
    _inverse_panels(figure.subplots(1, 3), report)
    figure.suptitle(f"{literal(report.title)}, {report.samples:,} samples")
    return figure


def _inverse_panels(axes: Sequence[Axes], report: CrossCheck) -> None:
    found = report.findings.get("a")
    if found is None or found.scores is None:
        why = "too many joints to show" if found is None or found.covariance is None else "no covariance is claimed"
        for ax in axes:
            ax.text(0.5, 0.5, why, ha="center", va="center", transform=ax.transAxes)
            ax.set_axis_off()
        return
    unit = np.sqrt(np.diag(found.covariance))
    limit = max(float(np.abs(found.scores).max()), 3.5)
    panels = (
        (found.sampled / np.outer(unit, unit), "sampled covariance of a", 1.0, "PuOr"),
        (found.covariance / np.outer(unit, unit), "𝓜⁻¹ by the filter", 1.0, "PuOr"),
        (found.scores, "difference in standard errors", limit, "RdBu_r"),
    )
    for ax, (matrix, title, top, colours) in zip(axes, panels):
        image = ax.imshow(matrix, cmap=colours, vmin=-top, vmax=top)
        ax.set_title(_plain(title), fontsize=10)
        ax.tick_params(length=0)
        if len(report.names) <= _LABELLED:
            names = [literal(name) for name in report.names]
            ax.set_xticks(range(len(names)), names, rotation=45, ha="right", fontsize=7)
            ax.set_yticks(range(len(names)), names if ax is axes[0] else [""] * len(names), fontsize=7)
        assert ax.figure is not None
        ax.figure.colorbar(image, ax=ax, shrink=0.8)


def draw_convergence(report: CrossCheck, ax: Axes | None = None) -> Axes:
    """Relative error of the sampled covariance of a against the number of samples, with its 1/√n band."""
    ax = _axes() if ax is None else ax
    n, error = report.convergence.T if len(report.convergence) else np.zeros((2, 0))
    found = report.findings.get("a")
    if n.size and found is not None and found.expected_error > 0:
        # mean square of the error is Σ(1 + ρ²)/n: exact; its spread by the effective number of entries
        expected = found.expected_error * np.sqrt(report.samples / n)
        width = 2 / np.sqrt(max(found.dimension * (found.dimension + 1), 2))
        low, high = expected * max(1 - width, 0.1), expected * (1 + width)
        ax.fill_between(n, low, high, color=ORANGE, alpha=0.3, linewidth=0, label="expected, 1/√n")
        ax.plot(n, expected, color=ORANGE, linewidth=1)
        ax.loglog(n, error, "o-", color=BLUE, markersize=3, linewidth=1, label="found")
        ax.legend(frameon=False)
    ax.set(xlabel="samples", ylabel="relative error of cov(a)", title="Convergence")
    _tidy(ax)
    return ax


def draw_whiteness(report: CrossCheck, ax: Axes | None = None) -> Axes:
    """Normal scores of all entries of the covariance of ε, in the node blocks and across nodes, against N(0, 1)."""
    ax = _axes() if ax is None else ax
    found = report.findings.get("eps")
    if found is not None and found.scores is not None:
        across = np.triu(np.ones_like(found.scores, dtype=bool), 1) & (found.covariance == 0)
        scores = found.scores[across]
        if scores.size:
            grid = np.linspace(-4, 4, 200)
            ax.hist(scores, bins=min(60, max(8, scores.size // 4)), range=(-4, 4), density=True, color=BLUE, alpha=0.7)
            ax.plot(grid, np.exp(-0.5 * grid**2) / np.sqrt(2 * np.pi), color=ORANGE, linewidth=2, label="N(0, 1)")
            ax.legend(frameon=False)
    ax.set(xlabel="score of a correlation between nodes", ylabel="density", title="Innovations are white over the tree")
    _tidy(ax)
    return ax


def draw_p_values(report: CrossCheck, ax: Axes | None = None) -> Axes:
    """All p-values in order, the diagonal they should follow, and Holm's limit."""
    ax = _axes() if ax is None else ax
    p = np.sort([test.p_value for test in report.tests])
    rank = np.arange(1, p.size + 1)
    uniform = (rank - 0.5) / p.size
    ax.loglog(uniform, np.maximum(p, 1e-12), "o", color=BLUE, markersize=4, label="tests")
    ax.plot(uniform, uniform, color=GREY, linewidth=1, label="uniform")
    ax.plot(uniform, report.level / (p.size - rank + 1), color=ORANGE, linewidth=1.5, label="Holm's limit")
    ax.set(xlabel="rank / number of tests", ylabel="p-value", title="All tests, read together")
    ax.legend(frameon=False, loc="lower right")
    _tidy(ax)
    return ax


def draw_nis(report: CrossCheck, ax: Axes | None = None) -> Axes:
    """Histogram of the χ² distribution function of NIS: flat if the filter's account of its errors is true."""
    ax = _axes() if ax is None else ax
    counts = np.asarray(report.histogram)
    expected = counts.sum() / counts.size
    edges = np.linspace(0, 1, counts.size + 1)
    half = 2 * np.sqrt(expected)
    ax.stairs(counts, edges, fill=True, color=BLUE, alpha=0.7)
    ax.axhspan(expected - half, expected + half, color=ORANGE, alpha=0.3, linewidth=0)
    ax.axhline(expected, color=ORANGE)
    ax.set(xlabel="χ² distribution function of NIS", ylabel="samples", title="Normalised innovations squared")
    _tidy(ax)
    return ax


def save_figures(report: CrossCheck, directory: str | Path) -> list[Path]:
    """Write every figure as PNG into a directory, which is made if need be; returns the files."""
    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    figures: dict[str, Any] = {
        "cross_check": draw_report(report),
        "inverse": draw_inverse(report),
        **{
            name: draw(report).get_figure()
            for name, draw in (
                ("convergence", draw_convergence),
                ("whiteness", draw_whiteness),
                ("nis", draw_nis),
                ("p_values", draw_p_values),
            )
        },
    }
    if report.dictionary:
        from kfdyn.viz.dictionary import draw_dictionary

        figures["dictionary"] = draw_dictionary(report.dictionary, report.title)
    paths = []
    for name, figure in figures.items():
        paths.append(folder / f"{name}.png")
        figure.savefig(paths[-1], dpi=150)
    return paths


def _axes() -> Axes:
    from matplotlib.figure import Figure

    return Figure(figsize=(6, 4.2), layout="constrained").subplots()


def _plain(text: str) -> str:
    """𝓜 in matplotlib's own letters: its default font has none outside the basic plane."""
    return text.replace("𝓜⁻¹", r"$\mathcal{M}^{-1}$").replace("𝓜", r"$\mathcal{M}$").replace("ℛ", r"$\mathcal{R}$")


def _tidy(ax: Axes) -> None:
    ax.spines[["top", "right"]].set_visible(False)
    ax.title.set_fontsize(10)
