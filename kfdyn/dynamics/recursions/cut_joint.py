"""Cut joints in lanes: the loops' rows are filtered like forces, update the innovations, and one scatter does the rest.

A row of a loop is a pair of forces. Filtered hinge by hinge to the world, E = (1 − HψK)J* is what the dofs see of it;
with the filter's own ν and d (THEORY sections 4 and 12)

    Ω = J𝓜⁻¹J* = E*D⁻¹E,     J a + J̇v = E*ν + Σ x*η + drift,     (Ω + R) f = c − (J a + J̇v),     ν ← ν + D⁻¹E f

so that the smoother runs once, on innovations that know of the loops. Dependent rows are those whose pivots are
nothing but rounding: they are left out, and must agree with the others. Where a pivot is neither, or they do not agree,
a row of the batch has no answer here; the long way then finds the rank, or the words.
"""

from kfdyn.dynamics.recursions.articulated import Filter, everything
from kfdyn.dynamics.recursions.elimination import factor, solve_upper
from kfdyn.dynamics.recursions.forward import FORCES, GRAVITY
from kfdyn.multibody.recursions.energy import Q, V
from kfdyn.multibody.recursions.loop_rows import ENDS, LOOPS, MOST, LoopRows
from kfdyn.multibody.recursions.outward import sweep_outward
from kfdyn.multibody.recursions.robot import ROBOT, outward
from kfdyn.multibody.recursions.spatial import Spatial
from kfdyn.multibody.recursions.workspace import Nowhere
from kfdyn.sweeps.algebra import Vec3
from kfdyn.sweeps.control import carried, loop, when
from kfdyn.sweeps.entry import Entry, Given, Space
from kfdyn.sweeps.functions import absolute, root, smaller
from kfdyn.sweeps.memory import clear
from kfdyn.sweeps.records import Fields
from kfdyn.sweeps.values import choice

#: Pivots below this part of what they are made of are rounding; above the other they leave twelve digits.
ROUNDING, REGULAR = 1e-14, 1e-4

#: What dependent rows may ask for differently, as part of what rows ask for.
CONSISTENT = 1e-7


class CutRows(LoopRows):
    """The rows of the loops, filtered: beside what they show, Ω and what solves for the forces."""

    def __init__(self, robot, row, f):
        super().__init__(robot, row, f.rest)
        self.filter, self.moving, self.bodies, self.rows_of_H = f, f.moving, f.bodies, f.rows_of_H

    @staticmethod
    def layout(robot, row):
        """The rows', what Ω's diagonal is made of before anything cancels, 1/√ of that, c − (J a + J̇v) or forces, Ω."""
        n = row.rows
        return {**LoopRows.layout(robot, row), "made_of": n, "scale": n, "force": n, "Omega": n * n}

    @classmethod
    def size(cls, robot, row):
        """How many numbers it works in, with the filter."""
        f = Filter(robot, row, Nowhere(), moving=False)
        return f.taken + cls(robot, row, f).taken

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

    def _walk(self, a, b, first, count):
        """The world's acceleration is −g.

        The bodies' is g more than the filter says, which a row does not see: its forces on a and b are a pair.
        """
        super()._walk(a, b, first, count)
        if self.moving:
            g = Vec3(*(self.row.gravity[i] for i in range(3)))
            for c in loop(count):
                out, pull = self.forces[first + c], self.columns[c].h.v + self.columns[MOST + c].h.v
                out.drift = out.drift - pull.dot(g)

    def solve(self):
        """Forces of the rows by L D L*, dependent ones left out; 1, or −1 where they are not found."""
        rows, Omega, scale, force, row = self.row.rows, self.Omega, self.scale, self.force, self.row
        none = everything(self.robot, 0.0)
        fine, left, most, rank = (carried(none + x) for x in (1.0, 0.0, 0.0, 0.0))
        for r in loop(rows):
            asked = carried(none - self.forces[r].drift)
            for _ in when(row.reference.given):
                asked.set(asked.get() + row.reference[r])
            force[r] = asked.get()
            for _ in when(row.noise.given):
                Omega[r * rows + r] += row.noise[r]
            made_of = self.made_of[r]
            scale[r] = 1.0 / root(choice(made_of > 0.0, made_of, none + 1.0))
            most.set(larger(most.get(), absolute(asked.get()) * scale[r]))

        def inverted(j, pivot):
            part = (pivot * scale[j]) * scale[j]
            kept, dropped = part > REGULAR, part <= ROUNDING
            fine.set(choice(kept | dropped, fine.get(), none - 1.0))
            left.set(choice(kept, left.get(), larger(left.get(), absolute(force[j]) * scale[j])))
            rank.set(rank.get() + choice(kept, none + 1.0, none))
            return choice(kept, 1.0 / choice(kept, pivot, none + 1.0), none)

        factor(Omega, rows, inverted, force)
        solve_upper(Omega, rows, force)
        agree = left.get() <= CONSISTENT * most.get()
        row.rank[0] = rank.get()
        return choice(agree, fine.get(), none - 1.0)

    def innovate(self):
        """ν ← ν + D⁻¹E f."""
        nv, dofs = self.robot.nv, self.filter.dofs
        for i in loop(nv):
            total = carried(everything(self.robot, 0.0))
            for r in loop(self.row.rows):
                total.set(total.get() + self.seen[r * nv + i] * self.force[r])
            dofs[i].nu = dofs[i].nu + dofs[i].inverse * total.get()
        for r in loop(self.row.rows):
            self.row.force[r] = self.force[r]


