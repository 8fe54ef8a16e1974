"""The coordinates in which a system is estimated: those of its open tree; where bodies bend, hinges and modes."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from kfdyn.dynamics.sensors.sensor import Array, Index
from kfdyn.errors import ModelError
from kfdyn.multibody import FlexibleSystem, System


class Dofs(NamedTuple):
    """Number of dofs, their rotors, where each body's begin, bodies parents first, and states of the widest node.

    The states of a node are [angular; linear], then its modes; narrower nodes are padded by zeros.
    """

    nv: int
    armature: Array
    start: Index
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
    tree = system.open_tree
    order = tuple(int(k) for k in tree.layout.order if k < system.n_bodies)
    if isinstance(system, FlexibleSystem):
        return Dofs(system.nv, system.armature, system.v_start, order, 6 + int(system.modes.max(initial=0)))
    return Dofs(tree.nv, tree.armature, tree.layout.v_start, order, 6)


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


def hinge_dofs(system: System | FlexibleSystem, k: int) -> int:
    """Dofs of the hinge that carries body k."""
    if isinstance(system, FlexibleSystem):
        return int(system.hinge_v[k])
    return system.bodies[k].hinge.nv


def dof_start(system: System | FlexibleSystem, k: int) -> int:
    """Return the first place in v of the dofs of body k, those of its hinge first."""
    if isinstance(system, FlexibleSystem):
        return int(system.v_start[k])
    return system.v_slice(system.hinge_names[k]).start


def dof_labels(system: System | FlexibleSystem) -> list[tuple[str, int]]:
    """Return the name of each entry of v in messages, and its body."""
    out = []
    for k, name in enumerate(system.hinge_names):
        m = hinge_dofs(system, k) if has_own(system, k) else 0
        out += [(f"hinge {name!r}" + (f" (dof {i})" if m > 1 else ""), k) for i in range(m)]
        if isinstance(system, FlexibleSystem):
            own = dofs_of(system).of(k)
            out += [(f"mode {name!r}", k) for name in system.dof_names[own.start + m : own.stop]]
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
    if not isinstance(system, FlexibleSystem):
        return {}
    start = system.v_start
    body = np.searchsorted(start, np.flatnonzero(system.elastic), side="right") - 1
    return {system.dof_names[at]: (int(k), int(at - start[k])) for k, at in zip(body, np.flatnonzero(system.elastic))}
