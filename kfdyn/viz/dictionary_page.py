"""The dictionary as a page: estimation, dynamics and control, a robot's numbers beside them."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap
from typing import TYPE_CHECKING

from kfdyn.viz.style import COLORS
from kfdyn.viz.text import in_known_letters, literal

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
