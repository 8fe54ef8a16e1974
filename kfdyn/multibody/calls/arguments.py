"""Check arguments and broadcast them; refuse answers that they make too large, and write answers to ``out``."""

from __future__ import annotations

import math
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.arrays import Array
from kfdyn.errors import ModelError, ShapeError, shown
from kfdyn.multibody.parts.body import as_floats
from kfdyn.multibody.parts.hinge import Coordinates

if TYPE_CHECKING:
    from kfdyn.multibody.system import System


# Looser than an integrator's drift over a step, far tighter than a quaternion typed or scaled wrongly.
QUATERNION_TOLERANCE = 1e-6


class Batch(NamedTuple):
    """Leading axes, and each argument with them flattened to one, shape (size, ...), contiguous."""

    lead: tuple[int, ...]
    arrays: tuple[Array, ...]

    @property
    def size(self) -> int:
        """Number of configurations."""
        return math.prod(self.lead)


def is_system(system: Any) -> bool:
    """Tell whether it is a system, of whichever kind."""
    return hasattr(system, "without_loops") and not isinstance(system, type)


def expect_system(system: Any) -> None:
    """Refuse what is no system. One that is costs callers nothing where they come here from an AttributeError alone."""
    if not is_system(system):
        read = "; kf.load reads one from a file" if isinstance(system, str | PathLike) else ""
        raise ModelError(f"system must be a kfdyn.System, got {shown(system)}{read}")


def expect_one(system: Any, function: str) -> None:
    """Refuse a batch of robots that differ where one robot is asked for."""
    if system.robots:
        raise of_one(system, function)


def of_one(system: Any, function: str) -> ModelError:
    """The words for what takes one robot at a time."""
    return ModelError(
        f"{function} takes one robot, and system {system.name!r} is a batch of {system.size} that differ; take "
        "batch[i], a System"
    )


def checked(system: Any, value: ArrayLike, tail: tuple[int, ...], what: str) -> Array:
    """Return ``value`` as floats of shape (..., *tail), finite, or raise an error that names it."""
    array = as_floats(value, what)
    if array.ndim < len(tail) or array.shape[array.ndim - len(tail) :] != tail:
        wanted = "(..., " + ", ".join(map(str, tail)) + ")"
        told = system.listed(what) if tail in ((system.nq,), (system.nv,)) else ""
        raise ShapeError(f"{what} must have shape {wanted} for system {system.name!r}, got {array.shape}{told}")
    finite = np.isfinite(array)
    if not finite.all():
        where = np.argwhere(~finite)[0]
        raise ModelError(
            f"{what} has entries that are not finite (system {system.name!r}); the first is that at "
            f"[{', '.join(map(str, where))}], {array[tuple(where)]}"
        )
    return array


def loads(system: Any, external_forces: ArrayLike) -> Array:
    """Check external forces (..., n_bodies, 6); where bodies bend, rows of the attachments follow."""
    widened: Any = getattr(system, "with_attachments", None)
    if widened is not None:
        return np.asarray(widened(external_forces))
    return checked(system, external_forces, (system.n_bodies, 6), "external_forces")


def configuration(system: Any, q: ArrayLike, what: str = "q") -> Array:
    """Check a configuration (..., nq): shape, finite, quaternions of unit length."""
    expect_system(system)
    system = system.pattern
    array = checked(system, q, (system.nq,), what)
    system.expect_sound(array, what)
    return array


def expect_unit_quaternions(system: System, array: Array, what: str) -> None:
    """Refuse configurations (..., nq) of a tree whose quaternions are not of unit length."""
    layout = system.layout
    turned = np.flatnonzero(layout.coordinates != Coordinates.SCREWS)
    if turned.size:
        columns = layout.q_start[turned + 1][:, None] + np.arange(-4, 0)
        size = np.sqrt((array[..., columns] ** 2).sum(-1))
        wrong = np.abs(size - 1) > QUATERNION_TOLERANCE
        if wrong.any():
            where = np.argwhere(wrong)[0]
            hinge = system.hinge_names[turned[where[-1]]]
            raise ModelError(
                f"hinge {hinge!r}: the quaternion (x, y, z, w) in {what} has length "
                f"{size[tuple(where)]:.9g}, not 1; normalise it, start from system.neutral(), or move it "
                "with integrate()"
            )


