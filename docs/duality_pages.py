"""Write the generated pages of the documentation: dictionary.md and atlas.md.

python docs/duality_pages.py
"""

from pathlib import Path

from kfdyn.duality.atlas import SOURCES, Evidence, apart, atlas, evidence
from kfdyn.duality.dictionary import DICTIONARY as ROWS
from kfdyn.duality.identities import IDENTITIES

HERE = Path(__file__).parent

DICTIONARY = """# Dictionary and identities

One linear-quadratic problem, three readings. `kfdyn dictionary` prints the first table, with the numbers of a robot if
one is given; `kfdyn identities` evaluates the second. Both come from the tables in `kfdyn.duality`, and so does this
page (`python docs/duality_pages.py`). The column of control is the problem of `kfdyn.lqr`, p the step before k; a test
executes each of its rows, and [](control.md) says how to read them.

## Dictionary

{dictionary}
## Identities

Letters are those of [](theory.md); the residual of each is a function of `kfdyn.duality.identities`. R86
(Rodriguez's report of 1986), ATBI (Jain's lectures on articulated body inertias) and SKO (his models by spatial kernel
operators) are sources, see the [references](references.md).

{identities}"""


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


def dictionary_markdown() -> str:
    """Write the dictionary as a Markdown table, for the documentation."""
    lines = ["| symbol | estimation | multibody dynamics | control | code |", "|---|---|---|---|---|"]
    lines += [f"| {' | '.join(e.names)} | {chr(96) + e.code + chr(96) if e.code else 'not yet'} |" for e in ROWS]
    return "\n".join(lines) + "\n"


def identities_markdown() -> str:
    """Write the identities as a Markdown table, for the documentation."""
    lines = ["| name | statement | holds | atlas |", "|---|---|---|---|"]
    lines += [
        f"| `{one.name}` | {one.statement} | {'R = 0' if one.exact_only else 'any R'} | {one.source} |"
        for one in IDENTITIES.values()
    ]
    return "\n".join(lines) + "\n"


def pages() -> dict[str, str]:
    """Text of each generated page, by file name."""
    tables = {"dictionary": dictionary_markdown(), "identities": identities_markdown()}
    escaped = {name: text.replace("*", "\\*") for name, text in tables.items()}
    return {"dictionary.md": DICTIONARY.format(**escaped), "atlas.md": atlas_markdown()}


if __name__ == "__main__":
    for name, text in pages().items():
        HERE.joinpath(name).write_text(text, encoding="utf-8")
