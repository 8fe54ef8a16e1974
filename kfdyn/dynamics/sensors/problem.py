"""Problem: states, sensors and readings, checked; it hands out factors, some states at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.dynamics.sensors.dofs import expect_served
from kfdyn.dynamics.sensors.factor import Factor
from kfdyn.dynamics.sensors.gather import gather, unlike, unsuited
from kfdyn.dynamics.sensors.general_position import in_general_position, terms_of
from kfdyn.dynamics.sensors.layout import Layout, make_layout
from kfdyn.dynamics.sensors.readings import Group, check_readings, check_sensors, group_by_missing
from kfdyn.dynamics.sensors.sensor import Array, Index, Sensor
from kfdyn.dynamics.sensors.sharing import independent_rows
from kfdyn.dynamics.sensors.undetermined import undetermined
from kfdyn.multibody import LinkTerms, System
from kfdyn.multibody.calls.arguments import batch, checked, configuration

# States factored at once: enough for numpy to forget its overhead, few enough to stay in memory.
AT_ONCE = 256


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
        """Where the readings of a group of states enter."""
        rows = independent_rows(self.system, self.q[0].tobytes()) if self.system.loops else ()
        return make_layout(self.system, self.sensors, group.pattern, rows)

    def parts(self) -> Iterator[tuple[Index, Factor]]:
        """Indices of states, and their factor, until all had their turn."""
        for group in self.groups:
            yield from self.parts_of(group, group.members)

    def parts_of(self, group: Group, members: Index) -> Iterator[tuple[Index, Factor]]:
        """The same of some states of a group."""
        layout = self.layout(group)
        for at in range(0, len(members), AT_ONCE):
            yield from self._suited(layout, members[at : at + AT_ONCE], general=True)

    def _suited(self, layout: Layout, members: Index, general: bool) -> Iterator[tuple[Index, Factor]]:
        """Factor as in general position; states that this does not suit get choices of their own, or are refused."""
        while members.size:
            kept = in_general_position(layout) if general else None
            factor = gather(layout, self.terms(members), None if kept is None else kept.choices)
            wrong = unsuited(factor) if kept is None else unlike(factor)
            if kept is None and wrong[0]:  # chosen for this very state, and still singular: so it is
                raise undetermined(layout, self.terms(members[:1]), self.lead, int(members[0])).error()
            if not wrong.any():
                yield members, factor
                return
            if not wrong.all():
                yield from self._suited(layout, members[~wrong], general)
            members, general = members[wrong], False

    def terms(self, members: Index) -> LinkTerms:
        """Terms of some states."""
        return terms_of(self.system, self.q[members], self.v[members], self.gravity[members])


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
