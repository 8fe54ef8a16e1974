"""The quick way: plain arrays go straight to compiled code, everything else goes the long way.

Each function takes what its public namesake takes and returns its answer, or None where it does not know one: an
argument is no float64 array, or the leading axes differ, or an entry is not finite, or a quaternion is not of unit
length, or a hinge has no inertia. The long way then converts, broadcasts or says what is wrong, so that nothing here
needs words. One state costs about 1 µs around the sweeps, most of it numpy's and numba's; a batch 10 µs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy import empty, ndarray
from numpy.typing import NDArray

from kfdyn.dynamics.doors import DOORS, Door, address_of
from kfdyn.dynamics.forest import States
from kfdyn.dynamics.fused import (
    fused_forward_dynamics,
    fused_hybrid_dynamics,
    fused_inverse_dynamics,
    fused_mass_matrix,
    fused_mass_matrix_inverse,
    fused_operational_space_compliance,
)
from kfdyn.multibody import System

Array = NDArray[np.float64]
Quick = Callable[..., Array | None]

_FLOAT = np.dtype(np.float64)
_NO_FORCES = np.empty(0)


def _of_states(door: str, many: Callable[[States], Array | None], driven: str) -> Quick:
    """Forward or inverse dynamics, ``driven`` being what it takes beside q and v. A closure: each call would cost."""
    enter: Door | None = None

    def quick(system: System, q: Any, v: Any, u: Any, force: Any, gravity: Any) -> Array | None:
        nonlocal enter
        if type(q) is not ndarray:
            return None
        if q.ndim != 1:
            states = plain_states(system, q, v, force, gravity, **{driven: u})
            rows = None if states is None else many(states)
            return None if rows is None else rows.reshape((*q.shape[:-1], system.nv))
        # A door believes what its signature says of an array: not one of these looks may be left out.
        if force is None:
            force = _NO_FORCES
        elif not (type(force) is ndarray and force.dtype is _FLOAT and force.shape == (system.n_bodies, 6)):
            return None
        else:
            force = force.reshape(-1)
        if gravity is None:
            gravity = system.gravity
        elif not (type(gravity) is ndarray and gravity.dtype is _FLOAT and gravity.ndim == 1):
            return None
        if v is None:
            v = np.zeros(system.nv)
        if (
            type(v) is type(u) is ndarray
            and q.dtype is v.dtype is u.dtype is _FLOAT
            and v.ndim == 1
            and u.shape == v.shape
        ):
            if enter is None:
                enter = getattr(DOORS, door)
            out = empty(system.nv)
            if enter(system.address or address_of(system), q, v, u, force, gravity, 0, 1, 1, out):
                return out
        return None

    return quick


def _of_configurations(door: str, many: Callable[[States], Array | None]) -> Quick:
    """𝓜 or 𝓜⁻¹."""

    def quick(system: System, q: Any) -> Array | None:
        if type(q) is not ndarray:
            return None
        shape = (*q.shape[:-1], system.nv, system.nv)
        if q.ndim != 1:
            states = plain_states(system, q)
            rows = None if states is None else many(states)
            return None if rows is None else rows.reshape(shape)
        if q.dtype is _FLOAT:
            out = empty(shape)
            if getattr(DOORS, door)(system.address or address_of(system), q, 0, 1, 1, out):
                return out
        return None

    return quick


def _unless_flagged(fused: Callable[[States], tuple[Array, NDArray[np.bool_]]]) -> Callable[[States], Array | None]:
    def rows(states: States) -> Array | None:
        answer, flagged = fused(states)
        return None if flagged.any() else answer

    return rows


#: (system, q, v, tau, external_forces, gravity): accelerations (..., nv), or None.
quick_forward_dynamics = _of_states("forward", _unless_flagged(fused_forward_dynamics), "tau")

#: (system, q, v, a, external_forces, gravity): generalised forces (..., nv), or None.
quick_inverse_dynamics = _of_states("inverse", fused_inverse_dynamics, "a")

#: (system, q): 𝓜 (..., nv, nv), or None.
quick_mass_matrix = _of_configurations("mass", fused_mass_matrix)

#: (system, q): 𝓜⁻¹ (..., nv, nv), or None.
quick_mass_matrix_inverse = _of_configurations("mass_inverse", _unless_flagged(fused_mass_matrix_inverse))


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
