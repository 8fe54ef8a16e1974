"""Hinges: how a body may move against its parent, and the hinge map H that says so.

Every hinge but three is a succession of one-dof screws, S_1 then S_2 ..., each carried by the ones
before it; a mass-less body sits between two of them (PART section 2). The exceptions hold a hinge map
that is constant in the child's frame and a configuration that is no list of angles: ball, free, custom.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.arrays import Array
from kfdyn.errors import ModelError, ShapeError
from kfdyn.multibody.parts.series_elastic import FlexibleJoint

X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
# Rows of a hinge map are unit screws; two of them count as dependent below this singular value.
RANK_TOLERANCE = 1e-8


class Coordinates(IntEnum):
    """The meaning of a hinge's entries of q."""

    SCREWS = 0  # one number per screw of the succession
    BALL = 1  # a unit quaternion (x, y, z, w)
    POSE = 2  # position (3), then a unit quaternion (x, y, z, w)


@dataclass(frozen=True, eq=False)
class Hinge:
    """A hinge of 0 to 6 degrees of freedom; build it with one of the class methods.

    Parameters
    ----------
    kind
        A word for people: ``"revolute"``, ``"free"``, ...
    coordinates
        How q is read.
    screws : (m, 6)
        Rows [angular; linear]. ``SCREWS``: the i-th screw in the frame that the i−1 before it have
        moved. ``BALL``, ``POSE``: the rows of H, constant in the child's frame at its origin, so that
        the relative velocity is H* β with quasi-velocities β (SRB "quasi": β is no derivative of q).
    flexible : FlexibleJoint, optional
        That the motor of a hinge of one dof drives the link through a spring; a
        :class:`~kfdyn.multibody.FlexibleSystem` takes such hinges.

    Examples
    --------
    >>> Hinge.revolute([0, 0, 1]).nv, Hinge.ball().nq, Hinge.free().nv
    (1, 4, 6)
    """

    kind: str
    coordinates: Coordinates
    screws: Array = field(repr=False)
    flexible: FlexibleJoint | None = None

    def __post_init__(self) -> None:
        screws = np.array(self.screws, dtype=float)
        if screws.ndim != 2 or screws.shape[1] != 6:
            raise ShapeError(f"{self.kind} hinge: screws must have shape (m, 6), got {screws.shape}")
        if not np.isfinite(screws).all():
            raise ModelError(f"{self.kind} hinge: its screws have entries that are not finite")
        coordinates = Coordinates(self.coordinates)
        if coordinates is Coordinates.SCREWS:
            for x, y, z in screws[:, :3].tolist():
                if x or y or z:
                    size = x * x + y * y + z * z
                    if abs(size - 1) > 1e-12:  # the sweep turns by Rodrigues' formula for unit vectors
                        raise ModelError(f"{self.kind} hinge: axis [{x}, {y}, {z}] is neither zero nor a unit vector")
        elif coordinates is Coordinates.BALL and not np.array_equal(screws, np.eye(6)[:3]):
            raise ModelError(f"{self.kind} hinge: a ball's hinge map is [1, 0]; use Hinge.custom for another")
        if self.flexible is not None:
            self._expect_flexible(len(screws))
        screws.flags.writeable = False
        object.__setattr__(self, "screws", screws)
        object.__setattr__(self, "coordinates", coordinates)

    def _expect_flexible(self, nv: int) -> None:
        if not isinstance(self.flexible, FlexibleJoint):
            raise ModelError(f"{self.kind} hinge: flexible must be a FlexibleJoint, got {self.flexible!r:.60}")
        if nv != 1:
            raise ModelError(f"{self.kind} hinge: it has {nv} dofs, and a flexible joint has one")

    @property
    def nv(self) -> int:
        """Degrees of freedom m."""
        return len(self.screws)

    @property
    def nq(self) -> int:
        """Entries of q: m, or 4 for a ball, or 7 for a free or custom hinge."""
        return {Coordinates.SCREWS: self.nv, Coordinates.BALL: 4, Coordinates.POSE: 7}[self.coordinates]

    def neutral(self) -> Array:
        """Return the configuration in which the child's frame is its hinge frame, shape (nq,)."""
        q = np.zeros(self.nq)
        if self.coordinates is not Coordinates.SCREWS:
            q[-1] = 1.0
        return q

    @classmethod
    def fixed(cls) -> Hinge:
        """No motion: m = 0, the locked hinge of ATBI."""
        return cls("fixed", Coordinates.SCREWS, np.zeros((0, 6)))

    @classmethod
    def revolute(cls, axis: ArrayLike = Z, *, flexible: FlexibleJoint | None = None) -> Hinge:
        """Rotation about ``axis`` (3,): q is the angle, H = [axis; 0]* (R86 5.2)."""
        return cls("revolute", Coordinates.SCREWS, np.array([_rotation(axis, "revolute")]), flexible)

    @classmethod
    def prismatic(cls, axis: ArrayLike = Z, *, flexible: FlexibleJoint | None = None) -> Hinge:
        """Translation along ``axis`` (3,): q is the distance."""
        return cls("prismatic", Coordinates.SCREWS, np.array([_translation(axis, "prismatic")]), flexible)

    @classmethod
    def helical(cls, axis: ArrayLike = Z, pitch: float = 0.0, *, flexible: FlexibleJoint | None = None) -> Hinge:
        """Screw motion about ``axis`` (3,): q is the angle, ``pitch`` the advance per radian."""
        unit = _unit(axis, "helical")
        try:
            advance = float(pitch)
        except (TypeError, ValueError):
            raise ShapeError(f"helical hinge: its pitch is one real number, got {pitch!r:.80}") from None
        screw = np.array([np.concatenate([unit, advance * unit])])
        return cls("helical", Coordinates.SCREWS, screw, flexible)

    @classmethod
    def cylindrical(cls, axis: ArrayLike = Z) -> Hinge:
        """Rotation about and translation along ``axis`` (3,): q is (angle, slide)."""
        rows = [_rotation(axis, "cylindrical"), _translation(axis, "cylindrical")]
        return cls("cylindrical", Coordinates.SCREWS, np.array(rows))

    @classmethod
    def universal(cls, first: ArrayLike = X, second: ArrayLike = Y) -> Hinge:
        """Rotation about ``first``, then about the carried axis ``second``: q is the two angles."""
        rows = [_rotation(axis, "universal") for axis in (first, second)]
        return cls("universal", Coordinates.SCREWS, _independent(rows, "universal"))

    @classmethod
    def gimbal(cls, first: ArrayLike = Z, second: ArrayLike = Y, third: ArrayLike = X) -> Hinge:
        """Three successive rotations (yaw, pitch, roll unless given): q is the three angles.

        Like any three angles it loses a degree of freedom at some configurations; a ball does not.
        """
        first_two = _independent([_rotation(a, "gimbal") for a in (first, second)], "gimbal")
        _independent([_rotation(a, "gimbal") for a in (second, third)], "gimbal")
        return cls("gimbal", Coordinates.SCREWS, np.array([*first_two, _rotation(third, "gimbal")]))

    @classmethod
    def ball(cls) -> Hinge:
        """All rotations: q is a quaternion (x, y, z, w), β the body-frame angular velocity."""
        return cls("ball", Coordinates.BALL, np.eye(6)[:3])

    @classmethod
    def planar(cls, first: ArrayLike = X, second: ArrayLike = Y) -> Hinge:
        """Slides along two orthogonal directions and rotation about their normal: q is (x, y, angle).

        The slides keep their direction in the parent, the rotation comes last: v are the rates of q.
        """
        x, y = _unit(first, "planar"), _unit(second, "planar")
        if abs(x @ y) > RANK_TOLERANCE:
            raise ModelError("planar hinge: its two directions must be orthogonal")
        rows = [np.r_[0, 0, 0, x], np.r_[0, 0, 0, y], np.r_[np.cross(x, y), 0, 0, 0]]
        return cls("planar", Coordinates.SCREWS, np.array(rows))

    @classmethod
    def free(cls) -> Hinge:
        """All motions: q is (position, quaternion), β the body-frame spatial velocity, H = 1."""
        return cls("free", Coordinates.POSE, np.eye(6))

    @classmethod
    def succession(cls, screws: ArrayLike) -> Hinge:
        """One-dof screws in succession, rows [angular; linear] of ``screws`` (m, 6).

        The angular part of a row is a unit vector, or zero (then q is a translation along the linear
        part). A linear part that is not parallel to the axis moves the axis off the origin.
        """
        rows = np.array(screws, dtype=float)
        if rows.ndim != 2 or rows.shape[1] != 6 or len(rows) > 6:
            raise ShapeError(f"succession hinge: screws must have shape (m, 6), m <= 6, got {rows.shape}")
        size = np.linalg.norm(rows[:, :3], axis=1)
        for i, row in enumerate(rows):
            if not np.isfinite(row).all() or not (size[i] == 0 or abs(size[i] - 1) < RANK_TOLERANCE):
                raise ModelError(f"succession hinge: axis {row[:3]} of screw {i} is neither zero nor a unit vector")
            if not row.any():
                raise ModelError(f"succession hinge: screw {i} is zero, it would move nothing; leave it out")
            rows[i] /= size[i] or 1.0
        return cls("succession", Coordinates.SCREWS, rows)

    @classmethod
    def custom(cls, hinge_map: ArrayLike) -> Hinge:
        """Any H (m, 6), constant in the child's frame; q is the child's pose (position, quaternion).

        β are quasi-velocities: H need not be integrable (a blade that may not slip sideways is
        H = [[0,0,1,0,0,0], [0,0,0,1,0,0]]). ``integrate`` moves the pose along the twist H* β.
        """
        rows = np.array(hinge_map, dtype=float)
        if rows.ndim != 2 or rows.shape[1] != 6 or len(rows) > 6:
            raise ShapeError(f"custom hinge: the hinge map must have shape (m, 6), m <= 6, got {rows.shape}")
        return cls("custom", Coordinates.POSE, _independent(list(rows), "custom"))

    @classmethod
    def from_constraint(cls, gradient: ArrayLike) -> Hinge:
        """A custom hinge whose velocities satisfy ``gradient`` (c, 6) @ V = 0 in the child's frame.

        H is an orthonormal basis of the null space, so m = 6 − rank(gradient).
        """
        from kfdyn.spatial import hinge_map_from_constraint

        return cls("custom", Coordinates.POSE, hinge_map_from_constraint(gradient))


