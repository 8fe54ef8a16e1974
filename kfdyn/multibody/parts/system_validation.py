"""Check the parts of a system: bodies and their order, names, frames, couplings, loops."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kfdyn.arrays import Array
from kfdyn.errors import ModelError, TreeError, shown
from kfdyn.multibody.loops.loop import Loop
from kfdyn.multibody.parts.body import Body, Frame, placement
from kfdyn.multibody.parts.coupling import Coupling

if TYPE_CHECKING:
    from kfdyn.multibody.flexible.system import FlexibleSystem
    from kfdyn.multibody.system import System


def expect_rigid_bodies(name: str, bodies: Sequence[Body]) -> None:
    """Refuse what is no rigid body on a stiff hinge, and a system of none."""
    if not bodies:
        raise ModelError(f"system {name!r} has no bodies; give it at least one")
    for body in bodies:
        if not isinstance(body, Body):
            called = f"{body.name!r}, a {type(body).__name__}" if hasattr(body, "name") else shown(body)
            raise ModelError(
                f"system {name!r} is of rigid bodies, each a Body, and was given {called}; bodies that bend make a "
                "kf.FlexibleSystem"
            )
        if body.hinge.flexible is not None:
            raise ModelError(
                f"system {name!r} is rigid, and hinge {body.hinge_name!r} is a flexible joint, whose spring is "
                "part of the dynamics; make a kf.FlexibleSystem, or two hinges of it: joint.split(body)"
            )


def placed_frames(frames: Mapping[str, Frame], index: Mapping[str, int]) -> dict[str, tuple[int, Array, Array]]:
    """Body index, rotation and position of each frame, which are known to be good then."""
    placed: dict[str, tuple[int, Array, Array]] = {}
    if not isinstance(frames, Mapping):
        raise ModelError(
            f"frames must be a mapping such as {{'tool': kf.Frame('body')}}, got {type(frames).__name__}: a frame is "
            "known by its name"
        )
    for key, frame in frames.items():
        if not isinstance(frame, tuple) or not 1 <= len(frame) <= 3:
            raise ModelError(f"frame {key!r} must be a kf.Frame, got {type(frame).__name__}")
        frame = Frame(*frame)
        if key in index:
            raise ModelError(f"frame {key!r} bears the name of a body; give it another")
        if frame.body not in index:
            raise ModelError(f"frame {key!r} is fixed to {frame.body!r}, which is no body" + hint(frame.body, index))
        placed[key] = (index[frame.body], *placement(frame.rotation, frame.position, f"frame {key!r}"))
    return placed


def expect_couplings(name: str, couplings: tuple[Coupling, ...]) -> None:
    """Refuse couplings that are none."""
    _expect_kind(name, "couplings", Coupling, couplings)


def expect_loops(system: System | FlexibleSystem, loops: tuple[Loop, ...]) -> None:
    """Refuse loops that are none, and those whose ends the system has not."""
    _expect_kind(system.name, "loops", Loop, loops)
    for loop in loops:
        for end in (loop.frame_a, loop.frame_b, loop.rolling):
            if end is not None:
                system.locate(end)


def _expect_kind(name: str, what: str, kind: type, given: tuple[object, ...]) -> None:
    for one in given:
        if not isinstance(one, kind):
            raise ModelError(f"system {name!r}: {what} must be {kind.__name__}s, got {shown(one)}")


def numbered(names: tuple[str, ...], what: str) -> dict[str, int]:
    """Index of each name; two that are the same are refused."""
    index: dict[str, int] = {}
    for k, name in enumerate(names):
        if name in index:
            raise TreeError(f"two {'bodies' if what == 'body' else 'hinges'} are called {name!r}; names must differ")
        index[name] = k
    return index


def hint(name: object, known: Iterable[str]) -> str:
    """The known name that is nearest to one which is not, as the end of an error message; empty if none is near."""
    if not isinstance(name, str):
        return "; give its name"
    close = get_close_matches(name, list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


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
