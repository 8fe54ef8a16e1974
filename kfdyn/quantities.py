"""The public functions of a robot's state: what is compiled ahead of time, and what tests go through one by one."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, signature
from typing import Any, NamedTuple

STATE = ("q", "v", "tau", "a")


class Quantity(NamedTuple):
    """A function ``of(system, ...)`` of a state, with the names it takes and those it requires."""

    of: Callable[..., Any]
    takes: tuple[str, ...]
    wants: tuple[str, ...]

    def __call__(self, system: Any, **given: Any) -> Any:
        """Call it with those of the arrays that it takes."""
        return self.of(system, **{name: x for name, x in given.items() if name in self.takes})


def quantities() -> dict[str, Quantity]:
    """Return the functions of the dynamics that want q, v, tau and a alone, and can be given ``out``, by their names.

    Examples
    --------
    >>> {"forward_dynamics", "mass_matrix"} <= set(quantities())
    True
    """
    from kfdyn import dynamics

    found = {}
    for name in sorted(dynamics.__all__):
        function = getattr(dynamics, name)
        about = signature(function).parameters if callable(function) and not isinstance(function, type) else {}
        wants = tuple(key for key, one in about.items() if one.default is Parameter.empty)
        if "out" in about and wants[:1] == ("system",) and set(wants[1:]) <= set(STATE):
            found[name] = Quantity(function, tuple(about), wants[1:])
    return found
