"""Which way a system with couplings or loops goes; what needs a choice of coordinates says so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfdyn.dynamics.forest import States, expect_method
from kfdyn.dynamics.loops import coupled
from kfdyn.dynamics.loops.aggregation import plan
from kfdyn.errors import ModelError, SingularError
from kfdyn.multibody import FlexibleSystem, System, jacobian
from kfdyn.multibody.flexible import expect_rigid

Array = NDArray[np.float64]


def constrained_forward_dynamics(
    system: System,
    q: ArrayLike,
    v: ArrayLike | None,
    tau: ArrayLike,
    external_forces: ArrayLike | None,
    gravity: ArrayLike | None,
    method: str,
) -> Array:
    """Forward dynamics with couplings or loops."""
    if _bends(system):
        expect_method(method, ("filter", "engine"), "forward_dynamics of a flexible system")
        return _flexible().forward_dynamics(system, q, v, tau, external_forces, gravity, method)
    if not system.loops:
        return coupled.coupled_forward_dynamics(system, q, v, tau, external_forces, gravity, method)
    from kfdyn.dynamics.loops.closed import closed_forward_dynamics

    return closed_forward_dynamics(system, q, v, tau, external_forces, gravity, method)


def constrained_inverse_dynamics(
    system: System,
    q: ArrayLike,
    v: ArrayLike | None,
    a: ArrayLike,
    external_forces: ArrayLike | None,
    gravity: ArrayLike | None,
    method: str,
    actuated: ArrayLike | None = None,
) -> Array:
    """Inverse dynamics with couplings or loops."""
    if _bends(system):
        return _flexible().inverse_dynamics(system, q, v, a, external_forces, gravity)
    if not system.loops:
        if actuated is not None:
            raise ModelError("actuated is for systems with loops: without them every coordinate has its own force")
        return coupled.coupled_inverse_dynamics(system, q, v, a, external_forces, gravity, method)
    from kfdyn.dynamics.loops.closed import closed_inverse_dynamics

    return closed_inverse_dynamics(system, q, v, a, external_forces, gravity, actuated)


def constrained_bias_forces(
    system: System, q: ArrayLike, v: ArrayLike | None, external_forces: ArrayLike | None, gravity: ArrayLike | None
) -> Array:
    """X*c; refused with loops."""
    if _bends(system):
        return _flexible().bias_forces(system, q, v, external_forces, gravity)
    _refuse_loops(system, "bias_forces", "bias")
    return coupled.coupled_bias_forces(system, q, v, external_forces, gravity)


def constrained_mass_matrix(system: System, q: ArrayLike, method: str) -> Array:
    """X*𝓜X; refused with loops."""
    if _bends(system):
        return _flexible().mass_matrix(system, q)
    _refuse_loops(system, "mass_matrix", "mass_matrix")
    return coupled.coupled_mass_matrix(system, q, method)


def constrained_logdet(system: System, q: ArrayLike) -> Array:
    """log det X*𝓜X; refused with loops."""
    if _bends(system):
        return _flexible().mass_matrix_logdet(system, q)
    _refuse_loops(system, "mass_matrix_logdet", "logdet")
    states = States.of(system, q)
    return coupled_logdet(states).reshape(states.lead)


def coupled_logdet(states: States) -> Array:
    """Σ log det D(k) (size,) of the embedded model."""
    from kfdyn.dynamics.loops.embedding import embedded_forest
    from kfdyn.estimation.inference.riccati import riccati

    coupled.coupled_mass_matrix(states.system, states["q"])  # it refuses what is too large for a double
    forest = embedded_forest(states.system, states["q"])
    try:
        D, n = riccati(forest.ss).D, len(forest.plan.nodes)
    except SingularError:
        coupled.refuse_singular(states)
    parts = np.array([np.linalg.slogdet(D[k])[1] for k in range(len(forest.ss))])
    return parts.reshape(-1, n).sum(axis=1)


def constrained_sparsity(system: System) -> NDArray[np.bool_]:
    """Where X*𝓜X may differ from 0: between nodes of which one carries the other."""
    expect_rigid(system, "mass_matrix_sparsity")
    _refuse_loops(system, "mass_matrix_sparsity", "mass_matrix")
    nodes = plan(system).nodes
    related = np.eye(len(nodes), dtype=bool)
    out = np.zeros((system.nv, system.nv), dtype=bool)
    for k, node in enumerate(nodes):
        up = node.parent
        while up >= 0:
            related[k, up] = True
            up = nodes[up].parent
    for i, j in zip(*np.nonzero(related | related.T)):
        out[np.ix_(nodes[i].own, nodes[j].own)] = True
    return out


def constrained_mass_matrix_inverse(system: System, q: ArrayLike, method: str) -> Array:
    """(X*𝓜X)⁻¹, or X(X*𝓜X)⁻¹X* with loops."""
    if _bends(system):
        return _flexible().mass_matrix_inverse(system, q)
    expect_method(method, ("innovations",), "mass_matrix_inverse of a system with couplings or loops")
    if not system.loops:
        return coupled.coupled_mass_matrix_inverse(system, q)
    from kfdyn.dynamics.loops.closed import closed_mass_matrix_inverse

    return closed_mass_matrix_inverse(system, q)


def constrained_compliance(system: System, q: ArrayLike, frames: Sequence[str]) -> Array:
    """J X(X*𝓜X)⁻¹X*J* of frames; O(nv³), through the inverse mass matrix."""
    return _compliance(system, q, frames, constrained_mass_matrix_inverse(system, q, "innovations"))


def coupled_compliance(states: States, frames: Sequence[str]) -> Array:
    """The same (size, 6k, 6k) where compiled code does not decide whether the mass matrix is singular."""
    return _compliance(states.system, states["q"], frames, coupled.dense_inverse(states))


def _compliance(system: System, q: ArrayLike, frames: Sequence[str], inverse: Array) -> Array:
    J = np.concatenate([jacobian(system, q, name) for name in frames], axis=-2)
    Omega = J @ inverse @ np.swapaxes(J, -1, -2)
    return 0.5 * (Omega + np.swapaxes(Omega, -1, -2))


def _refuse_loops(system: System, function: str, word: str) -> None:
    if system.loops:
        raise ModelError(
            f"{function}: system {system.name!r} has {system.constraints}, and what this is depends on which "
            f"coordinates are taken as independent; kf.minimal_coordinates(system, q).{word} tells it, with its choice"
        )


def _bends(system: System) -> bool:
    """Whether bodies bend and nothing is coupled or closed: what there is to solve is one tree of larger nodes."""
    return isinstance(system, FlexibleSystem) and not (system.couplings or system.loops)


def _flexible() -> Any:
    """Dynamics of flexible systems, loaded where one is met."""
    from kfdyn.dynamics import flexible

    return flexible
