"""Parameters of a motion by their names, and the models that have given values of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from kfdyn.arrays import Array
from kfdyn.errors import ModelError, ShapeError
from kfdyn.motion.identification.adjoint import Slopes
from kfdyn.motion.identification.effects import PointMasses, combined, effects
from kfdyn.motion.identification.linear import Linear
from kfdyn.motion.identification.parameters.arguments import Prior, mapping, pair_of_bounds
from kfdyn.motion.identification.parameters.groups import ROBOT, Group, known_groups
from kfdyn.motion.model import MotionModel
from kfdyn.motion.readings import Readings
from kfdyn.motion.regressor import inertia_of
from kfdyn.motion.step import Stepper
from kfdyn.multibody.system import rebuilt


@dataclass
class _Changes:
    """Values of blocks of one model, by kind."""

    inertia: dict[int, Array] = field(default_factory=dict)
    dofs: dict[str, Array] = field(default_factory=dict)
    gravity: Array | None = None
    W: Array | None = None
    sensors: dict[str, dict[str, Array]] = field(default_factory=dict)


class Parameters:
    """The groups that patterns name, as one vector z of free numbers.

    Parameters
    ----------
    models : sequence of MotionModel
        Models of the logs at the first values, all of one robot.
    patterns : sequence of str
        Names of groups; ``*`` and ``?`` stand for any letters.
    fixed : sequence of str
        Names of groups that stay, of those.
    bounds : mapping from a name to (low, high)
        Of numbers that are not mixed, in natural units.
    priors : mapping from a name to (mean, spread)
        See ``Prior``.
    """

    def __init__(
        self, models: Sequence[MotionModel], patterns: Sequence[str], fixed: Sequence[str] = (),
        bounds: Mapping[str, Any] | None = None, priors: Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        for given, what in ((patterns, "parameters"), (fixed, "fixed")):
            if isinstance(given, str):
                raise ShapeError(f"{what} must be a list; write [{given!r}]")
            if not isinstance(given, Iterable):
                raise ShapeError(f"{what} must be a list of names, got {given!r}")
        known: dict[str, Any] = {}
        for model in models:
            known = known_groups(model) | known  # the first model that has it tells its first value
        keys = [key for key in _named(patterns, known) if key not in _named(fixed, known)]
        if not keys:
            raise ModelError("parameters is empty; name what the log is to tell, such as '*/damping'")
        self.bases = list(models)
        self.groups: list[Group] = [known[key]() for key in keys]
        of: dict[tuple[Any, ...], str] = {}
        for group in self.groups:
            if of.setdefault(group.block, group.key) != group.key:
                raise ModelError(f"{group.key!r} and {of[group.block]!r} set the same numbers; leave {group.key!r} out")
        self.indefinite = models[0].system.indefinite_inertia
        self.masses = PointMasses(models[0].system)
        self.names = tuple(name for group in self.groups for name in group.names)
        self.start = np.concatenate([group.start for group in self.groups])
        self.lower = np.concatenate([group.lower for group in self.groups])
        self.upper = np.concatenate([group.upper for group in self.groups])
        ends = np.cumsum([group.start.size for group in self.groups])
        self.places = [slice(end - group.start.size, end) for end, group in zip(ends.tolist(), self.groups)]
        ends = np.cumsum([len(group.names) for group in self.groups])
        self.natural_places = [slice(end - len(group.names), end) for end, group in zip(ends.tolist(), self.groups)]
        self.closed = np.array(
            [self._closed(group) for group in self.groups for _ in range(group.start.size)], dtype=bool
        )
        self.noise = np.array(
            [group.block[0] in ("W", "cov") for group in self.groups for _ in range(group.start.size)], dtype=bool
        )
        self.longest = np.array([group.longest for group in self.groups for _ in range(group.start.size)])
        self._bound(bounds)
        self.priors = self._with_priors(priors)

    def _closed(self, group: Group) -> bool:
        """True of a gradient with a closed form: that of four stages has none here."""
        return group.block[0] not in ROBOT or all(base.stepper.method != "rk4" for base in self.bases)

    @property
    def moves_robot(self) -> bool:
        """True if anything of the robot is among them."""
        return any(group.block[0] in ROBOT for group in self.groups)

    def _find(self, name: str, what: str) -> tuple[Group, slice, slice]:
        for group, own, natural in zip(self.groups, self.places, self.natural_places):
            if name == group.key:
                return group, own, natural
            if name in group.names and group.free is not None:
                i = group.names.index(name)
                return group, slice(own.start + i, own.start + i + 1), slice(natural.start + i, natural.start + i + 1)
        raise ModelError(
            f"{what} name {name!r}, which is not fitted; there are {', '.join(g.key for g in self.groups)}"
        )

    def _bound(self, bounds: Mapping[str, Any] | None) -> None:
        for name, pair in mapping(bounds, "bounds").items():
            group, own, _ = self._find(name, "bounds")
            if group.free is None:
                raise ModelError(f"bounds of {name!r}: its numbers are mixed; give it a prior instead")
            size = own.stop - own.start
            low, high = pair_of_bounds(name, pair, size)
            whole = group.natural(group.start)
            inside = slice(own.start - self._start_of(group), own.stop - self._start_of(group))
            for side, given in (("lower", low), ("upper", high)):
                full = np.array(whole)
                full[inside] = given
                with np.errstate(divide="ignore", invalid="ignore"):
                    free = group.free(full)[inside]
                free = np.where(np.isnan(free), -np.inf, free)  # a logarithm of what is negative
                array = getattr(self, side)
                array[own] = np.maximum(array[own], free) if side == "lower" else np.minimum(array[own], free)
            if not (self.lower[own] <= self.upper[own]).all() or (self.upper[own] == -np.inf).any():
                raise ModelError(f"bounds of {name!r} leave nothing that it may be: {pair!r}")
            self.start[own] = np.clip(self.start[own], self.lower[own], self.upper[own])

    def _start_of(self, group: Group) -> int:
        return next(own.start for own, one in zip(self.places, self.groups) if one is group)

    def _with_priors(self, priors: Mapping[str, Any] | None) -> list[tuple[slice, Prior]]:
        out = []
        for name, given in mapping(priors, "priors").items():
            _, _, natural = self._find(name, "priors")
            out.append((natural, Prior(name, given, natural.stop - natural.start)))
        return out

    # --- numbers

    def natural(self, z: Array) -> Array:
        """All natural numbers."""
        return np.concatenate([group.natural(z[own]) for group, own in zip(self.groups, self.places)])

    def free_numbers(self, name: str, values: Array) -> Array:
        """Free numbers of some values of a number that is not mixed."""
        group, own, _ = self._find(name, "values")
        i, whole = own.start - self._start_of(group), group.natural(group.start)
        out = []
        for value in values:
            full = np.array(whole)
            full[i] = value
            with np.errstate(divide="ignore", invalid="ignore"):
                out.append(group.free(full)[i])  # type: ignore[misc]
            if not self.lower[own.start] <= out[-1] <= self.upper[own.start] or not np.isfinite(out[-1]):
                raise ModelError(f"{name!r} cannot be {value:g}")
        return np.array(out)

    def slope(self, z: Array) -> Array:
        """Their derivative in z, block diagonal."""
        out = np.zeros((len(self.names), z.size))
        for group, own, natural in zip(self.groups, self.places, self.natural_places):
            out[natural, own] = group.slope(z[own])
        return out

    def straight(self, z: Array) -> Array:
        """Numbers in which a robot's equations are linear, as many as z: the ten of an inertia, all others as in z."""
        parts = zip(self.groups, self.places)
        return np.concatenate([group.natural(z[own]) if group.bent else z[own] for group, own in parts])

    def bent(self, straight: Array) -> Array:
        """Their inverse."""
        parts = zip(self.groups, self.places)
        return np.concatenate([group.bent(straight[own]) if group.bent else straight[own] for group, own in parts])

    def straight_slope(self, z: Array) -> Array:
        """Their derivative in z."""
        out = np.eye(z.size)
        for group, own in zip(self.groups, self.places):
            if group.bent:
                out[own, own] = group.slope(z[own])
        return out

    def thin(self, z: Array) -> list[str]:
        """Names of the inertias that are at the edge of positive mass."""
        return [group.key for group, own in zip(self.groups, self.places) if group.thin(z[own])]

    def straightened(self) -> Parameters:
        """The same, with z the numbers of ``straight``, whose inertias need not be those of positive mass."""
        out = copy(self)
        out.groups, out.indefinite = [group.straightened() for group in self.groups], "warn"
        out.lower, out.upper = self.lower.copy(), self.upper.copy()
        for group, own in zip(self.groups, self.places):
            if group.bent:
                out.lower[own], out.upper[own] = -np.inf, np.inf
        return out

    def prior(self, z: Array) -> tuple[float, Array, Array]:
        """Logarithm of the priors, its gradient in z, and its information (Gauss–Newton's)."""
        value, J = 0.0, self.slope(z)
        g, H = np.zeros(z.size), np.zeros((z.size, z.size))
        n = self.natural(z)
        for own, prior in self.priors:
            away = n[own] - prior.mean
            pull = prior.information @ away
            value += prior.constant - 0.5 * float(away @ pull)
            g -= J[own].T @ pull
            H += J[own].T @ prior.information @ J[own]
        return value, g, H

    # --- models

    def models(self, z: Array) -> list[MotionModel]:
        """The models with these values; their kinematics are those of the first."""
        robot, out = None, []
        for base in self.bases:
            changes = self._changes(z)
            model = copy(base)
            if self.moves_robot:
                if robot is None or base.system is not self.bases[0].system:
                    robot = self._robot(base, changes)
                self._move(model, base, robot, changes)
            self._resense(model, base, changes)
            out.append(model)
        return out

    def _changes(self, z: Array) -> _Changes:
        out = _Changes()
        for group, own in zip(self.groups, self.places):
            values = np.asarray(group.values(z[own]), np.float64)
            kind = group.block[0]
            if kind == "body":
                out.inertia[group.block[1]] = inertia_of(values)
            elif kind == "gravity":
                out.gravity = values
            elif kind == "W":
                out.W = values
            elif kind in ROBOT:
                out.dofs.setdefault(kind, np.full(self.bases[0].system.nv, np.nan))[group.block[1]] = values[0]
            else:
                out.sensors.setdefault(group.block[1], {})[kind] = values
        return out

    def _robot(self, base: MotionModel, changes: _Changes) -> Any:
        system, bodies = base.system, []
        for k, body in enumerate(system.bodies):
            new: dict[str, Any] = {"inertia": changes.inertia[k]} if k in changes.inertia else {}
            own = system.v_slice(body.hinge_name)
            for what, numbers in changes.dofs.items():
                if body.hinge.nv:
                    given = numbers[own]
                    new[what] = np.where(np.isnan(given), getattr(body, what), given)
            bodies.append(replace(body, **new) if new else body)
        g = system.gravity if changes.gravity is None else changes.gravity
        return rebuilt(tuple(bodies), g, dict(system.frames), system.name, self.indefinite)

    def _move(self, model: MotionModel, base: MotionModel, robot: Any, changes: _Changes) -> None:
        old = base.stepper
        now = {"damping": old.B, "friction": old.mu, "stiffness": old.K}
        for what, first in now.items():
            given = changes.dofs.get(what)
            now[what] = first if given is None else np.where(np.isnan(given), first, given)
        g = old.gravity if changes.gravity is None else changes.gravity
        model.system = robot
        model.g = base.g if changes.gravity is None else changes.gravity
        model.stepper = Stepper(
            robot, old.dt, old.method, now["damping"], now["stiffness"], old.rest, g, old.wrenches, now["friction"],
            old.slow,
        )  # fmt: skip

    def _resense(self, model: MotionModel, base: MotionModel, changes: _Changes) -> None:
        sensors, scales = list(base.seen.sensors), dict(base.seen.scales)
        for i, sensor in enumerate(sensors):
            given = changes.sensors.get(sensor.name, {})
            if "cov" in given:
                cov = sensor.cov * (given["cov"] if sensor.cov.ndim == 1 else given["cov"][0])
                sensors[i] = sensors[i].replace(cov=cov)
            if "bias" in given:
                sensors[i] = sensors[i].replace(bias=given["bias"])
            if "scale" in given:
                scales[sensor.name] = given["scale"]
        if changes.sensors or self.moves_robot:
            model.seen = Readings(model.system, sensors, scales)
            model.R = model.seen.R
        if changes.W is not None:
            nv = base.system.nv
            model.Q = base.Q.copy()
            W = base.Q[..., :nv, :nv]
            model.Q[..., :nv, :nv] = W * changes.W[0] if changes.W.size == 1 else np.diag(np.diag(W) * changes.W)

    # --- derivatives

    def pull(self, z: Array, line: Linear, base: MotionModel, slopes: Slopes, noise_alone: bool = False) -> Array:
        """Gradient in z of one log's likelihood, where it has a closed form."""
        out = np.zeros(z.size)
        for group, own in zip(self.groups, self.places):
            if self.noise[own.start] if noise_alone else self.closed[own.start]:
                of_values = self._pulled(group, np.real(group.values(z[own])), line, base, slopes)
                out[own] = group.slope(z[own], group.values).T @ of_values
        return out

    def _pulled(self, group: Group, values: Array, line: Linear, base: MotionModel, slopes: Slopes) -> Array:
        kind = group.block[0]
        if kind in ROBOT:
            along = np.array([slopes.robot.along(one) for one in effects(group.block, line.rows, self.masses, True)])
            if kind == "body":
                return combined(along)
            return along + slopes.gravity if kind == "gravity" else along
        size = len(group.names)
        if kind == "W":
            if values.size == 1:
                return np.array([slopes.W_factor / values[0]])
            nv = base.system.nv
            return np.diag(slopes.W) * np.diag(base.Q[:nv, :nv])
        found = [i for i, sensor in enumerate(base.seen.sensors) if sensor.name == group.block[1]]
        if not found:
            return np.zeros(size)
        (i,) = found
        own, sensor = base.seen.tangents_of[i], base.seen.sensors[i]
        if kind == "cov":
            each = slopes.R[own, own] * base.R[own, own]
            return np.diag(each) if sensor.cov.ndim == 1 else np.array([each.sum()])
        if kind == "bias":
            return slopes.reading[base.seen.points_of[i]]
        return slopes.scale[own] / line.model.seen.factors[own]


def _named(patterns: Sequence[str], known: Mapping[str, Any]) -> list[str]:
    keys: list[str] = []
    for pattern in patterns:
        found = [pattern] if pattern in known else [key for key in known if fnmatchcase(key, str(pattern))]
        if not found:
            raise ModelError(f"{pattern!r} names no parameter; there are {', '.join(known)}")
        keys += [key for key in found if key not in keys]
    return keys
