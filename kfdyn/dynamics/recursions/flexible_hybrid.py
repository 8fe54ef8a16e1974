"""Hybrid dynamics where bodies bend: hinges prescribed and modes free is the usual manipulation, or any other share.

A prescribed mode is a missing measurement as a prescribed dof of a hinge is: P a of it joins z, it is not measured, and
its force is read off what the measured ones leave, tau = h P⁺λ⁺ + h z⁺.
"""

from kfdyn.dynamics.recursions.flexible import FlexibleFilter
from kfdyn.dynamics.recursions.flexible_modes import Long, Mode, Modes
from kfdyn.dynamics.recursions.hybrid import ANSWERS, GIVEN, MARKS, Hybrid, answered
from kfdyn.multibody.recursions.bending import FLEXIBLE
from kfdyn.multibody.recursions.spatial import Spatial
from kfdyn.sweeps.control import loop, when
from kfdyn.sweeps.entry import Entry


class HeldModes(Modes):
    """Modes of which some are prescribed: the others are measured, these are read."""

    def marked(self, mark, backwards=False, last=None):
        """Modes that are prescribed (1) or free (0)."""
        for step in loop(self.n if last is None else last):
            i = self.n - 1 - step if backwards else step
            for _ in when(self.filter.row.prescribed[self.flex.v + i] == mark):
                yield i

    def six(self, i):
        """What the hinge sees of mode i."""
        at = i * (self.n + 6) + self.n
        return Spatial.of([self.rows[at + k] for k in range(6)])

    def prior(self):
        """P and z, z with P a of the prescribed modes; R is part of M_ff."""
        state, wide = super().prior(), self.n + 6
        for i in self.marked(1):
            a = self.filter.row.known[self.flex.v + i]
            for k in loop(i):
                self.z[k] += self.rows[k * wide + i] * a
            for k in loop(self.n, i):
                self.z[k] += self.rows[i * wide + k] * a
            P, z = state.get()
            state.set(P, Long(self, z.six + a * self.six(i)))
        return state

    def outputs(self, backwards=False):
        """The free modes."""
        for i in self.marked(0, backwards):
            yield Mode(self, i)

    def met(self, i):
        """Later modes, and earlier ones that are prescribed: of these what later modes and the hinge see."""
        yield from super().met(i)
        for k in self.marked(1, last=i):
            yield k, self.rows[k * (self.n + 6) + i], i + 1

    def arriving(self):
        """λ of the body; the forces of the prescribed modes at it, whose accelerations z has had its part of."""
        state = super().arriving()
        for i in self.marked(1):
            self.filter.row.all_tau[self.flex.v + i] = self.z[i] + self.six(i).dot(state.get().six)
            self.z[i] = 0.0
        return state

    def leave(self, costate):
        """The attachments meet all accelerations."""
        for i in self.marked(1):
            self.z[i] = self.filter.row.known[self.flex.v + i]


class FlexibleHybrid(FlexibleFilter, Hybrid):
    """A filter some of whose bodies bend and some of whose measurements are missing."""

    modes_of = HeldModes


def flexible_hybrid_dynamics(robot, row, work):
    """All of tau and a of hinges and modes, given tau of the free ones and a of those prescribed."""
    f = FlexibleHybrid(robot, row, work)
    f.sweep_outward()
    return answered(f)


def begin(robot, row, work):
    """Slot 0 and the world stay as they are from row to row."""
    FlexibleHybrid(robot, row, work).begin()


FLEXIBLE_HYBRID = Entry(
    flexible_hybrid_dynamics,
    FLEXIBLE,
    GIVEN,
    ANSWERS,
    lambda robot, row: FlexibleFilter.size(robot),
    begin,
    MARKS,
)
