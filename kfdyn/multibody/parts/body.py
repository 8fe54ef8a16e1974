"""Body and Frame: the nodes a System is made of."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.arrays import Array
from kfdyn.errors import ModelError, ShapeError
from kfdyn.multibody.parts.hinge import Coordinates, Hinge
from kfdyn.multibody.parts.series_elastic import OF_MOTORS, FlexibleJoint

IDENTITY = np.eye(3)
IDENTITY.flags.writeable = False
# Loose enough for matrices typed with seven digits, tight enough to catch a wrong one.
ORTHOGONALITY_TOLERANCE = 1e-6
# Above what is left of R R* − 1 in a nearest rotation (at most 3.4e-15 in a million), so that it is never sought again.
ROTATION_ROUNDING = 1e-14


class Frame(NamedTuple):
    """A frame fixed to a body: ``rotation`` (3, 3) and ``position`` (3,) in the body's frame.

    Examples
    --------
    A tool at the end of an arm, known by its name:

    >>> import kfdyn as kf
    >>> rod = kf.models.uniform_chain(1, length=0.5).bodies
    >>> arm = kf.System(rod, frames={"tool": kf.Frame("rod_0", position=[0.5, 0.0, 0.0])})
    >>> kf.frame_pose(arm, [0.0], "tool").position
    array([0.5, 0. , 0. ])
    """

    body: str
    rotation: ArrayLike = IDENTITY
    position: ArrayLike = (0.0, 0.0, 0.0)


@dataclass(frozen=True, eq=False, init=False)
class Body:
    """A rigid body, its hinge to the parent, and where that hinge sits in the parent.

    Parameters
    ----------
    name
        Unique among the bodies (and frames) of a system.
    inertia : (6, 6)
        Spatial inertia [[J, m p~], [−m p~, m 1]] about the body frame's origin, which is the hinge point
        (R86 3.1); see :func:`kfdyn.spatial.spatial_inertia`.
    hinge
        How the body moves against its parent.
    parent
        Name of the parent, or None for a root.
    rotation, position : (3, 3), (3,)
        The hinge frame in the parent's frame (in the world for a root).
    hinge_name
        The body's name if not given.
    armature, damping, stiffness : scalar or (nv,)
        Rotor inertia R as seen by each dof; damping and stiffness are data only.
    friction : scalar or (nv,)
        Coulomb friction of each dof, the size of a force (N m, N) against the rate; data only.
    lower, upper : scalar or (nv,)
        Limits of q for a hinge made of screws.
    speed, effort : scalar or (nv,)
        Limits of |v| and |tau|.

    Examples
    --------
    >>> from kfdyn.spatial import spatial_inertia
    >>> bob = Body("bob", spatial_inertia(2.0, [0, 0, -1], np.zeros((3, 3))), Hinge.revolute([0, 1, 0]))
    >>> bob.parent is None, bob.inertia[1, 1], bob.hinge.nv
    (True, np.float64(2.0), 1)
    """

    name: str
    inertia: Array = field(repr=False)
    hinge: Hinge
    parent: str | None
    rotation: Array = field(repr=False)
    position: Array
    hinge_name: str
    armature: Array = field(repr=False)
    damping: Array = field(repr=False)
    stiffness: Array = field(repr=False)
    lower: Array = field(repr=False)
    upper: Array = field(repr=False)
    speed: Array = field(repr=False)
    effort: Array = field(repr=False)
    friction: Array = field(repr=False)

    def __init__(
        self,
        name: str,
        inertia: ArrayLike,
        hinge: Hinge | None = None,
        parent: str | None = None,
        rotation: ArrayLike = IDENTITY,
        position: ArrayLike = (0.0, 0.0, 0.0),
        hinge_name: str | None = None,
        armature: ArrayLike = 0.0,
        damping: ArrayLike = 0.0,
        stiffness: ArrayLike = 0.0,
        lower: ArrayLike = -np.inf,
        upper: ArrayLike = np.inf,
        speed: ArrayLike = np.inf,
        effort: ArrayLike = np.inf,
        friction: ArrayLike = 0.0,
    ) -> None:
        if not isinstance(name, str) or not name:
            raise ModelError(f"a body's name must be a non-empty string, got {name!r}")
        hinge = Hinge.fixed() if hinge is None else hinge
        if not isinstance(hinge, Hinge):
            raise ModelError(f"body {name!r}: hinge must be a Hinge, got {type(hinge).__name__}")
        hinge_name = name if hinge_name is None else hinge_name
        R, p = placement(rotation, position, f"body {name!r}")
        put = partial(object.__setattr__, self)
        for key, value in (("name", name), ("hinge", hinge), ("parent", parent), ("hinge_name", hinge_name)):
            put(key, value)
        put("inertia", read_only(inertia, (6, 6), f"body {name!r}: inertia"))
        put("rotation", R)
        put("position", p)
        where, m = f"hinge {hinge_name!r}", hinge.nv
        put("armature", _per_dof(armature, m, where, "armature", 0.0, finite=True))
        put("damping", _per_dof(damping, m, where, "damping", 0.0, finite=True))
        put("stiffness", _per_dof(stiffness, m, where, "stiffness", 0.0, finite=True))
        put("friction", _per_dof(friction, m, where, "friction", 0.0, finite=True))
        put("speed", _per_dof(speed, m, where, "speed", 0.0))
        put("effort", _per_dof(effort, m, where, "effort", 0.0))
        put("lower", _per_dof(lower, m, where, "lower"))
        put("upper", _per_dof(upper, m, where, "upper"))
        if any(low > high for low, high in zip(self.lower.tolist(), self.upper.tolist())):
            raise ModelError(f"{where}: lower limit {self.lower} lies above upper limit {self.upper}")
        if hinge.coordinates is not Coordinates.SCREWS and np.isfinite([self.lower, self.upper]).any():
            raise ModelError(f"{where}: a {hinge.kind} hinge has a quaternion in q and takes no limits")

    def motor_of(self, joint: FlexibleJoint, hinge: Hinge) -> Body:
        """A body without mass on the hinge of this one, with the joint's rotor as its armature."""
        same = {key: getattr(self, key) for key in ("parent", "rotation", "position", "hinge_name", "damping")}
        same |= {key: getattr(self, key) for key in OF_MOTORS}
        armature = 0.0 if joint.gyroscopic else joint.reflected
        return Body(f"{self.name}/motor", np.zeros((6, 6)), hinge, armature=armature, **same)

    def split_by(self, joint: FlexibleJoint) -> tuple[Body, Body]:
        """The motor of a joint that gives way, and this body on the far side of its spring."""
        motor = self.motor_of(joint, replace(self.hinge, flexible=None))
        kept = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in OF_MOTORS}
        kept |= {"hinge": motor.hinge, "hinge_name": f"{self.hinge_name}/spring", "parent": motor.name}
        kept |= {"rotation": np.eye(3), "position": np.zeros(3), "stiffness": joint.stiffness, "damping": joint.damping}
        return motor, Body(**kept)

    def __setstate__(self, state: dict[str, object]) -> None:
        """Take a pickle of a release whose bodies had no friction, too."""
        hinge: Hinge = state["hinge"]  # type: ignore[assignment]
        self.__dict__.update({"friction": _constant(0.0, hinge.nv), **state})


