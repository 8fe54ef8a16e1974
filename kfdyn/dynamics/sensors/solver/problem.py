"""Problem: states, sensors and readings, checked, and grouped by which readings are missing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.dynamics.sensors.dofs import expect_served
from kfdyn.dynamics.sensors.sensor import Array, Index, Sensor
from kfdyn.dynamics.sensors.solver.flexible_terms import flexible_terms
from kfdyn.dynamics.sensors.solver.joins import independent_rows
from kfdyn.dynamics.sensors.solver.layout import Layout, Pattern, make_layout
from kfdyn.errors import ModelError, ShapeError, as_list
from kfdyn.multibody import FlexibleSystem, LinkTerms, System
from kfdyn.multibody.calls.arguments import batch, checked, configuration
from kfdyn.multibody.links import open_terms
from kfdyn.multibody.parts.body import as_floats

# Readings that are told to be there or not by one number.
BITS = 30


@dataclass(frozen=True, eq=False)
class Problem:
    """B states with their readings, flat; ``lead`` are the leading axes they came with."""

    system: System
    sensors: tuple[Sensor, ...]
    lead: tuple[int, ...]
    q: Array
    v: Array
    gravity: Array
    readings: list[Array]
    groups: list[Group]

    @property
    def size(self) -> int:
        """Number of states."""
        return len(self.q)

    def layout(self, group: Group) -> Layout:
        """Return the places where the readings of a group of states enter."""
        return make_layout(self.system, self.sensors, group.pattern, self.loop_rows)

    @property
    def loop_rows(self) -> tuple[tuple[int, ...], ...]:
        """Choose the rows of each loop that do not follow from others."""
        return independent_rows(self.system, self.q[0].tobytes()) if self.system.loops and self.size else ()

    @property
    def bias(self) -> Array:
        """The biases of all sensors, one after the other."""
        return _bias(self.system, self.sensors)

    @cached_property
    def clean_readings(self) -> Array:
        """All readings (B, ·) less biases, zero where missing."""
        return np.nan_to_num(np.concatenate(self.readings, axis=1)) - self.bias if self.readings else self.bias

    def terms(self, members: Index) -> LinkTerms:
        """Terms of some states: of a rigid system those of its open tree."""
        q, v, gravity = self.q[members], self.v[members], self.gravity[members]
        if isinstance(self.system, FlexibleSystem):
            return flexible_terms(self.system, q, v, gravity)
        return open_terms(self.system, q, v, gravity=gravity)


@lru_cache(maxsize=64)
def _bias(system: System, sensors: tuple[Sensor, ...]) -> Array:
    return np.concatenate([np.zeros(0), *(sensor.biases(system) for sensor in sensors)])


def make_problem(
    system: System,
    q: ArrayLike,
    v: ArrayLike | None,
    sensors: Sequence[Sensor],
    readings: Sequence[ArrayLike | None],
    gravity: ArrayLike | None,
) -> Problem:
    """Check and broadcast what :func:`estimate_dynamics` is given."""
    expect_served(system)
    made = check_sensors(sensors)
    given = check_readings(system, made, readings)
    v_in = np.zeros(system.nv) if v is None else checked(system, v, (system.nv,), "v")
    g = system.gravity if gravity is None else checked(system, gravity, (3,), "gravity")
    arguments = {"q": (configuration(system, q), 1), "v": (v_in, 1), "gravity": (g, 1)}
    arguments |= {f"reading of {sensor} ({i})": (array, 1) for i, (sensor, array) in enumerate(zip(made, given))}
    lead, (q_flat, v_flat, g_flat, *flat) = batch(system, **arguments)
    return Problem(system, made, lead, q_flat, v_flat, g_flat, list(flat), group_by_missing(list(flat), len(q_flat)))


class Group(NamedTuple):
    """States (indices of the flat batch) whose readings lack the same entries."""

    pattern: Pattern
    members: Index

    def parts(self, count: int) -> Iterator[Group]:
        """Yield its states, some at a time."""
        for first in range(0, len(self.members), count):
            yield self._replace(members=self.members[first : first + count])


def check_sensors(sensors: Sequence[Sensor], what: str = "sensor") -> tuple[Sensor, ...]:
    """Return the sensors as a tuple, or say which is none."""
    out = as_list(sensors, f"{what}s", "write [kf.sensors.JointTorque(cov), ...]")
    for i, sensor in enumerate(out):
        if not isinstance(sensor, Sensor):
            raise ModelError(f"{what} {i} is a {type(sensor).__name__}, not one of kf.sensors; build it with cov")
    return out


def check_readings(system: System, sensors: tuple[Sensor, ...], readings: Sequence[ArrayLike | None]) -> list[Array]:
    """Readings (..., size), one a sensor, NaN where missing."""
    given = as_list(readings, "readings", "give one entry a sensor, None for a prior")
    if len(given) != len(sensors):
        raise ShapeError(f"{len(given)} readings for {len(sensors)} sensors; give one entry a sensor, None for a prior")
    out = []
    for sensor, reading in zip(sensors, given):
        size = sensor.size(system)
        if reading is None:
            if not sensor.prior:
                raise ModelError(f"{sensor}: its reading is None; give NaN for one that is missing")
            out.append(np.zeros(size))
            continue
        array = as_floats(reading, f"reading of {sensor}")
        if array.ndim == 0 and size == 1:
            array = array[None]
        if array.ndim == 0 or array.shape[-1] != size:
            raise ShapeError(f"{sensor}: its reading must have shape (..., {size}), got {array.shape}")
        if np.isinf(array).any():
            raise ModelError(f"{sensor}: its reading has infinite entries; NaN is missing")
        if sensor.is_force and np.isnan(array).any():
            raise ModelError(f"{sensor}: a prior's mean cannot be missing; cov=np.inf leaves the force flat")
        out.append(array)
    return out


def group_by_missing(flat: list[Array], size: int) -> list[Group]:
    """Group B states by which readings they lack; ``flat`` are readings (B, size)."""
    if not flat:
        return [Group((), np.arange(size))]
    present = np.concatenate([~np.isnan(array) for array in flat], axis=1)
    cuts = np.cumsum([array.shape[1] for array in flat])[:-1]
    first, which = np.zeros(1, int), np.zeros(size, int)
    if size and not present.all():
        for at in range(0, present.shape[1], BITS):  # numbers are sorted faster than rows, and in the same order
            bits = present[:, at : at + BITS]
            key = (which << BITS) | (bits @ (1 << np.arange(bits.shape[1])[::-1]))
            _, first, which = np.unique(key, return_index=True, return_inverse=True)
    kinds = present[first] if size else np.ones((1, present.shape[1]), bool)
    return [
        Group(tuple(tuple(part.tolist()) for part in np.split(kind, cuts)), np.flatnonzero(which.reshape(-1) == i))
        for i, kind in enumerate(kinds)
    ]
