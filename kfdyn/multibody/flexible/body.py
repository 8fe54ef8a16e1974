"""FlexibleBody: mass points on mode shapes, in the floating frame of the inboard hinge."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.arrays import Array
from kfdyn.errors import ModelError, ShapeError, shown
from kfdyn.multibody.calls.arguments import LARGE
from kfdyn.multibody.parts.body import IDENTITY, Body, as_floats
from kfdyn.multibody.parts.hinge import Hinge
from kfdyn.spatial import skew


class Condensed(NamedTuple):
    """Points of mass 1 with J_j = [Ψ_j + B_jη, −s_j~, u_j 1] and M_m = Σ J_j*J_j: all that dynamics sees of a body.

    ``weight`` u (p,), ``points`` r (p, 3), ``shapes`` Ψ (p, 3, n), ``bends`` B (p, 3, n, n) or None.
    """

    weight: Array
    points: Array
    shapes: Array
    bends: Array | None


def condensed(mass: Array, points: Array, shapes: Array, bends: Array | None) -> Condensed:
    """Condense points to as few as there are different numbers in 1, r, Ψ, B.

    Row i of A = √m [1, r_i, Ψ_i, B_i] is what point i brings, and dynamics asks for A*A alone. So the rows of the
    triangle of A = QR will do: a plane beam with two modes has 4, however fine its elements are.

    Parameters
    ----------
    mass : (N,) or (N, N)
        Masses, positive semi-definite.
    points, shapes, bends : (N, 3), (N, 3, n), (N, 3, n, n) or None
        r, Ψ, B.

    Returns
    -------
    Condensed
    """
    N, n = len(points), shapes.shape[2]
    parts = [np.ones((N, 1)), points, shapes.reshape(N, -1)]
    pairs = np.triu_indices(n)
    if bends is not None:  # symmetric in the modes
        parts.append(bends[:, :, pairs[0], pairs[1]].reshape(N, -1))
    A = np.concatenate(parts, axis=1)
    if mass.ndim == 1:
        A = np.sqrt(mass)[:, None] * A
    else:
        weights, basis = np.linalg.eigh(mass)
        A = np.sqrt(np.maximum(weights, 0.0))[:, None] * (basis.T @ A)
    moves = A.any(axis=0)
    R = np.zeros((min(N, int(moves.sum())), A.shape[1]))
    R[:, moves] = np.linalg.qr(A[:, moves], mode="r")
    R = R[R.any(axis=1)]
    second = 4 + 3 * n
    whole = None
    if bends is not None:
        whole = np.zeros((len(R), 3, n, n))
        whole[:, :, pairs[0], pairs[1]] = whole[:, :, pairs[1], pairs[0]] = R[:, second:].reshape(len(R), 3, -1)
    return Condensed(R[:, 0], R[:, 1:4], R[:, 4:second].reshape(len(R), 3, n), whole)


SMALL = 1e-9  # of what is compared, below which it is rounding


class Shape(NamedTuple):
    """The motion of one point by the modes: ``place`` + Ψη + ½η*Bη, turned by the rotation vector Π_ω η.

    ``place`` (3,), ``shift`` Ψ (3, n), ``turn`` Π_ω (3, n), ``bend`` B (3, n, n): the quadratic shortening.
    """

    place: Array
    shift: Array
    turn: Array
    bend: Array


@dataclass(frozen=True, eq=False, init=False)
class FlexibleBody:
    """A body that bends: points with mass, and the shapes of its modes there.

    A point stands at s_i = r_i + Ψ_iη + ½η*B_iη in the body's frame, whose origin is the inboard hinge and in which the
    modes are clamped. With J_i = [Ψ_i + B_iη, −s_i~, 1] all is exact for such points (THEORY section 17)::

        M_m = Σ m_i J_i* J_i,     bias Σ m_i J_i* (ω × (ω × s_i) + 2ω × ṡ_i + η̇*B_iη̇) + [Kη + Cη̇; 0]

    Parameters
    ----------
    name : str
        Of the body.
    mass : (N,) or (N, N)
        Masses of the points; a symmetric matrix couples them, as consistent finite elements do.
    points : (N, 3)
        r_i, where the points are when nothing bends.
    shapes : (N, 3, n)
        Ψ_i, one column a mode.
    stiffness : (n, n) or (n,)
        K, positive definite.
    damping : (n, n), (n,) or float
        C; a number is the damping ratio of every mode.
    turns : (N, 3, n), optional
        Rotation shapes Π_ω of the points, for children that are attached there; 0 if not given.
    bends : (N, 3, n, n), optional
        B_i, the quadratic shortening that gives centrifugal stiffening; 0 if not given.
    hinge, parent, rotation, position, hinge_name, armature
        As of a :class:`Body`.
    shape_at : callable, optional
        position (3,) -> :class:`Shape` for points that are none of ``points``; a beam has one.

    Attributes
    ----------
    rigid : Body
        The same body with nothing bent, on the same hinge.

    Examples
    --------
    A mass of 1 kg at the end of a leaf spring, 2 m long, that gives way along z:

    >>> import kfdyn as kf
    >>> leaf = kf.FlexibleBody("leaf", [1.0], [[2.0, 0, 0]], [[[0.0], [0.0], [1.0]]], [100.0])
    >>> leaf.n_modes, leaf.modal_mass
    (1, array([[1.]]))
    """

    name: str
    mass: Array = field(repr=False)
    points: Array = field(repr=False)
    shapes: Array = field(repr=False)
    stiffness: Array = field(repr=False)
    damping: Array = field(repr=False)
    turns: Array = field(repr=False)
    bends: Array | None = field(repr=False)
    rigid: Body = field(repr=False)
    shape_at: Callable[[Array], Shape] | None = field(repr=False)

    def __init__(
        self,
        name: str,
        mass: ArrayLike,
        points: ArrayLike,
        shapes: ArrayLike,
        stiffness: ArrayLike,
        damping: ArrayLike = 0.0,
        turns: ArrayLike | None = None,
        bends: ArrayLike | None = None,
        *,
        hinge: Hinge | None = None,
        parent: str | None = None,
        rotation: ArrayLike = IDENTITY,
        position: ArrayLike = (0.0, 0.0, 0.0),
        hinge_name: str | None = None,
        armature: ArrayLike = 0.0,
        shape_at: Callable[[Array], Shape] | None = None,
    ) -> None:
        put, where = partial(object.__setattr__, self), f"flexible body {name!r}"
        m, r, psi = (
            np.array(as_floats(x, f"{where}: {key}"))
            for x, key in ((mass, "mass"), (points, "points"), (shapes, "shapes"))
        )
        if r.ndim != 2 or r.shape[1] != 3 or psi.shape[:2] != r.shape or psi.ndim != 3:
            raise ShapeError(f"{where}: points must be (N, 3) and shapes (N, 3, modes), got {r.shape} and {psi.shape}")
        N, n = len(r), psi.shape[2]
        if not n:
            raise ModelError(f"{where} has no modes; a rigid one is a Body")
        if m.shape not in ((N,), (N, N)):
            raise ShapeError(f"{where}: mass must have shape ({N},) or ({N}, {N}), got {m.shape}")
        for values, key in ((m, "mass"), (r, "points"), (psi, "shapes")):
            if not np.isfinite(values).all():
                raise ModelError(f"{where}: {key} has entries that are not finite")
        if m.ndim == 1 and (m < 0).any():
            raise ModelError(f"{where}: point {int(m.argmin())} has the negative mass {m.min():.3g}")
        if m.ndim == 2:
            m = _square(m, N, f"{where}: mass", "a motion would have negative energy")
        turning = np.zeros((N, 3, n)) if turns is None else np.array(as_floats(turns, f"{where}: turns"))
        bending = None if bends is None else np.array(as_floats(bends, f"{where}: bends"))
        if turning.shape != psi.shape or (bending is not None and bending.shape != (N, 3, n, n)):
            raise ShapeError(f"{where}: turns must have shape {psi.shape} and bends ({N}, 3, {n}, {n})")
        for key, value in (
            ("name", name),
            ("mass", m),
            ("points", r),
            ("shapes", psi),
            ("turns", turning),
            ("bends", bending),
        ):
            put(key, value)
        put("shape_at", shape_at)
        put("stiffness", _square(stiffness, n, f"{where}: stiffness"))
        self._check(where)
        put("damping", self._damping(damping, n, where))
        S = np.concatenate([-skew(r), np.broadcast_to(np.eye(3), (N, 3, 3))], axis=2)
        inertia = self.weighted(S, S)
        for key in ("mass", "points", "shapes", "turns", "bends", "stiffness", "damping"):
            if (values := getattr(self, key)) is not None:
                values.flags.writeable = False
        put("rigid", Body(name, inertia, hinge, parent, rotation, position, hinge_name, armature))

    @property
    def n_modes(self) -> int:
        """Number of modes."""
        return int(self.shapes.shape[2])

    @property
    def weights(self) -> Array:
        """The weight of each point in sums, (N,): its mass, or its row of the mass matrix."""
        return self.mass if self.mass.ndim == 1 else np.asarray(self.mass.sum(axis=1))

    @property
    def modal_mass(self) -> Array:
        """M_ff = Σ m_i Ψ_i*Ψ_i, (n, n), where nothing bends."""
        return self.weighted(self.shapes, self.shapes)

    @property
    def frequencies(self) -> Array:
        """Angular frequencies of the clamped body [rad/s], ascending."""
        from scipy.linalg import eigh

        return np.sqrt(eigh(self.stiffness, self.modal_mass, eigvals_only=True))

    def weighted(self, A: Array, B: Array) -> Array:
        """Σ A_i* m_ij B_j over the points, for A (..., N, 3, k) and B (..., N, 3, l): (..., k, l)."""
        if self.mass.ndim == 1:
            return np.einsum("...iak,i,...ial->...kl", A, self.mass, B, optimize=True)
        return np.einsum("...iak,ij,...jal->...kl", A, self.mass, B, optimize=True)

    @property
    def _slack(self) -> float:
        """Return the distance below which two points are one."""
        return SMALL * float(np.abs(self.points).max())

    @cached_property
    def condensed(self) -> Condensed:
        """A few points that weigh as all of them do: what dynamics sums over."""
        return condensed(self.mass, self.points, self.shapes, self.bends)

    def shape_of(self, position: ArrayLike, child: str) -> Shape:
        """Shape where a child is attached, which must be one of the points unless ``shape_at`` knows others."""
        place = np.asarray(position, dtype=float)
        away = np.linalg.norm(self.points - place, axis=1)
        i = int(away.argmin())
        if away[i] <= self._slack:
            n = self.n_modes
            bend = np.zeros((3, n, n)) if self.bends is None else self.bends[i]
            return Shape(self.points[i], self.shapes[i], self.turns[i], bend)
        if self.shape_at is not None:
            return self.shape_at(place)
        raise ModelError(
            f"body {child!r} is attached to {self.name!r} at {place}, which is none of its points; the nearest is "
            f"point {i} at {self.points[i]}: attach it there, or add a point (a mass of 0 will do)"
        )

    def _check(self, where: str) -> None:
        n = self.n_modes
        if 3 * len(self.points) < n:
            raise ModelError(f"{where}: {n} modes need at least {-(-n // 3)} points, there are {len(self.points)}")
        K = self.stiffness
        lowest = np.linalg.eigvalsh(K)
        if lowest[0] <= SMALL * max(lowest[-1], 0.0):
            raise ModelError(
                f"{where}: stiffness is not positive definite (eigenvalues from {lowest[0]:.3g} to {lowest[-1]:.3g}): "
                "a mode without stiffness is a rigid-body mode or no clamped one; leave it out"
            )
        M = self.modal_mass
        masses = np.linalg.eigvalsh(M)
        if masses[0] <= SMALL * max(masses[-1], 0.0):
            raise ModelError(
                f"{where}: modal mass is not positive definite (smallest eigenvalue {masses[0]:.3g}): modes depend on "
                "each other, or there are too few points with mass for them"
            )
        here = np.linalg.norm(self.points, axis=1) <= self._slack
        if here.any():
            moved = float(np.abs(self.shapes[here]).max())
            turned = float(np.abs(self.turns[here]).max())
            if moved > 1e-6 * float(np.abs(self.shapes).max()) or turned > 1e-6 * max(
                float(np.abs(self.turns).max()), 1e-300
            ):
                raise ModelError(
                    f"{where}: modes move the point at the origin, the inboard hinge; they must be clamped there. Take "
                    "modes of the body held at the hinge"
                )

    def _damping(self, damping: ArrayLike, n: int, where: str) -> Array:
        value = np.asarray(as_floats(damping, f"{where}: damping"))
        if value.ndim:
            return _square(value, n, f"{where}: damping", "it would feed the motion")
        if not 0 <= value <= LARGE:
            raise ModelError(f"{where}: the damping ratio must be 0 or more, and no larger than {LARGE:g}, got {value}")
        from scipy.linalg import eigh

        squares, modes = eigh(self.stiffness, self.modal_mass)
        half = self.modal_mass @ modes
        return np.asarray((half * (2 * float(value) * np.sqrt(squares))) @ half.T)


def _square(value: ArrayLike, n: int, what: str, not_negative: str = "") -> Array:
    """A symmetric matrix (n, n), or its diagonal; ``not_negative`` tells what a negative eigenvalue would mean."""
    array = np.array(as_floats(value, what))
    array = np.diag(array) if array.ndim == 1 else array
    if array.shape != (n, n):
        raise ShapeError(f"{what} must have shape ({n},) or ({n}, {n}), got {array.shape}")
    if not np.isfinite(array).all():
        raise ModelError(f"{what} has entries that are not finite")
    if np.abs(array - array.T).max() > 1e-9 * np.abs(array).max():
        raise ModelError(f"{what} is not symmetric")
    array = 0.5 * (array + array.T)
    if not_negative:
        lowest = float(np.linalg.eigvalsh(array)[0])
        if lowest < -SMALL * max(float(np.abs(array).max()), 1e-300):
            raise ModelError(f"{what} is not positive semi-definite (smallest eigenvalue {lowest:.3g}): {not_negative}")
    return array


def expect_count(value: object, what: str, least: int = 0) -> None:
    """Refuse what is no whole number of at least ``least``."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < least:
        raise ModelError(f"{what} must be a whole number, {least} or more, got {shown(value)}")
