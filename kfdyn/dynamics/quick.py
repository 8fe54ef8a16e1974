"""The quick way: plain arrays go straight to compiled code, everything else goes the long way.

Each function takes what its public namesake takes and returns its answer, or None where it does not know one: an
argument is no float64 array, or the leading axes differ, or an entry is not finite, or a quaternion is not of unit
length, or a hinge has no inertia. The long way then converts, broadcasts or says what is wrong, so that nothing here
needs words. One state costs about 1 µs around the sweeps, most of it numpy's and numba's; a batch 5 µs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy import empty, ndarray
from numpy.typing import NDArray

from kfdyn.dynamics.doors import DOORS, Door, address_of, over_rows
from kfdyn.dynamics.forest import States
from kfdyn.dynamics.fused import (
    fused_hybrid_dynamics,
    fused_inverse_dynamics,
    fused_operational_space_compliance,
)
from kfdyn.dynamics.memory import room
from kfdyn.multibody import System

Array = NDArray[np.float64]
Quick = Callable[..., Array | None]

_FLOAT = np.dtype(np.float64)
_NOTHING = np.empty(0)


def _of_states(door: str) -> Quick:
    """Forward or inverse dynamics, u being what they take beside q and v. A closure: each call would cost."""
    enter: Door | None = None

    def quick(system: System, q: Any, v: Any, u: Any, force: Any, gravity: Any) -> Array | None:
        nonlocal enter
        if type(q) is not ndarray or not q.ndim:
            return None
        # A door believes what its signature says of an array: not one of these looks may be left out.
        if force is None:
            force = _NOTHING
        elif not _plain(force, (*q.shape[:-1], system.n_bodies, 6)):
            return None
        else:
            force = force.reshape(-1)
        if gravity is None:
            gravity = system.gravity
        elif not (_plain(gravity, (3,)) or _plain(gravity, (*q.shape[:-1], 3))):
            return None
        if v is None:
            v = np.zeros((*q.shape[:-1], system.nv))
        if not (type(v) is type(u) is ndarray and q.dtype is v.dtype is u.dtype is _FLOAT and u.shape == v.shape):
            return None
        if enter is None:
            enter = getattr(DOORS, door)
        model = system.address or address_of(system)
        if q.ndim == 1:  # of any strides; the door looks at the sizes
            out = empty(system.nv)
            fine = v.ndim == 1 and enter(model, q, v, u, force, gravity, 1, 1, 0, out)
            return out if fine else None
        if not (q.shape[:-1] == v.shape[:-1] and q.shape[-1] == system.nq and v.shape[-1] == system.nv):
            return None
        out = empty(v.shape)
        given = (model, q.reshape(-1), v.reshape(-1), u.reshape(-1), force, gravity.reshape(-1))
        into, rows = out.reshape(-1), v.size // system.nv if system.nv else math.prod(q.shape[:-1])
        fine = over_rows(rows, system, lambda *shared: enter(*given, *shared, into))
        return out if fine else None

    return quick


def _plain(value: Any, shape: tuple[int, ...]) -> bool:
    return type(value) is ndarray and value.dtype is _FLOAT and value.shape == shape


def _of_configurations(door: str) -> Quick:
    """𝓜 or 𝓜⁻¹."""

    def quick(system: System, q: Any) -> Array | None:
        if not (type(q) is ndarray and q.dtype is _FLOAT and q.ndim):
            return None
        nv, enter, model = system.nv, getattr(DOORS, door), system.address or address_of(system)
        if q.ndim == 1:  # of any strides
            out = empty((nv, nv))
            return out if enter(model, q, 1, 1, 0, out) else None
        if q.shape[-1] != system.nq:
            return None
        rows = math.prod(q.shape[:-1])
        flat, out = q.reshape(-1), room(rows * nv, nv)
        fine = over_rows(rows, system, lambda *shared: enter(model, flat, *shared, out))
        return out.reshape(*q.shape[:-1], nv, nv) if fine else None

    return quick


#: (system, q, v, tau, external_forces, gravity): accelerations (..., nv), or None.
quick_forward_dynamics = _of_states("forward")

#: (system, q, v, a, external_forces, gravity): generalised forces (..., nv), or None.
quick_inverse_dynamics = _of_states("inverse")

#: (system, q): 𝓜 (..., nv, nv), or None.
quick_mass_matrix = _of_configurations("mass")

#: (system, q): 𝓜⁻¹ (..., nv, nv), or None.
quick_mass_matrix_inverse = _of_configurations("mass_inverse")


def quick_bias_forces(system: System, q: Any, v: Any, force: Any, gravity: Any) -> Array | None:
    """Bias c (..., nv), or None."""
    if type(q) is not ndarray:
        return None
    if q.ndim == 1:
        return quick_inverse_dynamics(system, q, v, np.zeros(system.nv), force, gravity)
    states = plain_states(system, q, v, force, gravity)
    c = None if states is None else fused_inverse_dynamics(states)  # without a, which is then 0
    return None if c is None else c.reshape((*q.shape[:-1], system.nv))


def quick_hybrid_dynamics(
    system: System, q: Any, v: Any, tau: Any, a: Any, prescribed: NDArray[np.bool_], force: Any, gravity: Any
) -> tuple[Array, Array] | None:
    """All of tau and of a (..., nv), or None."""
    states = plain_states(system, q, v, force, gravity, tau=tau, a=a) if type(q) is ndarray else None
    answers = None if states is None else fused_hybrid_dynamics(states, prescribed)
    return None if answers is None else (answers[0].reshape(tau.shape), answers[1].reshape(tau.shape))


def quick_operational_space_compliance(
    system: System, q: Any, bodies: NDArray[np.int64], positions: Array
) -> Array | None:
    """Ω (..., 6 k, 6 k) of frames at ``positions`` (k, 3) on ``bodies`` (k,), or None."""
    states = plain_states(system, q) if type(q) is ndarray else None
    Omega = None if states is None else fused_operational_space_compliance(states, bodies, positions)
    return None if Omega is None else Omega.reshape((*q.shape[:-1], *Omega.shape[1:]))


def plain_states(
    system: System, q: Array, v: Any = None, external_forces: Any = None, gravity: Any = None, **dofs: Any
) -> States | None:
    """States whose arrays are of the right kind as they stand, their numbers not looked at; or None.

    Arrays of a batch are contiguous; one state may be a row or column of anything.
    """
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
        if not (type(value) is ndarray and value.dtype is _FLOAT and (value.flags.c_contiguous or not lead)):
            return None
        if value.shape != lead + tail and not (name == "gravity" and value.shape == tail):
            return None
        arrays[name] = value
    return States(system, lead, arrays)
