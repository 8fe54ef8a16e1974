"""A model shown: its sizes and a few of its nodes, as text and as a table of a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kfdyn.estimation.model.blocks import IntArray

if TYPE_CHECKING:
    from kfdyn.estimation.model.state_space import StateSpace


def as_text(ss: StateSpace) -> str:
    """The sizes in one line."""

    def sizes(values: IntArray) -> str:
        if not values.size:
            return "none"
        low, high = int(values.min()), int(values.max())
        return f"{low} each" if low == high else f"{low} to {high} each"

    noise = "R = 0" if not ss.R.flat.any() else "R > 0 somewhere"
    noise += "" if ss.flat is None else f", flat {ss.flat.size}"
    return (
        f"StateSpace({len(ss)} nodes, states {ss.n_states} ({sizes(ss.n)}), "
        f"outputs {ss.n_outputs} ({sizes(ss.m)}), {noise})"
    )


def as_html(ss: StateSpace) -> str:
    """The sizes and a few nodes, for a notebook."""
    from kfdyn.short_tables import html_table, rows_shown

    tree = ss.tree

    def row(k: int) -> tuple[object, ...]:
        up = int(tree.parent[k])
        return tree.label(k), "—" if up < 0 else tree.label(up), int(ss.n[k]), int(ss.m[k])

    return html_table(as_text(ss), ("node", "parent", "states", "outputs"), rows_shown(len(ss), row))
