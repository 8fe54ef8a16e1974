"""A part's result: shown as a rich table, kept as Markdown, JSON and, where there is one, a figure."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

#: Okabe and Ito's colours, told apart by colour-blind readers too.
BLUE, ORANGE, GREEN, RED, GREY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#7F7F7F"


@dataclass
class Report:
    """One part: a table, remarks, the raw numbers and a function that draws them into a file."""

    name: str
    title: str
    columns: list[str]
    rows: list[list[str]]
    environment: dict[str, str]
    remarks: list[str] = field(default_factory=list)
    numbers: dict[str, Any] = field(default_factory=dict)
    draw: Callable[[Path], None] | None = None
    words: int = 1  # columns at the left that hold words

    def show(self) -> None:
        """Print the table and the remarks."""
        from rich.console import Console
        from rich.table import Table

        table = Table(title=self.title, title_justify="left", title_style="bold")
        for i, column in enumerate(self.columns):
            table.add_column(column, justify="left" if i < self.words else "right")
        for row in self.rows:
            table.add_row(*row)
        console = Console(highlight=False)
        console.print(table)
        for remark in self.remarks:
            console.print(f"  {remark}", markup=False)
        console.print()

    def write(self, folder: Path) -> None:
        """Write name.md, name.json and, where there is a figure, name.png."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{self.name}.md").write_text(self.markdown(), encoding="utf-8")
        kept = {"title": self.title, "environment": self.environment, **self.numbers}
        (folder / f"{self.name}.json").write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
        if self.draw is not None:
            self.draw(folder / f"{self.name}.png")

    def markdown(self) -> str:
        """Return the table, the remarks and the machine as a page."""
        aligned = ["---"] * self.words + ["---:"] * (len(self.columns) - self.words)
        lines = [self.columns, aligned, *self.rows]
        table = "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
        remarks = "\n".join(f"- {remark}" for remark in self.remarks)
        machine = ", ".join(f"{name} {value}" for name, value in self.environment.items())
        figure = f"![{self.title}]({self.name}.png)\n\n" if self.draw is not None else ""
        return f"# {self.title}\n\n{figure}{table}\n\n{remarks}\n\nMachine: {machine}.\n"


def seconds(value: float) -> str:
    """A time with three digits and a fitting unit."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value / 1e-9:.3g} ns"
