"""Batches at the speed of the hardware: the sweeps of dynamics fused, a machine vector of configurations at a time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kfdyn.dynamics.forest import States
from kfdyn.estimation.sweeps import over_rows

Array = NDArray[np.float64]

# Configurations side by side. One alone takes as long in four lanes as in one, and vectors of any width round alike,
# so that the answer does not depend on the size of the batch.
_FEW, _MANY = 4, 8


def fused_forward_dynamics(states: States) -> tuple[Array, NDArray[np.bool_]]:
    """Accelerations (size, nv) by filter and smoother, and which states (size,) have a hinge without inertia.

    The same recursions as the engine's, THEORY (2)–(4), in one outward sweep, one gather and one scatter, with
    hinges of any size measured dof by dof (PART). Where a state is flagged its accelerations mean nothing.
    """
    from kfdyn.dynamics._kernels.fused.forward import forward_dynamics

    system, size = states.system, states.size
    a, margin = np.empty(size * system.nv), np.empty(size)
    inputs = [_flat(states, name) for name in ("q", "v", "tau", "external_forces", "gravity")]
    over_rows(
        size,
        lambda lanes, first, last: forward_dynamics(lanes, system.layout, *inputs, first, last, a, margin),
        _FEW,
        _MANY,
    )
    return a.reshape(size, system.nv), ~(margin > 0.0)


def fused_inverse_dynamics(states: States) -> Array:
    """Generalised forces (size, nv) by Newton–Euler's two sweeps; ``a`` absent from the states means zero."""
    from kfdyn.dynamics._kernels.fused.inverse import inverse_dynamics

    system, size = states.system, states.size
    tau = np.empty(size * system.nv)
    inputs = [_flat(states, name) for name in ("q", "v", "a", "external_forces", "gravity")]
    over_rows(
        size,
        lambda lanes, first, last: inverse_dynamics(lanes, system.layout, *inputs, first, last, tau),
        _FEW,
        _MANY,
    )
    return tau.reshape(size, system.nv)


def fused_mass_matrix(states: States) -> Array:
    """Mass matrices (size, nv, nv) by composite bodies and walks to the root."""
    from kfdyn.dynamics._kernels.fused.mass_matrix import mass_matrix

    system, size, q = states.system, states.size, _flat(states, "q")
    out = np.empty(size * system.nv**2)
    over_rows(size, lambda lanes, first, last: mass_matrix(lanes, system.layout, q, first, last, out), _FEW, _MANY)
    return out.reshape(size, system.nv, system.nv)


def fused_mass_matrix_inverse(states: States) -> tuple[Array, NDArray[np.bool_]]:
    """Inverse mass matrices (size, nv, nv), and which states (size,) have a hinge without inertia."""
    from kfdyn.dynamics._kernels.fused.mass_matrix_inverse import mass_matrix_inverse

    system, size, q = states.system, states.size, _flat(states, "q")
    out, margin = np.zeros(size * system.nv**2), np.empty(size)
    over_rows(
        size,
        lambda lanes, first, last: mass_matrix_inverse(lanes, system.layout, q, first, last, out, margin),
        _FEW,
        _MANY,
    )
    return out.reshape(size, system.nv, system.nv), ~(margin > 0.0)


def _flat(states: States, name: str) -> Array:
    """An argument, state after state in a flat read-only buffer; where not given, what stands for it."""
    system = states.system
    if name in states.arrays:
        flat = np.ascontiguousarray(states[name]).reshape(-1).view()
    elif name == "gravity":
        flat = np.array(system.gravity, dtype=np.float64)
    elif name == "v":
        flat = np.zeros(states.size * system.nv)
    else:
        flat = np.zeros(0)
    flat.flags.writeable = False
    return flat
