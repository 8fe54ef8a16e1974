"""Refuse kinds of systems that a function does not serve: name the kind, and say what to do instead."""

from __future__ import annotations

from typing import Any

from kfdyn.errors import ModelError
from kfdyn.multibody.calls.arguments import expect_one, expect_system


def expect_rigid(system: Any, function: str, instead: str = "") -> None:
    """Refuse a system with bodies that bend where ``function`` serves rigid ones; ``instead`` is what serves both."""
    bending = getattr(system, "flexible", None)
    if bending is not None:
        raise ModelError(
            f"{function} is for rigid bodies, and system {system.name!r} is a FlexibleSystem (bodies that bend: "
            f"{', '.join(bending) or 'none'}){f'; {instead}' if instead else ''}"
        )


def expect_no_loops(system: Any, function: str, why: str) -> None:
    """Refuse a system with loops; ``why`` says what is wrong with them there, and what to do instead."""
    expect_system(system)
    if system.loops:
        raise ModelError(f"{function}: system {system.name!r} has {system.constraints}, and {why}")


def expect_loops(system: Any) -> None:
    """Refuse a system that has no loops."""
    expect_system(system)
    if not system.loops:
        raise ModelError(f"system {system.name!r} has no loops; give it some by system.with_loops([...])")


def expect_tree(system: Any, function: str, instead: str = "") -> None:
    """Refuse a system with couplings, loops or bodies that bend where only a rigid tree has an answer."""
    expect_rigid(system, function)
    expect_system(system)
    expect_one(system, function)
    expect_open(system, function, instead)


def expect_open(system: Any, function: str, instead: str = "") -> None:
    """Refuse a system with couplings or loops; its bodies may bend."""
    expect_system(system)
    if system.couplings or system.loops:
        instead = instead or (
            "take system.open_tree with system.expand(q), or the model that kf.as_estimation(system, q) makes of it"
        )
        raise ModelError(f"{function} is for trees, but system {system.name!r} has {system.constraints}; {instead}")


def expect_coordinates(system: Any, function: str, word: str) -> None:
    """Refuse loops where an answer depends on which coordinates are independent; ``word`` is where it is told."""
    expect_no_loops(
        system,
        function,
        "what this is depends on which coordinates are taken as independent; "
        f"kf.minimal_coordinates(system, q).{word} tells it, with its choice",
    )
