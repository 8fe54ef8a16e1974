"""Parameters that are named together: their numbers, their free numbers, and what of a model they change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kfdyn.arrays import Array
from kfdyn.dynamics import mass_matrix
from kfdyn.errors import ModelError
from kfdyn.motion.identification.parameters.log_cholesky import LogCholesky, point_mass, second_moments
from kfdyn.motion.model import MotionModel
from kfdyn.motion.regressor import TEN, ten_of

_TINY = 1e-30  # an imaginary step
_THIN = 1e-3  # thickness of a body over its size, below which it is a plate or a rod: the edge of positive mass
_FLAT = 10.0  # times as thick: below it the search is taken to have come to that edge
_PAYLOAD = 0.01  # of the mass of a body: where the search for what it carries begins

#: Kinds of blocks that change the robot; the others change sensors or covariances.
ROBOT = ("body", "armature", "damping", "friction", "stiffness", "gravity")


@dataclass(frozen=True)
class Group:
    """Numbers that are named together.

    Attributes
    ----------
    key : str
        Its name.
    names : tuple of str
        Names of its numbers in natural units.
    block : tuple
        What of a model it sets: ("body", k) ten inertial parameters, ("armature", i), ("damping", i), ("friction", i),
        ("stiffness", i), ("gravity",), ("W",), ("cov", sensor), ("bias", sensor), ("scale", sensor).
    start, lower, upper : ndarray
        Free numbers z where the search begins, and their bounds.
    natural : callable
        Natural numbers of z; analytic, so that complex steps differentiate it.
    values : callable
        Numbers of the block of z; analytic. Those of "W" and "cov" are factors of the first model's.
    free : callable or None
        z of natural numbers, number by number; None where they are mixed.
    bent : callable or None
        z of natural numbers that enter linearly and are mixed.
    """

    key: str
    names: tuple[str, ...]
    block: tuple[Any, ...]
    start: Array
    lower: Array
    upper: Array
    natural: Callable[[Any], Any]
    values: Callable[[Any], Any]
    free: Callable[[Array], Array] | None = None
    bent: Callable[[Array], Array] | None = None

    @property
    def longest(self) -> float:
        """Longest move of its free numbers at once: logarithms and mixtures not beyond what they are linear in."""
        if self.block[0] in ("W", "cov"):
            return 5.0
        return 1.0 if self.block[0] == "body" else np.inf

    def thin(self, z: Array) -> bool:
        """True of an inertia at the edge of positive mass: one of a plate, a rod or a point."""
        if self.bent is None:
            return False
        moments = np.linalg.eigvalsh(second_moments(np.asarray(self.natural(z))))
        return bool(moments[0] < (_FLAT * _THIN) ** 2 * moments.sum())

    def straightened(self) -> Group:
        """The same by its natural numbers, if its own are mixed: any inertia, of positive mass or not."""
        return self if self.bent is None else _lines(self.key, self.names, self.block, np.ones(len(self.names)), 1.0)

    def slope(self, z: Array, of: Callable[[Any], Any] | None = None) -> Array:
        """Derivative in z of the natural numbers, or of the block's values."""
        of = self.natural if of is None else of
        return np.stack([of(z + 1j * _TINY * e).imag / _TINY for e in np.eye(z.size)], axis=1)


def _same(z: Any) -> Any:
    return z


def _mixed(
    key: str, names: Sequence[str], block: tuple[Any, ...], start: Array, natural: Any, values: Any, low: Any = None,
    bent: Any = None,
) -> Group:  # fmt: skip
    high = np.full(start.size, np.inf)
    return Group(key, tuple(names), block, start, -high if low is None else low, high, natural, values, bent=bent)


def _logs(key: str, names: Sequence[str], block: tuple[Any, ...], first: Any, values: Any = None) -> Group:
    """Positive numbers by their logarithms; ``values`` of the numbers themselves."""
    first = np.atleast_1d(first).astype(float)
    if not (first > 0.0).all():
        raise ModelError(f"{key!r} is 0 in the model, and is fitted by its logarithm; give it a first value above 0")
    low = np.full(first.size, -np.inf)
    of = _same if values is None else values
    return Group(key, tuple(names), block, np.log(first), low, -low, np.exp, lambda z: of(np.exp(z)), np.log)


