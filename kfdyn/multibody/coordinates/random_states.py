"""Configurations drawn at random: of a tree, and of what couplings and loops leave of one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kfdyn.arrays import Array
from kfdyn.multibody.coordinates.configuration import integrate
from kfdyn.multibody.parts.hinge import Coordinates

if TYPE_CHECKING:
    from kfdyn.multibody.flexible.system import FlexibleSystem
    from kfdyn.multibody.system import System


def drawn_of_tree(system: System, rng: np.random.Generator) -> Array:
    """One q of a tree, shape (nq,); see :meth:`System.random_configuration`."""
    layout, q = system.layout, system.neutral()
    turns = layout.screws[:, :3].any(axis=1)
    draw = np.where(turns, rng.uniform(-np.pi, np.pi, system.nv), rng.normal(size=system.nv))
    bounded = np.isfinite(system.lower) & np.isfinite(system.upper)
    low, high = np.where(bounded, system.lower, 0.0), np.where(bounded, system.upper, 0.0)
    draw = np.where(bounded, rng.uniform(low, high), draw)
    of_screws = layout.coordinates == Coordinates.SCREWS
    v_owner = np.repeat(of_screws, np.diff(layout.v_start))
    q[np.repeat(of_screws, np.diff(layout.q_start))] = draw[v_owner]
    step = np.zeros(system.nv)
    for k in np.flatnonzero(~of_screws):
        at, end = layout.q_start[k : k + 2]
        if system.bodies[k].hinge.kind == "custom":
            own = slice(*layout.v_start[k : k + 2])
            step[own] = rng.uniform(-1, 1, own.stop - own.start)
        else:
            quaternion = rng.normal(size=4)
            q[end - 4 : end] = quaternion / np.linalg.norm(quaternion)
            q[at : end - 4] = rng.normal(size=end - 4 - at)
    return integrate(system, q, step) if step.any() else q


def drawn_of_couplings(system: System | FlexibleSystem, rng: np.random.Generator, drawn: Array) -> Array:
    """One q of a system with couplings, shape (nq,), with plain coordinates as ``drawn`` without them.

    See :meth:`System.random_configuration`.
    """
    e, tree = system._expansion, system.open_tree
    own = [tree.hinge_index(name) for coupling in e.couplings for name in coupling.named]
    named = np.array(own, dtype=np.int64)
    turns = tree.layout.screws[tree.layout.v_start[named], :3].any(axis=1)
    draw = np.where(turns, rng.uniform(-np.pi, np.pi, len(named)), rng.normal(size=len(named)))
    low, high = system.lower[e.own_v], system.upper[e.own_v]
    bounded = np.isfinite(low) & np.isfinite(high)
    draw = np.where(bounded, rng.uniform(np.where(bounded, low, 0.0), np.where(bounded, high, 0.0)), draw)
    return e.contracted(drawn, draw)
