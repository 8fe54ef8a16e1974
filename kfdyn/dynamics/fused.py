"""Batches at the speed of the hardware: the sweeps of dynamics fused, a machine vector of configurations at a time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kfdyn.dynamics.doors import DOORS, over_rows
from kfdyn.dynamics.forest import States

Array = NDArray[np.float64]


def fused_forward_dynamics(states: States) -> tuple[Array, NDArray[np.bool_]]:
    """Accelerations (size, nv) by filter and smoother, and which states (size,) have a hinge without inertia.

    The same recursions as the engine's, THEORY (2)–(4), in one outward sweep, one gather and one scatter, with
    hinges of any size measured dof by dof (PART). Where a state is flagged its accelerations mean nothing. States whose
    numbers nobody has looked at (:func:`kfdyn.dynamics.quick.plain_states`) are flagged where one is not sound, too.
    """
    system, size, door = states.system, states.size, DOORS.forward_rows
    a, margin = np.empty(size * system.nv), np.empty(size)
    given = [_flat(states, name) for name in ("q", "v", "tau", "external_forces", "gravity")]
    over_rows(size, system.n_bodies, lambda first, last: door(system.address, *given, first, last, a, margin))
    return a.reshape(size, system.nv), ~(margin > 0.0)


def fused_inverse_dynamics(states: States) -> Array | None:
    """Generalised forces (size, nv) by Newton–Euler's two sweeps; None if a number is not sound."""
    system, size, door = states.system, states.size, DOORS.inverse_rows
    tau = np.empty(size * system.nv)
    given = [_flat(states, name) for name in ("q", "v", "a", "external_forces", "gravity")]
    sound = over_rows(size, system.n_bodies, lambda first, last: door(system.address, *given, first, last, tau))
    return tau.reshape(size, system.nv) if sound else None


def fused_mass_matrix(states: States) -> Array | None:
    """Mass matrices (size, nv, nv) by composite bodies and walks to the root; None if a number is not sound."""
    system, size, door, q = states.system, states.size, DOORS.mass_matrix_rows, _flat(states, "q")
    out = np.empty(size * system.nv**2)
    sound = over_rows(size, system.n_bodies, lambda first, last: door(system.address, q, first, last, out))
    return out.reshape(size, system.nv, system.nv) if sound else None


def fused_mass_matrix_inverse(states: States) -> tuple[Array, NDArray[np.bool_]]:
    """Inverse mass matrices (size, nv, nv), and which states (size,) have a hinge without inertia, or are not sound."""
    system, size, door, q = states.system, states.size, DOORS.mass_matrix_inverse_rows, _flat(states, "q")
    out, margin = np.empty(size * system.nv**2), np.empty(size)
    over_rows(size, system.n_bodies, lambda first, last: door(system.address, q, first, last, out, margin))
    return out.reshape(size, system.nv, system.nv), ~(margin > 0.0)


def _flat(states: States, name: str) -> Array:
    """An argument, state after state in a flat buffer; where not given, what stands for it."""
    system = states.system
    if name in states.arrays:
        return states[name].reshape(-1)
    if name == "gravity":
        return system.gravity
    return np.zeros(states.size * system.nv if name == "v" else 0)
