"""Cut joints in lanes: the loops' rows are filtered like forces, update the innovations, and one scatter does the rest.

A row of a loop is a pair of forces. Filtered hinge by hinge to the world, E = (1 − HψK)J* is what the dofs see of it;
with the filter's own ν and d (THEORY sections 4 and 12)

    Ω = J𝓜⁻¹J* = E*D⁻¹E,     J a + J̇v = E*ν + Σ x*η + drift,     (Ω + R) f = c − (J a + J̇v),     ν ← ν + D⁻¹E f

so that the smoother runs once, on innovations that know of the loops. Dependent rows are those whose pivots are
nothing but rounding: they are left out, and must agree with the others. Where a pivot is neither, or they do not agree,
a row of the batch has no answer here; the long way then finds the rank, or the words.
"""

from kfdyn.dynamics.recursions.articulated import Filter, everything
from kfdyn.dynamics.recursions.small_ldl import factor, solve_upper
from kfdyn.multibody.recursions.given import FORCES, GRAVITY, TAU, A, Q, V, changed
from kfdyn.multibody.recursions.loops.loop_rows import ENDS, LOOPS, MOST, LoopRows
from kfdyn.multibody.recursions.robot import outward
from kfdyn.multibody.recursions.robot_entry import entry, put_both, vector
from kfdyn.multibody.recursions.spatial import Spatial
from kfdyn.sweeps.control_flow import if_, loop, loop_vars
from kfdyn.sweeps.entry import Given
from kfdyn.sweeps.functions import maximum, minimum, sqrt
from kfdyn.sweeps.memory import clear
from kfdyn.sweeps.values import where

#: Pivots below this part of what they are made of are rounding; above the other they leave twelve digits.
ROUNDING, REGULAR = 1e-14, 1e-4

#: What dependent rows may ask for differently, as part of what rows ask for; beyond, rates tell whether it is a gap in
#: the digits of a file or a contradiction, and the long way knows them.
CONSISTENT = 1e-10


class CutRows(LoopRows):
    """The rows of the loops, filtered: beside what they show, Ω and what solves for the forces."""

    #: Light bodies on whose axes a row acts would hide heavy ones that it moves, if levers there counted more.
    shortest = 1e-3

    def __init__(self, f):
        super().__init__(f.robot, f.row, f.rest)
        self.filter, self.bodies, self.rows_of_H = f, f.bodies, f.rows_of_H

    @property
    def moving(self):
        """True if velocities are known, so that rows drift."""
        return self.filter.moving

    @staticmethod
    def layout(robot, row):
        """The rows', what Ω's diagonal is made of before anything cancels, 1/√ of that, c − (J a + J̇v) or forces, Ω."""
        n = row.rows
        return {**LoopRows.layout(robot, row), "made_of": n, "scale": n, "force": n, "Omega": n * n}

    def write(self):
        """Begin a state, and filter its rows."""
        clear(self.Omega, self.row.rows * self.row.rows)
        clear(self.made_of, self.row.rows)
        super().write()

    def show(self, r, i, x, seen, size):
        """Keep what dof i sees; ν tells the row's acceleration, the size what Ω is made of; x − g (h x) goes on."""
        kept, out = self.filter.dofs[i], self.forces[r]
        if self.moving:
            out.drift = out.drift + seen * kept.nu
        self.made_of[r] += kept.inverse * size
        return super().show(r, i, x, seen, size) - seen * kept.gain

    def shown(self, first, count, i):
        """Ω += (h x)* d⁻¹ (h x) with all rows before."""
        nv, rows, inverse = self.robot.nv, self.row.rows, self.filter.dofs[i].inverse
        for c in loop(first + count, first):
            weighed = inverse * self.seen[c * nv + i]
            for other in loop(c + 1):
                self.Omega[c * rows + other] += weighed * self.seen[other * nv + i]

    def _walk(self, a, b, first, count, size):
        """The world's acceleration is −g.

        The bodies' is g more than the filter says, which a row does not see: its forces on a and b are a pair.
        """
        super()._walk(a, b, first, count, size)
        if self.moving:
            g = vector(self.row.gravity)
            for c in loop(count):
                out, pull = self.forces[first + c], self.columns[c].h.v + self.columns[MOST + c].h.v
                out.drift = out.drift - pull.dot(g)

    def solve(self):
        """Forces of the rows by L D L*, dependent ones left out; 1, or −1 where they are not found."""
        rows, Omega, scale, force, row = self.row.rows, self.Omega, self.scale, self.force, self.row
        none = everything(self.robot, 0.0)
        fine, most, rank = (loop_vars(none + x) for x in (1.0, 0.0, 0.0))
        for r in loop(rows):
            asked = loop_vars(none - self.forces[r].drift)
            for _ in if_(row.reference.given):
                asked.set(asked.get() + row.reference[r])
            force[r] = asked.get()
            for _ in if_(row.noise.given):
                Omega[r * rows + r] += row.noise[r]
            made_of = self.made_of[r]
            scale[r] = 1.0 / sqrt(where(made_of > 0.0, made_of, 1.0))
            size = abs(asked.get()) * scale[r]
            most.set(maximum(most.get(), size))

        def inverted(j, pivot):
            part = (pivot * scale[j]) * scale[j]
            kept, dropped = part > REGULAR, part <= ROUNDING
            agrees = abs(force[j]) * scale[j] <= CONSISTENT * most.get()
            fine.set(where(kept | (dropped & agrees), fine.get(), -1.0))
            rank.set(where(kept, rank.get() + 1.0, rank.get()))
            return where(kept, 1.0 / where(kept, pivot, 1.0), 0.0)

        factor(Omega, rows, inverted, force)
        solve_upper(Omega, rows, force)
        row.rank[0] = rank.get()
        return fine.get()

    def innovate(self):
        """ν ← ν + D⁻¹E f."""
        nv, dofs = self.robot.nv, self.filter.dofs
        for i in loop(nv):
            total = loop_vars(everything(self.robot, 0.0))
            for r in loop(self.row.rows):
                total.set(total.get() + self.seen[r * nv + i] * self.force[r])
            dofs[i].nu = dofs[i].nu + dofs[i].inverse * total.get()
        for r in loop(self.row.rows):
            self.row.force[r] = self.force[r]


