"""Figures of the cross-check: sampled covariance beside 𝓜⁻¹, convergence, whiteness, p-values."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from kfdyn.viz.style import COLORS
from kfdyn.viz.text import in_known_letters, literal

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


BLUE, ORANGE, GREY = COLORS["blue"], COLORS["orange"], COLORS["grey"]
_LABELLED = 16  # outputs up to which each gets its name on the axis
_NUMBERED = 10  # and up to which each entry gets its number
_BAND = 6  # pairs of outputs from which on the band around them is drawn as one


#: A :class:`kfdyn.duality.Report`, which this room cannot name: it is read for title, status, samples, level, tests,
#: findings, histogram, convergence, names, dictionary and claimed.
CrossCheck = Any


def draw_report(report: CrossCheck) -> Figure:
    """Draw all figures on one page: (top) sampled covariance of a, 𝓜⁻¹, their difference; (bottom) the rest."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 8), layout="constrained")
    axes = figure.subplots(2, 3)
    _inverse_panels(axes[0], report)
    draw_convergence(report, axes[1, 0])
    draw_whiteness(report, axes[1, 1])
    draw_p_values(report, axes[1, 2])
    found = {
        "PASSED": "the inverse mass matrix is a covariance",
        "PARTIAL": "nothing is rejected so far",
        "REJECTED": "rejected: the samples contradict what is claimed",
    }[report.status]
    figure.suptitle(f"{literal(report.title)}: {found} ({report.samples:,} samples)")
    return figure


def draw_inverse(report: CrossCheck) -> Figure:
    """Draw the sampled covariance of a, 𝓜⁻¹, and their difference in standard errors."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 4.4), layout="constrained")
    _inverse_panels(figure.subplots(1, 3), report)
    figure.suptitle(f"{literal(report.title)}, {report.samples:,} samples")
    return figure


def _inverse_panels(axes: Sequence[Axes], report: CrossCheck) -> None:
    found = report.findings.get("a")
    if found is None or found.scores is None:
        large = found is None or found.covariance is None
        why = "too many joints to show" if large else "what is claimed is no covariance"
        for ax in axes:
            ax.text(0.5, 0.5, why, ha="center", va="center", transform=ax.transAxes)
            ax.set_axis_off()
        return
    variance, sampled = np.diag(found.covariance), np.diag(found.sampled)
    unit = np.sqrt(np.where(variance > 0, variance, np.where(sampled > 0, sampled, 1.0)))
    claimed = "a" in report.claimed
    limit = max(float(np.abs(found.scores).max()), 3.5)
    source = "as claimed" if claimed else "by the filter"
    panels = (
        (found.sampled / np.outer(unit, unit), "sampled covariance of a, scaled as 𝓜⁻¹", 1.0, "PuOr"),
        (found.covariance / np.outer(unit, unit), f"𝓜⁻¹ {source}, scaled to unit diagonal", 1.0, "PuOr"),
        (found.scores, "difference in standard errors", limit, "RdBu_r"),
    )
    names = [literal(name) for name in report.names]
    for ax, (matrix, title, top, colours) in zip(axes, panels):
        image = ax.imshow(matrix, cmap=colours, vmin=-top, vmax=top)
        ax.set_title(in_known_letters(title), fontsize=10)
        ax.tick_params(length=0)
        if len(names) <= _LABELLED:
            ax.set_xticks(range(len(names)), names, rotation=45, ha="right", rotation_mode="anchor", fontsize=7)
            ax.set_yticks(range(len(names)), names if ax is axes[0] else [""] * len(names), fontsize=7)
        if len(names) <= _NUMBERED:
            for (i, j), value in np.ndenumerate(matrix):
                ink = "w" if abs(value) > 0.6 * top else "k"
                ax.text(j, i, _number(value), ha="center", va="center", fontsize=7, color=ink)
        if ax is not axes[0]:  # the first two share theirs
            assert ax.figure is not None
            ax.figure.colorbar(image, ax=ax, shrink=0.8)


def _number(value: float) -> str:
    """Write two decimals, three where these would say nothing; no sign before a nought."""
    text = f"{value:.2f}" if abs(value) >= 0.1 or value == 0 else f"{value:.3f}"
    return text.replace("-", "−") if float(text) else "0"


def draw_convergence(report: CrossCheck, ax: Axes | None = None) -> Axes:
    """Draw the relative error of the sampled covariance of a against the number of samples, with its 1/√n band."""
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
    """Draw normal scores of the covariances of ε between nodes against normal quantiles, with a 95 % band."""
    from scipy.stats import beta, norm

    ax = _axes() if ax is None else ax
    found = report.findings.get("eps")
    if found is not None and found.scores is not None:
        across = np.triu(np.ones_like(found.scores, dtype=bool), 1) & (found.covariance == 0)
        scores = np.sort(found.scores[across])
        if scores.size:
            shown = np.unique(np.linspace(0, scores.size - 1, min(scores.size, 400)).astype(int))
            rank = shown + 1
            expected = norm.ppf((rank - 0.5) / scores.size)
            # the i-th of n uniform numbers is Beta(i, n + 1 − i)
            low, high = (norm.ppf(beta.ppf(q, rank, scores.size + 1 - rank)) for q in (0.025, 0.975))
            if scores.size < _BAND:  # too few for a band: each has a bar of its own
                ax.vlines(expected, low, high, color=ORANGE, alpha=0.3, linewidth=12, label="N(0, 1), 95 %")
                ax.axline((0.0, 0.0), slope=1.0, color=ORANGE, linewidth=1)
                ax.set(xlim=(-3, 3), ylim=(min(-4.0, 1.2 * scores[0]), max(4.0, 1.2 * scores[-1])))
            else:
                ax.fill_between(expected, low, high, color=ORANGE, alpha=0.3, linewidth=0, label="N(0, 1), 95 %")
                ax.plot(expected, expected, color=ORANGE, linewidth=1)
            pairs = "1 pair of outputs" if scores.size == 1 else f"{scores.size:,} pairs of outputs"
            ax.plot(expected, scores[shown], "o", color=BLUE, markersize=3, label=pairs)
            ax.legend(frameon=False, loc="upper left")
    ax.set(
        xlabel="normal quantile",
        ylabel="score of a covariance between nodes",
        title="Innovations are white over the tree",
    )
    _tidy(ax)
    return ax


def draw_p_values(report: CrossCheck, ax: Axes | None = None) -> Axes:
    """Draw all p-values in order, the diagonal they should follow, and Holm's limit."""
    ax = _axes() if ax is None else ax
    p = np.sort([test.p_value for test in report.tests])
    rank = np.arange(1, p.size + 1)
    uniform = (rank - 0.5) / p.size
    ax.loglog(uniform, np.maximum(p, 1e-12), "o", color=BLUE, markersize=4, label="tests")
    ax.plot(uniform, uniform, color=GREY, linewidth=1, label="uniform")
    ax.plot(uniform, report.level / (p.size - rank + 1), color=ORANGE, linewidth=1.5, label="Holm's limit")
    ax.set(xlabel="rank / number of tests", ylabel="p-value", title="All tests, read together")
    ax.legend(frameon=False, loc="lower right", bbox_to_anchor=(1.0, 0.38))  # above the limit, below the diagonal
    _tidy(ax)
    return ax


