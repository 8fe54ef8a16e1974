"""The atlas: every result of the five sources, the code that computes it, the test that asserts it."""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass, field
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
    also : tuple of str
        Further code, where a result has several parts.
    broken : str or None
        How its code is broken when the test is measured: "result" in what it returns, where it corrects itself or
        compiled code does the work; "refusal" where the result is an error; else in its own lines.
    sweeps : tuple of str
        Recursions in the language of sweeps that do the work of ``code``, if it is they that do it.

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
    also: tuple[str, ...] = ()
    broken: str | None = None
    sweeps: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """Name used by tests, such as "R86:8.2-8.9"."""
        return f"{self.source}:{self.key}"

    @property
    def is_open(self) -> bool:
        """Return True if it is later work."""
        return self.code is None

    def resolve(self, name: str | None = None) -> Any:
        """Return the object that ``code``, or another name, means; AttributeError if there is none."""
        if self.code is None:
            raise AttributeError(f"{self.id} is open: nothing computes it yet")
        parts = (name or self.code).split(".")
        found: Any = import_module(parts[0])
        for i, part in enumerate(parts[1:], start=1):
            if not hasattr(found, part):
                import_module(".".join(parts[: i + 1]))
            found = getattr(found, part)
        return found


@cache
def atlas() -> dict[str, Result]:
    """Read all results by id from ``atlas.toml``.

    Returns
    -------
    dict of str to Result
        By id, as "R86:8.2-8.9".

    Examples
    --------
    >>> atlas()["SKO:mass-inverse"].code
    'kfdyn.mass_matrix_inverse'
    """
    content, sweeps = _read("atlas.toml"), _read("atlas_sweeps.toml")
    results = [
        Result(
            source,
            key,
            **{**entry, "also": tuple(entry.get("also", ()))},
            sweeps=tuple(sweeps.get(f"{source}:{key}") or sweeps.get(entry.get("code"), ())),
        )
        for source in SOURCES
        for key, entry in content[source].items()
    ]
    return {result.id: result for result in results}


def apart() -> dict[str, str]:
    """Return the topics that the sources name and no entry covers, with the reason.

    Returns
    -------
    dict of str to str
        A sentence or two, by source and subject.

    Examples
    --------
    >>> from kfdyn.duality.atlas import apart
    >>> [name for name in apart() if name.startswith("SRB")]
    ['SRB, y = h(x, u)']
    """
    return dict(_read("atlas.toml")["apart"])


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name(name).read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Evidence:
    """Evidence for an entry: its test run as it is, and against deliberately broken code.

    Attributes
    ----------
    passes, executed : bool
        Whether the named test passes, and whether it runs the named code, fixtures included.
    mutants, killed : int
        How often the named code was broken and still gave an answer, and how often an assertion of the named test
        failed then.
    survivors : tuple of str
        What was broken unnoticed.
    crashed : int or None
        How often broken code gave no answer: an error, a hang. That is no kill. None where this was not yet told apart
        when the entry was measured; such a count of kills may hold some.
    recursions : dict
        The same of the recursions behind the code, if it has some: "plain", run on plain numbers, and "compiled".

    Examples
    --------
    >>> from kfdyn.duality.atlas import Evidence
    >>> Evidence(True, True, 6, 5, ("sign: f, line 3",)).proves
    False
    """

    passes: bool
    executed: bool
    mutants: int
    killed: int
    survivors: tuple[str, ...] = ()
    crashed: int | None = None
    recursions: dict[str, Any] = field(default_factory=dict)

    @property
    def proves(self) -> bool:
        """True if the test runs the code and notices every mutant, of which there is at least one."""
        behind = all(0 < one["mutants"] == one["killed"] for one in self.recursions.values())
        return self.passes and self.executed and behind and 0 < self.mutants == self.killed


@cache
def evidence() -> dict[str, Evidence]:
    """Return the evidence by id, as ``make atlas`` measured it last.

    Returns
    -------
    dict of str to Evidence
        By id, as "R86:8.2-8.9".

    Examples
    --------
    >>> from kfdyn.duality.atlas import evidence
    >>> evidence()["R86:4.4"].executed
    True
    """
    text = Path(__file__).with_name("atlas_evidence.json").read_text(encoding="utf-8")
    return {key: Evidence(**{**one, "survivors": tuple(one["survivors"])}) for key, one in json.loads(text).items()}


