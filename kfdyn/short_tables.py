"""Short tables of objects with many rows: a few lines of text for a terminal, a few rows of HTML for a notebook."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape

MOST_ROWS = 8

Row = Sequence[object]


def rows_shown(count: int, row: Callable[[int], Row]) -> list[list[str]]:
    """Return rows 0 … count − 1 as text; of many, the first and the last, and dots between them.

    Examples
    --------
    >>> rows_shown(2, lambda k: (k, 0.5 * k))
    [['0', '0'], ['1', '0.5']]
    """
    if count <= MOST_ROWS:
        return [_cells(row(k)) for k in range(count)]
    first = [_cells(row(k)) for k in range(MOST_ROWS - 3)]
    return [*first, ["…"] * len(first[0]), *(_cells(row(k)) for k in (count - 2, count - 1))]


def html_table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table for a notebook; names from files are escaped.

    Examples
    --------
    >>> html_table("one", ["k"], [["<b>"]])
    '<table><caption>one</caption><tr><th>k</th></tr><tr><td>&lt;b&gt;</td></tr></table>'
    """
    lines = [_line("th", head), *(_line("td", row) for row in rows)]
    return f"<table><caption>{escape(title)}</caption>{''.join(lines)}</table>"


def vector(values: Sequence[float], most: int = 3) -> str:
    """Write the numbers of one cell, the first few of many.

    Examples
    --------
    >>> vector([1.0, 2.25, 3.0, 4.0])
    '1, 2.25, 3, …'
    """
    return ", ".join([f"{float(x):.4g}" for x in values[:most]] + ["…"] * (len(values) > most))


def _cells(row: Row) -> list[str]:
    return [f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in row]


def _line(tag: str, cells: Sequence[str]) -> str:
    return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"
