"""Points and tangents of configurations: ⊕, ⊖ and the Jacobians of both, hinge by hinge."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.arrays import Array
from kfdyn.errors import ModelError
from kfdyn.multibody.calls.arguments import checked, configuration, expect_system
from kfdyn.multibody.coordinates.configuration import difference
from kfdyn.multibody.parts.hinge import Coordinates
from kfdyn.multibody.system import System
from kfdyn.spatial import (
    normalize_quaternion,
    quaternion_exp,
    quaternion_log,
    quaternion_multiply,
    quaternion_to_matrix,
    skew,
)

CONJUGATE = np.array([-1.0, -1.0, -1.0, 1.0])
_MOST_TERMS = 80


class TangentPair(NamedTuple):
    """Jacobians of a function of two arguments, (..., nv, nv) each: in the first and in the second.

    Examples
    --------
    >>> import kfdyn as kf
    >>> kf.integrate_derivatives(kf.models.pendulum(), [0.5], [0.25]).first
    array([[1.]])
    """

    first: Array
    second: Array


class Block(NamedTuple):
    """Entries of a point, and of its tangent, that turn: a quaternion (4 and 3 entries) or a pose (7 and 6)."""

    point: slice
    tangent: slice


class Points:
    """Rows of numbers of which some are quaternions or poses; all others add.

    Poses are (position, quaternion), their tangents twists [angular; linear] in their own axes.

    Parameters
    ----------
    size, tangent_size : int
        Entries of a point and of a tangent.
    blocks : list of Block
        Those that do not add.
    """

    def __init__(self, size: int, tangent_size: int, blocks: list[Block]) -> None:
        self.size, self.tangent_size, self.blocks = size, tangent_size, blocks
        points, tangents = np.ones(size, bool), np.ones(tangent_size, bool)
        for block in blocks:
            points[block.point] = tangents[block.tangent] = False
        self._points, self._tangents = np.flatnonzero(points), np.flatnonzero(tangents)

    @classmethod
    def of(cls, system: System) -> Points:
        """The configurations of a system, with or without couplings."""
        blocks = []
        for body in system.open_tree.bodies:
            hinge, name = body.hinge, body.hinge_name
            if hinge.coordinates is Coordinates.SCREWS:
                continue
            if hinge.coordinates is Coordinates.POSE and not np.array_equal(hinge.screws, np.eye(6)):
                raise ModelError(
                    f"hinge {name!r}: the twists of a custom hinge need not form a group, so they have no Jacobians of "
                    "integrate and difference; use a free, ball or planar hinge"
                )
            blocks.append(Block(system.q_slice(name), system.v_slice(name)))
        return cls(system.nq, system.nv, blocks)

    def minus(self, y: Array, x: Array) -> Array:
        """y ⊖ x, rows, rotations by the shorter way; a block with a NaN in it is NaN as a whole."""
        out = np.empty((len(x), self.tangent_size))
        out[:, self._tangents] = y[:, self._points] - x[:, self._points]
        for point, tangent in self.blocks:
            there = ~np.isnan(y[:, point]).any(axis=1)
            out[~there, tangent] = np.nan
            a, b = x[there, point], y[there, point]
            turn = quaternion_log(quaternion_multiply(a[:, -4:] * CONJUGATE, b[:, -4:]))
            if a.shape[1] == 4:
                out[there, tangent] = turn
                continue
            moved = quaternion_to_matrix(a[:, -4:]).swapaxes(1, 2) @ (b[:, :3] - a[:, :3])[:, :, None]
            back = np.linalg.solve(_sum(skew(turn), 1), moved)[:, :, 0]
            out[there, tangent] = np.concatenate([turn, back], axis=1)
        return out

    def plus(self, x: Array, d: Array) -> Array:
        """x ⊕ d, rows; quaternions come out normalised."""
        out = np.empty((len(d), self.size))
        out[:, self._points] = x[:, self._points] + d[:, self._tangents]
        for point, tangent in self.blocks:
            a, step = x[:, point], d[:, tangent]
            turned = normalize_quaternion(quaternion_multiply(a[:, -4:], quaternion_exp(step[:, :3])))
            if a.shape[1] == 4:
                out[:, point] = turned
                continue
            moved = quaternion_to_matrix(a[:, -4:]) @ _sum(skew(step[:, :3]), 1) @ step[:, 3:, None]
            out[:, point] = np.concatenate([a[:, :3] + moved[:, :, 0], turned], axis=1)
        return out

    def right_jacobian(self, d: Array) -> Array:
        """J with x ⊕ (d + δ) = (x ⊕ d) ⊕ J δ, (rows, n, n): Σ (−ad d)ᵏ/(k+1)!."""
        return self._series(d, 1)

    def transported(self, d: Array) -> Array:
        """A with (x ⊕ δ) ⊕ d = (x ⊕ d) ⊕ A δ, (rows, n, n): Ad(Exp(−d)) = Σ (−ad d)ᵏ/k!."""
        return self._series(d, 0)

    def turns(self, d: Array) -> Iterator[tuple[slice, Array, Array]]:
        """Return the tangent of each block, and its parts of :meth:`transported` and :meth:`right_jacobian`."""
        for _, tangent in self.blocks:
            back = -_ad(d[:, tangent])
            J = _sum(back, 1)
            yield tangent, np.eye(back.shape[-1]) + back @ J, J

    def _series(self, d: Array, shift: int) -> Array:
        out = np.zeros((len(d), self.tangent_size, self.tangent_size))
        out[:, range(self.tangent_size), range(self.tangent_size)] = 1.0
        for _, tangent in self.blocks:
            out[:, tangent, tangent] = _sum(-_ad(d[:, tangent]), shift)
        return out


def _ad(d: Array) -> Array:
    """Ad of rows of tangents: ω~ for a ball, [[ω~, 0], [v~, ω~]] for a pose."""
    if d.shape[1] == 3:
        return skew(d)
    out = np.zeros((len(d), 6, 6))
    out[:, :3, :3] = out[:, 3:, 3:] = skew(d[:, :3])
    out[:, 3:, :3] = skew(d[:, 3:])
    return out


def _sum(X: Array, shift: int) -> Array:
    """Σ Xᵏ/(k + shift)!, summed until terms are rounding; entries of X are angles of a few turns at most."""
    total = term = np.broadcast_to(np.eye(X.shape[-1]), X.shape)
    size = np.abs(X).max(initial=0.0)
    for k in range(1, _MOST_TERMS):
        term = term @ X / (k + shift)
        total = total + term
        if not np.abs(term).max(initial=0.0) > 1e-18 * (1.0 + size):
            break
    return total


def integrate_derivatives(system: System, q: ArrayLike, dv: ArrayLike) -> TangentPair:
    """Derivatives of ``integrate(system, q, dv)`` in tangent coordinates.

    ::

        (q ⊕ δ) ⊕ dv = (q ⊕ dv) ⊕ first δ           first  = Ad(Exp(−dv))
        q ⊕ (dv + δ) = (q ⊕ dv) ⊕ second δ          second = J(dv), the right Jacobian

    Both are the identity where coordinates add.

    Parameters
    ----------
    system : System
        The robot.
    q : (..., nq)
        Configurations; the derivatives do not depend on them.
    dv : (..., nv)
        Displacements.

    Returns
    -------
    TangentPair
        ``first`` and ``second``, (..., nv, nv).

    Raises
    ------
    ModelError
        If a hinge is a custom one.

    Examples
    --------
    A ball that is turned by dv about x: the other two axes turn along.

    >>> import numpy as np, kfdyn as kf
    >>> ball = kf.System([kf.Body("ball", np.eye(6), kf.Hinge.ball())])
    >>> kf.integrate_derivatives(ball, ball.neutral(), [np.pi / 2, 0, 0]).first.round(9) + 0.0
    array([[ 1.,  0.,  0.],
           [ 0.,  0.,  1.],
           [ 0., -1.,  0.]])
    """
    expect_system(system)
    points = Points.of(system)
    q, dv = configuration(system, q), checked(system, dv, (system.nv,), "dv")
    lead = np.broadcast_shapes(q.shape[:-1], dv.shape[:-1])
    rows = np.broadcast_to(dv, (*lead, system.nv)).reshape(-1, system.nv)
    shape = (*lead, system.nv, system.nv)
    return TangentPair(points.transported(rows).reshape(shape), points.right_jacobian(rows).reshape(shape))


def difference_derivatives(system: System, q: ArrayLike, q2: ArrayLike) -> TangentPair:
    """Derivatives of ``difference(system, q, q2)`` = q2 ⊖ q in tangent coordinates at q and at q2.

    ::

        second = J(d)⁻¹,    first = −J(−d)⁻¹,    d = q2 ⊖ q

    Parameters
    ----------
    system : System
        The robot.
    q, q2 : (..., nq)
        Configurations.

    Returns
    -------
    TangentPair
        ``first`` in q and ``second`` in q2, (..., nv, nv).

    Examples
    --------
    >>> import kfdyn as kf
    >>> kf.difference_derivatives(kf.models.pendulum(), [0.5], [0.75])
    TangentPair(first=array([[-1.]]), second=array([[1.]]))
    """
    expect_system(system)
    points = Points.of(system)
    d = difference(system, q, q2)
    rows, shape = d.reshape(-1, system.nv), (*d.shape, system.nv)
    first = -np.linalg.inv(points.right_jacobian(-rows))
    return TangentPair(first.reshape(shape), np.linalg.inv(points.right_jacobian(rows)).reshape(shape))
