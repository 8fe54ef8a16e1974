"""Derivatives of the velocity and acceleration of a frame in (q, v, a), from the columns of its Jacobian."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.arrays import Array
from kfdyn.multibody.calls.arguments import checked, configuration, expect_one, expect_system
from kfdyn.multibody.coordinates.expansion import Bent, Expansion
from kfdyn.multibody.kinds import expect_no_loops
from kfdyn.multibody.kinematics import jacobian
from kfdyn.multibody.parts.hinge import Coordinates
from kfdyn.multibody.system import System


class VelocityDerivatives(NamedTuple):
    """``dV_dq`` and ``dV_dv``, (..., 6, nv) each; the second is the Jacobian.

    Examples
    --------
    >>> import kfdyn as kf
    >>> kf.frame_velocity_derivatives(kf.models.pendulum(length=1.0), [0.0], [1.0], "bob").dV_dv.shape
    (6, 1)
    """

    dV_dq: Array
    dV_dv: Array


class AccelerationDerivatives(NamedTuple):
    """``dA_dq``, ``dA_dv`` and ``dA_da``, (..., 6, nv) each; the last is the Jacobian.

    Examples
    --------
    >>> import kfdyn as kf
    >>> kf.frame_acceleration_derivatives(kf.models.pendulum(length=1.0), [0.0], [1.0], [0.0], "bob").dA_dv.shape
    (6, 1)
    """

    dA_dq: Array
    dA_dv: Array
    dA_da: Array


class Path(NamedTuple):
    """The columns of a frame's Jacobian along its path, in groups that turn with their body, world axes.

    Attributes
    ----------
    dofs : list of slices
        Columns of each group, outward: one screw, or all columns of a ball, free or custom hinge.
    Jw, Jl : array, shape (rows, 3, nv)
        Angular and linear halves of the Jacobian of the open tree.
    way : Expansion or Bent
        From the rates of the system to those of the open tree.
    """

    dofs: list[slice]
    Jw: Array
    Jl: Array
    way: Expansion

    @classmethod
    def of(cls, system: System, q: Array, frame: str) -> Path:
        """The path of a frame for configurations (rows, nq)."""
        robot, tree, way = system, system.pattern.open_tree, system.pattern._expansion
        expect_no_loops(
            system,
            "derivatives of a frame",
            "they are those of trees and couplings; take system.open_tree, and its closed coordinates by "
            "system.expansion",
        )
        if tree is not system.pattern:
            expect_one(system, "derivatives of frames with couplings")
            robot, way, q = tree, way.at(q), system.expand(q)
        here = q.reshape(-1, *system.robots, q.shape[-1])
        J = jacobian(robot, here, frame).reshape(len(q), 6, tree.nv)
        dofs, body = [], tree.carrier(frame)
        while body >= 0:
            hinge, own = tree.bodies[body].hinge, tree.v_slice(tree.hinge_names[body])
            if hinge.coordinates is Coordinates.SCREWS:
                dofs += [slice(i, i + 1) for i in reversed(range(own.start, own.stop))]
            elif hinge.nv:
                dofs.append(own)
            body = int(tree.parent[body])
        return cls(dofs[::-1], J[:, :3], J[:, 3:], way)

    @property
    def J(self) -> Array:
        """The Jacobian of the open tree, (rows, 6, nv_tree)."""
        return np.concatenate([self.Jw, self.Jl], axis=1)


class _State(NamedTuple):
    """Motion of the body before a group, at the frame's origin: ω, u, α and the acceleration of that point."""

    w: Array
    u: Array
    alpha: Array
    c: Array


def _cross(a: Array, b: Array) -> Array:
    """Columns (rows, 3, k) of cross products; a vector (rows, 3) on either side serves all columns."""
    if a.ndim == 2:
        a = a[:, :, None]
    if b.ndim == 2:
        b = b[:, :, None]
    return np.cross(a, b, axis=1)


