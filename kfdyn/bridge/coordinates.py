"""How configurations move, in the arrays of any framework: by its own functions, so that it differentiates them itself.

``xp`` is ``jax.numpy``, ``torch`` or ``numpy``. A hinge of angles and slides has as many entries in q as in v, and what
is said here of quaternions (x, y, z, w) is of the others.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from kfdyn.errors import ModelError
from kfdyn.multibody import System
from kfdyn.multibody.calls.arguments import expect_system
from kfdyn.multibody.kinds import expect_no_loops, expect_rigid
from kfdyn.multibody.parts.hinge import Coordinates

# Below this square of half an angle series stand for quotients; so many terms leave less than a rounding error.
_NEAR = 0.01
_TERMS = 6


class Piece(NamedTuple):
    """Entries of q and v: numbers that add (``kind`` 0), a ball, or a pose."""

    kind: Coordinates
    q: slice
    v: slice


@lru_cache(maxsize=256)
def pieces(system: System) -> tuple[Piece, ...]:
    """Entries of q and v of a system, in order."""
    found, q, v = [], 0, 0
    for body in system.bodies:
        hinge = body.hinge
        if hinge.coordinates is not Coordinates.SCREWS:
            own = Piece(hinge.coordinates, system.q_slice(body.hinge_name), system.v_slice(body.hinge_name))
            if own.q.start > q:
                found.append(Piece(Coordinates.SCREWS, slice(q, own.q.start), slice(v, own.v.start)))
            found.append(own)
            q, v = own.q.stop, own.v.stop
    if system.nq > q:
        found.append(Piece(Coordinates.SCREWS, slice(q, system.nq), slice(v, system.nv)))
    return tuple(found)


def is_flat(system: System) -> bool:
    """Whether all entries of q are numbers that add, so that tangent coordinates are q's own."""
    return all(piece.kind is Coordinates.SCREWS for piece in pieces(system))


def integrate(xp: Any, system: System, q: Any, dv: Any) -> Any:
    """q ⊕ dv (..., nq), as :func:`kfdyn.integrate`."""
    out = []
    for kind, at, of in pieces(system):
        here, d = q[..., at], dv[..., of]
        if kind is Coordinates.SCREWS:
            out.append(here + d)
        elif kind is Coordinates.BALL:
            cosine, sine, _ = _half_angle(xp, d)
            out.append(_unit(xp, _product(xp, here, xp.concatenate([0.5 * sine * d, cosine], -1))))
        else:
            turn, way, was = d[..., :3], d[..., 3:], _unit(xp, here[..., 3:])
            cosine, sine, rest = _half_angle(xp, turn)
            across = _cross(xp, turn, way)
            moved = way + 0.5 * sine * sine * across + rest * _cross(xp, turn, across)
            out.append(here[..., :3] + _rotate(xp, was, moved))
            out.append(_unit(xp, _product(xp, was, xp.concatenate([0.5 * sine * turn, cosine], -1))))
    return xp.concatenate(out, -1) if out else q


def tangent(xp: Any, system: System, q: Any, dq: Any) -> Any:
    """δ = E⁺dq (..., nv) of a change dq of q, E = ∂(q ⊕ δ)/∂δ at 0: for a unit quaternion 4E*, since E*E = ¼."""
    if is_flat(system):
        return dq
    out = []
    for kind, at, _ in pieces(system):
        here, d = q[..., at], dq[..., at]
        if kind is Coordinates.SCREWS:
            out.append(d)
        elif kind is Coordinates.BALL:
            out.append(_turned(xp, here, d))
        else:
            back = _rotate(xp, _conjugate(xp, _unit(xp, here[..., 3:])), d[..., :3])
            out += [_turned(xp, here[..., 3:], d[..., 3:]), back]
    return xp.concatenate(out, -1)


def cotangent(xp: Any, system: System, q: Any, g: Any) -> Any:
    """E⁺*g (..., nq) of a gradient g (..., nv) in tangent coordinates: what a framework calls the gradient in q."""
    if is_flat(system):
        return g
    out = []
    for kind, at, of in pieces(system):
        here, d = q[..., at], g[..., of]
        if kind is Coordinates.SCREWS:
            out.append(d)
        elif kind is Coordinates.BALL:
            out.append(_unturned(xp, here, d))
        else:
            out.append(_rotate(xp, _unit(xp, here[..., 3:]), d[..., 3:]))
            out.append(_unturned(xp, here[..., 3:], d[..., :3]))
    return xp.concatenate(out, -1)


def velocity(xp: Any, system: System, q: Any, v: Any) -> Any:
    """E v (..., nq): q̇ at unit quaternions."""
    if is_flat(system):
        return v
    out = []
    for kind, at, of in pieces(system):
        here, d = q[..., at], v[..., of]
        if kind is Coordinates.SCREWS:
            out.append(d)
        elif kind is Coordinates.BALL:
            out.append(0.5 * _product(xp, here, _pure(xp, d)))
        else:
            out.append(_rotate(xp, _unit(xp, here[..., 3:]), d[..., 3:]))
            out.append(0.5 * _product(xp, here[..., 3:], _pure(xp, d[..., :3])))
    return xp.concatenate(out, -1)


