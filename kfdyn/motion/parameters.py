"""Parameters of a motion by their names, and the model that has given values of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from kfdyn.arrays import Array
from kfdyn.dynamics import mass_matrix
from kfdyn.errors import ModelError, ShapeError
from kfdyn.motion.model import MotionModel
from kfdyn.motion.readings import Readings
from kfdyn.motion.regressor import TEN, inertia_of, ten_of
from kfdyn.motion.step import Stepper
from kfdyn.multibody.system import rebuilt

_DEFINITE = 1e-9  # of the largest second moment: below it the mass lies in a plane, on a line or in a point
_TINY = 1e-30  # an imaginary step


@dataclass
class Parts:
    """What of a model may be changed: data of its robot, its noise, and its sensors."""

    inertia: list[Array]
    damping: Array
    armature: Array
    gravity: Array
    force_noise: Array
    sensors: list[Any]

    @classmethod
    def of(cls, model: MotionModel) -> Parts:
        """Those of a model, copied."""
        nv = model.system.nv
        return cls(
            [body.inertia for body in model.system.bodies], model.stepper.B.copy(), model.system.armature.copy(),
            model.g.copy(), model.Q[..., :nv, :nv].copy(), list(model.seen.sensors),
        )  # fmt: skip


@dataclass(frozen=True)
class Group:
    """Numbers that are named together.

    Attributes
    ----------
    key : str
        Its name.
    names : tuple of str
        Names of its numbers in natural units.
    start, lower : ndarray
        Free numbers z where the search begins, and their bounds.
    natural : callable
        Natural numbers of z; analytic, so that complex steps differentiate it.
    put : callable
        Writes natural numbers into parts.
    of : {"robot", "reading", "noise"}
        What changes with it: motion and readings, the predicted readings alone, or covariances alone.
    """

    key: str
    names: tuple[str, ...]
    start: Array
    lower: Array
    natural: Callable[[Any], Any]
    put: Callable[[Parts, Array], None]
    of: str

    def slope(self, z: Array) -> Array:
        """Derivative of the natural numbers, (natural, z)."""
        return np.stack([self.natural(z + 1j * _TINY * e).imag / _TINY for e in np.eye(z.size)], axis=1)


# --- inertias


class LogCholesky:
    """Ten free numbers of an inertia that some positive mass has: log m, log d (3), s (3)/unit, c (3)/unit.

    Σ = [[½ tr(I) 1 − I, h], [h*, m]] = m U U*, U upper triangular with diagonal (d, 1). THEORY section 20.
    """

    def __init__(self, ten: Array, name: str) -> None:
        I3 = inertia_of(ten)[:3, :3]
        m, h = ten[0], ten[1:4]
        if not m > 0.0:
            raise ModelError(
                f"body {name!r} has no mass, so its inertia cannot be fitted; give it some, or leave it out"
            )
        second = (0.5 * np.trace(I3) * np.eye(3) - I3) / m - np.outer(h, h) / m**2
        moments = np.linalg.eigvalsh(second)
        if moments[0] < _DEFINITE * max(moments[2], 0.0) or moments[2] <= 0.0:
            a, b, c = np.sort(m * (moments.sum() - moments))
            which = (
                f"principal moments {a:.6g} + {b:.6g} < {c:.6g}: no positive mass has this inertia"
                if moments[0] < -_DEFINITE * abs(moments[2])
                else f"principal moments {a:.6g}, {b:.6g}, {c:.6g} are those of a plane, a line or a point"
            )
            raise ModelError(
                f"body {name!r}: {which}; its ten numbers have no start inside: give it another inertia, or fit "
                f"'{name}/mass' alone"
            )
        self.unit = float(np.sqrt(np.trace(second)))
        U = np.linalg.cholesky(second[::-1, ::-1])[::-1, ::-1]
        self.start = np.array(
            [np.log(m), *np.log(np.diag(U)), *(U[[0, 0, 1], [1, 2, 2]] / self.unit), *(h / m / self.unit)]
        )

    def ten(self, z: Any) -> Any:
        """Ten inertial parameters of the free numbers."""
        U = np.zeros((4, 4), z.dtype)
        U[range(3), range(3)] = np.exp(z[1:4])
        U[[0, 0, 1], [1, 2, 2]] = self.unit * z[4:7]
        U[:3, 3], U[3, 3] = self.unit * z[7:], 1.0
        S = np.exp(z[0]) * (U @ U.T)
        I3 = np.trace(S[:3, :3]) * np.eye(3) - S[:3, :3]
        return np.concatenate([[S[3, 3]], S[:3, 3], I3[[0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2]]])


# --- all groups of a model


def _logs(key: str, names: Sequence[str], values: Array, put: Callable[[Parts, Array], None], of: str) -> Group:
    values = np.atleast_1d(values).astype(float)
    if not (values > 0.0).all():
        raise ModelError(f"{key!r} is 0 in the model, and is fitted by its logarithm; give it a first value above 0")
    return Group(key, tuple(names), np.log(values), np.full(values.size, -np.inf), np.exp, put, of)


def _lines(
    key: str, names: Sequence[str], values: Array, unit: float, lower: float, put: Callable[[Parts, Array], None],
    of: str,
) -> Group:  # fmt: skip
    values = np.atleast_1d(values).astype(float)
    low = np.full(values.size, lower)
    return Group(key, tuple(names), values / unit, low, lambda z: z * unit, put, of)


def _known(model: MotionModel) -> dict[str, Callable[[], Group]]:
    """All groups by name; built when asked for, since some cannot be."""
    out: dict[str, Callable[[], Group]] = {}
    system = model.system
    dofs = [name[2:-1] for name in model.state_names[: system.nv]]
    for k, body in enumerate(system.bodies):
        out[f"{body.name}/inertia"] = lambda k=k, body=body: _inertia(k, body.name, body.inertia)  # type: ignore[misc]
        out[f"{body.name}/mass"] = lambda k=k, body=body: _mass(k, body.name, body.inertia)  # type: ignore[misc]
    for i, name in enumerate(dofs):
        for what, array in (("damping", model.stepper.B), ("armature", system.armature)):
            out[f"{name}/{what}"] = lambda i=i, what=what, key=f"{name}/{what}", start=array[i]: _of_dof(  # type: ignore[misc]
                model, i, what, key, float(start)
            )
    out["gravity"] = lambda: _lines(
        "gravity", [f"gravity_{x}" for x in "xyz"], model.g, 10.0, -np.inf, _put_gravity, "robot"
    )
    out["force_noise"] = lambda: _force_noise(model, dofs)
    for i, sensor in enumerate(model.seen.sensors):
        out[f"{sensor.name}/cov"] = lambda i=i: _sensor_cov(model, i)  # type: ignore[misc]
        out[f"{sensor.name}/bias"] = lambda i=i: _sensor_bias(model, i)  # type: ignore[misc]
    return out


def _inertia(k: int, name: str, inertia: Array) -> Group:
    own = LogCholesky(ten_of(inertia), name)

    def put(parts: Parts, ten: Array) -> None:
        parts.inertia[k] = inertia_of(ten)

    names = tuple(f"{name}/{x}" for x in TEN)
    return Group(f"{name}/inertia", names, own.start, np.full(10, -np.inf), own.ten, put, "robot")


def _mass(k: int, name: str, inertia: Array) -> Group:
    key = f"{name}/mass"

    def put(parts: Parts, mass: Array) -> None:
        parts.inertia[k] = inertia * (mass[0] / inertia[3, 3])

    return _logs(key, [key], inertia[3, 3], put, "robot")


def _of_dof(model: MotionModel, i: int, what: str, key: str, start: float) -> Group:
    unit = start
    if not unit:  # what a motion of a second would notice
        unit = float(mass_matrix(model.system, model.prior.x0[: model.system.nq])[i, i])

    def put(parts: Parts, value: Array) -> None:
        getattr(parts, what)[i] = value[0]

    return _lines(key, [key], np.array(start), unit, 0.0, put, "robot")


def _put_gravity(parts: Parts, g: Array) -> None:
    parts.gravity = g


def _force_noise(model: MotionModel, dofs: Sequence[str]) -> Group:
    nv = model.system.nv
    W = model.Q[..., :nv, :nv]
    if W.ndim == 2 and not (W - np.diag(np.diag(W))).any():

        def put(parts: Parts, variances: Array) -> None:
            parts.force_noise = np.diag(variances)

        return _logs("force_noise", [f"force_noise[{name}]" for name in dofs], np.diag(W), put, "noise")

    def scaled(parts: Parts, factor: Array) -> None:
        parts.force_noise = W * factor[0]

    return _logs("force_noise", ["force_noise/factor"], np.ones(1), scaled, "noise")


def _sensor_cov(model: MotionModel, i: int) -> Group:
    sensor = model.seen.sensors[i]
    key = f"{sensor.name}/cov"
    if sensor.cov.ndim == 2:

        def scaled(parts: Parts, factor: Array) -> None:
            parts.sensors[i] = parts.sensors[i].replace(cov=sensor.cov * factor[0])

        return _logs(key, [f"{key}/factor"], np.ones(1), scaled, "noise")

    def put(parts: Parts, cov: Array) -> None:
        parts.sensors[i] = parts.sensors[i].replace(cov=cov.reshape(sensor.cov.shape))

    names = [key] if sensor.cov.ndim == 0 else [f"{key}[{j}]" for j in range(sensor.cov.size)]
    return _logs(key, names, sensor.cov, put, "noise")


def _sensor_bias(model: MotionModel, i: int) -> Group:
    sensor, own, tangent = model.seen.sensors[i], model.seen.points_of[i], model.seen.tangents_of[i]
    key, size = f"{sensor.name}/bias", own.stop - own.start
    if tangent.stop - tangent.start != size:
        raise ModelError(f"{key!r}: a bias of what does not add (a quaternion) has no meaning")

    def put(parts: Parts, bias: Array) -> None:
        parts.sensors[i] = parts.sensors[i].replace(bias=bias)

    unit = float(np.sqrt(np.diag(model.R)[tangent].max())) or 1.0
    start = np.broadcast_to(sensor.bias, (size,))
    return _lines(key, [f"{key}[{j}]" for j in range(size)], start, unit, -np.inf, put, "reading")


class Parameters:
    """The groups that patterns name, as one vector z of free numbers.

    Parameters
    ----------
    model : MotionModel
        The model at the first values.
    patterns : sequence of str
        Names of groups; ``*`` and ``?`` stand for any letters.
    """

    def __init__(self, model: MotionModel, patterns: Sequence[str]) -> None:
        if isinstance(patterns, str):
            raise ShapeError(f"parameters must be a list; write [{patterns!r}]")
        known, keys = _known(model), []
        for pattern in patterns:
            found = [pattern] if pattern in known else [key for key in known if fnmatchcase(key, str(pattern))]
            if not found:
                raise ModelError(f"{pattern!r} names no parameter; there are {', '.join(known)}")
            keys += [key for key in found if key not in keys]
        if not keys:
            raise ModelError("parameters is empty; name what the log is to tell, such as '*/damping'")
        for body in model.system.body_names:
            if f"{body}/mass" in keys and f"{body}/inertia" in keys:
                raise ModelError(f"'{body}/inertia' holds the mass of {body!r} already; leave '{body}/mass' out")
        self.base = model
        self.groups = [known[key]() for key in keys]
        self.names = tuple(name for group in self.groups for name in group.names)
        self.start = np.concatenate([group.start for group in self.groups])
        self.lower = np.concatenate([group.lower for group in self.groups])
        ends = np.cumsum([group.start.size for group in self.groups])
        self.places = [slice(end - group.start.size, end) for end, group in zip(ends.tolist(), self.groups)]
        self.kinds = [group.of for group in self.groups for _ in range(group.start.size)]

    def natural(self, z: Array) -> Array:
        """All natural numbers."""
        return np.concatenate([group.natural(z[own]) for group, own in zip(self.groups, self.places)])

    def slope(self, z: Array) -> Array:
        """Their derivative in z, block diagonal, (p, p)."""
        out = np.zeros((z.size, z.size))
        for group, own in zip(self.groups, self.places):
            out[own, own] = group.slope(z[own])
        return out

    def model(self, z: Array) -> MotionModel:
        """The model with these values; its kinematics are those of the first."""
        base, parts = self.base, Parts.of(self.base)
        for group, own in zip(self.groups, self.places):
            group.put(parts, np.asarray(group.natural(z[own]), np.float64))
        new, nv = copy(base), base.system.nv
        if "robot" in self.kinds:
            new.system = self._robot(parts)
            new.g, old = parts.gravity, base.stepper
            gravity = None if old.gravity is None else parts.gravity
            new.stepper = Stepper(
                new.system, old.dt, old.method, parts.damping, old.K, old.rest, gravity, old.wrenches
            )  # fmt: skip
        new.seen = Readings(new.system, parts.sensors)
        new.R, new.Q = new.seen.R, base.Q.copy()
        new.Q[..., :nv, :nv] = parts.force_noise
        return new

    def _robot(self, parts: Parts) -> Any:
        system, damped = self.base.system, any(group.key.endswith("/damping") for group in self.groups)
        bodies = []
        for body, inertia in zip(system.bodies, parts.inertia):
            changes: dict[str, Any] = {} if inertia is body.inertia else {"inertia": inertia}
            if body.hinge.nv:
                own = system.v_slice(body.hinge_name)
                changes["armature"] = parts.armature[own]
                if damped:
                    changes["damping"] = parts.damping[own]
            bodies.append(replace(body, **changes) if changes else body)
        return rebuilt(tuple(bodies), parts.gravity, dict(system.frames), system.name, system.indefinite_inertia)