def _lines(
    key: str, names: Sequence[str], block: tuple[Any, ...], first: Any, unit: Any, lower: float = -np.inf
) -> Group:
    """Numbers in units of their own."""
    first = np.atleast_1d(first).astype(float)
    low, high = np.full(first.size, lower), np.full(first.size, np.inf)
    return Group(
        key, tuple(names), block, first / unit, low, high, lambda z: z * unit, lambda z: z * unit, lambda n: n / unit
    )


# --- bodies


def inertia(k: int, name: str, six: Array) -> Group:
    """All ten numbers of a body."""
    own, key = LogCholesky(ten_of(six), name), f"{name}/inertia"
    low = np.full(10, -np.inf)
    low[1:4] = np.minimum(np.log(_THIN * own.unit), own.start[1:4] - 2.0)
    return _mixed(key, [f"{name}/{x}" for x in TEN], ("body", k), own.start, own.ten, own.ten, low, own.free)


def mass(k: int, name: str, six: Array) -> Group:
    """A body's mass; its density scales."""
    key, ten = f"{name}/mass", ten_of(six)
    if not ten[0] > 0.0:
        raise ModelError(f"{key!r} is 0 in the model, and is fitted by its logarithm; give it a first value above 0")
    return _logs(key, [key], ("body", k), ten[0], lambda m: m[0] * (ten / ten[0]))


def mass_and_com(k: int, name: str, six: Array) -> Group:
    """A body's mass and mass centre; its inertia about the mass centre, for a kilogram, stays."""
    key, ten = f"{name}/com", ten_of(six)
    if not ten[0] > 0.0:
        raise ModelError(f"body {name!r} has no mass, so {key!r} cannot be fitted; give it some")
    c0 = ten[1:4] / ten[0]
    own = (ten - point_mass(ten[0], c0)) / ten[0]
    unit = float(np.linalg.norm(c0)) or float(np.sqrt(max(own[[4, 6, 9]].max(), 1e-6)))

    def natural(z: Any) -> Any:
        return np.concatenate([np.exp(z[:1]), unit * z[1:]])

    def values(z: Any) -> Any:
        m = np.exp(z[0])
        return m * own + point_mass(m, unit * z[1:])

    names = [f"{name}/mass", *(f"{name}/com_{x}" for x in "xyz")]
    return _mixed(key, names, ("body", k), np.array([np.log(ten[0]), *(c0 / unit)]), natural, values)


def payload(system: Any, frame: str) -> Group:
    """A mass in one point that is fixed to a frame: its mass, and where it is in the frame."""
    k, R, p = system.locate(frame)
    ten, key = ten_of(system.bodies[k].inertia), f"{frame}/payload"
    if not ten[0] > 0.0:
        raise ModelError(f"{key!r}: body {system.body_names[k]!r} has no mass; give it some")
    unit = 0.1

    def natural(z: Any) -> Any:
        return np.concatenate([np.exp(z[:1]), unit * z[1:]])

    def values(z: Any) -> Any:
        return ten + point_mass(np.exp(z[0]), p + R @ (unit * z[1:]))

    names = [f"{key}/m", *(f"{key}/{x}" for x in "xyz")]
    return _mixed(key, names, ("body", k), np.array([np.log(_PAYLOAD * ten[0]), 0.0, 0.0, 0.0]), natural, values)


# --- hinges and gravity


def of_dof(model: MotionModel, i: int, what: str, key: str) -> Group:
    """A rotor, damper, spring or friction of one dof; never below 0."""
    stepper = model.stepper
    first = {"armature": model.system.armature, "damping": stepper.B, "friction": stepper.mu, "stiffness": stepper.K}
    start = float(first[what][i])
    own = float(mass_matrix(model.system, model.prior.x0[: model.system.nq])[i, i])
    unit = max(start, own)  # what a motion of a second would notice
    return _lines(key, [key], (what, i), start, unit, 0.0)


