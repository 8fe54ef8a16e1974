"""Hybrid dynamics: forward dynamics in which some measurements are missing and the accelerations given instead.

H*a of a prescribed dof joins η, and its gain is 0. Its force is read off what passes by: behind the free dofs of its
hinge the hinge's force is P⁺λ⁺ + z⁺, so tau = h P⁺ λ⁺ + h z⁺ + R a, of the same form as a free dof's acceleration.
"""

from kfdyn.dynamics.recursions.articulated import Filter, Many
from kfdyn.estimation.recursions.node_update import filter_node, smooth_node
from kfdyn.multibody.recursions.given import FORCES, GRAVITY, A, Q, V
from kfdyn.multibody.recursions.robot import REVOLUTE, dofs, outward
from kfdyn.multibody.recursions.robot_entry import entry
from kfdyn.sweeps.control_flow import if_, if_else, loop
from kfdyn.sweeps.entry import Given, Parameter
from kfdyn.sweeps.values import unboxed
from kfdyn.sweeps.variables import local


class Held(Many):
    """A body of whose dofs some are prescribed: the others are measured, these are read."""

    def outputs(self, backwards=False):
        """The free dofs."""
        for h in super().outputs(backwards):
            for _ in if_(self.filter.row.prescribed[h.i] == 0):
                yield h

    def given(self):
        """The prescribed dofs."""
        f = self.filter
        for i in dofs(f.robot, self.body):
            for _ in if_(f.row.prescribed[i] != 0):
                yield i

    def pass_on(self, P, z):
        """Keep what the prescribed dofs will feel, tau = ν − g λ⁺ with ν = h z⁺ + R a and g = −P⁺h; then as always."""
        f = self.filter
        for i in self.given():
            h, kept = f.rows_of_H[i].h, f.dofs[i]
            kept.gain = -P.applied(h)
            kept.nu = h.dot(z) + f.robot.armature[i] * f.row.known[i]
        super().pass_on(P, z)

    def arriving(self):
        """λ⁺, and the forces of the prescribed dofs at it."""
        state, f = super().arriving(), self.filter
        for i in self.given():
            kept = f.dofs[i]
            f.row.all_tau[i] = kept.nu - kept.gain.dot(state.get())
        return state


class Hybrid(Filter):
    """A filter some of whose measurements are missing."""

    def is_held(self, body):
        """Tell whether some dof of a body's hinge is prescribed."""
        held = local(0)
        for i in dofs(self.robot, body):
            for _ in if_(self.row.prescribed[i] != 0):
                held.set(1)
        return held != 0

    def prescribe(self, body):
        """η ← η + H_p* a_p; the row of a revolute hinge goes to H like those of the others."""
        here = self.bodies[body.t]
        for _ in if_(body.kind == REVOLUTE):
            self.rows_of_H[body.v].h = self.one_row(body, REVOLUTE)
        for i in dofs(self.robot, body):
            for _ in if_(self.row.prescribed[i] != 0):
                here.eta = here.eta + self.row.known[i] * self.rows_of_H[i].h

    def filtered(self, body, state=None):
        """Gather one body, prescribed or not."""
        for held in if_else(self.is_held(body)):
            if held:
                filter_node(Held(self, body, known=self.prior(body, state, prescribed=True)))
            else:
                super().filtered(body, state)

    def smoothed(self, body):
        """Scatter to one body."""
        for held in if_else(self.is_held(body)):
            if held:
                smooth_node(Held(self, body))
            else:
                super().smoothed(body)


def hybrid_dynamics(f):
    """All of tau and a, given tau of the free dofs and a of those prescribed (SKO "hybrid"), dof by dof."""
    robot, row = f.robot, f.row
    f.sweep_outward()
    for body in outward(robot):
        for _ in if_(f.is_held(body)):
            f.prescribe(body)
    least = f.gather()
    f.scatter()
    for i in loop(robot.nv):
        for given in if_else(row.prescribed[i] != 0):
            if given:
                row.a[i] = row.known[i]
            else:
                row.all_tau[i] = row.tau[i]
    return least


def _finite_where(mark):
    """Tell whether the entries with this mark are finite; the others are not looked at."""

    def sound(robot, row, array, first, last, width):
        fine = local(last >= first)
        for i in loop(width):
            for _ in if_(row.prescribed[i] == mark):
                for b in loop(last, first):
                    x = array[b * width + i]
                    fine.set(fine & (x - x == 0.0))
        return unboxed(fine)

    return sound


#: What a row of hybrid dynamics is given, what it answers, and what all rows have in common.
GIVEN = [
    Q, V, Given("tau", ("nv",), sound=_finite_where(0)), Given("known", ("nv",), sound=_finite_where(1)), FORCES,
    GRAVITY,
]  # fmt: skip
ANSWERS = [Given("all_tau", ("nv",)), A]
MARKS = [Parameter("prescribed", "i")]

HYBRID = entry(hybrid_dynamics, Hybrid, GIVEN, ANSWERS, MARKS)