def gradient(xp: Any, system: System, q: Any, g: Any) -> Any:
    """E*g (..., nv): the gradient in tangent coordinates of one g (..., nq) in q."""
    if is_flat(system):
        return g
    out = []
    for kind, at, _ in pieces(system):
        here, d = q[..., at], g[..., at]
        if kind is Coordinates.SCREWS:
            out.append(d)
        elif kind is Coordinates.BALL:
            out.append(0.5 * _product(xp, _conjugate(xp, here), d)[..., :3])
        else:
            back = _rotate(xp, _conjugate(xp, _unit(xp, here[..., 3:])), d[..., :3])
            turn = 0.5 * _product(xp, _conjugate(xp, here[..., 3:]), d[..., 3:])[..., :3]
            out += [turn, back]
    return xp.concatenate(out, -1)


def expect_served(system: System) -> None:
    """Refuse what the bridge does not serve."""
    expect_system(system)
    expect_rigid(system, "the bridge")
    _expect_derivatives(system)


@lru_cache(maxsize=256)
def _expect_derivatives(system: System) -> None:
    """Refuse systems whose derivatives are not to be had."""
    expect_no_loops(
        system,
        "the bridge",
        "derivatives of motions that loops constrain are not implemented: take kfdyn's own functions, without "
        "derivatives",
    )
    for body in system.bodies:
        if body.hinge.coordinates is Coordinates.POSE and not np.array_equal(body.hinge.screws, np.eye(6)):
            raise ModelError(
                f"hinge {body.hinge_name!r}: a custom hinge has fewer directions than its pose, so that a gradient in "
                "q does not follow from derivatives along v; take kf.forward_dynamics_derivatives, which are in "
                "tangent coordinates, or another hinge"
            )


def _square(xp: Any, x: Any) -> Any:
    return (x * x).sum(-1)[..., None]


def _unit(xp: Any, q: Any) -> Any:
    return q / xp.sqrt(_square(xp, q))


def _pure(xp: Any, x: Any) -> Any:
    return xp.concatenate([x, 0.0 * x[..., :1]], -1)


def _cross(xp: Any, a: Any, b: Any) -> Any:
    x, y, z = a[..., 0], a[..., 1], a[..., 2]
    u, v, w = b[..., 0], b[..., 1], b[..., 2]
    return xp.stack([y * w - z * v, z * u - x * w, x * v - y * u], -1)


def _product(xp: Any, a: Any, b: Any) -> Any:
    x, y, z, w = a[..., 0], a[..., 1], a[..., 2], a[..., 3]
    i, j, k, r = b[..., 0], b[..., 1], b[..., 2], b[..., 3]
    return xp.stack(
        [
            w * i + x * r + y * k - z * j,
            w * j - x * k + y * r + z * i,
            w * k + x * j - y * i + z * r,
            w * r - x * i - y * j - z * k,
        ],
        -1,
    )


def _conjugate(xp: Any, q: Any) -> Any:
    return xp.concatenate([-q[..., :3], q[..., 3:]], -1)


def _rotate(xp: Any, unit: Any, x: Any) -> Any:
    t = 2.0 * _cross(xp, unit[..., :3], x)
    return x + unit[..., 3:] * t + _cross(xp, unit[..., :3], t)


def _turned(xp: Any, q: Any, dq: Any) -> Any:
    """Body-frame rotation of a change of a quaternion, whose length does not matter."""
    return 2.0 * _product(xp, _conjugate(xp, q), dq)[..., :3] / _square(xp, q)


def _unturned(xp: Any, q: Any, g: Any) -> Any:
    """The adjoint of :func:`_turned`."""
    return 2.0 * _product(xp, q, _pure(xp, g)) / _square(xp, q)


def _half_angle(xp: Any, turn: Any) -> tuple[Any, Any, Any]:
    """cos h, sin h/h and (1 − sin θ/θ)/θ² of half the angle θ of a rotation vector, smooth at 0."""
    s = 0.25 * _square(xp, turn)
    near = s < _NEAR
    small, far = xp.where(near, s, 0.0 * s), xp.where(near, 0.0 * s + 1.0, s)
    h = xp.sqrt(far)
    cosine = xp.where(near, _series(small, 0), xp.cos(h))
    sine = xp.where(near, _series(small, 1), xp.sin(h) / h)
    return cosine, sine, xp.where(near, _series(4.0 * small, 3) / 6.0, 0.25 * (1.0 - sine * cosine) / far)


def _series(s: Any, order: int) -> Any:
    """Σ (−s)^k order!/(2k + order)!."""
    total = 1.0 - s / ((2 * _TERMS + order - 1) * (2 * _TERMS + order))
    for k in reversed(range(_TERMS - 1)):
        total = 1.0 - s * total / ((2 * k + order + 1) * (2 * k + order + 2))
    return total
