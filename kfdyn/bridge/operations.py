"""What the bridge calls: functions of kfdyn as operations on arrays of a framework, and the rules of their derivatives.

An :class:`Operation` takes NumPy arrays with leading axes and answers with a tuple of them. Its rule says what the
derivatives are, by other operations: what has a rule can be differentiated again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from kfdyn.arrays import Array
from kfdyn.dynamics import (
    forward_dynamics,
    forward_dynamics_derivatives,
    inverse_dynamics,
    inverse_dynamics_derivatives,
    mass_matrix,
    mass_matrix_inverse,
    mass_matrix_logdet,
    mass_matrix_logdet_gradient,
)
from kfdyn.errors import ModelError, ShapeError
from kfdyn.multibody import System, frame_pose, frame_velocity_derivatives, jacobian, potential_energy

_DOUBLE = np.dtype(np.float64)
_AT_REST = np.zeros(3)


class Operation(NamedTuple):
    """A function of arrays by name; two that are equal are the same to a framework that remembers what it compiled.

    Attributes
    ----------
    name : str
        Which of :data:`KNOWN`.
    model : System or other model
        What it is a function of beside the arrays.
    more : hashable
        A frame, for example.
    """

    name: str
    model: Any
    more: Any = None

    def __call__(self, *given: Any) -> tuple[Any, ...]:
        """The answers in doubles, rounded to what was given."""
        arrays = [np.asarray(x) for x in given]
        own, value = arrays[0].dtype, self.about.value
        if own == _DOUBLE:
            return tuple([np.asarray(x) for x in value(self, *arrays)])
        return tuple([np.asarray(x, own) for x in value(self, *[np.asarray(x, _DOUBLE) for x in arrays])])

    @property
    def about(self) -> About:
        """How it is computed."""
        return KNOWN[self.name]

    def shapes(self, *given: Sequence[int]) -> list[tuple[int, ...]]:
        """Shapes of the answers to arrays of these shapes, whose leading axes are the same."""
        core = self.about.given(self)
        lead = tuple(given[0][: len(given[0]) - len(core[0])])
        return [(*lead, *shape) for shape in self.about.answers(self)]

    def other(self, name: str) -> Operation:
        """Another operation on the same."""
        return self._replace(name=name)


Shape = tuple[int, ...]
Shapes = Callable[[Operation], list[Shape]]
#: ``rule(xp, call, operation, *arrays)``: the answers, and of each the matrices (..., *answer, n) by each argument.
Rule = Callable[..., tuple[tuple[Any, ...], list[list[Any]]]]


class About(NamedTuple):
    """Shapes of what is given and answered, the function, its rule, and how many of what is given are q.

    Matrices that a rule gives in q are in tangent coordinates. ``adjoint`` names another operation where this one is
    linear in its first argument.
    """

    given: Shapes
    answers: Shapes
    value: Callable[..., Sequence[Any]]
    rule: Rule | None = None
    configurations: int = 1
    adjoint: str = ""


def expect_derivatives(operation: Operation) -> Rule:
    """The rule, or the words why there is none."""
    rule = operation.about.rule
    if rule is None:
        raise ModelError(
            f"{operation.name.removeprefix('derivatives_of_')} has first derivatives here, and no second ones; take "
            "differences of its gradient. Frame poses and energies can be differentiated twice (see the page on the "
            "bridge)"
        )
    return rule


def expect_sizes(sizes: dict[str, int], given: Sequence[Any]) -> None:
    """Refuse arrays whose last axis does not fit."""
    for (name, size), x in zip(sizes.items(), given):
        if x.ndim < 1 or x.shape[-1] != size:
            raise ShapeError(f"{name} must have shape (..., {size}), got {tuple(x.shape)}")


def _states(*arrays: Array) -> list[Array]:
    """The same with common leading axes."""
    leads = [x.shape[:-1] for x in arrays]
    if leads.count(leads[0]) == len(leads):
        return list(arrays)
    lead = np.broadcast_shapes(*leads)
    return [np.broadcast_to(x, (*lead, x.shape[-1])) for x in arrays]


def as_rule(derivatives: str) -> Rule:
    """Rule of a function with one answer, whose derivatives come with it from another operation."""

    def rule(xp: Any, call: Any, op: Operation, *given: Any) -> Any:
        value, *by = call(op.other(derivatives), *given)
        return (value,), [by]

    return rule


def _forward_derivatives(op: Operation, q: Array, v: Array, tau: Array) -> Sequence[Array]:
    q, v, tau = _states(q, v, tau)
    return forward_dynamics(op.model, q, v, tau), *forward_dynamics_derivatives(op.model, q, v, tau)


def _inverse_derivatives(op: Operation, q: Array, v: Array, a: Array) -> Sequence[Array]:
    q, v, a = _states(q, v, a)
    return inverse_dynamics(op.model, q, v, a), *inverse_dynamics_derivatives(op.model, q, v, a)


def _mass_matrix_derivatives(op: Operation, q: Array) -> Sequence[Array]:
    """𝓜 and ∂𝓜/∂q (..., nv, nv, nv): its columns are forces of unit accelerations at rest, without gravity."""
    nv = op.model.nv
    by, _, _ = inverse_dynamics_derivatives(op.model, q[..., None, :], None, np.eye(nv), _AT_REST)
    return mass_matrix(op.model, q), by


def _mass_matrix_inverse_derivatives(op: Operation, q: Array) -> Sequence[Array]:
    """𝓜⁻¹ and ∂𝓜⁻¹ = −𝓜⁻¹ ∂𝓜 𝓜⁻¹."""
    inverse = mass_matrix_inverse(op.model, q)
    _, by = _mass_matrix_derivatives(op, q)
    half = np.einsum("...ij,...jkm->...ikm", inverse, by)
    return inverse, -np.einsum("...ijm,...jk->...ikm", half, inverse)


def _jacobian_derivatives(op: Operation, q: Array) -> Sequence[Array]:
    """J and ∂J/∂q (..., 6, nv, nv): its columns are velocities at unit rates."""
    by = frame_velocity_derivatives(op.model, q[..., None, :], np.eye(op.model.nv), op.more).dV_dq
    return jacobian(op.model, q, op.more), np.moveaxis(by, -3, -2)


def expect_constant_couplings(system: System) -> None:
    """Refuse hinges that follow others by functions."""
    if system.is_curved:
        raise ModelError(
            f"system {system.name!r} has hinges that follow others by functions, and derivatives of its Jacobians are "
            "not implemented; take those of system.open_tree"
        )


def _jacobian_rule(xp: Any, call: Any, op: Operation, q: Any) -> Any:
    """∂J/∂q, where couplings are constant."""
    expect_constant_couplings(op.model)
    return as_rule("derivatives_of_jacobian")(xp, call, op, q)


def _potential_rule(xp: Any, call: Any, op: Operation, q: Any) -> Any:
    """∂U/∂q: the forces that hold the robot still."""
    none = 0.0 * q[..., :1] + xp.zeros(op.model.nv, dtype=q.dtype)
    return call(op, q), [[call(op.other("inverse_dynamics"), q, none, none)[0]]]


def _pose_rule(xp: Any, call: Any, op: Operation, q: Any) -> Any:
    """∂R/∂q_j = ω_j × R, ∂p/∂q_j = u_j, from the columns [ω; u] of the Jacobian."""
    (rotation, position), (J,) = call(op, q), call(op.other("jacobian"), q)
    w = [J[..., i, None, :] for i in range(3)]
    R = [rotation[..., i, :, None] for i in range(3)]
    turned = [w[1] * R[2] - w[2] * R[1], w[2] * R[0] - w[0] * R[2], w[0] * R[1] - w[1] * R[0]]
    return (rotation, position), [[xp.stack(turned, -3)], [J[..., 3:, :]]]


def _q(op: Operation) -> list[tuple[int, ...]]:
    return [(op.model.nq,)]


def _q_and_two(op: Operation) -> list[tuple[int, ...]]:
    return [(op.model.nq,), (op.model.nv,), (op.model.nv,)]


def _tensors(*orders: int) -> Shapes:
    """Answers with so many axes of nv entries."""
    return lambda op: [(op.model.nv,) * order for order in orders]


#: All operations on a system.
KNOWN: dict[str, About] = {
    "forward_dynamics": About(
        _q_and_two,
        _tensors(1),
        lambda op, q, v, tau: (forward_dynamics(op.model, *_states(q, v, tau)),),
        as_rule("derivatives_of_forward_dynamics"),
    ),
    "derivatives_of_forward_dynamics": About(_q_and_two, _tensors(1, 2, 2, 2), _forward_derivatives),
    "inverse_dynamics": About(
        _q_and_two,
        _tensors(1),
        lambda op, q, v, a: (inverse_dynamics(op.model, *_states(q, v, a)),),
        as_rule("derivatives_of_inverse_dynamics"),
    ),
    "derivatives_of_inverse_dynamics": About(_q_and_two, _tensors(1, 2, 2, 2), _inverse_derivatives),
    "mass_matrix": About(
        _q, _tensors(2), lambda op, q: (mass_matrix(op.model, q),), as_rule("derivatives_of_mass_matrix")
    ),
    "derivatives_of_mass_matrix": About(_q, _tensors(2, 3), _mass_matrix_derivatives),
    "mass_matrix_inverse": About(
        _q,
        _tensors(2),
        lambda op, q: (mass_matrix_inverse(op.model, q),),
        as_rule("derivatives_of_mass_matrix_inverse"),
    ),
    "derivatives_of_mass_matrix_inverse": About(_q, _tensors(2, 3), _mass_matrix_inverse_derivatives),
    "mass_matrix_logdet": About(
        _q, _tensors(0), lambda op, q: (mass_matrix_logdet(op.model, q),), as_rule("derivatives_of_mass_matrix_logdet")
    ),
    "derivatives_of_mass_matrix_logdet": About(
        _q,
        _tensors(0, 1),
        lambda op, q: (mass_matrix_logdet(op.model, q), mass_matrix_logdet_gradient(op.model, q)),
    ),
    "potential_energy": About(_q, _tensors(0), lambda op, q: (potential_energy(op.model, q),), _potential_rule),
    "frame_pose": About(_q, lambda op: [(3, 3), (3,)], lambda op, q: frame_pose(op.model, q, op.more), _pose_rule),
    "jacobian": About(
        _q,
        lambda op: [(6, op.model.nv)],
        lambda op, q: (jacobian(op.model, q, op.more),),
        _jacobian_rule,
    ),
    "derivatives_of_jacobian": About(
        _q,
        lambda op: [(6, op.model.nv), (6, op.model.nv, op.model.nv)],
        _jacobian_derivatives,
    ),
}


#: Operations that are one function of kfdyn's, with one array for an answer.
PUBLIC = {
    function.__name__: function
    for function in (
        forward_dynamics, inverse_dynamics, mass_matrix, mass_matrix_inverse, mass_matrix_logdet, potential_energy
    )
}  # fmt: skip


#: And those whose derivatives are one, too.
SLOPES = {"forward_dynamics": forward_dynamics_derivatives, "inverse_dynamics": inverse_dynamics_derivatives}


def contracted(matrix: Any, change: Any, order: int) -> Any:
    """What a matrix (..., *answer, n) makes of a change (..., n), ``order`` being the axes of the answer."""
    if not order:
        return (matrix * change).sum(-1)
    return (matrix * change[(..., *(None,) * order, slice(None))]).sum(-1)
