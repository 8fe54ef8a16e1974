"""What the demo claims and checks."""

from typing import NamedTuple


class Check(NamedTuple):
    """One claim, what was found, and whether it holds."""

    claim: str
    found: str
    passed: bool
