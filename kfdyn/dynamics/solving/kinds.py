"""Ways that kinds of systems have of their own: a kind has modules, whose functions are looked up by name.

No quantity lists the kinds of systems, and no kind the quantities. A function of a kind's modules that is called

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
from typing import Any, cast

_COUPLED = ("loops.coupled", "loops.constrained_hybrid", "loops.embedding", "loops.aggregation")
_LOOPED = (
    "loops.closed", "loops.loop_derivatives", "loops.assemble", "loops.constrained_hybrid", "loops.embedding",
    "loops.aggregation", "simulation.symplectic.rattle",
)  # fmt: skip
_FLEXIBLE = ("flexible.solve", "flexible.assembly")
#: What has no derivatives, and no units to judge a mass matrix by.
_INEXACT = ("solving.blocks", "vibration")

#: Where the functions of a kind of system are.
MODULES = {
    **dict.fromkeys(("geared", "curved", "opaque"), _COUPLED),
    "looped": (*_LOOPED, *_INEXACT),
    **dict.fromkeys(("flexible", "opaque flexible"), (*_FLEXIBLE, *_INEXACT)),
    "coupled flexible": (*_COUPLED, *_INEXACT),
}


def own_way(system: Any, name: str) -> Callable[..., Any] | None:
    """The function of this name that a module of this kind of system has; a tree has none."""
    return _own_way(system.kind, name)


@cache
def _own_way(kind: str, name: str) -> Callable[..., Any] | None:
    for place in MODULES.get(kind, ()):
        module = import_module(f"kfdyn.dynamics.{place}")
        found = getattr(module, name, None)
        if found is not None and found.__module__ == module.__name__:  # and not imported there
            return cast(Callable[..., Any], found)
    return None
