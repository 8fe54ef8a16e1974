"""The atlas: every result of the five sources, the code that computes it, the test that asserts it."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

#: What the sources are, in the order of the atlas.
SOURCES = {
    "R86": "G. Rodriguez, JPL Publication 86-48",
    "ATBI": "A. Jain, articulated body inertias",
    "SKO": "A. Jain, spatial kernel operator models on trees",
    "SRB": "A. Jain, single rigid body",
    "PART": "A. Jain, partitioned recursions",
}


@dataclass(frozen=True)
class Result:
    """One result of a source.

    Attributes
    ----------
    source, key : str
        "R86" and "8.2-8.9": together the ``id``.
    statement : str
        What it says, as a reminder.
    code : str or None
        Full name of what computes it; None if it is open.
    test : str or None
        ``path::function`` of the test that asserts it and names its id.

    Examples
    --------
    The filter of JPL 86-48, and what computes it here:

    >>> one = atlas()["R86:8.2-8.9"]
    >>> one.code, one.resolve().__name__
    ('kfdyn.kalman_filter', 'kalman_filter')
    """

    source: str
    key: str
    statement: str
    code: str | None = None
    test: str | None = None

    @property
    def id(self) -> str:
        """As tests name it: "R86:8.2-8.9"."""
        return f"{self.source}:{self.key}"

    @property
    def is_open(self) -> bool:
        """Whether it is later work."""
        return self.code is None

    def resolve(self) -> Any:
        """The object that ``code`` names; AttributeError if there is none."""
        if self.code is None:
            raise AttributeError(f"{self.id} is open: nothing computes it yet")
        parts = self.code.split(".")
        found: Any = import_module(parts[0])
        for i, part in enumerate(parts[1:], start=1):
            if not hasattr(found, part):
                import_module(".".join(parts[: i + 1]))
            found = getattr(found, part)
        return found


@cache
def atlas() -> dict[str, Result]:
    """All results by id, read from ``atlas.toml``.

    Returns
    -------
    dict of str to Result
        By id, as "R86:8.2-8.9".

    Examples
    --------
    >>> atlas()["SKO:mass-inverse"].code
    'kfdyn.mass_matrix_inverse'
    """
    content = tomllib.loads(Path(__file__).with_name("atlas.toml").read_text(encoding="utf-8"))
    results = [Result(source, key, **entry) for source, entries in content.items() for key, entry in entries.items()]
    return {result.id: result for result in results}


def atlas_markdown() -> str:
    """The atlas as a page of the documentation."""
    results = list(atlas().values())
    missing = [result for result in results if result.is_open]
    lines = [
        "# Atlas",
        "",
        "Every result of the five sources, the code that computes it and the test that asserts it. A test holds the",
        "page to its word: code and test must exist, and the test must name the id. This page is generated from",
        "`kfdyn/duality/atlas.toml` by `python docs/duality_pages.py`.",
        "",
        "The sources by their short names: " + "; ".join(f"**{key}**, {name}" for key, name in SOURCES.items()) + ".",
        "",
        f"{len(results) - len(missing)} of {len(results)} results are computed and tested; open are "
        f"{', '.join(result.id for result in missing)}.",
    ]
    for source, name in SOURCES.items():
        lines += ["", f"## {source}: {name}", "", "| id | result | code | test |", "|---|---|---|---|"]
        for result in results:
            if result.source == source:
                code, test = (f"`{text}`" if text else "open" for text in (result.code, result.test))
                test = test.replace("tests/", "").replace(".py::", "::")
                lines.append(f"| {result.key} | {_escaped(result.statement)} | {code} | {test} |")
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*").replace("_", "\\_").replace("<", "\\<")
