"""Derivatives of forward and inverse dynamics: exact, in tangent coordinates, by one more gather."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfdyn.dynamics.declined import answered
from kfdyn.dynamics.entries import Declined, as_given, unanswered
from kfdyn.dynamics.forest import States
from kfdyn.dynamics.forward import by_engine as forward_by_engine
from kfdyn.dynamics.inverse import inverse_dynamics
from kfdyn.dynamics.mass_matrix_inverse import by_engine as inverse_by_engine
from kfdyn.errors import ModelError, ShapeError
from kfdyn.multibody import System
from kfdyn.multibody.arguments import expect_system
from kfdyn.multibody.entries import FINE, Later, known
from kfdyn.multibody.expansion import Bent
from kfdyn.multibody.flexible import expect_rigid
from kfdyn.multibody.overflow import expect_finite, overflow
from kfdyn.multibody.results import filled, straight

Array = NDArray[np.float64]

_GEARED = "kfdyn.dynamics.recursions.geared"
INVERSE = Later("kfdyn.dynamics.recursions.derivatives_inverse", "INVERSE_DERIVATIVES", geared=_GEARED)
FORWARD = Later("kfdyn.dynamics.recursions.derivatives_forward", "FORWARD_DERIVATIVES", geared=_GEARED)


class ForwardDerivatives(NamedTuple):
    """``da_dq``, ``da_dv`` and ``da_dtau``: ∂a/∂q, ∂a/∂v and ∂a/∂τ, (..., nv, nv) each.

    Examples
    --------
    >>> import kfdyn as kf
    >>> of = forward_dynamics_derivatives(kf.models.pendulum(length=1.0), [0.0], [0.0], [0.0])
    >>> of.da_dq.round(6)
    array([[-9.81]])
    """

    da_dq: Array
    da_dv: Array
    da_dtau: Array


class InverseDerivatives(NamedTuple):
    """``dtau_dq``, ``dtau_dv`` and ``dtau_da``, (..., nv, nv) each; the last is the mass matrix.

    Examples
    --------
    >>> import kfdyn as kf
    >>> of = inverse_dynamics_derivatives(kf.models.pendulum(length=1.0, mass=2.0), [0.0], [0.0], [0.0])
    >>> of.dtau_dq.round(6), of.dtau_da
    (array([[19.62]]), array([[2.]]))
    """

    dtau_dq: Array
    dtau_dv: Array
    dtau_da: Array


def forward_dynamics_derivatives(
    system: System,
    q: ArrayLike,
    v: ArrayLike | None,
    tau: ArrayLike,
    gravity: ArrayLike | None = None,
    *,
    out: Sequence[Array] | None = None,
) -> ForwardDerivatives:
    """Derivatives of the accelerations a(q, v, τ): what every optimiser of a motion asks for.

    ::

        ∂a/∂q = −𝓜⁻¹ ∂τ/∂q,   ∂a/∂v = −𝓜⁻¹ ∂τ/∂v   at (q, v, a),   ∂a/∂τ = 𝓜⁻¹

    q moves in tangent coordinates: column j is the derivative along ``integrate(system, q, h e_j)`` at h = 0, so that
    quaternions stay unit and every hinge has as many columns as velocities.

    Parameters
    ----------
    system : System
        The robot, with or without couplings (mimic joints, gears); one with loops is refused.
    q : (..., nq)
        Configurations; leading axes of all arguments broadcast.
    v : (..., nv) or None
        Velocities; None is at rest.
    tau : (..., nv)
        Generalised forces.
    gravity : (..., 3), optional
        ``system.gravity`` if not given.
    out : three (..., nv, nv) arrays of float64, optional
        Where the answer goes, instead of new arrays: an earlier answer, for example. They may overlap arguments, but
        not each other. After an error their numbers mean nothing. For a large batch new memory may take as long as the
        derivatives themselves.

    Returns
    -------
    ForwardDerivatives
        ``da_dq, da_dv, da_dtau``, (..., nv, nv) each: row i is of acceleration i.

    Raises
    ------
    SingularError
        If a hinge has no inertia to move; names the hinge.
    ModelError
        If the system has loops or flexible bodies.

    Notes
    -----
    One filter serves a, 𝓜⁻¹ and every column; between branches an entry is one product of two vectors of six. O(N²).
    Source: Singh, Russell and Wensing, "Efficient analytical derivatives of rigid body dynamics using spatial vector
    algebra", IEEE RA-L 7 (2022); THEORY sections 4 and 16. With couplings: −(X*𝓜X)⁻¹X*(∂τ/∂q)X with the open tree's
    ∂τ/∂q at (X q + offset, X v, X a), and one dense factor of X*𝓜X; where hinges follow functions, derivatives of X
    are beside them.

    Examples
    --------
    Without gravity and at rest nothing pulls a pendulum back, and damping it is nobody's affair:

    >>> import kfdyn as kf
    >>> arm = kf.models.double_pendulum()
    >>> da_dq, da_dv, da_dtau = forward_dynamics_derivatives(arm, [0.3, 0.1], None, [0.0, 0.0], gravity=[0, 0, 0])
    >>> bool((da_dq == 0).all() and (da_dv == 0).all())
    True
    >>> bool(np.allclose(da_dtau, kf.mass_matrix_inverse(arm, [0.3, 0.1])))
    True
    """
    _expect_no_loops(system, "forward_dynamics")
    quick = _quick(FORWARD, system, q, v, tau, gravity, out)
    if not isinstance(quick, Declined | None):
        return ForwardDerivatives(*quick)
    states = States.of(system, q, v, None, gravity, tau=tau)
    (*by, _), declined = _swept(states) if quick is None else quick.of(states)
    return ForwardDerivatives(*_filled(out, answered(states, tuple(by), declined, _by_engine)))


def _swept(states: States) -> tuple[tuple[Array, ...], NDArray[np.bool_]]:
    """∂a/∂q, ∂a/∂v, 𝓜⁻¹ and a of the states (size, ...), and in which of them there are none."""
    found = (*_matrices(states), np.empty((states.size, states.system.nv)))
    if states.system.is_curved:
        return found, np.ones(states.size, dtype=bool)
    given, out = _given(states, "tau"), [as_given(states, x) for x in found]
    return found, unanswered(known(FORWARD(states.system, states.size, *given, *out)), *found)


def _by_engine(states: States) -> dict[str, Array]:
    """∂a/∂q = −𝓜⁻¹ ∂τ/∂q, ∂a/∂v = −𝓜⁻¹ ∂τ/∂v and 𝓜⁻¹ (size, nv, nv), with 𝓜 as the engine factorises it."""
    from kfdyn.estimation import innovations_factor

    system, nv = states.system, states.system.nv
    if not system.is_tree:
        return _by_inverse(states)
    q, v, _, gravity = states.part(slice(None))
    (a,) = forward_by_engine(states).values()  # it names hinges without inertia
    dtau_dq, dtau_dv, _ = inverse_dynamics_derivatives(system, q, v, a, gravity)
    right, columns = -np.concatenate([dtau_dq, dtau_dv], axis=-1), np.empty((states.size, nv, 2 * nv))

    def solve(part: slice) -> None:
        size = part.stop - part.start
        stacked = right[part].transpose(2, 0, 1).reshape(2 * nv, size * nv)
        solved = innovations_factor(states.forest(part).ss).solve(stacked)
        columns[part] = solved.reshape(2 * nv, size, nv).transpose(1, 2, 0)

    states.in_parts(solve)
    return {"∂a/∂q": columns[..., :nv], "∂a/∂v": columns[..., nv:], **inverse_by_engine(states)}


def _by_inverse(states: States) -> dict[str, Array]:
    """The same with couplings, whose forward dynamics and 𝓜⁻¹ have engines of their own."""
    from kfdyn.dynamics.loops.coupled import dense_forward, dense_inverse

    system = states.system
    q, v, _, gravity = states.part(slice(None))
    a = expect_finite(system, dense_forward(states), "the acceleration", **states.arrays)
    inverse = dense_inverse(states)
    dtau_dq, dtau_dv, _ = inverse_dynamics_derivatives(system, q, v, a, gravity)
    return {"∂a/∂q": -inverse @ dtau_dq, "∂a/∂v": -inverse @ dtau_dv, "the inverse of the mass matrix": inverse}


def inverse_dynamics_derivatives(
    system: System,
    q: ArrayLike,
    v: ArrayLike | None,
    a: ArrayLike,
    gravity: ArrayLike | None = None,
    *,
    out: Sequence[Array] | None = None,
) -> InverseDerivatives:
    """Derivatives of the generalised forces τ(q, v, a) of inverse dynamics.

    ::

        ∂τ_i/∂q_j = S_i*(2B Ψ̇_j + ℛ Ψ̈_j)              j inboard of i, or i
        ∂τ_j/∂q_i = S_j*(2B Ψ̇_i + ℛ Ψ̈_i + S_i ×* f)   j inboard of i
        ∂τ_i/∂v_j = S_i*(2B S_j + ℛ (Ψ̇_j + Ṡ_j)),   ∂τ_j/∂v_i likewise,   ∂τ/∂a = 𝓜

    with ℛ, B and f of the composite body outboard of i. q moves in tangent coordinates, as in
    :func:`forward_dynamics_derivatives`.

    Parameters
    ----------
    system : System
        The robot, with or without couplings (mimic joints, gears); one with loops is refused.
    q : (..., nq)
        Configurations; leading axes of all arguments broadcast.
    v : (..., nv) or None
        Velocities; None is at rest.
    a : (..., nv)
        Accelerations.
    gravity : (..., 3), optional
        ``system.gravity`` if not given.
    out : three (..., nv, nv) arrays of float64, optional
        Where the answer goes, instead of new arrays: an earlier answer, for example. They may overlap arguments, but
        not each other. After an error their numbers mean nothing. For a large batch new memory may take as long as the
        derivatives themselves.

    Returns
    -------
    InverseDerivatives
        ``dtau_dq, dtau_dv, dtau_da``, (..., nv, nv) each: row i is of force i.

    Raises
    ------
    ModelError
        If the system has loops or flexible bodies.

    Notes
    -----
    O(N depth). Source: Singh, Russell and Wensing (2022); THEORY section 16. With couplings, X* and X stand about the
    matrices of the open tree at (X q + offset, X v, X a); where hinges follow functions, with the derivatives of X.

    Examples
    --------
    A pendulum that hangs is pulled back by m g l for each radian:

    >>> import kfdyn as kf
    >>> dtau_dq, dtau_dv, M = inverse_dynamics_derivatives(kf.models.pendulum(length=1.0), [0.0], [0.0], [0.0])
    >>> dtau_dq.round(6), dtau_dv.round(6), M
    (array([[9.81]]), array([[0.]]), array([[1.]]))
    """
    _expect_no_loops(system, "inverse_dynamics")
    quick = _quick(INVERSE, system, q, v, a, gravity, out)
    if not isinstance(quick, Declined | None):
        return InverseDerivatives(*quick)
    states = States.of(system, q, v, None, gravity, a=a)
    if system.is_curved:
        return InverseDerivatives(*_filled(out, _shaped(states, _with_curves(states))))
    by = _matrices(states)
    if not known(INVERSE(system, states.size, *_given(states, "a"), *(as_given(states, x) for x in by))):
        raise overflow(system, "a derivative", **states.arrays)
    return InverseDerivatives(*_filled(out, _shaped(states, by)))


def _with_curves(states: States) -> list[Array]:
    """∂τ/∂q, ∂τ/∂v and ∂τ/∂a (size, nv, nv) where hinges follow curves, of the tree's at (q_tree, X v, X a + Ẋv).

    ::

        ∂τ/∂q = X*(∂_qτ X + ∂_vτ Y + 𝓜 Z) + diag((∂X/∂q_j)*τ),   Y = ∂(Xv)/∂q,   Z = ∂(Xa + Ẋv)/∂q
        ∂τ/∂v = X*(∂_vτ X + 2 𝓜 Y),                              ∂τ/∂a = X*𝓜X
    """
    system, q, a, gravity = states.system, states["q"], states["a"], states.arrays.get("gravity")
    v = states.arrays.get("v", np.zeros_like(a))
    here = Bent(system._expansion, q)
    tree, q_tree, v_tree, a_tree = system.opened(q, v=v, a=a)
    with np.errstate(over="ignore", invalid="ignore"):
        by_q, by_v, by_a = inverse_dynamics_derivatives(tree, q_tree, v_tree, a_tree, gravity)
        tau, s, X = inverse_dynamics(tree, q_tree, v_tree, a_tree, None, gravity), v[:, here.leads], here.X
        second, Xt = here.slopes(2), np.swapaxes(X, -1, -2)
        Y, Z = here.spread(second * s), here.spread(second * a[:, here.leads] + here.slopes(3) * s**2)
        turned = here.turned(tau)[..., None] * np.eye(system.nv)
        found = [Xt @ (by_q @ X + by_v @ Y + by_a @ Z) + turned, Xt @ (by_v @ X + 2.0 * by_a @ Y), here.matrix(by_a)]
    return [expect_finite(system, x, "a derivative", **states.arrays) for x in found]


def _quick(
    entry: Later, system: System, q: Any, v: Any, u: Any, gravity: Any, out: Sequence[Array] | None
) -> Sequence[Array] | Declined | None:
    """The three matrices of plain arrays that fit as they stand, or None: the long way then finds the words.

    Where some rows have none, all that the entry has written is left to the long way.
    """
    found = None
    if system.is_curved:
        return None
    if out is None:
        found = entry.one(system, q, v, u, gravity) if system.is_tree else entry.constrained(system, q, v, u, gravity)
    if found is not None:  # what loops call
        return tuple(found[:3])
    if type(q) is not np.ndarray or not q.ndim:
        return None
    if not (out is None or (hasattr(out, "__len__") and len(out) == 3)):
        return None
    lead, nv = q.shape[:-1], system.nv
    given = (q, np.zeros((*lead, nv)) if v is None else v, u, system.gravity if gravity is None else gravity)
    by: list[Any] = [np.empty((*lead, nv, nv)) for _ in range(3)] if out is None else []
    for x in () if out is None else out:
        by.append(straight(x, (*lead, nv, nv), *given, *by))
    more = (np.empty((*lead, nv)),) if entry is FORWARD else ()
    if any(x is None for x in by):
        return None
    status = entry(system, math.prod(lead), *given, *by, *more)
    return (by if out is None else out) if status == FINE else Declined.by(status, *by, *more)


def _filled(out: Sequence[Array] | None, answers: Sequence[Array]) -> Sequence[Array]:
    """The answers, in ``out`` if that is given."""
    if out is None:
        return answers
    if not hasattr(out, "__len__") or len(out) != 3:
        raise ShapeError(f"out must be three arrays, one for each matrix, got {type(out).__name__}")
    for k, x in enumerate(out):
        if any(isinstance(y, np.ndarray) and isinstance(x, np.ndarray) and np.shares_memory(x, y) for y in out[:k]):
            raise ModelError("out: the three arrays must not overlap; give each matrix one of its own")
    return [filled(x, answer) for x, answer in zip(out, answers)]


def _expect_no_loops(system: System, function: str) -> None:
    expect_system(system)
    expect_rigid(system, f"{function}_derivatives")
    if system.loops:
        raise ModelError(
            f"{function}_derivatives: system {system.name!r} has {system.constraints}, and derivatives of motions that "
            "loops constrain are not implemented (couplings are served); take differences of "
            f"kf.{function} along kf.integrate(system, q, h * dv), with rates dv that the loops allow: columns of "
            "kf.minimal_coordinates(system, q).X"
        )


def _matrices(states: States) -> list[Array]:
    return [np.empty((states.size, states.system.nv, states.system.nv)) for _ in range(3)]


def _shaped(states: States, by: Sequence[Array]) -> list[Array]:
    """The matrices with the leading axes of the arguments."""
    return [x.reshape((*states.lead, *x.shape[1:])) for x in by]


def _given(states: States, third: str) -> list[Array]:
    """Arguments q, v, the third, gravity, with their leading axes made one."""
    arrays, system = states.arrays, states.system
    v, gravity = arrays.get("v", np.zeros((states.size, system.nv))), arrays.get("gravity")
    given = [as_given(states, x) for x in (arrays["q"], v, arrays[third])]
    return [*given, system.gravity if gravity is None else as_given(states, gravity)]
