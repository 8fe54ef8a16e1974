"""BentTree: the rigid tree that bodies which bend stand on, and the ways from hinges and modes to its coordinates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfdyn.arrays import Array
from kfdyn.errors import TreeError
from kfdyn.multibody.coordinates.expansion import Places
from kfdyn.multibody.flexible.body import FlexibleBody, Shape
from kfdyn.multibody.parts.body import Body, Frame
from kfdyn.multibody.parts.hinge import Hinge
from kfdyn.multibody.system import System
from kfdyn.spatial import quaternion_exp, quaternion_to_matrix, skew


def attachment_pose(shape: Shape, eta: Array) -> Array:
    """q of a free hinge (..., 7) at the undeformed place: Ψη + ½η*Bη, and exp(Π_ω η)."""
    shift = eta @ shape.shift.T + 0.5 * np.einsum("...i,aij,...j->...a", eta, shape.bend, eta)
    return np.concatenate([shift, quaternion_exp(eta @ shape.turn.T)], axis=-1)


def attachment_map(shape: Shape, eta: Array) -> Array:
    """X (..., 6, n): rates of the modes to v = [body-frame ω; body-frame velocity] of that free hinge."""
    theta = eta @ shape.turn.T
    back = np.swapaxes(quaternion_to_matrix(quaternion_exp(theta)), -1, -2)
    return np.concatenate([right_jacobian(theta) @ shape.turn, back @ _shift(shape, eta)], axis=-2)


def attachment_drift(shape: Shape, eta: Array, rate: Array) -> Array:
    """Ẋη̇ (..., 6), what the free hinge's v changes by while η̇ stays the same."""
    theta, dtheta = eta @ shape.turn.T, rate @ shape.turn.T
    omega = np.einsum("...ab,...b->...a", right_jacobian(theta), dtheta)
    back = np.swapaxes(quaternion_to_matrix(quaternion_exp(theta)), -1, -2)
    moved = np.einsum("...ab,...bn,...n->...a", back, _shift(shape, eta), rate)
    bent = np.einsum("...ab,bij,...i,...j->...a", back, shape.bend, rate, rate)
    turned = np.einsum("...ab,...b->...a", right_jacobian_rate(theta, dtheta), dtheta)
    return np.concatenate([turned, bent - np.cross(omega, moved)], axis=-1)


def right_jacobian(theta: Array) -> Array:
    """J_r with body-frame angular velocity J_r θ̇ of exp(θ~): 1 − a θ~ + b θ~², (..., 3, 3)."""
    a, b, _, _ = _coefficients(theta)
    S = skew(theta)
    return np.eye(3) - a[..., None, None] * S + b[..., None, None] * S @ S


def right_jacobian_rate(theta: Array, dtheta: Array) -> Array:
    """dJ_r/dt for θ̇."""
    a, b, da, db = _coefficients(theta)
    along = np.sum(theta * dtheta, axis=-1)  # t ṫ
    S, dS = skew(theta), skew(dtheta)
    wide = (..., None, None)
    return -a[wide] * dS + b[wide] * (dS @ S + S @ dS) + along[wide] * (db[wide] * S @ S - da[wide] * S)


def _coefficients(theta: Array) -> tuple[Array, Array, Array, Array]:
    """a = (1 − cos t)/t², b = (t − sin t)/t³, and a'/t, b'/t; by series where t is small."""
    t2 = np.sum(theta * theta, axis=-1)
    small = t2 < 1e-2
    t = np.sqrt(np.where(small, 1.0, t2))
    s, c = np.sin(t), np.cos(t)
    a, b = (1 - c) / t**2, (t - s) / t**3
    da, db = (s / t**2 - 2 * a / t) / t, ((1 - c) / t**3 - 3 * b / t) / t
    x = np.where(small, t2, 0.0)
    return (
        np.where(small, 1 / 2 - x / 24 + x**2 / 720 - x**3 / 40320 + x**4 / 3628800, a),
        np.where(small, 1 / 6 - x / 120 + x**2 / 5040 - x**3 / 362880 + x**4 / 39916800, b),
        np.where(small, -1 / 12 + x / 180 - x**2 / 6720 + x**3 / 453600 - x**4 / 47900160, da),
        np.where(small, -1 / 60 + x / 1260 - x**2 / 60480 + x**3 / 4989600 - x**4 / 622702080, db),
    )


def _shift(shape: Shape, eta: Array) -> Array:
    """Ψ + Bη, (..., 3, n)."""
    return shape.shift + np.einsum("aij,...j->...ai", shape.bend, eta)


