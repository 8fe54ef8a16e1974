"""Order the bodies of a forest so that parents come before children, without recursion."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kfdyn.errors import TreeError
from kfdyn.multibody.parts.body import Body
from kfdyn.multibody.parts.system_validation import hint

Index = NDArray[np.int64]


def parents_first(bodies: Sequence[Body], index: dict[str, int]) -> tuple[Index, Index]:
    """Return a scatter order and the parents' indices, each (n,); cost O(n).

    The order is depth-first, so that a body's data are near its parent's in memory. A parent that is
    no body, and a loop, are refused by name.
    """
    n = len(bodies)
    parent = np.full(n, -1, dtype=np.int64)
    children: list[list[int]] = [[] for _ in range(n)]
    stack: list[int] = []
    for k, body in enumerate(bodies):
        if body.parent is None:
            stack.append(k)
            continue
        if body.parent not in index:
            cure = hint(body.parent, index) or "; a root has parent None"
            raise TreeError(f"body {body.name!r}: its parent {body.parent!r} is no body of the system{cure}")
        parent[k] = index[body.parent]
        children[parent[k]].append(k)
    stack.reverse()
    order: list[int] = []
    while stack:
        k = stack.pop()
        order.append(k)
        stack.extend(reversed(children[k]))
    if len(order) < n:
        raise TreeError(_loop(bodies, parent, set(range(n)) - set(order)))
    for array in (parent, made := np.array(order, dtype=np.int64)):
        array.flags.writeable = False
    return made, parent


def _loop(bodies: Sequence[Body], parent: Index, unreached: set[int]) -> str:
    """Walk inboard from a body that no root reaches until a body repeats."""
    k = min(unreached)
    seen: dict[int, int] = {}
    while k not in seen:
        seen[k] = len(seen)
        k = int(parent[k])
    names = [bodies[j].name for j in list(seen)[seen[k] :]]
    path = " -> ".join([*names[:8], *(["..."] if len(names) > 8 else []), names[0]])
    return (
        f"the parents go in a loop: {path}. A System is a forest: give one of these bodies another parent "
        "(None makes it a root); a closed mechanism is cut at one hinge and the cut kept as a constraint"
    )