def larger(a, b):
    """The larger of two numbers, lane by lane."""
    return choice(a < b, b, a)


def cut_joint(robot, row, work):
    """Accelerations and forces of a system with loops; beside forward dynamics some 40 flops a row and hinge."""
    f = Filter(robot, row, work, moving=True)
    sweep_outward(robot, row, f.work, f.H, moving=True)
    least = f.gather()
    rows = CutRows(robot, row, f)
    rows.write()
    fine = rows.solve()
    rows.innovate()
    f.scatter()
    return smaller(least, fine)


def begin(robot, row, work):
    """What stays from row to row."""
    f = Filter(robot, row, work, moving=True)
    f.begin()
    CutRows(robot, row, f).begin()


CUT_JOINT = Entry(
    cut_joint,
    ROBOT,
    [
        *LOOPS,
        Q,
        V,
        Given("tau", ("nv",)),
        FORCES,
        GRAVITY,
        ENDS,
        Given("noise", ("rows",), optional=True),
        Given("reference", ("rows",), optional=True),
    ],
    [Given("a", ("nv",)), Given("force", ("rows",)), Given("rank", ())],
    Space(CutRows.size, begin),
)


def loop_responses(robot, row, work):
    """Ω = J𝓜⁻¹J*, what its diagonal is made of, and 𝓜⁻¹J* of the loops' rows: a scatter for each of them."""
    f = Filter(robot, row, work, moving=False)
    sweep_outward(robot, row, f.work, f.H, moving=False)
    least = f.gather()
    rows = CutRows(robot, row, f)
    rows.write()
    nv, count, nothing = robot.nv, row.rows, Spatial.zero()
    for r in loop(count):
        row.made_of[r] = rows.made_of[r]
        for c in loop(r + 1):
            row.Omega[r * count + c] = rows.Omega[r * count + c]
            row.Omega[c * count + r] = rows.Omega[r * count + c]
        for i in loop(nv):
            f.dofs[i].nu = f.dofs[i].inverse * rows.seen[r * nv + i]
        for body in outward(robot):
            f.bodies[body.t].eta = nothing
        f.row = Fields()  # where the scatter of the row's unit force puts its accelerations
        f.row.a = row.response.part(r * nv)
        for body in outward(robot):
            f.smoothed(body)
    return least


LOOP_RESPONSES = Entry(
    loop_responses,
    ROBOT,
    [*LOOPS, Q, ENDS],
    [Given("Omega", ("rows", "rows")), Given("made_of", ("rows",)), Given("response", ("rows", "nv"))],
    Space(CutRows.size, begin),
)

__all__ = ["CUT_JOINT", "LOOP_RESPONSES"]
