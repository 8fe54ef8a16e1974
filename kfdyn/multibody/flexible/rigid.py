"""One check for what serves rigid bodies alone: a flexible system is refused in words, not read as its rigid tree."""

from __future__ import annotations

from typing import Any

from kfdyn.errors import ModelError


def expect_rigid(system: Any, function: str, instead: str = "") -> None:
    """Refuse a system with bodies that bend where ``function`` serves rigid ones; ``instead`` is what serves both."""
    bending = getattr(system, "flexible", None)
    if bending is not None:
        raise ModelError(
            f"{function} is for rigid bodies, and system {system.name!r} is a FlexibleSystem (bodies that bend: "
            f"{', '.join(bending) or 'none'}){f'; {instead}' if instead else ''}"
        )