def atlas_markdown() -> str:
    """Write the atlas as a page of the documentation."""
    results, measured = list(atlas().values()), evidence()
    missing = [result for result in results if result.is_open]
    proven = [result for result in results if result.id in measured and measured[result.id].proves]
    counts = [_counts(one) for one in measured.values()]
    made, killed = (sum(pair[i] for pairs in counts for pair in pairs) for i in (1, 0))
    crashed = sum(n for one in measured.values() for n in _crashes(one) if n)
    weak = len(proven) < len(results) - len(missing)
    old = sum(None in _crashes(one) for one in measured.values())
    lines = [
        "# Atlas",
        "",
        "For every result of the five sources: the code that computes it, and the test that asserts it.",
        "",
        "That both exist would say little, so it is measured that the test runs the code and fails when the code is",
        "wrong. In the lines of the named code (or in what it returns, where compiled code does the work or an",
        "iteration corrects itself) a sign was flipped, a factor put in, a term dropped or a transpose forgotten. At",
        "most six mutants were made of an entry: a sample, not all that could be wrong. The last column says how many",
        "of them an assertion of the named test killed. Where a recursion in the language of sweeps does the work,",
        "those of its formulas that the test runs were broken as well: as they run on plain numbers (the second",
        "count), and one of each function compiled (the third). One that crashed is no kill and is not counted.",
        "",
        "Every `make test` checks that each test still runs what its entries name. The page is generated from",
        "`kfdyn/duality/atlas.toml`, `atlas_sweeps.toml` and `atlas_evidence.json` by `python docs/duality_pages.py`;",
        "`make atlas` measures anew.",
        "",
        "The sources by their short names: " + "; ".join(f"**{key}**, {name}" for key, name in SOURCES.items()) + ".",
        "",
        f"{len(results) - len(missing)} of {len(results)} results are computed and tested"
        + (f"; open: {', '.join(result.id for result in missing)}" if missing else "")
        + f". Of {made} pairs of a result and a mutant",
        f"{killed} were killed; {crashed} more crashed. For {len(proven)} results the named test noticed every mutant",
        "that was made; what the others left is under [Survivors](#survivors)." if weak else "that was made.",
    ]
    if old:
        lines += [
            "",
            f"Counts marked ° ({old} results) are from before crashes were told apart: some of their kills may be",
            "crashes, about one in nine where the code itself was broken.",
        ]
    for source, name in SOURCES.items():
        lines += ["", f"## {source}: {name}", "", "| id | result | code | test | killed |", "|---|---|---|---|---|"]
        for result in results:
            if result.source == source:
                code, test = (f"`{text}`" if text else "open" for text in (result.code, result.test))
                test = test.replace("tests/", "").replace(".py::", "::")
                code = " ".join([code, *(f"`{name.rpartition('.')[2]}`" for name in result.also)])
                told = _told(measured.get(result.id))
                lines.append(f"| {result.key} | {_escaped(result.statement)} | {code} | {test} | {told} |")
    survivors = [f"- {key}: {', '.join(_survivors(one))}" for key, one in measured.items() if _survivors(one)]
    if survivors:
        lines += ["", "## Survivors", "", "Mutants that the named test did not notice:", "", *map(_escaped, survivors)]
    lines += ["", "## Without an entry", "", "What the sources name besides, and where it is or why it is not:", ""]
    lines += [f"- *{name}*. {text}" for name, text in apart().items()]
    return "\n".join(lines) + "\n"


def _crashes(one: Evidence) -> list[int | None]:
    """Return mutants that crashed, as in :func:`_counts`; None where they were counted as killed."""
    return [one.crashed, *(part.get("crashed") for part in one.recursions.values())]


def _told(one: Evidence | None) -> str:
    if one is None:
        return ""
    marks = ("°" if n is None else "" for n in _crashes(one))
    counts = "; ".join(f"{a} of {b}{mark}" for (a, b), mark in zip(_counts(one), marks))
    return counts if one.passes and one.executed else "not run"


def _counts(one: Evidence) -> list[tuple[int, int]]:
    """Return mutants killed and made: of the code, of its recursions on plain numbers, of these compiled."""
    return [(one.killed, one.mutants), *((part["killed"], part["mutants"]) for part in one.recursions.values())]


def _survivors(one: Evidence) -> list[str]:
    return [*one.survivors, *(text for part in one.recursions.values() for text in part["survivors"])]


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*").replace("_", "\\_").replace("<", "\\<")
