"""Citations of the theory in docstrings become links: THEORY section 3, THEORY sections 3 to 5, THEORY (2), (3)."""

import re

#: The five equations that docstrings number, by their labels on the theory page.
EQUATIONS = {"1": "mass", "2": "filter-P", "3": "filter-z", "4": "smoother", "5": "smoothed-cov"}

_NUMBER = r"(?:\d+|\(\d+\))"
#: A citation on one line: the page, its sections, its equations, or several of them.
CITATION = re.compile(
    rf"\bTHEORY\b(?:\.md)?(?: (?:sections? )?{_NUMBER}(?:(?:, (?:and )?| and | to |–)(?:sections? )?{_NUMBER})*)?"
)


def cited(citation):
    """Numbers of the sections, and of the equations, that a citation names."""
    return re.findall(r"(?<![\d(])\d+", citation), re.findall(r"\((\d+)\)", citation)


def _number(match):
    if match["equation"]:
        return f":eq:`{EQUATIONS[match['equation']]}`"
    return f":ref:`{match['section'] or ''}{match['number']} <theory-{match['number']}>`"


def _link(match):
    numbers = match[0].removeprefix("THEORY").removeprefix(".md")
    if not numbers:
        return ":doc:`THEORY </theory>`"
    links = re.sub(r"\((?P<equation>\d+)\)|(?P<section>section )?(?P<number>\d+)", _number, numbers)
    return f"THEORY{links}"


def linked(text):
    """Return a line of a docstring's prose with its citations of the theory as links."""
    return CITATION.sub(_link, text)
