"""One check for what serves rigid bodies alone: a flexible system is refused in words, not read as its rigid tree."""

from __future__ import annotations

from typing import Any

from kfdyn.errors import ModelError
from kfdyn.multibody.flexible.system import FlexibleSystem


def expect_rigid(system: Any, function: str, instead: str = "") -> None:
    """Refuse a system with bodies that bend where ``function`` serves rigid ones; ``instead`` is what serves both."""
    if isinstance(system, FlexibleSystem):
        raise ModelError(
            f"{function} is for rigid bodies, and system {system.name!r} is a FlexibleSystem (bodies that bend: "
            f"{', '.join(system.flexible) or 'none'}){f'; {instead}' if instead else ''}"
        )
