"""The coordinates in which a system is estimated: those of its open tree; where bodies bend, hinges and modes."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from kfdyn.dynamics.sensors.sensor import Array, Index
from kfdyn.errors import ModelError
from kfdyn.multibody import FlexibleSystem, System


class Dofs(NamedTuple):
    """Number of dofs, rotors, first dof of each body, dofs of its hinge; bodies outward, states of the widest node.

    The states of a node are [angular; linear], then its modes; narrower nodes are padded by zeros.
    """

    nv: int
    armature: Array
    start: Index
    hinge: Index
    order: tuple[int, ...]
    width: int

    def of(self, k: int) -> slice:
        """Dofs of body k: those of its hinge, then its modes."""
        return slice(int(self.start[k]), int(self.start[k + 1]))

    def count(self, k: int) -> int:
        """The number of them."""
        return int(self.start[k + 1] - self.start[k])


@lru_cache(maxsize=64)
def dofs_of(system: System | FlexibleSystem) -> Dofs:
    """The dofs of a system, before couplings share them."""
    plain, places = system.uncoupled, system.places
    order = tuple(int(k) for k in system.open_tree.layout.order if k < system.n_bodies)
    hinge = np.array([hinge.nv for hinge in places.hinges], dtype=np.int64)
    modes = np.diff(places.v_start) - hinge
    return Dofs(plain.nv, plain.armature, places.v_start, hinge, order, 6 + int(modes.max(initial=0)))


def is_open(system: System | FlexibleSystem) -> bool:
    """Tell whether it is a tree, rigid or not, whose dofs are independent."""
    return not (system.couplings or system.loops)


def expect_served(system: System | FlexibleSystem) -> None:
    """Refuse bodies that bend in loops, or on hinges that follow others."""
    if isinstance(system, FlexibleSystem) and not is_open(system):
        raise ModelError(
            f"system {system.name!r} has {system.constraints}: sensors are served on flexible bodies without loops and "
            "couplings; system.without_loops has no loops, system.uncoupled neither"
        )


def dof_start(system: System | FlexibleSystem, k: int) -> int:
    """Return the first place in v of the dofs of body k, those of its hinge first."""
    return system.v_slice(system.hinge_names[k]).start


def dof_labels(system: System | FlexibleSystem) -> list[tuple[str, int]]:
    """Return the name of each entry of v in messages, and its body."""
    out, modes = [], mode_places(system)
    for k, name in enumerate(system.hinge_names):
        m = int(dofs_of(system).hinge[k]) if has_own(system, k) else 0
        out += [(f"hinge {name!r}" + (f" (dof {i})" if m > 1 else ""), k) for i in range(m)]
        out += [(f"mode {mode!r}", k) for mode, (body, _) in modes.items() if body == k]
    return out


def dof_slice(system: System | FlexibleSystem, name: str) -> slice:
    """Return where the dofs of a hinge, or a mode, sit in v."""
    modes = mode_places(system)
    if name in modes and name not in system.hinge_names:
        k, i = modes[name]
        at = int(dofs_of(system).start[k]) + i
        return slice(at, at + 1)
    return system.v_slice(name)


def has_own(system: System | FlexibleSystem, k: int) -> bool:
    """Tell whether a hinge has coordinates of its own, and does not follow others."""
    return bool(is_open(system) or system._expansion.has_own[k])


def mode_places(system: System | FlexibleSystem) -> dict[str, tuple[int, int]]:
    """Body of every mode, by the name it has among ``dof_names``, and its place among the body's dofs."""
    start, modes = dofs_of(system).start, np.flatnonzero(system.elastic)
    body = np.searchsorted(start, modes, side="right") - 1
    return {system.dof_names[at]: (int(k), int(at - start[k])) for k, at in zip(body, modes)}
