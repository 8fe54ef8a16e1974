"""Derivatives of forward and inverse dynamics: exact, in tangent coordinates, by one more gather."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfdyn.dynamics.forest import States
from kfdyn.dynamics.forward import forward_dynamics
from kfdyn.dynamics.mass_matrix import mass_matrix
from kfdyn.errors import ModelError
from kfdyn.multibody import System
from kfdyn.multibody.arguments import expect_system
from kfdyn.multibody.entries import Later, known
from kfdyn.multibody.flexible import expect_rigid
from kfdyn.multibody.overflow import overflow

Array = NDArray[np.float64]

INVERSE = Later("kfdyn.dynamics.recursions.derivatives", "INVERSE_DERIVATIVES")
FORWARD = Later("kfdyn.dynamics.recursions.derivatives", "FORWARD_DERIVATIVES")


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
    system: System, q: ArrayLike, v: ArrayLike | None, tau: ArrayLike, gravity: ArrayLike | None = None
) -> ForwardDerivatives:
    """Derivatives of the accelerations a(q, v, τ): what every optimiser of a motion asks for.

    ::

        ∂a/∂q = −𝓜⁻¹ ∂τ/∂q,   ∂a/∂v = −𝓜⁻¹ ∂τ/∂v   at (q, v, a),   ∂a/∂τ = 𝓜⁻¹

    q moves in tangent coordinates: column j is the derivative along ``integrate(system, q, h e_j)`` at h = 0, so that
    quaternions stay unit and every hinge has as many columns as velocities.

    Parameters
    ----------
    system : System
        The robot.
    q : (..., nq)
        Configurations; leading axes of all arguments broadcast.
    v : (..., nv) or None
        Velocities; None is at rest.
    tau : (..., nv)
        Generalised forces.
    gravity : (..., 3), optional
        ``system.gravity`` if not given.

    Returns
    -------
    ForwardDerivatives
        ``da_dq, da_dv, da_dtau``, (..., nv, nv) each: row i is of acceleration i.

    Raises
    ------
    SingularError
        If a hinge has no inertia to move; names the hinge.

    Notes
    -----
    One filter serves a and 𝓜⁻¹; O(N²). Source: Singh, Russell and Wensing, "Efficient analytical derivatives of rigid
    body dynamics using spatial vector algebra", IEEE RA-L 7 (2022); THEORY section 16.

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
    _expect_tree(system, "forward_dynamics_derivatives")
    states = States.of(system, q, v, None, gravity, tau=tau)
    by, a = _matrices(states, 3), np.empty((states.size, system.nv))
    if not known(FORWARD(system, states.size, *_given(states, "tau"), *by, a)):
        forward_dynamics(system, states["q"], states.arrays.get("v"), states["tau"], None, states.arrays.get("gravity"))
        raise overflow(system, "a derivative", **states.arrays)
    return ForwardDerivatives(*(x.reshape((*states.lead, system.nv, system.nv)) for x in by))


def inverse_dynamics_derivatives(
    system: System, q: ArrayLike, v: ArrayLike | None, a: ArrayLike, gravity: ArrayLike | None = None
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
        The robot.
    q : (..., nq)
        Configurations; leading axes of all arguments broadcast.
    v : (..., nv) or None
        Velocities; None is at rest.
    a : (..., nv)
        Accelerations.
    gravity : (..., 3), optional
        ``system.gravity`` if not given.

    Returns
    -------
    InverseDerivatives
        ``dtau_dq, dtau_dv, dtau_da``, (..., nv, nv) each: row i is of force i.

    Notes
    -----
    O(N depth). Source: Singh, Russell and Wensing (2022); THEORY section 16.

    Examples
    --------
    A pendulum that hangs is pulled back by m g l for each radian:

    >>> import kfdyn as kf
    >>> dtau_dq, dtau_dv, M = inverse_dynamics_derivatives(kf.models.pendulum(length=1.0), [0.0], [0.0], [0.0])
    >>> dtau_dq.round(6), dtau_dv.round(6), M
    (array([[9.81]]), array([[0.]]), array([[1.]]))
    """
    _expect_tree(system, "inverse_dynamics_derivatives")
    states = States.of(system, q, v, None, gravity, a=a)
    by = _matrices(states, 2)
    if not known(INVERSE(system, states.size, *_given(states, "a"), *by)):
        raise overflow(system, "a derivative", **states.arrays)
    shape = (*states.lead, system.nv, system.nv)
    M = mass_matrix(system, states["q"])
    return InverseDerivatives(by[0].reshape(shape), by[1].reshape(shape), M.reshape(shape))


def _expect_tree(system: System, function: str) -> None:
    expect_system(system)
    expect_rigid(system, function)
    if not system.is_tree:
        raise ModelError(
            f"{function}: system {system.name!r} has couplings or loops, whose derivatives are not known here; take "
            "those of system.open_tree, and carry them over by system.expansion(q)"
        )


def _matrices(states: States, count: int) -> list[Array]:
    return [np.empty((states.size, states.system.nv, states.system.nv)) for _ in range(count)]


def _given(states: States, third: str) -> list[Array]:
    """Arguments q, v, the third, gravity, with their leading axes made one."""
    v = states.arrays.get("v")
    gravity = states.arrays.get("gravity", states.system.gravity)
    return [states["q"], np.zeros((states.size, states.system.nv)) if v is None else v, states[third], gravity]
