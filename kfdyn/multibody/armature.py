"""The same tree with other rotors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from kfdyn.multibody.system import System, rebuilt


def with_armature(system: System, armature: NDArray[np.float64]) -> System:
    """Return the same system with other rotors, armature (nv,)."""
    start = system.layout.v_start
    bodies = tuple(
        replace(body, armature=armature[start[k] : start[k + 1]]) if body.hinge.nv else body
        for k, body in enumerate(system.bodies)
    )
    return rebuilt(bodies, system.gravity, dict(system.frames), system.name, system.indefinite_inertia)
