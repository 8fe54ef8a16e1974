"""A body tumbling freely, integrated in the variables of one formulation."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.errors import KfdynError, ModelError, ShapeError
from kfdyn.spatial._arrays import Array, trailing
from kfdyn.spatial.inertia import inertia_parameters, kinetic_energy
from kfdyn.spatial.quaternion import (
    matrix_to_quaternion,
    quaternion_rate,
    quaternion_to_matrix,
)
from kfdyn.spatial.single_body.equations import (
    BodyEquations,
    body_acceleration,
    body_equations,
    equations_at,
)
from kfdyn.spatial.single_body.formulation import formulation_named
from kfdyn.spatial.transform import _inverse


class FreeMotion(NamedTuple):
    """A force-free motion at n times.

    time (n,), rotation (n, 3, 3), position (n, 3): pose of the body frame. V (n, 6): its spatial velocity at
    the frame's origin in inertial axes. energy (n,). equations: :class:`BodyEquations`, stacked.

    Examples
    --------
    A body thrown without spin goes straight on:

    >>> from kfdyn.spatial import spatial_inertia
    >>> ball = spatial_inertia(2.0, [0, 0, 0], np.eye(3))
    >>> thrown = free_motion("point", ball, np.eye(3), np.zeros(3), [0, 0, 0, 1.0, 0, 2.0], [0.0, 1.0, 2.0])
    >>> thrown.position.round(9)[-1], thrown.energy.round(9)
    (array([2., 0., 4.]), array([5., 5., 5.]))
    """

    time: Array
    rotation: Array
    position: Array
    V: Array
    energy: Array
    equations: BodyEquations


def free_motion(
    formulation: str,
    M6: ArrayLike,
    rotation: ArrayLike,
    position: ArrayLike,
    V: ArrayLike,
    time: ArrayLike,
    rtol: float = 1e-12,
) -> FreeMotion:
    """Motion of a body on which no force acts: M dβ/dt + b = 0, integrated with β itself as the state.

    Parameters
    ----------
    formulation : {"cm", "point", "body", "inertial"}
    M6 : (6, 6)
        Spatial inertia about the body frame's origin z, in body axes.
    rotation : (3, 3)
        Initial orientation, body to inertial axes.
    position : (3,)
        Initial position of z.
    V : (6,)
        Initial spatial velocity at z, in inertial axes.
    time : (n,)
        Increasing; the state is given at time[0].
    rtol : float
        Tolerance of the integrator, scipy's DOP853 (order eight).

    Returns
    -------
    FreeMotion

    Notes
    -----
    The state is (quaternion, position, β): the angular velocity in β is a quasi-velocity, so the attitude
    needs a kinematic equation of its own. Source: SRB, multibody state and state derivatives.

    Examples
    --------
    >>> import numpy as np
    >>> from kfdyn.spatial import spatial_inertia
    >>> from kfdyn.spatial.single_body import free_motion
    >>> M6 = spatial_inertia(2.0, [0.3, 0, 0], np.diag([1.0, 2.0, 2.5]))
    >>> m = free_motion("body", M6, np.eye(3), np.zeros(3), [1, 2, 3, 0, 0, 1], np.linspace(0, 1, 5))
    >>> bool(np.ptp(m.energy) < 1e-10 * m.energy[0])
    True
    """
    from scipy.integrate import solve_ivp

    one, time = formulation_named(formulation), trailing(time, (None,), "time")
    if time.ndim != 1 or len(time) < 2 or (np.diff(time) <= 0).any():
        raise ModelError("time must be a list of at least two increasing numbers")
    start = body_equations(formulation, M6, rotation, position, V)
    if start.velocity.ndim != 1:
        raise ShapeError(f"free_motion takes one body at a time, not a batch {start.velocity.shape[:-1]}")
    y0 = np.concatenate([matrix_to_quaternion(rotation), trailing(position, (3,), "position"), start.velocity])
    body_acceleration(start.inertia, np.zeros(6), start.bias)  # refuses a body without mass, once for all
    M6 = trailing(M6, (6, 6), "M6")
    com = inertia_parameters(M6).com

    def unpack(y: Array) -> tuple[Array, Array, Array, Array]:
        q = y[..., :4] / np.linalg.norm(y[..., :4], axis=-1, keepdims=True)
        R, z = quaternion_to_matrix(q), y[..., 4:7]
        phi = one.frame(R, z, com)
        return q, R, z, np.einsum("...ji,...j->...i", _inverse(phi), y[..., 7:])

    def rate(t: float, y: Array) -> Array:
        q, R, z, V = unpack(y)
        eom = equations_at(one, M6, com, R, z, V)
        return np.concatenate([quaternion_rate(q, R.T @ V[:3]), V[3:], np.linalg.solve(eom.inertia, -eom.bias)])

    done = solve_ivp(rate, (float(time[0]), float(time[-1])), y0, method="DOP853", t_eval=time, rtol=rtol, atol=rtol)
    if not done.success:
        raise KfdynError(f"the integration stopped at t = {done.t[-1]:.6g}: {done.message}")
    _, R, z, velocity = unpack(done.y.T)
    eom = equations_at(one, M6, com, R, z, velocity)
    return FreeMotion(time, R, z, velocity, kinetic_energy(eom.inertia, eom.velocity), eom)
