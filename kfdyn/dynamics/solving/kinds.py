"""What kinds of systems do in a way of their own: a kind has a module, and in it functions that are looked up by name.

No quantity lists the kinds of systems, and no kind the quantities. A function of a kind's module that is called

- like a quantity takes the arguments as they came, and is the kind's own way to that quantity;
- ``explain_`` and a quantity takes states, and answers those that compiled code declines, or finds the words;
- like a quantity and ``_by`` takes a method, too, of which the kind may have others than trees;
- like a quantity and ``_of`` takes states, where the quantity has checked and broadcast what came;
- ``forest`` makes the estimation problem of states, where nodes are larger than a rigid body;
- ``blocks`` makes those of its bodies, where a coupling or a loop joins them to larger ones;
- ``singular_node`` says in words of mechanics which node of that has nothing to move.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

#: By the kinds of systems.
MODULES = {
    "geared": "kfdyn.dynamics.loops.coupled",
    "curved": "kfdyn.dynamics.loops.coupled",
    "opaque": "kfdyn.dynamics.loops.coupled",
    "looped": "kfdyn.dynamics.loops.looped",
    "flexible": "kfdyn.dynamics.flexible",
    "opaque flexible": "kfdyn.dynamics.flexible",
    "coupled flexible": "kfdyn.dynamics.flexible.coupled_flexible",
}


def own_way(system: Any, name: str) -> Callable[..., Any] | None:
    """What the module of this kind of system has under a name; a tree has none."""
    return _own_way(system.kind, name)


@cache
def _own_way(kind: str, name: str) -> Callable[..., Any] | None:
    if kind not in MODULES:
        return None
    module = import_module(MODULES[kind])
    return getattr(module, name) if name in module.__all__ else None
