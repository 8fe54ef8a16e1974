"""The torque regressor: inverse dynamics is linear in the ten inertial parameters of each body."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.arrays import Array
from kfdyn.errors import ShapeError
from kfdyn.multibody import System, frame_acceleration, frame_pose, frame_velocity, jacobian
from kfdyn.multibody.calls.arguments import checked, configuration, expect_system
from kfdyn.multibody.kinds import expect_no_loops, expect_rigid
from kfdyn.spatial import skew

#: Names of the ten numbers, in their order: mass, first moments m c, and moments of inertia about the body's origin.
TEN = ("m", "h_x", "h_y", "h_z", "I_xx", "I_xy", "I_yy", "I_xz", "I_yz", "I_zz")
_ROW, _COLUMN = np.array([0, 0, 1, 0, 1, 2]), np.array([0, 1, 1, 2, 2, 2])


def inertial_parameters(system: System) -> Array:
    """Return the ten inertial parameters of each body, in the order of the columns of :func:`torque_regressor`.

    Parameters
    ----------
    system : System
        The robot.

    Returns
    -------
    (n_bodies, 10) array
        m, m c (3), and I_xx, I_xy, I_yy, I_xz, I_yz, I_zz about the body's origin, in its axes.

    Examples
    --------
    >>> import kfdyn as kf
    >>> inertial_parameters(kf.models.pendulum(length=0.5, mass=2.0))[0, :5]
    array([ 2. ,  0. ,  0. , -1. ,  0.5])
    """
    expect_system(system)
    expect_rigid(system, "inertial_parameters")
    return np.stack([ten_of(body.inertia) for body in system.bodies])


def ten_of(inertia: Array) -> Array:
    """Ten parameters of a spatial inertia (6, 6)."""
    lever = inertia[:3, 3:]
    h = (lever[2, 1], lever[0, 2], lever[1, 0])
    return np.array([inertia[3, 3], *h, *inertia[:3, :3][_ROW, _COLUMN]])


def inertia_of(ten: Array) -> Array:
    """Spatial inertia (..., 6, 6) of ten parameters (..., 10)."""
    out = np.zeros((*ten.shape[:-1], 6, 6))
    out[..., _ROW, _COLUMN] = out[..., _COLUMN, _ROW] = ten[..., 4:]
    out[..., :3, 3:] = skew(ten[..., 1:4])
    out[..., 3:, :3] = np.swapaxes(out[..., :3, 3:], -1, -2)
    out[..., 3:, 3:] = ten[..., :1, None] * np.eye(3)
    return out


def torque_regressor(
    system: System, q: ArrayLike, v: ArrayLike | None, a: ArrayLike | None, gravity: ArrayLike | None = None
) -> Array:
    """Return Y with ``inverse_dynamics`` = Y θ + armature · a: exact, since it is linear in θ.

    ::

        f = m (p̈ − g) + ω̇ × h + ω × (ω × h),     n = h × (p̈ − g) + I ω̇ + ω × I ω,     Y θ = Σ J* [n; f]

    Parameters
    ----------
    system : System
        The robot, with or without couplings.
    q, v, a : (..., nq), (..., nv), (..., nv)
        States and accelerations; leading axes broadcast. v or a None is zero.
    gravity : (3,), optional
        ``system.gravity`` if not given.

    Returns
    -------
    (..., nv, 10 n_bodies) array
        Ten columns a body, in the order of :func:`kfdyn.motion.inertial_parameters`, which is Pinocchio's.

    Notes
    -----
    O(n_bodies · nv). Rotors (armature) stand beside it.

    Examples
    --------
    >>> import kfdyn as kf
    >>> rod = kf.models.pendulum(length=1.0, mass=2.0)
    >>> Y = kf.torque_regressor(rod, [0.5], [0.3], [1.0])
    >>> (Y @ kf.motion.inertial_parameters(rod).ravel() - kf.inverse_dynamics(rod, [0.5], [0.3], [1.0])).round(12)
    array([0.])
    """
    expect_system(system)
    expect_rigid(system, "torque_regressor")
    expect_no_loops(system, "torque_regressor", "their forces are not determined; take system.open_tree")
    q = configuration(system, q)
    v, a = (
        np.zeros(system.nv) if x is None else checked(system, x, (system.nv,), name) for x, name in ((v, "v"), (a, "a"))
    )
    g = np.asarray(system.gravity if gravity is None else checked(system, gravity, (3,), "gravity"))
    if g.shape != (3,):
        raise ShapeError(f"gravity must be one vector (3,), got shape {g.shape}")
    lead = np.broadcast_shapes(q.shape[:-1], v.shape[:-1], a.shape[:-1], system.robots)
    q, v, a = (np.ascontiguousarray(np.broadcast_to(x, (*lead, x.shape[-1]))) for x in (q, v, a))
    out = np.empty((*lead, system.nv, 10 * system.n_bodies))
    for k, name in enumerate(system.body_names):
        R = frame_pose(system, q, name).rotation
        turned = np.swapaxes(R, -1, -2)
        V, A = frame_velocity(system, q, v, name), frame_acceleration(system, q, v, a, name)
        w, dw, p = ((turned @ x[..., None])[..., 0] for x in (V[..., :3], A[..., :3], A[..., 3:] - g))
        J = jacobian(system, q, name)
        forces = _forces(w, dw, p)
        out[..., 10 * k : 10 * k + 10] = np.swapaxes(J[..., :3, :], -1, -2) @ (R @ forces[..., :3, :])
        out[..., 10 * k : 10 * k + 10] += np.swapaxes(J[..., 3:, :], -1, -2) @ (R @ forces[..., 3:, :])
    return out


def _forces(w: Array, dw: Array, p: Array) -> Array:
    """Columns [n; f] (..., 6, 10) of a body that turns with w, dw and whose origin accelerates with p, in its axes."""
    out = np.zeros((*w.shape[:-1], 6, 10))
    W = skew(w)
    out[..., 3:, 0] = p
    out[..., :3, 1:4] = -skew(p)
    out[..., 3:, 1:4] = skew(dw) + W @ W
    of_dw, of_w = _moments(dw), _moments(w)
    out[..., :3, 4:] = of_dw + W @ of_w
    return out


def _moments(w: Array) -> Array:
    """Columns of I w in the six moments of inertia, (..., 3, 6)."""
    out = np.zeros((*w.shape[:-1], 3, 6))
    for i, (r, c) in enumerate(zip(_ROW, _COLUMN)):
        out[..., r, i] += w[..., c]
        if r != c:
            out[..., c, i] += w[..., r]
    return out