def _walk(path: Path, v: Array, a: Array) -> tuple[list[_State], list[tuple[Array, Array]]]:
    """The motion before each group and after the last, and each group's own ω and u."""
    zero = np.zeros((len(v), 3))
    states, own = [_State(zero, zero, zero, zero)], []
    for dofs in path.dofs:
        last = states[-1]
        w, u = (np.einsum("rij,rj->ri", J[:, :, dofs], v[:, dofs]) for J in (path.Jw, path.Jl))
        dw, du = (np.einsum("rij,rj->ri", J[:, :, dofs], a[:, dofs]) for J in (path.Jw, path.Jl))
        alpha = last.alpha + np.cross(last.w, w) + dw
        c = last.c + 2.0 * np.cross(last.w, u) + np.cross(w, u) + du
        states.append(_State(last.w + w, last.u + u, alpha, c))
        own.append((w, u))
    return states, own


def _derivatives(path: Path, v: Array, a: Array) -> tuple[Array, Array, Array]:
    """∂V/∂q, ∂A/∂q and ∂A/∂v, (rows, 6, nv) of the open tree.

    Moving a hinge turns and shifts, in its parent's frame, everything outboard of it as one rigid body: the velocities
    and accelerations that are seen from the parent turn with Jw, and the point moves by Jl.
    """
    states, own = _walk(path, v, a)
    end = states[-1]
    V_q, A_q, A_v = (np.zeros((len(v), 6, path.Jw.shape[2])) for _ in range(3))
    for dofs, before, after, (w, u) in zip(path.dofs, states, states[1:], own):
        Jw, Jl = path.Jw[:, :, dofs], path.Jl[:, :, dofs]
        w_rel, u_rel = end.w - before.w, end.u - before.u
        alpha_rel = end.alpha - before.alpha - np.cross(before.w, w_rel)
        c_rel = end.c - before.c - 2.0 * np.cross(before.w, u_rel)
        V_q[:, :3, dofs] = _cross(Jw, w_rel)
        V_q[:, 3:, dofs] = _cross(Jw, u_rel) + _cross(before.w, Jl)
        A_q[:, :3, dofs] = _cross(before.w, _cross(Jw, w_rel)) + _cross(Jw, alpha_rel)
        A_q[:, 3:, dofs] = (
            _cross(before.alpha, Jl)
            + _cross(before.w, _cross(before.w, Jl))
            + 2.0 * _cross(before.w, _cross(Jw, u_rel))
            + _cross(Jw, c_rel)
        )
        A_v[:, :3, dofs] = _cross(before.w, Jw) + _cross(Jw, end.w - after.w)
        A_v[:, 3:, dofs] = (
            2.0 * _cross(before.w, Jl) + _cross(Jw, u) + _cross(w, Jl) + 2.0 * _cross(Jw, end.u - after.u)
        )
    return V_q, A_q, A_v


def _bound(
    system: System, frame: str, q: ArrayLike, **rates: ArrayLike | None
) -> tuple[tuple[int, ...], Path, list[Array]]:
    """Leading axes, the path, and rates as rows."""
    expect_system(system)
    system.locate(frame)
    arrays = [np.zeros(system.nv) if x is None else checked(system, x, (system.nv,), name) for name, x in rates.items()]
    q = configuration(system, q)
    lead = np.broadcast_shapes(q.shape[:-1], *(x.shape[:-1] for x in arrays))
    rows = [np.broadcast_to(x, (*lead, x.shape[-1])).reshape(-1, x.shape[-1]) for x in (q, *arrays)]
    return lead, Path.of(system, np.ascontiguousarray(rows[0]), frame), rows[1:]


def frame_velocity_derivatives(system: System, q: ArrayLike, v: ArrayLike | None, frame: str) -> VelocityDerivatives:
    """Derivatives of a frame's velocity V(q, v), world orientation at its origin, in tangent coordinates.

    Parameters
    ----------
    system : System
        The robot, with or without couplings; one with loops is refused.
    q : (..., nq)
        Configurations.
    v : (..., nv) or None
        Velocities; None is at rest.
    frame : str
        Name of a body or of one of ``system.frames``.

    Returns
    -------
    VelocityDerivatives
        ``dV_dq``, ``dV_dv``: (..., 6, nv), rows [angular; linear].

    Examples
    --------
    A double pendulum hangs and swings at 1 rad/s: the velocity of its elbow turns with it.

    >>> import kfdyn as kf
    >>> arm = kf.models.double_pendulum()
    >>> kf.frame_velocity_derivatives(arm, [0.0, 0.0], [1.0, 0.0], "lower").dV_dq[3:, 0].round(9) + 0.0
    array([0., 0., 1.])
    """
    lead, path, (rates,) = _bound(system, frame, q, v=v)
    way = path.way
    of_tree = way.rates(rates)
    V_q, _, _ = _derivatives(path, of_tree, np.zeros_like(of_tree))
    V_q = way.narrowed(V_q)
    if isinstance(way, Bent):
        V_q = V_q + path.J @ way.turned_rates(rates)
    return VelocityDerivatives(*(x.reshape(*lead, 6, system.nv) for x in (V_q, way.narrowed(path.J))))


