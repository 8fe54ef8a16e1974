"""Batches at the speed of the hardware: the sweeps of dynamics fused, a machine vector of configurations at a time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kfdyn.dynamics.doors import DOORS, address_of, over_rows
from kfdyn.dynamics.forest import States
from kfdyn.dynamics.memory import room

Array = NDArray[np.float64]


def fused_forward_dynamics(states: States) -> tuple[Array, NDArray[np.bool_]]:
    """Accelerations (size, nv) by filter and smoother, and which states (size,) have a hinge without inertia.

    The same recursions as the engine's, THEORY (2)–(4), in one outward sweep, one gather and one scatter, with
    hinges of any size measured dof by dof (PART). Where a state is flagged its accelerations are NaN. States whose
    numbers nobody has looked at (:func:`kfdyn.dynamics.quick.plain_states`) are flagged near an unsound one, too.
    """
    system, size, door, model = states.system, states.size, DOORS.forward, address_of(states.system)
    a = np.empty(size * system.nv)
    given = [_flat(states, name) for name in ("q", "v", "tau", "external_forces", "gravity")]
    fine = over_rows(size, system, lambda *shared: door(model, *given, *shared, a))
    return _flagged(a.reshape(size, system.nv), fine)


def fused_inverse_dynamics(states: States) -> Array | None:
    """Generalised forces (size, nv) by Newton–Euler's two sweeps; None if a number is not sound. No ``a`` is a = 0."""
    system, size, door, model = states.system, states.size, DOORS.inverse, address_of(states.system)
    tau = np.empty(size * system.nv)
    given = [_flat(states, name) for name in ("q", "v", "a", "external_forces", "gravity")]
    fine = over_rows(size, system, lambda *shared: door(model, *given, *shared, tau))
    return tau.reshape(size, system.nv) if fine else None


def fused_mass_matrix(states: States) -> Array | None:
    """Mass matrices (size, nv, nv) by composite bodies and walks to the root; None if a number is not sound."""
    system, size, door, model = states.system, states.size, DOORS.mass, address_of(states.system)
    q, out = _flat(states, "q"), room(size * system.nv, system.nv)
    fine = over_rows(size, system, lambda *shared: door(model, q, *shared, out))
    return out.reshape(size, system.nv, system.nv) if fine else None


def fused_mass_matrix_inverse(states: States) -> tuple[Array, NDArray[np.bool_]]:
    """Inverse mass matrices (size, nv, nv), and which states (size,) are flagged as in forward dynamics."""
    system, size, door, model = states.system, states.size, DOORS.mass_inverse, address_of(states.system)
    q, out = _flat(states, "q"), room(size * system.nv, system.nv)
    fine = over_rows(size, system, lambda *shared: door(model, q, *shared, out))
    return _flagged(out.reshape(size, system.nv, system.nv), fine)


def fused_hybrid_dynamics(states: States, prescribed: NDArray[np.bool_]) -> tuple[Array, Array] | None:
    """All forces and accelerations (size, nv), given ``a`` where prescribed (nv,) and ``tau`` elsewhere.

    None if a number that is given is not sound, or a free hinge has no inertia. What is not given is not looked at.
    """
    system, size, door, model = states.system, states.size, DOORS.hybrid, address_of(states.system)
    tau, a, mask = np.empty(size * system.nv), np.empty(size * system.nv), prescribed.astype(np.int64)
    given = [_flat(states, name) for name in ("q", "v", "tau", "a", "external_forces", "gravity")]
    fine = over_rows(size, system, lambda *shared: door(model, mask, *given, *shared, tau, a))
    shape = (size, system.nv)
    return (tau.reshape(shape), a.reshape(shape)) if fine else None


def fused_operational_space_compliance(states: States, bodies: NDArray[np.int64], positions: Array) -> Array | None:
    """Ω (size, 6 k, 6 k) of frames at ``positions`` (k, 3) on ``bodies`` (k,).

    None if a number is not sound or a hinge has no inertia.
    """
    system, size, door, model = states.system, states.size, DOORS.compliance, address_of(states.system)
    wide, q, at = 6 * len(bodies), _flat(states, "q"), positions.reshape(-1)
    out = room(size * wide, wide)
    fine = over_rows(size, system, lambda *shared: door(model, bodies, at, q, *shared, out))
    return out.reshape(size, wide, wide) if fine else None


def _flagged(answers: Array, fine: bool) -> tuple[Array, NDArray[np.bool_]]:
    """The answers, and which of them are none."""
    if fine:
        return answers, np.zeros(len(answers), dtype=bool)
    return answers, np.asarray((~np.isfinite(answers)).any(axis=tuple(range(1, answers.ndim))))


def _flat(states: States, name: str) -> Array:
    """An argument, state after state in a flat buffer; where not given, what stands for it."""
    system = states.system
    if name in states.arrays:
        return states[name].reshape(-1)
    if name == "gravity":
        return system.gravity
    return np.zeros(states.size * system.nv if name == "v" else 0)
