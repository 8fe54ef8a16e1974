"""Write the generated pages of the documentation: dictionary.md and atlas.md.

python docs/duality_pages.py
"""

from pathlib import Path

from kfdyn.duality.atlas import atlas_markdown
from kfdyn.duality.dictionary import dictionary_markdown, identities_markdown

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


def pages() -> dict[str, str]:
    """Text of each generated page, by file name."""
    tables = {"dictionary": dictionary_markdown(), "identities": identities_markdown()}
    escaped = {name: text.replace("*", "\\*") for name, text in tables.items()}
    return {"dictionary.md": DICTIONARY.format(**escaped), "atlas.md": atlas_markdown()}


if __name__ == "__main__":
    for name, text in pages().items():
        HERE.joinpath(name).write_text(text, encoding="utf-8")
