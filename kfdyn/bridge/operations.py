"""What the bridge calls: functions of kfdyn as operations on arrays of a framework, and the rules of their derivatives.

An :class:`Operation` takes NumPy arrays with leading axes and answers with a tuple of them. Its rule says what the
derivatives are, by other operations: what has a rule can be differentiated again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

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
from kfdyn.dynamics.mass_matrix import VARIANCES
from kfdyn.errors import ModelError, ShapeError, shown
from kfdyn.multibody import System, frame_pose, jacobian, potential_energy
from kfdyn.multibody.parts.hinge import Coordinates

_DERIVED = re.compile("derivatives_of_|_gradient")
_DOUBLE = np.dtype(np.float64)
_NO_GRAVITY = np.zeros(3)
#: What ``more`` is where inverse dynamics are without gravity.
WEIGHTLESS = "weightless"


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
        """Shapes of the answers to arrays of these shapes."""
        core = self.about.given(self)
        lead = np.broadcast_shapes(*(shape[: len(shape) - len(own)] for shape, own in zip(given, core)))
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
    linear in its first argument; ``made(xp, call, operation, *arrays)`` makes the answers from another's.
    """

    given: Shapes
    answers: Shapes
    value: Callable[..., Sequence[Any]]
    rule: Rule | None = None
    configurations: int = 1
    adjoint: str = ""
    made: Callable[..., tuple[Any, ...]] | None = None


def expect_derivatives(operation: Operation) -> Rule:
    """The rule, or the words why there is none."""
    rule = operation.about.rule
    if rule is None:
        raise ModelError(
            f"this takes second derivatives of {_DERIVED.sub('', operation.name)}, and the bridge has first ones; take "
            "differences of the gradient. Frame poses, Jacobians and energies can be differentiated twice (see the "
            "page on the bridge)"
        )
    return rule


def expect_given(names: Iterable[str], given: Sequence[Any]) -> None:
    """Refuse what no framework makes an array of."""
    for name, x in zip(names, given):
        if x is None or isinstance(x, str):
            raise ModelError(f"{name} must be an array of numbers, got {shown(x)}")


def expect_sizes(sizes: dict[str, int], given: Sequence[Any]) -> None:
    """Refuse complex numbers, arrays whose last axis does not fit, and leading axes that do not fit together."""
    for (name, size), x in zip(sizes.items(), given):
        if x.ndim < 1 or x.shape[-1] != size:
            raise ShapeError(f"{name} must have shape (..., {size}), got {tuple(x.shape)}")
        if "complex" in str(x.dtype):
            raise ModelError(f"{name} must be real, got {x.dtype}; take its real part")
    leads = [tuple(x.shape[:-1]) for x in given]
    try:
        np.broadcast_shapes(*leads)
    except ValueError:
        told = ", ".join(f"{name} {lead}" for name, lead in zip(sizes, leads))
        raise ShapeError(f"leading axes do not broadcast: {told}") from None


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
    gravity = _NO_GRAVITY if op.more == WEIGHTLESS else None
    return inverse_dynamics(op.model, q, v, a, gravity=gravity), *inverse_dynamics_derivatives(
        op.model, q, v, a, gravity
    )


def _mass_matrix_rule(xp: Any, call: Any, op: Operation, q: Any) -> Any:
    """∂𝓜/∂q (..., nv, nv, nv): its columns are forces of unit accelerations at rest, without gravity."""
    lead, nv = q.shape[:-1], op.model.nv
    each = xp.broadcast_to(q[..., None, :], (*lead, nv, q.shape[-1]))
    unit = xp.broadcast_to(xp.eye(nv, dtype=q.dtype), (*lead, nv, nv))
    slopes = Operation("derivatives_of_inverse_dynamics", op.model, WEIGHTLESS)
    return call(op, q), [[call(slopes, each, 0.0 * unit, unit)[1]]]


def _mass_matrix_inverse_rule(xp: Any, call: Any, op: Operation, q: Any) -> Any:
    """∂𝓜⁻¹/∂q = −𝓜⁻¹ ∂𝓜 𝓜⁻¹."""
    (inverse,), [[by]] = call(op, q), _mass_matrix_rule(xp, call, op.other("mass_matrix"), q)[1]
    half = xp.einsum("...ij,...jkm->...ikm", inverse, by)
    return (inverse,), [[-xp.einsum("...ijm,...jk->...ikm", half, inverse)]]


def _logdet(xp: Any, call: Any, op: Operation, q: Any) -> Any:
    return (xp.log(call(op.other("innovation_variances"), q)[0]).sum(-1),)


def _logdet_rule(xp: Any, call: Any, op: Operation, q: Any) -> Any:
    return call(op, q), [[call(op.other("mass_matrix_logdet_gradient"), q)[0]]]


def expect_constant_couplings(system: System) -> None:
    """Refuse hinges that follow others by functions."""
    if system.is_curved:
        raise ModelError(
            f"system {system.name!r} has hinges that follow others by functions, and derivatives of its Jacobians are "
            "not implemented; take those of system.open_tree"
        )