def frame_acceleration_derivatives(
    system: System, q: ArrayLike, v: ArrayLike | None, a: ArrayLike | None, frame: str
) -> AccelerationDerivatives:
    """Derivatives of a frame's classical acceleration J a + J̇ v, world orientation at its origin; gravity is not in it.

    Parameters
    ----------
    system : System
        The robot, with or without couplings; one with loops is refused.
    q : (..., nq)
        Configurations.
    v, a : (..., nv) or None
        Velocities and accelerations; None is zero.
    frame : str
        Name of a body or of one of ``system.frames``.

    Returns
    -------
    AccelerationDerivatives
        ``dA_dq``, ``dA_dv``, ``dA_da``: (..., 6, nv), rows [angular; linear], in tangent coordinates.

    Examples
    --------
    The centripetal acceleration v²·1 m of the elbow of a double pendulum changes by 2 m/s² for each rad/s:

    >>> import kfdyn as kf
    >>> arm = kf.models.double_pendulum()
    >>> kf.frame_acceleration_derivatives(arm, [0.0, 0.0], [1.0, 0.0], None, "lower").dA_dv[3:, 0].round(9) + 0.0
    array([0., 0., 2.])
    """
    lead, path, (rates, more) = _bound(system, frame, q, v=v, a=a)
    way = path.way
    of_tree = way.accelerations(rates, more)
    assert of_tree is not None
    _, A_q, A_v = _derivatives(path, way.rates(rates), of_tree)
    A_q, by_v = way.narrowed(A_q), way.narrowed(A_v)
    if isinstance(way, Bent):
        turned = way.turned_rates(rates)
        A_q = A_q + A_v @ turned + path.J @ way.turned_accelerations(rates, more)
        by_v = by_v + 2.0 * path.J @ turned
    return AccelerationDerivatives(*(x.reshape(*lead, 6, system.nv) for x in (A_q, by_v, way.narrowed(path.J))))


def force_derivatives(system: System, q: Array, force: Array, frame: str) -> tuple[Array, Array]:
    """J*f of a force [moment; force] at a frame, world axes, and ∂(J*f)/∂q, for rows: (rows, nv), (rows, nv, nv)."""
    path = Path.of(system, q, frame)
    Jw, Jl, size = path.Jw, path.Jl, path.Jw.shape[2]
    out = np.zeros((len(q), size, size))
    for i, own in enumerate(path.dofs):
        for j, other in enumerate(path.dofs):
            if i >= j:  # ∂(column of i)/∂q_j: it turns with j
                turned = _dot(force[:, :3], Jw[:, :, other], Jw[:, :, own]) + _dot(
                    force[:, 3:], Jw[:, :, other], Jl[:, :, own]
                )
                out[:, own, other] = turned.swapaxes(1, 2)
            else:  # the point moves with j
                out[:, own, other] = _dot(force[:, 3:], Jw[:, :, own], Jl[:, :, other])
    way, torque = path.way, np.einsum("rij,ri->rj", path.J, force)
    turned = way.narrowed(way.narrowed(out).swapaxes(1, 2)).swapaxes(1, 2)
    if isinstance(way, Bent):
        turned = turned + way.turned(torque)[:, :, None] * np.eye(way.nv)
    return way.forces(torque), turned


def _dot(f: Array, a: Array, b: Array) -> Array:
    """f · (a_i × b_j), (rows, i, j)."""
    return np.einsum("rij,rik->rjk", np.cross(f[:, :, None], a, axis=1), b)