def gravity(model: MotionModel) -> Group:
    """The three components of gravity."""
    return _lines("gravity", [f"gravity_{x}" for x in "xyz"], ("gravity",), model.g, 10.0)


# --- sensors and covariances


def force_noise(model: MotionModel, dofs: Sequence[str]) -> Group:
    """Variances of the random force, or a factor of a covariance that is no diagonal or varies."""
    nv = model.system.nv
    W = model.Q[..., :nv, :nv]
    if W.ndim == 2 and not (W - np.diag(np.diag(W))).any():
        first = np.diag(W).copy()
        return _logs("force_noise", [f"force_noise[{name}]" for name in dofs], ("W",), first, lambda n: n / first)
    return _logs("force_noise", ["force_noise/factor"], ("W",), np.ones(1))


def sensor_cov(model: MotionModel, i: int) -> Group:
    """Variances of a sensor, or a factor of its covariance."""
    sensor = model.seen.sensors[i]
    key, block, first = f"{sensor.name}/cov", ("cov", sensor.name), np.atleast_1d(sensor.cov)
    if sensor.cov.ndim == 2:
        return _logs(key, [f"{key}/factor"], block, np.ones(1))
    names = [key] if sensor.cov.ndim == 0 else [f"{key}[{j}]" for j in range(first.size)]
    return _logs(key, names, block, first, lambda n: n / first)


def sensor_bias(model: MotionModel, i: int) -> Group:
    """Biases of a sensor: the offset of an encoder, for example."""
    key, block, first, unit = _of_reading(model, i, "bias")
    return _lines(key, [f"{key}[{j}]" for j in range(first.size)], block, first, unit)


def sensor_scale(model: MotionModel, i: int) -> Group:
    """Factors of a sensor, one an entry."""
    key, block, _, _ = _of_reading(model, i, "scale")
    first = model.seen.factors[model.seen.tangents_of[i]]
    return _lines(key, [f"{key}[{j}]" for j in range(first.size)], block, first, 1.0)


def _of_reading(model: MotionModel, i: int, what: str) -> tuple[str, tuple[Any, ...], Array, float]:
    sensor, own, tangent = model.seen.sensors[i], model.seen.points_of[i], model.seen.tangents_of[i]
    key, size = f"{sensor.name}/{what}", own.stop - own.start
    if tangent.stop - tangent.start != size:
        raise ModelError(f"{key!r}: a {what} of what does not add (a quaternion) has no meaning")
    unit = float(np.sqrt(np.diag(model.R)[tangent].max())) or 1.0
    return key, (what, sensor.name), np.broadcast_to(sensor.bias, (size,)), unit


def known_groups(model: MotionModel) -> dict[str, Callable[[], Group]]:
    """All groups of a model by name; built when asked for, since some cannot be."""
    out: dict[str, Callable[[], Group]] = {}
    system = model.system
    dofs = [name[2:-1] for name in model.state_names[: system.nv]]
    for k, body in enumerate(system.bodies):
        for what, make in (("inertia", inertia), ("mass", mass), ("com", mass_and_com)):
            out[f"{body.name}/{what}"] = lambda make=make, k=k, body=body: make(k, body.name, body.inertia)  # type: ignore[misc]
    for frame in (*system.body_names, *system.frames):
        out[f"{frame}/payload"] = lambda frame=frame: payload(system, frame)  # type: ignore[misc]
    for i, name in enumerate(dofs):
        for what in ("damping", "armature", "friction", "stiffness"):
            key = f"{name}/{what}"
            out[key] = lambda i=i, what=what, key=key: of_dof(model, i, what, key)  # type: ignore[misc]
    out["gravity"] = lambda: gravity(model)
    out["force_noise"] = lambda: force_noise(model, dofs)
    for i, sensor in enumerate(model.seen.sensors):
        for what, of in (("cov", sensor_cov), ("bias", sensor_bias), ("scale", sensor_scale)):
            out[f"{sensor.name}/{what}"] = lambda i=i, of=of: of(model, i)  # type: ignore[misc]
    return out
