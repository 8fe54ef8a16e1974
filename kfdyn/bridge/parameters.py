"""Dynamics as functions of a robot's parameters, too: each row with numbers of its own, and gradients in them.

Torques are linear in ten inertial parameters θ of each body, τ = Y θ + r ∘ a with rotors r. So ∂τ/∂θ = Y and
∂τ/∂r = diag a; of a = 𝓜⁻¹(τ − c) the derivatives are −𝓜⁻¹ of these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kfdyn.arrays import Array
from kfdyn.bridge.operations import KNOWN, About, Operation, Shape, as_rule
from kfdyn.dynamics import (
    forward_dynamics,
    forward_dynamics_derivatives,
    inverse_dynamics,
    inverse_dynamics_derivatives,
)
from kfdyn.errors import ModelError, ShapeError
from kfdyn.motion.regressor import inertia_of, torque_regressor
from kfdyn.multibody import System, SystemBatch
from kfdyn.multibody.kinds import expect_tree
from kfdyn.spatial import inertia_parameters

#: What a function may be given, as :func:`kfdyn.with_parameters` calls it, and the axes of one body's or dof's.
NAMES: dict[str, tuple[int, ...]] = {"masses": (), "coms": (3,), "inertias": (3, 3), "armature": ()}
SUFFIX = "_with_parameters"


def expect_parameters(system: System, given: Any) -> None:
    """Refuse what is no parameter here, and systems that are not served."""
    if not isinstance(given, Mapping) or not given or not set(given) <= set(NAMES):
        told = ", ".join(map(repr, given)) if isinstance(given, Mapping) else type(given).__name__
        raise ModelError(
            f"parameters is a dict with some of {', '.join(map(repr, NAMES))}, got {told or 'an empty one'}"
        )
    expect_tree(system, "parameters")


def flattened(F: Any, system: System, given: Mapping[str, Any]) -> tuple[Any, Any]:
    """θ (..., 10 n_bodies), in the order of :func:`kfdyn.torque_regressor`, and rotors (..., nv), by F itself."""
    own = dict(zip(NAMES, (*inertia_parameters(np.stack([body.inertia for body in system.bodies])), system.armature)))
    m, c, J, r = (_whole(F, system, name, given.get(name), own[name]) for name in NAMES)
    x, y, z = c[..., 0], c[..., 1], c[..., 2]
    ten = (
        m + 0.0 * x, m * x, m * y, m * z, J[..., 0, 0] + m * (y * y + z * z), J[..., 0, 1] - m * x * y,
        J[..., 1, 1] + m * (x * x + z * z), J[..., 0, 2] - m * x * z, J[..., 1, 2] - m * y * z,
        J[..., 2, 2] + m * (x * x + y * y),
    )  # fmt: skip
    each = F.xp.stack(ten, -1)
    return each.reshape((*each.shape[:-2], 10 * system.n_bodies)), r


def _whole(F: Any, system: System, name: str, given: Any, own: Array) -> Any:
    """All of a parameter, (..., bodies or dofs, *axes), where some are given by names."""
    tail = NAMES[name]
    if given is None:
        return F.asarray(own)
    if not isinstance(given, Mapping):
        found = F.asarray(given)
        if tuple(found.shape[found.ndim - own.ndim :]) != own.shape:
            raise ShapeError(
                f"{name} must have shape (..., {', '.join(map(str, own.shape))}), got {tuple(found.shape)}"
            )
        return found
    places = (
        {hinge: system.v_slice(hinge) for hinge in system.hinge_names}
        if name == "armature"
        else {body: slice(k, k + 1) for k, body in enumerate(system.body_names)}
    )
    columns: list[Any] = [own[i] for i in range(len(own))]
    for key, value in given.items():
        if key not in places:
            raise ModelError(f"{name} of {key!r}, which system {system.name!r} has not; it has {', '.join(places)}")
        at, value = places[key], F.asarray(value)
        if at.stop - at.start != 1 or tuple(value.shape[value.ndim - len(tail) :]) != tail:
            raise ShapeError(
                f"{name}[{key!r}] must have shape (..., {', '.join(map(str, tail))}) of a hinge of one dof"
            )
        columns[at.start] = value
    varied = [x for x in columns if not isinstance(x, np.ndarray | np.generic)]
    zero = sum(0.0 * x for x in varied)
    return F.xp.stack([zero + F.asarray(x) for x in columns], -1 - len(tail))


def _robots(op: Operation, *arrays: Array) -> tuple[Any, tuple[int, ...], list[Array]]:
    """A robot for each row, and states with their leading axes made one."""
    system, lead = op.model, np.broadcast_shapes(*(x.shape[:-1] for x in arrays))
    *states, theta, rotors = (np.broadcast_to(x, (*lead, x.shape[-1])).reshape(-1, x.shape[-1]) for x in arrays)
    size = len(theta)
    ten = theta.reshape(size, system.n_bodies, 10)

    def of_all(own: Array) -> Array:
        return np.repeat(own[None], size, axis=0)

    batch = SystemBatch(
        system, inertia_of(ten), of_all(system.layout.position), rotors.copy(), of_all(system.damping),
        of_all(system.stiffness),
    )  # fmt: skip
    return batch, lead, [np.ascontiguousarray(x) for x in states]


def _shaped(lead: tuple[int, ...], answers: Sequence[Array]) -> Sequence[Array]:
    return [x.reshape(*lead, *x.shape[1:]) for x in answers]


def _forward(op: Operation, *arrays: Array) -> Sequence[Array]:
    batch, lead, states = _robots(op, *arrays)
    return _shaped(lead, [forward_dynamics(batch, *states)]) if len(batch) else [np.empty((*lead, op.model.nv))]


def _inverse(op: Operation, *arrays: Array) -> Sequence[Array]:
    batch, lead, states = _robots(op, *arrays)
    return _shaped(lead, [inverse_dynamics(batch, *states)]) if len(batch) else [np.empty((*lead, op.model.nv))]


def _diagonal(a: Array) -> Array:
    return a[..., :, None] * np.eye(a.shape[-1])


def _forward_derivatives(op: Operation, *arrays: Array) -> Sequence[Array]:
    batch, lead, (q, v, tau) = _robots(op, *arrays)
    a = forward_dynamics(batch, q, v, tau)
    by_q, by_v, inverse = forward_dynamics_derivatives(batch, q, v, tau)
    by_theta = -inverse @ torque_regressor(op.model, q, v, a)
    return _shaped(lead, [a, by_q, by_v, inverse, by_theta, -inverse @ _diagonal(a)])


def _inverse_derivatives(op: Operation, *arrays: Array) -> Sequence[Array]:
    batch, lead, (q, v, a) = _robots(op, *arrays)
    tau, by = inverse_dynamics(batch, q, v, a), inverse_dynamics_derivatives(batch, q, v, a)
    return _shaped(lead, [tau, *by, torque_regressor(op.model, q, v, a), _diagonal(a)])


def _given(op: Operation) -> list[Shape]:
    system = op.model
    return [(system.nq,), (system.nv,), (system.nv,), (10 * system.n_bodies,), (system.nv,)]


def _answers(op: Operation) -> list[Shape]:
    return [(op.model.nv,)]


def _slopes(op: Operation) -> list[Shape]:
    nv = op.model.nv
    return [(nv,), *[(nv, nv)] * 3, (nv, 10 * op.model.n_bodies), (nv, nv)]


for _name, _value, _derivatives in (
    ("forward_dynamics", _forward, _forward_derivatives),
    ("inverse_dynamics", _inverse, _inverse_derivatives),
):
    _own = f"derivatives_of_{_name}{SUFFIX}"
    KNOWN[_name + SUFFIX] = About(_given, _answers, _value, as_rule(_own))
    KNOWN[_own] = About(_given, _slopes, _derivatives)