class CutJoint(Filter):
    """The workspace: that of the filter, and the rows of the loops behind it."""

    def __init__(self, robot, row, work):
        super().__init__(robot, row, work)
        self.loops = CutRows(self)
        self.take(self.loops.taken)

    def begin(self):
        """Prepare what stays from row to row."""
        super().begin()
        self.loops.begin()


def cut_joint(f):
    """Accelerations and forces of a system with loops; beside forward dynamics some 40 flops a row and hinge."""
    f.sweep_outward()
    least = f.gather()
    f.loops.write()
    fine = f.loops.solve()
    f.loops.innovate()
    f.scatter()
    return minimum(least, fine)


def loop_responses(f):
    """Ω = J𝓜⁻¹J*, what its diagonal is made of, and 𝓜⁻¹J* of the loops' rows: a scatter for each of them."""
    rows, row, nv, count, nothing = f.loops, f.row, f.robot.nv, f.row.rows, Spatial.zero()
    f.sweep_outward(moving=False)
    least = f.gather()
    rows.write()
    for r in loop(count):
        row.made_of[r] = rows.made_of[r]
        for c in loop(r + 1):
            put_both(row.Omega, count, r, c, rows.Omega[r * count + c])
        for i in loop(nv):
            f.dofs[i].nu = f.dofs[i].inverse * rows.seen[r * nv + i]
        for body in outward(f.robot):
            f.bodies[body.t].eta = nothing
        f.row = changed(row, a=row.response.part(r * nv))  # where a scatter of the row's unit force answers
        for body in outward(f.robot):
            f.smoothed(body)
    return least


CUT_JOINT = entry(
    cut_joint,
    CutJoint,
    [Q, V, TAU, FORCES, GRAVITY, ENDS, *(Given(name, ("rows",), optional=True) for name in ("noise", "reference"))],
    [A, Given("force", ("rows",)), Given("rank", ())],
    LOOPS,
)

LOOP_RESPONSES = entry(
    loop_responses,
    CutJoint,
    [Q, ENDS],
    [Given("Omega", ("rows", "rows")), Given("made_of", ("rows",)), Given("response", ("rows", "nv"))],
    LOOPS,
)

__all__ = ["CUT_JOINT", "LOOP_RESPONSES"]