def _unit(axis: ArrayLike, kind: str) -> Array:
    try:
        a = np.array(axis)
        if a.dtype.kind == "c":  # NumPy would drop what is imaginary
            raise TypeError
        a = a.astype(float)
    except (TypeError, ValueError):
        raise ShapeError(f"{kind} hinge: an axis is three real numbers, got {axis!r:.80}") from None
    if a.shape != (3,):
        raise ShapeError(f"{kind} hinge: an axis has shape (3,), got {a.shape}")
    largest = float(np.abs(a).max())
    if not np.isfinite(largest) or largest == 0:
        raise ModelError(f"{kind} hinge: {a} is no axis; give a finite vector that is not zero")
    if not 1e-150 < largest < 1e150:  # squares would leave double precision
        a = a / largest
    return a / float(np.linalg.norm(a))


def _rotation(axis: ArrayLike, kind: str) -> Array:
    return np.concatenate([_unit(axis, kind), np.zeros(3)])


def _translation(axis: ArrayLike, kind: str) -> Array:
    return np.concatenate([np.zeros(3), _unit(axis, kind)])


def _independent(rows: Sequence[Array], kind: str) -> Array:
    """Refuse a hinge map that repeats itself: its innovations covariance D would be singular."""
    H = np.array(rows, dtype=float).reshape(-1, 6)
    if not np.isfinite(H).all():
        raise ModelError(f"{kind} hinge: its map has entries that are not finite")
    size = np.linalg.norm(H, axis=1, keepdims=True)
    if (size == 0).any() or np.linalg.svd(H / size, compute_uv=False)[len(H) - 1 :].min(initial=1) < RANK_TOLERANCE:
        raise ModelError(f"{kind} hinge: its axes are linearly dependent; drop one or turn it")
    return H
