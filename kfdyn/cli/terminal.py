"""Write to standard output, whether it is a terminal, a pipe, a file or closed."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

PIPE_WIDTH = 120  # characters of a line that no terminal bounds


def tolerate_letters() -> None:
    """Print question marks where a terminal lacks Greek letters, and nothing to a closed stream (``>&-``)."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # the exit status still tells what a check found
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 (open until the process ends)
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


def make_console() -> Console:
    """Make a console that prints names from files as they are: no markup, no emoji, no colouring of numbers."""
    from rich.console import Console

    class ForPipes(Console):
        def on_broken_pipe(self) -> None:
            """Let the command line answer: rich would exit with 1, which says that a check rejected."""
            raise BrokenPipeError

    console = ForPipes(highlight=False, markup=False, emoji=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = PIPE_WIDTH
    return console


def clean(text: str) -> str:
    """Replace control characters but line ends: a name from a file may not control the terminal."""
    from kfdyn.viz.text import printable

    return printable(text, keep="\n")


# What errors advise to whoever calls a function, and what it is called here.
_OPTIONS = {
    'indefinite_inertia="warn"': "--indefinite-inertia warn",
    "close it by kf.assemble(system, q), or begin from one": "take one",
    "as system.random_configuration(seed) draws it": "as --q random draws it",
}


def complain(text: str) -> None:
    """Print one line to the standard error stream, in the words of the command line."""
    line = " ".join(clean(text).split())
    for call, option in _OPTIONS.items():
        line = line.replace(call, option)
    print("kfdyn: " + line, file=sys.stderr)


def show_table(console: Console, title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table, the first column to the left, numbers to the right."""
    from rich.table import Table

    table = Table(title=clean(title), title_justify="left", title_style="bold")
    for i, column in enumerate(columns):
        table.add_column(column, justify="left" if i == 0 else "right")
    for row in rows:
        table.add_row(*map(clean, row))
    console.print(table)
    console.print()
