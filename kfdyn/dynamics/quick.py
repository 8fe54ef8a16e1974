"""The quick way: plain arrays go straight to compiled code, everything else goes the long way.

Each function takes what its public namesake takes and returns its answer, or None where it does not know one: an
argument is no float64 array, or the leading axes differ, or an entry is not finite, or a quaternion is not of unit
length, or a hinge has no inertia. The long way then converts, broadcasts or says what is wrong, so that nothing here
needs words. One state costs about 1 µs around the sweeps, most of it numpy's and numba's; a batch 10 µs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import empty, ndarray
from numpy.typing import NDArray

from kfdyn.dynamics.doors import DOORS, Door
from kfdyn.dynamics.forest import States
from kfdyn.dynamics.fused import (
    fused_forward_dynamics,
    fused_inverse_dynamics,
    fused_mass_matrix,
    fused_mass_matrix_inverse,
)
from kfdyn.multibody import System

Array = NDArray[np.float64]

_FLOAT = np.dtype(np.float64)
_NO_FORCES = np.empty((0, 6))


def quick_forward_dynamics(system: System, q: Any, v: Any, tau: Any, force: Any, gravity: Any) -> Array | None:
    """Accelerations (..., nv), or None."""
    if type(q) is not ndarray:
        return None
    if q.ndim == 1:
        return _one_state(DOORS.forward_one, system, q, v, tau, force, gravity)
    states = plain_states(system, q, v, force, gravity, tau=tau)
    if states is None:
        return None
    a, flagged = fused_forward_dynamics(states)
    return None if flagged.any() else a.reshape((*states.lead, system.nv))


def quick_inverse_dynamics(system: System, q: Any, v: Any, a: Any, force: Any, gravity: Any) -> Array | None:
    """Generalised forces (..., nv), or None."""
    if type(q) is not ndarray:
        return None
    if q.ndim == 1:
        return _one_state(DOORS.inverse_one, system, q, v, a, force, gravity)
    states = plain_states(system, q, v, force, gravity, a=a)
    if states is None:
        return None
    tau = fused_inverse_dynamics(states)
    return None if tau is None else tau.reshape((*states.lead, system.nv))


def quick_bias_forces(system: System, q: Any, v: Any, force: Any, gravity: Any) -> Array | None:
    """Bias c (..., nv), or None."""
    if type(q) is not ndarray:
        return None
    if q.ndim == 1:
        return _one_state(DOORS.inverse_one, system, q, v, np.zeros(system.nv), force, gravity)
    states = plain_states(system, q, v, force, gravity)
    if states is None:
        return None
    c = fused_inverse_dynamics(states)  # without a, which is then 0
    return None if c is None else c.reshape((*states.lead, system.nv))


def quick_mass_matrix(system: System, q: Any) -> Array | None:
    """𝓜 (..., nv, nv), or None."""
    if type(q) is not ndarray:
        return None
    if q.ndim == 1:
        return _one_configuration(DOORS.mass_matrix_one, system, q)
    states = plain_states(system, q)
    if states is None:
        return None
    matrix = fused_mass_matrix(states)
    return None if matrix is None else matrix.reshape((*states.lead, system.nv, system.nv))


def quick_mass_matrix_inverse(system: System, q: Any) -> Array | None:
    """𝓜⁻¹ (..., nv, nv), or None."""
    if type(q) is not ndarray:
        return None
    if q.ndim == 1:
        return _one_configuration(DOORS.mass_matrix_inverse_one, system, q)
    states = plain_states(system, q)
    if states is None:
        return None
    inverse, flagged = fused_mass_matrix_inverse(states)
    return None if flagged.any() else inverse.reshape((*states.lead, system.nv, system.nv))


def _one_state(door: Door, system: System, q: Array, v: Any, u: Any, force: Any, gravity: Any) -> Array | None:
    # A door believes what its signature says of an array: not one of these looks may be left out.
    if v is None:
        v = np.zeros(system.nv)
    if force is None:
        force = _NO_FORCES
    elif not (type(force) is ndarray and force.dtype is _FLOAT and force.shape == (system.n_bodies, 6)):
        return None
    if gravity is None:
        gravity = system.gravity
    elif not (type(gravity) is ndarray and gravity.dtype is _FLOAT and gravity.ndim == 1):
        return None
    if type(v) is type(u) is ndarray and q.dtype is v.dtype is u.dtype is _FLOAT and v.ndim == u.ndim == 1:
        out = empty(system.nv)
        if door(system.address, q, v, u, force, gravity, out):
            return out
    return None


def _one_configuration(door: Door, system: System, q: Array) -> Array | None:
    if q.dtype is _FLOAT:
        out = empty((system.nv, system.nv))
        if door(system.address, q, out):
            return out
    return None


def plain_states(
    system: System, q: Array, v: Any = None, external_forces: Any = None, gravity: Any = None, **dofs: Any
) -> States | None:
    """States whose arrays are of the right kind as they stand, their numbers not looked at; or None."""
    lead, nv = q.shape[:-1], system.nv
    arrays = {}
    for name, value, tail in (
        ("q", q, (system.nq,)),
        ("v", v, (nv,)),
        ("external_forces", external_forces, (system.n_bodies, 6)),
        ("gravity", gravity, (3,)),
        *((name, value, (nv,)) for name, value in dofs.items()),
    ):
        if value is None and name not in dofs:
            continue
        if not (type(value) is ndarray and value.dtype is _FLOAT and value.flags.c_contiguous):
            return None
        if value.shape != lead + tail and not (name == "gravity" and value.shape == tail):
            return None
        arrays[name] = value
    return States(system, lead, arrays)