def batch(system: Any, **arguments: tuple[Array, int]) -> Batch:
    """Broadcast the leading axes of checked arrays, each given with its number of trailing axes."""
    leads = {key: a.shape[: a.ndim - tail] for key, (a, tail) in arguments.items()}
    if system.robots:
        leads["robots"] = system.robots
    distinct = set(leads.values())
    try:
        lead = distinct.pop() if len(distinct) == 1 else np.broadcast_shapes(*leads.values())
    except ValueError:
        told = ", ".join(f"{key} {shape}" for key, shape in leads.items())
        raise ShapeError(f"the leading axes do not broadcast together: {told} (system {system.name!r})") from None
    if lead[len(lead) - len(system.robots) :] != system.robots:
        raise ShapeError(f"the last leading axis is that of the {system.robots[0]} robots, got {lead}")
    size = math.prod(lead)
    flat = []
    for a, tail in arguments.values():
        rest = a.shape[a.ndim - tail :]
        whole = a if a.shape == lead + rest else np.broadcast_to(a, lead + rest)
        array = np.ascontiguousarray(whole).reshape((size, *rest)).view()
        array.flags.writeable = False  # always: a sweep is compiled again for a writeable one
        flat.append(array)
    return Batch(lead, tuple(flat))


def straight(out: Any, shape: tuple[int, ...], *given: Any) -> Array | None:
    """``out`` as compiled code can write to it, or None: it is not such an array, or a part of what is given.

    Rows are answered while others are still to be read, so that nothing that is given may change meanwhile.
    """
    if not isinstance(out, np.ndarray) or isinstance(out, np.ma.MaskedArray):
        return None
    plain = np.asarray(out)  # a memory map, for example, is seen as an array
    flags = plain.flags
    if plain.shape != shape or plain.dtype != np.float64 or not (flags.c_contiguous and flags.behaved):
        return None
    if any(isinstance(x, np.ndarray) and np.may_share_memory(plain, x) for x in given):
        return None
    return plain


def filled(out: Any, answer: Array) -> Array:
    """``answer``, or ``out`` with its numbers in it; refuse what cannot hold them."""
    if out is None or answer is out:
        return answer
    if not isinstance(out, np.ndarray):
        raise ModelError(f"out must be an array of NumPy's to write the answer to, got {type(out).__name__}")
    if isinstance(out, np.ma.MaskedArray):
        raise ModelError("out must be an array without a mask, which would hide the answer; give its data, out.data")
    if out.shape != answer.shape:
        raise ShapeError(f"out must have the shape of the answer, {answer.shape}, got {out.shape}")
    if out.dtype.kind != "f" or out.dtype.itemsize != 8:
        raise ModelError(f"out must be an array of float64, got {out.dtype}")
    if not out.flags.writeable:
        raise ModelError("out cannot be written to: it is read-only; give a copy of it")
    if _overlaps_itself(out):
        raise ModelError("out must have memory of its own for every number of the answer; rows of it share theirs")
    np.copyto(out, answer)
    return out


def _overlaps_itself(out: Array) -> bool:
    """Tell whether entries may share memory: an axis does not step over all that the smaller steps reach."""
    if not out.size:
        return False
    reach = out.itemsize
    for step, extent in sorted((abs(step), extent) for step, extent in zip(out.strides, out.shape) if extent > 1):
        if step < reach:
            return True
        reach += step * (extent - 1)
    return False


# Squared and times a lever, a mass and a number of bodies, this is still a double.
LARGE = 1e100


def expect_finite(system: Any, answer: Array, what: str, **given: Any) -> Array:
    """Return ``answer``, or raise an error if overflow made some of it infinite or NaN; ``given`` is what it is of.

    The arguments were finite when they came in, so what is not finite now has overflowed on the way. Velocities enter
    squared: v = 1e154 is a double, and the force it causes is none.
    """
    if np.isfinite(answer).all():
        return answer
    raise overflow(system, what, **given)


def overflow(system: Any, what: str, **given: Any) -> ModelError:
    """The error: what is too large, and which of the arguments made it so."""
    sizes = {name: float(np.abs(x).max(initial=0.0)) for name, x in given.items() if x is not None}
    culprits = [f"{name} reaches {size:.3g}" for name, size in sizes.items() if size > LARGE]
    if culprits:
        cure = f"{' and '.join(culprits)}; check the units, or whether a motion has exploded on the way here"
    else:
        cure = "masses, inertias or lengths of the model are; check their units"
    return ModelError(f"{what} of system {system.name!r} is too large for a double, about 1e308: {cure}")