def _per_dof(value: ArrayLike, nv: int, where: str, key: str, least: float = -np.inf, finite: bool = False) -> Array:
    """Spread a scalar over the ``nv`` dofs of a hinge, and check it."""
    if type(value) is float and value >= least and not (finite and value == np.inf):
        return _constant(value, nv)
    array = np.array(as_floats(value, f"{where}: {key}"))
    if array.shape not in ((), (nv,)):
        raise ShapeError(f"{where}: {key} must be a scalar or have shape ({nv},), got {array.shape}")
    if not (array >= least).all() or (finite and np.isinf(array).any()):
        wanted = "a number" if least < 0 else "finite and not negative" if finite else "not negative"
        raise ModelError(f"{where}: {key} must be {wanted}, got {array}")
    if not array.ndim:
        return _constant(float(array), nv)
    array.flags.writeable = False
    return array


@lru_cache(maxsize=256)
def _constant(value: float, nv: int) -> Array:
    """Most hinges share their defaults; so do the arrays that hold them."""
    array = np.full(nv, value)
    array.flags.writeable = False
    return array


def as_floats(value: ArrayLike, what: str) -> Array:
    """Return ``value`` as an array of floats; ragged lists, words and complex numbers are none.

    What a masked array hides becomes NaN, which stands for no number, as in measurements.
    """
    try:
        array = np.asarray(value)
        if array.dtype.kind in "fiub":
            if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
                return np.where(np.ma.getmask(value), np.nan, array)
            return array.astype(float, copy=False)
    except ValueError:
        pass
    except (TypeError, RuntimeError) as error:
        framework = type(value).__module__.partition(".")[0].removesuffix("lib")
        if framework not in ("jax", "torch"):
            raise
        raise ShapeError(
            f"{what} is being traced or differentiated by {framework}, and is no array of numbers here; call "
            f"the function of kfdyn.bridge.{framework} instead"
        ) from error
    if isinstance(value, np.ndarray):
        cure = "; astype(float) gives one of numbers" if value.dtype.kind == "O" else ""
        raise ShapeError(f"{what} must be an array of real numbers, got one of dtype {value.dtype}{cure}")
    raise ShapeError(f"{what} must be an array of real numbers, got {value!r:.80}")


def read_only(value: ArrayLike, shape: tuple[int, ...], what: str) -> Array:
    """Copy ``value`` to a read-only float array of the given shape, or say what is wrong with it."""
    array = np.array(as_floats(value, what))
    if array.shape != shape:
        raise ShapeError(f"{what} must have shape {shape}, got {array.shape}")
    if not np.isfinite(array).all():
        raise ModelError(f"{what} has entries that are not finite")
    array.flags.writeable = False
    return array


def placement(rotation: ArrayLike, position: ArrayLike, what: str) -> tuple[Array, Array]:
    """Check that ``rotation`` is a proper rotation; one typed with few digits becomes the nearest one.

    What comes out goes through a second time as it is, bit by bit: a body that is built again is the same body.
    """
    if rotation is IDENTITY:
        return IDENTITY, read_only(position, (3,), f"{what}: position")
    R = read_only(rotation, (3, 3), f"{what}: rotation")
    x, y, z = R.tolist()  # nine numbers: Python is faster than numpy here, and a chain may have 10^5 links
    gram = (_dot(x, x) - 1, _dot(y, y) - 1, _dot(z, z) - 1, _dot(x, y), _dot(y, z), _dot(z, x))
    error = max(map(abs, gram))
    handed = x[0] * (y[1] * z[2] - y[2] * z[1]) + x[1] * (y[2] * z[0] - y[0] * z[2])
    handed += x[2] * (y[0] * z[1] - y[1] * z[0])
    if error > ORTHOGONALITY_TOLERANCE or handed < 0:
        raise ModelError(f"{what}: rotation is no rotation matrix (orthogonal, determinant +1)")
    if error > ROTATION_ROUNDING:
        u, _, vt = np.linalg.svd(R)
        R = read_only(u @ vt, (3, 3), what)
    return R, read_only(position, (3,), f"{what}: position")


def _dot(x: list[float], y: list[float]) -> float:
    return x[0] * y[0] + x[1] * y[1] + x[2] * y[2]