class BentTree:
    """Bodies of which some bend, as a rigid tree whose attachments are moved by the modes.

    Every child of a flexible body (and every frame on one) stands on a frame that the modes move. That frame is a body
    without mass on a free hinge of :attr:`tree`, whose coordinates :meth:`positions` computes from the modes; so hinges
    of every kind, rotations of the attachment and Coriolis terms are those of the rigid side.

    Attributes
    ----------
    tree : System
        Bodies, then attachments; bodies that bend have no mass of their own. ``stiff_tree`` is the same with the
        masses of nothing bent.
    attached : dict of str to (int, Shape)
        Name of an attachment: the body it is on, and how that body's modes move it.
    places : Places
        Where each body's hinge, and behind it its modes, are in q and v.
    """

    def __init__(
        self,
        bodies: tuple[Body | FlexibleBody, ...],
        gravity: ArrayLike,
        frames: Mapping[str, Frame],
        name: str,
    ) -> None:
        rigid = [b.rigid if isinstance(b, FlexibleBody) else b for b in bodies]
        self.flexible = {b.name: b for b in bodies if isinstance(b, FlexibleBody)}
        self.body_names = tuple(b.name for b in rigid)
        if len(set(self.body_names)) < len(rigid):
            raise TreeError(f"system {name!r}: two bodies have one name; names must differ")
        self.attached: dict[str, tuple[int, Shape]] = {}
        on_tree = [self._on_deformed(body) for body in rigid]
        given = {key: Frame(*frame) for key, frame in frames.items()}
        self.frames: Mapping[str, Frame] = MappingProxyType(given)
        moved = {key: self._frame(key, frame) for key, frame in given.items()}
        massless = [
            Body(key, np.zeros((6, 6)), Hinge.free(), self.body_names[k], position=shape.place)
            for key, (k, shape) in self.attached.items()
        ]
        self.stiff_tree = System([*on_tree, *massless], gravity, moved, name)
        bare = [replace(b, inertia=np.zeros((6, 6))) if b.name in self.flexible else b for b in on_tree]
        self.tree = System([*bare, *massless], gravity, moved, name)
        up = [b.parent for b in rigid]
        self.parent = np.array([-1 if p is None else self.body_names.index(p) for p in up])
        self.modes = np.array([self.flexible[b.name].n_modes if b.name in self.flexible else 0 for b in rigid])
        self.bending = [int(k) for k in np.flatnonzero(self.modes)]
        self.hinge_q, self.hinge_v = (np.array([getattr(b.hinge, key) for b in rigid]) for key in ("nq", "nv"))
        q_start, v_start = (np.concatenate([[0], np.cumsum(own + self.modes)]) for own in (self.hinge_q, self.hinge_v))
        self.places = Places(q_start, v_start, tuple(b.hinge for b in rigid))
        self.nq, self.nv = int(q_start[-1]), int(v_start[-1])
        self.q_of_hinges = columns_of_hinges(q_start, self.hinge_q)
        self.v_of_hinges = columns_of_hinges(v_start, self.hinge_v)

    def _on_deformed(self, body: Body) -> Body:
        """The body as the rigid tree has it: on an attachment, if its parent bends."""
        if body.parent not in self.flexible:
            if body.parent is not None and body.parent not in self.body_names:
                raise TreeError(f"body {body.name!r} hangs on {body.parent!r}, which is no body")
            return body
        name = f"{body.parent}@{body.name}"
        self.attached[name] = (
            self.body_names.index(body.parent),
            self.flexible[body.parent].shape_of(body.position, body.name),
        )
        return replace(body, parent=name, position=np.zeros(3))

    def _frame(self, key: str, frame: Frame) -> Frame:
        if frame.body not in self.flexible:
            return frame
        name = f"{frame.body}@{key}"
        shape = self.flexible[frame.body].shape_of(frame.position, key)
        self.attached[name] = (self.body_names.index(frame.body), shape)
        return Frame(name, frame.rotation, np.zeros(3))

    def mode_slice(self, k: int, velocity: bool = False) -> slice:
        """Return where the modes of body k are in q, or in v."""
        end = int((self.places.v_start if velocity else self.places.q_start)[k + 1])
        return slice(end - int(self.modes[k]), end)

    def modal(self, x: Array, k: int, velocity: bool) -> Array:
        """Entries of q or v that belong to the modes of body k, (..., n)."""
        return np.asarray(x[..., self.mode_slice(k, velocity)])

    def neutral(self) -> Array:
        """q with hinges at neutral and nothing bent, (nq,)."""
        q = np.zeros(self.nq)
        q[self.q_of_hinges] = self.tree.neutral()[: len(self.q_of_hinges)]
        return q

    def drawn(self, rng: np.random.Generator, bent: float) -> Array:
        """Hinges as the rigid tree draws them, modes that displace points by about ``bent`` of the body's length."""
        q = self.neutral()
        q[self.q_of_hinges] = self.tree.random_configuration(rng)[: len(self.q_of_hinges)]
        for k in self.bending:
            n = int(self.modes[k])
            q[self.mode_slice(k)] = bent * rng.uniform(-1, 1, n) * self.mode_sizes(k) / n
        return q

    def mode_sizes(self, k: int) -> Array:
        """Return the size of each mode of body k that displaces a point by the body's length, (n,): its unit."""
        body = self.flexible[self.body_names[k]]
        most = np.abs(body.shapes).max(axis=(0, 1))
        return np.asarray((float(np.abs(body.points).max()) or 1.0) / np.where(most > 0, most, 1.0))

    def sizes(self) -> Array:
        """The same for every coordinate, (nv,): a radian, the reach of the bodies for a slide, a mode's own."""
        bodies = self.stiff_tree.bodies
        places = [b.points for b in self.flexible.values()] + [b.position for b in bodies]
        reach = max(float(np.abs(place).max()) for place in places)
        turns = np.concatenate([b.hinge.screws[:, :3].any(axis=1) for b in bodies[: len(self.modes)]])
        size = np.empty(self.nv)
        size[self.v_of_hinges] = np.where(turns, 1.0, reach or 1.0)
        for k in self.bending:
            size[self.mode_slice(k, True)] = self.mode_sizes(k)
        return size

    def positions(self, q: Array) -> Array:
        """q of :attr:`tree`, (..., tree.nq): hinges, then where the modes have the attachments."""
        parts = [q[..., self.q_of_hinges]]
        parts += [attachment_pose(shape, self.modal(q, k, False)) for k, shape in self.attached.values()]
        return np.concatenate(parts, axis=-1)

    def matrix(self, q: Array) -> Array:
        """X (..., tree.nv, nv) with v of the tree = X v."""
        X = np.zeros((*q.shape[:-1], self.tree.nv, self.nv))
        X[..., np.arange(len(self.v_of_hinges)), self.v_of_hinges] = 1.0
        for six, k, shape in self._attachments():
            X[..., six, self.mode_slice(k, True)] = attachment_map(shape, self.modal(q, k, False))
        return X

    def rates(self, q: Array, v: Array) -> Array:
        """X v (..., tree.nv), without X."""
        lead = np.broadcast_shapes(q.shape[:-1], v.shape[:-1])
        out = np.empty((*lead, self.tree.nv))
        out[..., : len(self.v_of_hinges)] = v[..., self.v_of_hinges]
        for six, k, shape in self._attachments():
            X = attachment_map(shape, self.modal(q, k, False))
            out[..., six] = np.einsum("...ij,...j->...i", X, self.modal(v, k, True))
        return out

    def drift(self, q: Array, v: Array) -> Array:
        """Ẋv (..., tree.nv), the part of the tree's acceleration that v alone brings."""
        lead = np.broadcast_shapes(q.shape[:-1], v.shape[:-1])
        out = np.zeros((*lead, self.tree.nv))
        for six, k, shape in self._attachments():
            eta = np.broadcast_to(self.modal(q, k, False), (*lead, self.modes[k]))
            out[..., six] = attachment_drift(shape, eta, self.modal(v, k, True))
        return out

    def _attachments(self) -> list[tuple[slice, int, Shape]]:
        """Return the place of each attachment in v of the tree, its body, its shape."""
        h = len(self.v_of_hinges)
        return [(slice(h + 6 * i, h + 6 * i + 6), k, shape) for i, (k, shape) in enumerate(self.attached.values())]

    def moved(self, q: Array, dv: Array) -> Array:
        """Hinges moved by their part of dv, modes by theirs, (..., nq)."""
        from kfdyn.multibody.coordinates.configuration import integrate

        lead = np.broadcast_shapes(q.shape[:-1], dv.shape[:-1])
        step = np.zeros((*lead, self.tree.nv))
        step[..., : len(self.v_of_hinges)] = dv[..., self.v_of_hinges]
        out = np.broadcast_to(q, (*lead, self.nq)).copy()
        out[..., self.q_of_hinges] = integrate(self.tree, self.positions(q), step)[..., : len(self.q_of_hinges)]
        for k in self.bending:
            out[..., self.mode_slice(k)] += dv[..., self.mode_slice(k, True)]
        return out

    def apart(self, q: Array, q2: Array) -> Array:
        """dv with ``moved(q, dv)`` = q2, (..., nv)."""
        from kfdyn.multibody.coordinates.configuration import difference

        every = difference(self.tree, self.positions(q), self.positions(q2))
        out = np.zeros((*every.shape[:-1], self.nv))
        out[..., self.v_of_hinges] = every[..., : len(self.v_of_hinges)]
        for k in self.bending:
            out[..., self.mode_slice(k, True)] = q2[..., self.mode_slice(k)] - q[..., self.mode_slice(k)]
        return out


def columns_of_hinges(start: NDArray[np.int64], size: NDArray[np.int64]) -> NDArray[np.int64]:
    """Columns of the hinges, which come first among those of their bodies."""
    return np.concatenate([np.zeros(0, int), *(np.arange(s, s + k) for s, k in zip(start, size))]).astype(np.int64)
