"""The order of elimination of a layout, chosen once, in a state in which no lever vanishes.

Were it chosen in the first state that is asked about, the last digits of an answer, and whether there is one close to a
lock, would depend on what was asked before.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from kfdyn.dynamics.sensors.dofs import is_open
from kfdyn.dynamics.sensors.factor import Factor
from kfdyn.dynamics.sensors.flexible_terms import flexible_terms
from kfdyn.dynamics.sensors.gather import gather, unsuited
from kfdyn.dynamics.sensors.layout import Layout, dof_units, natural_units, terms_at_rest
from kfdyn.dynamics.sensors.sensor import Array
from kfdyn.dynamics.sensors.sharing import coordinate_maps
from kfdyn.multibody import FlexibleSystem, LinkTerms, System, integrate
from kfdyn.multibody.links import open_terms


@lru_cache(maxsize=64)
def in_general_position(layout: Layout) -> Factor | None:
    """The factor of one state there, with its choices; None where the sensors leave something undetermined even so."""
    system = layout.system
    q = general_position(system)[None]
    factor = gather(layout, terms_of(system, q, np.zeros((1, system.nv)), system.gravity[None]))
    return None if unsuited(factor)[0] else factor


@lru_cache(maxsize=64)
def general_position(system: System) -> Array:
    """A configuration (nq,) away from neutral and right angles, by about a radian and about the robot's length."""
    H, unit, maps = terms_at_rest(system).H[0, :, :6], natural_units(system), coordinate_maps(system)
    step = dof_units(H, unit) / unit[0] * np.sin(1.0 + np.arange(len(H)))
    if isinstance(system, FlexibleSystem):
        step[system.elastic] = 0.0
    return integrate(system, system.neutral(), step if maps is None else maps[1] @ step)


def terms_of(system: System, q: Array, v: Array, gravity: Array) -> LinkTerms:
    """Link terms of B states; of couplings and loops those of the open tree, and the world as one body more."""
    if isinstance(system, FlexibleSystem):
        return flexible_terms(system, q, v, gravity)
    terms = open_terms(system, q, v, gravity=gravity)
    if is_open(system):
        return terms
    ends = [np.zeros((len(q), 1, *x.shape[2:])) for x in terms]
    ends[0][:] = np.eye(3)
    return LinkTerms(
        *(x if i == 3 else np.concatenate([x, end], axis=1) for i, (x, end) in enumerate(zip(terms, ends)))
    )
