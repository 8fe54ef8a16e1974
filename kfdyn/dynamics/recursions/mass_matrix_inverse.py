"""The inverse of the mass matrix: filter and smoother for all unit measurements at once, hinge by hinge.

Column i is a measurement of 1 at dof i and 0 elsewhere. On its way to the root the filter carries z(i), on its way back
the smoother λ(i), six numbers each, kept for all columns side by side: at hinge k all columns outboard are served
together, and none waits for another. Entries of unrelated dofs k, i come from z(k) and λ(i) at the body where their
branches meet (THEORY section 4): 𝓜⁻¹(k, i) = −z(k)* λ(i).
"""

from kfdyn.dynamics.recursions.articulated import Filter, everything
from kfdyn.multibody.recursions.given import Q
from kfdyn.multibody.recursions.robot import KINDS, REVOLUTE, SCREW, SLIDE, children, dofs, outward
from kfdyn.multibody.recursions.robot_entry import entry, put_both
from kfdyn.multibody.recursions.spatial import Spatial
from kfdyn.sweeps.control_flow import if_, loop, loop_vars, switch
from kfdyn.sweeps.entry import Given
from kfdyn.sweeps.memory import clear
from kfdyn.sweeps.values import where


class Units(Filter):
    """A filter, and the columns of the inverse on their way inward and outward."""

    def __init__(self, robot, row, work):
        super().__init__(robot, row, work)
        self.columns, self.snapped = self.take_rows(SCREW, robot.nv), self.take_rows(SCREW, robot.snaps)
        self.entries = row.matrix if robot.alone and hasattr(row, "matrix") else self.take(robot.nv * robot.nv)

    def begin(self):
        """Slot 0, the world, and the entries between trees, which stay 0."""
        super().begin()
        clear(self.entries, self.robot.nv * self.robot.nv)

    def filtered(self, body, *more):
        """P of a body as always; then all columns outboard."""
        super().filtered(body, *more)
        for _ in if_(body.snap >= 0):
            place = 6 * (body.snap - body.own_end)
            for c in loop(6 * body.column_end, 6 * body.own_end):
                self.snapped.memory[place + c] = self.columns.memory[c]
        for kind in switch(body.kind, KINDS):
            if kind in (REVOLUTE, SLIDE):
                self._measure_one(body, kind)
            else:
                self._measure_many(body)

    def _measure_one(self, body, kind):
        """−ε = h z of all columns outboard of a hinge, put in entries; z⁺ = z + g ε, φ z⁺ (R86 8.3–8.8)."""
        h, l, gain = self.one_dof(body, kind)
        for c in loop(body.column_end, body.own_end):
            z = self.columns[c].h
            pull = h.dot(z)
            self.entries[body.v * self.robot.nv + self.robot.entries[c]] = pull
            self.columns[c].h = z.force_shifted(l) - pull * gain
        self.columns[body.own_end - 1].h = gain

    def _measure_many(self, body):
        """The same dof by dof, those of the hinge itself included: −1 is what a dof sees of its own column."""
        nv = self.robot.nv
        l, none = self.bodies[body.t].l, everything(self.robot, 0.0)
        for c in loop(body.column_end, body.column):
            j, outboard = self.robot.entries[c], c >= body.own_end
            state = loop_vars(Spatial.of([none] * 6))
            for _ in if_(outboard):
                state.set(self.columns[c].h)
            for i in loop(body.v_end, where(outboard, body.v, j)):
                pull, own = loop_vars(self.rows_of_H[i].h.dot(state.get())), (c < body.own_end) & (i == j)
                for _ in if_(own):
                    pull.set(none - 1.0)
                self.entries[i * nv + j] = pull.get()
                state.set(state.get() - pull.get() * self.dofs[i].gain)
            self.columns[c].h = state.get().force_shifted(l)

    def scatter_columns(self):
        """From nothing at the world on, body by body."""
        clear(self.columns.memory, 6 * self.robot.nv)
        for body in outward(self.robot):
            self._answer(body)

    def _answer(self, body):
        """λ⁺ = φ*λ(p), a = ν − g*λ, λ += h*a of all columns outboard of a hinge and its own (R86 8.10–8.13)."""
        for kind in switch(body.kind, KINDS):
            if kind in (REVOLUTE, SLIDE):
                self._answer_one(body, kind)
            else:
                self._answer_many(body)
        for _ in if_(body.snap >= 0):
            self._meet(body)

    def _answer_one(self, body, kind):
        h, l, gain = self.one_dof(body, kind)
        i, nv, inverse = body.v, self.robot.nv, self.dofs[body.v].inverse
        self.entries[i * nv + i] = inverse - gain.dot(self.columns[body.own_end - 1].h)
        for c in loop(body.column_end, body.own_end):
            costate, j = self.columns[c].h, self.robot.entries[c]
            pull = self.entries[i * nv + j] * inverse
            rate = (-pull - gain.w.dot(costate.w)) - gain.v.dot(costate.v)
            put_both(self.entries, nv, i, j, rate)
            self.columns[c].h = h.added_to(costate.motion_shifted(l), rate)

    def _answer_many(self, body):
        nv = self.robot.nv
        l = self.bodies[body.t].l
        for c in loop(body.column_end, body.column):
            j, outboard = self.robot.entries[c], c >= body.own_end
            state = loop_vars(self.columns[c].h.motion_shifted(l))
            for i in dofs(self.robot, body, backwards=True):
                costate, dof = state.get(), self.dofs[i]
                rate = loop_vars(-dof.gain.dot(costate))
                for _ in if_(outboard | (i >= j)):
                    rate.set(rate.get() - self.entries[i * nv + j] * dof.inverse)
                a = rate.get()
                for _ in if_(outboard | (i <= j)):
                    put_both(self.entries, nv, i, j, a)
                state.set(costate + a * self.rows_of_H[i].h)
            self.columns[c].h = state.get()

    def _meet(self, body):
        """Entries between the branches that meet in a body."""
        for child in children(self.robot, body):
            for c in loop(child.column_end, child.column):
                costate, i = self.columns[c].h, self.robot.entries[c]
                for j, z in self.kept_columns(body, body.column_end, child.column_end):
                    put_both(self.entries, self.robot.nv, i, j, -z.dot(costate))

    def kept_columns(self, body, last, first):
        """Over columns ``first`` … ``last`` outboard of a body that branches: the dof, and z as it was there."""
        for c in loop(last, first):
            yield self.robot.entries[c], self.snapped[body.snap - body.own_end + c].h


def mass_matrix_inverse(units):
    """𝓜⁻¹, symmetric to the bit; no answer where forward dynamics has none.

    𝓜⁻¹ = (1 − HψK)* D⁻¹ (1 − HψK) on unit vectors (SKO "mass-inverse"): O(N²), half of it by symmetry.
    """
    units.sweep_outward(moving=False)
    least = units.gather()
    units.scatter_columns()
    units.row.matrix.copy(units.entries, units.robot.nv * units.robot.nv)
    return least


MASS_MATRIX_INVERSE = entry(mass_matrix_inverse, Units, [Q], [Given("matrix", ("nv", "nv"))], unroll=16)
