"""Show the cross-check as one slide: nine vectors, their names, claims and findings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kfdyn.duality import QUANTITIES, Report
from kfdyn.viz.text import printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

WIDE = 120  # characters that the report's own table needs
_ROOMY = 110  # and those of a slide that tells all


def slide_table(report: Report, width: int) -> Table:
    """Return the table of the quantities in ``width`` characters, 70 or more."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    wide = width >= _ROOMY
    title = Text(f"{printable(report.title)} as a random process: {report.samples:,} samples, filtered and smoothed")
    table = Table(
        title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True
    )
    for column in ("in the filter", "", "in the robot", "covariance"):
        table.add_column(column)
    for column in ("error", *(("expected",) if wide else ()), "p", *(("p, entries",) if wide else ())):
        table.add_column(column, justify="right")
    for name, finding in report.findings.items():
        quantity = QUANTITIES[name]
        error, expected = (f"{100 * value:.2f} %" for value in (finding.error, finding.expected_error))
        p, p_entries = (_shown(report.p_value(kind, name)) for kind in ("covariance", "entries"))
        numbers = (error, expected, p, p_entries) if wide else (error, p)
        words = (quantity.estimation, quantity.symbol, quantity.dynamics, quantity.covariance)
        table.add_row(*words, *numbers, style="bold" if name == "a" else "")
    return table


def show_verdict(console: Console, report: Report) -> None:
    """Print the verdict, green or red, and how to repeat it."""
    console.print(printable(report.verdict(), keep="\n"), style=report.style)
    console.print(printable(report.recipe()), style="dim")


def _shown(p: float) -> str:
    return "" if p != p else f"{p:.3f}" if p >= 1e-3 else f"{p:.0e}"
