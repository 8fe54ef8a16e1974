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
