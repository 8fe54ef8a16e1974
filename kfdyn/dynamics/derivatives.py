"""Derivatives of forward and inverse dynamics: exact, in tangent coordinates, by one more gather."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.arrays import Array
from kfdyn.dynamics.forward import by_engine as forward_by_engine
from kfdyn.dynamics.mass_matrix_inverse import by_engine as inverse_by_engine
from kfdyn.dynamics.solving.forest import States
from kfdyn.dynamics.solving.solver import Solver
from kfdyn.errors import ModelError, ShapeError
from kfdyn.multibody import System
from kfdyn.multibody.calls.kernel import Answers
from kfdyn.multibody.calls.overflow import overflow
from kfdyn.multibody.kinds import expect_no_loops, expect_rigid


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
    _expect_served(system, "forward_dynamics")
    return ForwardDerivatives._make(FORWARD.of(system, (q, v, tau, gravity), out))


def _by_engine(states: States) -> dict[str, Array]:
    """∂a/∂q = −𝓜⁻¹ ∂τ/∂q, ∂a/∂v = −𝓜⁻¹ ∂τ/∂v and 𝓜⁻¹ (size, nv, nv), with 𝓜 as the engine factorises it."""
    from kfdyn.estimation import innovations_factor

    system, nv = states.system, states.system.nv
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
    _expect_served(system, "inverse_dynamics")
    return InverseDerivatives._make(INVERSE.of(system, (q, v, a, gravity), out))


def _overflown(states: States) -> NoReturn:
    raise overflow(states.system, "a derivative", **states.arrays)


def _expect_served(system: System, function: str) -> None:
    expect_rigid(system, f"{function}_derivatives")
    expect_no_loops(
        system,
        f"{function}_derivatives",
        "derivatives of motions that loops constrain are not implemented (couplings are served); take differences of "
        f"kf.{function} along kf.integrate(system, q, h * dv), with rates dv that the loops allow: columns of "
        "kf.minimal_coordinates(system, q).X",
    )


class _Derivatives(Solver):
    """Three matrices, of which callers may have arrays; a fourth answer is nobody's concern."""

    def of(self, system: System, given: tuple[Any, ...], out: Sequence[Array] | None) -> Sequence[Array]:
        """The matrices."""
        if out is None:
            served = self.variants.get(system.kind)
            found = None if served is None else served.one(system, *given)
            return (found or self.rows(system, given))[:3]
        if not hasattr(out, "__len__") or len(out) != 3:
            raise ShapeError(f"out must be three arrays, one for each matrix, got {type(out).__name__}")
        return self.rows(system, given, out)[:3]

    def _written(self, out: Any, answers: Answers) -> Any:
        for k, x in enumerate(() if out is None else out):
            if any(isinstance(y, np.ndarray) and isinstance(x, np.ndarray) and np.shares_memory(x, y) for y in out[:k]):
                raise ModelError("out: the three arrays must not overlap; give each matrix one of its own")
        return super()._written(out, answers)


_COUPLED = "kfdyn.dynamics.recursions.coupled.geared"

INVERSE = _Derivatives(
    "inverse_dynamics_derivatives", "kfdyn.dynamics.recursions.slopes.derivatives_inverse", "INVERSE_DERIVATIVES",
    coupled=True, kinds=("geared",), explain=_overflown, inverts=False,
)  # fmt: skip
FORWARD = _Derivatives(
    "forward_dynamics_derivatives", "kfdyn.dynamics.recursions.slopes.derivatives_forward", "FORWARD_DERIVATIVES",
    coupled=_COUPLED, kinds=("geared",), explain=_by_engine,
)  # fmt: skip
