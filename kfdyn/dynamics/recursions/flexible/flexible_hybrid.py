"""Hybrid dynamics where bodies bend: hinges prescribed and modes free is the usual manipulation, or any other share.

A prescribed mode is a missing measurement as a prescribed dof of a hinge is: P a of it joins z, it is not measured, and
its force is read off what the measured ones leave, tau = h P⁺λ⁺ + h z⁺.
"""

from kfdyn.dynamics.recursions.flexible.flexible_filter import FlexibleFilter, flexible_entry
from kfdyn.dynamics.recursions.flexible.flexible_modes import Modes
from kfdyn.dynamics.recursions.hybrid import ANSWERS, GIVEN, MARKS, Hybrid, hybrid_dynamics
from kfdyn.sweeps.control_flow import if_, loop


class HeldModes(Modes):
    """Modes of which some are prescribed: the others are measured, these are read."""

    def marked(self, mark, modes):
        """Mark the modes that are prescribed (1) or free (0)."""
        for i in modes:
            for _ in if_(self.filter.row.prescribed[self.flex.v + i] == mark):
                yield i

    def measured(self, backwards=False):
        """The free modes."""
        return self.marked(0, super().measured(backwards))

    def met(self, i):
        """Later modes, and earlier ones that are prescribed: of these what later modes and the hinge see."""
        yield from super().met(i)
        for k in self.marked(1, loop(i)):
            yield k, self.row(k)[i], i + 1

    def prior(self):
        """P and z, z with P a of the prescribed modes; R is part of M_ff."""
        state = super().prior()
        for i in self.marked(1, loop(self.n)):
            a = self.filter.row.known[self.flex.v + i]
            for k in loop(i):
                self.z[k] += self.row(k)[i] * a
            for k in loop(self.n, i):
                self.z[k] += self.row(i)[k] * a
            P, z = state.get()
            state.set(P, z + a * self.six(i))
        return state

    def smoothed(self):
        """Before the free modes, forces of the prescribed ones, whose accelerations z has had its part of."""
        costate = self.filter.bodies[self.body.t].eta
        for i in self.marked(1, loop(self.n)):
            self.filter.row.all_tau[self.flex.v + i] = self.z[i] + self.six(i).dot(costate)
            self.z[i] = 0.0
        super().smoothed()
        for i in self.marked(1, loop(self.n)):  # the attachments meet all accelerations
            self.z[i] = self.filter.row.known[self.flex.v + i]


class FlexibleHybrid(FlexibleFilter, Hybrid):
    """A filter some of whose bodies bend and some of whose measurements are missing."""

    modes_of = HeldModes


def flexible_hybrid_dynamics(f):
    """All of tau and a of hinges and modes, given tau of the free ones and a of those prescribed."""
    return hybrid_dynamics(f)


FLEXIBLE_HYBRID = flexible_entry(flexible_hybrid_dynamics, FlexibleHybrid, GIVEN, ANSWERS, MARKS)