def draw_nis(report: CrossCheck, ax: Axes | None = None) -> Axes:
    """Draw the histogram of the χ² distribution function of NIS: flat if the filter is consistent."""
    ax = _axes() if ax is None else ax
    counts = np.asarray(report.histogram, float)
    expected = max(float(counts.sum()) / counts.size, 1e-300)
    edges = np.linspace(0, 1, counts.size + 1)
    half = 2 / np.sqrt(max(expected, 1.0))
    found = counts / expected
    ax.axhspan(1 - half, 1 + half, color=ORANGE, alpha=0.3, linewidth=0, label="expected, 95 % of the bins")
    ax.axhline(1, color=ORANGE, linewidth=1)
    ax.stairs(found, edges, baseline=None, color=BLUE, linewidth=1.2, label="found")
    reach = max(2.5 * half, 1.2 * float(np.abs(found - 1).max(initial=0.0)))
    ax.set(
        xlabel="χ² distribution function of NIS", ylabel="samples in a bin / expected", ylim=(1 - reach, 1 + reach),
        title="Normalised innovations squared",
    )  # fmt: skip
    ax.legend(frameon=False, loc="upper right", ncols=2)
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
        figures["dictionary"] = draw_dictionary(report.dictionary, report.title)
    paths = []
    for name, figure in figures.items():
        paths.append(folder / f"{name}.png")
        figure.savefig(paths[-1], dpi=150)
    return paths


def _axes() -> Axes:
    from matplotlib.figure import Figure

    return Figure(figsize=(6, 4.2), layout="constrained").subplots()


def _tidy(ax: Axes) -> None:
    ax.spines[["top", "right"]].set_visible(False)
    ax.title.set_fontsize(10)


_COLUMNS = (
    (0.01, 8, "", 0),
    (0.06, 27, "estimation", 1),
    (0.26, 34, "multibody dynamics", 2),
    (0.50, 30, "control", 3),
    (0.72, 40, "this robot", 4),
)


def draw_dictionary(rows: Sequence[tuple[str, str, str, str, str]], title: str = "") -> Figure:
    """Draw (symbol, estimation, dynamics, control, number) rows as one page; rows without a number are left out."""
    from matplotlib.figure import Figure

    shown = [row for row in rows if row[-1]]
    lines = [[wrap(row[at], width) or [""] for _, width, _, at in _COLUMNS] for row in shown]
    heights = [0.75 * max(len(cell) for cell in row) + 0.6 for row in lines]
    total = sum(heights) + 3
    figure = Figure(figsize=(13, 0.21 * total))
    place = 1 - 1 / total
    figure.text(0.01, place, literal(title), fontsize=12, weight="bold", va="top")
    place -= 1.2 / total
    for x, _, head, _ in _COLUMNS:
        figure.text(x, place, head, fontsize=9, weight="bold", va="top", color=COLORS["grey"])
    place -= 1.2 / total
    for row, height in zip(lines, heights):
        for (x, _, _, at), cell in zip(_COLUMNS, row):
            figure.text(
                x,
                place,
                in_known_letters("\n".join(map(literal, cell))),
                fontsize=9,
                va="top",
                color=COLORS["blue"] if at == 0 else "black",
            )
        place -= height / total
    return figure