@lru_cache(maxsize=256)
def _before(system: System) -> NDArray[np.bool_]:
    """Whether dof i is carried by dof j, or moves with it, [i, j] (nv, nv); of dofs on the way to a frame."""
    depth = np.zeros(system.n_bodies, dtype=int)
    for k in range(system.n_bodies):
        carrier = k
        while (carrier := int(system.parent[carrier])) >= 0:
            depth[k] += 1
    order = np.empty(system.nv)
    for k, body in enumerate(system.bodies):
        at = system.v_slice(body.hinge_name)
        together = body.hinge.coordinates is not Coordinates.SCREWS
        order[at] = depth[k] + (0.0 if together else np.arange(at.stop - at.start) / 6.0)
    found: NDArray[np.bool_] = order[:, None] >= order
    return found


def _jacobian_derivatives(xp: Any, system: System, J: Any) -> Any:
    """∂J/∂q of a tree, J of columns [ω; u]: ∂ω_i = ω_j × ω_i and ∂u_i = ω_j × u_i by j before i, else ω_i × u_j."""
    before = xp.asarray(_before(system), dtype=J.dtype)
    own, by = ([J[..., k, :, None] for k in range(6)], [J[..., k, None, :] for k in range(6)])
    turned = [before * x for x in (*_crossed(by[:3], own[:3]), *_crossed(by[:3], own[3:]))]
    moved = [(1.0 - before) * x for x in _crossed(own[:3], by[3:])]
    return xp.stack([*turned[:3], *(x + y for x, y in zip(turned[3:], moved))], -3)


def _crossed(a: Any, b: Any) -> list[Any]:
    """a × b of three arrays each."""
    return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]


def _jacobian_rule(xp: Any, call: Any, op: Operation, q: Any) -> Any:
    """∂J/∂q; with couplings J = J(open tree) X, where X is constant."""
    expect_constant_couplings(op.model)
    (J,) = call(op, q)
    if not op.model.couplings:
        return (J,), [[_jacobian_derivatives(xp, op.model, J)]]
    (tree,), X = call(op.other("jacobian_of_open_tree"), q), _expansion(xp, op, q)
    return (J,), [[xp.einsum("...rkl,ki,lj->...rij", _jacobian_derivatives(xp, op.model.open_tree, tree), X, X)]]


def _open_jacobian_rule(xp: Any, call: Any, op: Operation, q: Any) -> Any:
    (J,) = call(op, q)
    return (J,), [[_jacobian_derivatives(xp, op.model.open_tree, J) @ _expansion(xp, op, q)]]


def _expansion(xp: Any, op: Operation, q: Any) -> Any:
    """X of constant couplings."""
    return xp.asarray(op.model.expansion(op.model.neutral()), dtype=q.dtype)


def _potential_rule(xp: Any, call: Any, op: Operation, q: Any) -> Any:
    """∂U/∂q: the forces that hold the robot still."""
    none = 0.0 * q[..., :1] + xp.zeros(op.model.nv, dtype=q.dtype)
    return call(op, q), [[call(op.other("inverse_dynamics"), q, none, none)[0]]]


def _pose_rule(xp: Any, call: Any, op: Operation, q: Any) -> Any:
    """∂R/∂q_j = ω_j × R, ∂p/∂q_j = u_j, from the columns [ω; u] of the Jacobian."""
    (rotation, position), (J,) = call(op, q), call(op.other("jacobian"), q)
    columns = [J[..., i, None, :] for i in range(3)]
    turned = _crossed(columns, [rotation[..., i, :, None] for i in range(3)])
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
    "mass_matrix": About(_q, _tensors(2), lambda op, q: (mass_matrix(op.model, q),), _mass_matrix_rule),
    "mass_matrix_inverse": About(
        _q, _tensors(2), lambda op, q: (mass_matrix_inverse(op.model, q),), _mass_matrix_inverse_rule
    ),
    "mass_matrix_logdet": About(
        _q, _tensors(0), lambda op, q: (mass_matrix_logdet(op.model, q),), _logdet_rule, made=_logdet
    ),
    "mass_matrix_logdet_gradient": About(_q, _tensors(1), lambda op, q: (mass_matrix_logdet_gradient(op.model, q),)),
    "innovation_variances": About(_q, _tensors(1), lambda op, q: (VARIANCES.solve(op.model, q),)),
    "potential_energy": About(_q, _tensors(0), lambda op, q: (potential_energy(op.model, q),), _potential_rule),
    "frame_pose": About(_q, lambda op: [(3, 3), (3,)], lambda op, q: frame_pose(op.model, q, op.more), _pose_rule),
    "jacobian": About(
        _q,
        lambda op: [(6, op.model.nv)],
        lambda op, q: (jacobian(op.model, q, op.more),),
        _jacobian_rule,
    ),
    "jacobian_of_open_tree": About(
        _q,
        lambda op: [(6, op.model.open_tree.nv)],
        lambda op, q: (jacobian(op.model.open_tree, op.model.expand(q), op.more),),
        _open_jacobian_rule,
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
