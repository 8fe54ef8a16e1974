"""The operational space compliance of frames: the filter's gains of all bodies, then a tree of those that matter.

Kept are bodies with frames, and bodies where branches with frames meet: fewer than 2k for k frames. A force on kept
body b is filtered hinge by hinge down to the next kept body p, or the world: X = ψ(p, b), and the hinges between answer
with S = Σ (h x)* d⁻¹ (h x), x being what has come to them of X. Then, from the roots to the leaves,

    Ω(b, b) = X* Ω(p, p) X + S,   Ω(b, c) = X* Ω(p, c) for all c kept before      THEORY section 4, SKO 48–50

and a frame is its body seen from a lever's length away.
"""

from kfdyn.dynamics.recursions.articulated import Filter
from kfdyn.multibody.recursions.given import Q
from kfdyn.multibody.recursions.robot import KINDS, REVOLUTE, SCREW, SLIDE, Body, dofs, outward
from kfdyn.multibody.recursions.robot_entry import entry, put, put_both, vector
from kfdyn.sweeps.algebra import Vec3
from kfdyn.sweeps.control_flow import if_, loop, loop_vars, switch, while_
from kfdyn.sweeps.entry import Given, Parameter
from kfdyn.sweeps.memory import clear
from kfdyn.sweeps.values import now
from kfdyn.sweeps.variables import local


class ForcePath(Filter):
    """A filter, and a force on a body that it follows inward: X column by column, h x, S row by row.

    What is above the diagonal of S is not used.
    """

    def __init__(self, robot, row, work):
        super().__init__(robot, row, work)
        self.X, self.seen, self.answer = self.take_rows(SCREW, 6), self.take(6), self.take(36)

    def ends_at(self, t):
        """Tell whether a force is followed no farther than to body t."""
        return t == 0

    def filter_force(self, t):
        """X = ψ(p, t) and S of unit forces on body t, p being the kept body next inboard, or the world; return p."""
        for i in range(36):
            self.X.memory[i] = 1.0 if i % 7 == 0 else 0.0
            self.answer[i] = 0.0
        at, going = local(t), local(1)
        for _ in while_(lambda: going != 0):
            body = Body(self.robot, now(at))
            for kind in switch(body.kind, KINDS):
                self._cross(body, kind)
            at.set(body.parent)
            for _ in if_(self.ends_at(body.parent)):
                going.set(0)
        return now(at)

    def _cross(self, body, kind):
        """x ← φ (x − g (h x)), dof by dof; of one dof φ g is what is known."""
        alone, l = kind in (REVOLUTE, SLIDE), self.bodies[body.t].l
        for i in (body.v,) if alone else dofs(self.robot, body):
            h, gain = self.one_row(body, kind) if alone else self.rows_of_H[i].h, self.dofs[i].gain
            for c in loop(6):
                x = self.X[c].h
                seen = h.dot(x)
                self.seen[c] = seen
                self.X[c].h = (x.force_shifted(l) if alone else x) - seen * gain
            self._add_answer(self.dofs[i].inverse)
        if not alone:
            for c in loop(6):
                self.X[c].h = self.X[c].h.force_shifted(l)

    def _add_answer(self, inverse):
        """S += (h x)* d⁻¹ (h x)."""
        for i in loop(6):
            weighed = inverse * self.seen[i]
            for j in loop(i + 1):
                self.answer[6 * i + j] = self.answer[6 * i + j] + weighed * self.seen[j]


class Compliance(ForcePath):
    """The workspace of the compliance: that of a path, blocks of Ω between kept bodies, the result."""

    def __init__(self, robot, row, work):
        super().__init__(robot, row, work)
        self.width = row.kept + 1
        self.blocks = self.take(36 * self.width * self.width)
        self.entries = self.take(row.wide * row.wide)

    def begin(self):
        """Prepare what stays from row to row."""
        super().begin()
        clear(self.blocks, 36 * self.width * self.width)

    def ends_at(self, t):
        """At the next body that is kept, or the world."""
        return (t == 0) | (self.row.rank[t] != 0)

    def answer_force(self, r, p):
        """Blocks of Ω between kept body r and those numbered before it, and its own; p is the next one inboard.

        Without one, r has nothing in common with any before it: those blocks are 0 and have never been anything else.
        """
        width, blocks = self.width, self.blocks
        for _ in if_(p != 0):
            for c in loop(r, 1):
                above, here, there = 36 * (width * p + c), 36 * (width * r + c), 36 * (width * c + r)
                for i in loop(6):
                    for j in loop(6):
                        value = self._column_by(6 * i, blocks, above + j, 6)
                        blocks[here + 6 * i + j] = value
                        blocks[there + 6 * j + i] = value
        own, above = 36 * (width * r + r), 36 * (width * p + p)
        for j in loop(6):
            for _ in if_(p != 0):
                for i in loop(6):  # a column of Ω(p, p) X; the place of h x is free now
                    self.seen[i] = self._column_by(6 * j, blocks, above + 6 * i, 1)
            for i in loop(6, j):
                value = loop_vars(self.answer[6 * i + j])
                for _ in if_(p != 0):
                    value.set(value.get() + self._column_by(6 * i, self.seen, 0, 1))
                put_both(blocks.part(own), 6, i, j, value.get())

    def _column_by(self, column, values, start, step):
        """Column of X times six numbers."""
        X = self.X.memory
        total = X[column] * values[start]
        for i in range(1, 6):
            total = total + X[column + i] * values[start + step * i]
        return total

    def shift_block(self, f, g):
        """Ω(f, g) from the bodies' origins to the frames', and its mirror image Ω(g, f)."""
        wide, row, entries = self.row.wide, self.row, self.entries
        block = self.blocks.part(36 * (self.width * row.rank[row.place[f]] + row.rank[row.place[g]]))
        left, right = (self.bodies[row.place[i]].R @ vector(row.arms, 3 * i) for i in (f, g))
        shift(block, 6, entries.part(wide * 6 * f + 6 * g), wide, left, right)
        for i in loop(6):
            for j in loop(6):
                for _ in if_((f != g) | (j < i)):
                    entries[wide * (6 * g + j) + 6 * f + i] = entries[wide * (6 * f + i) + 6 * g + j]


def shift(block, width, out, wide, left, right):
    """φ*(left) Ω φ(right): first the rows of a block, of which ``width`` numbers are one, then the columns."""
    for i in loop(6):
        x, y = vector(block, width * i), vector(block, width * i + 3)
        put(out, wide * i, x, y.plus_cross(x, right))
    for j in loop(6):
        x, y = (Vec3(*(out[wide * (half + k) + j] for k in range(3))) for half in (0, 3))
        for k, value in enumerate(y.plus_cross(x, left)):
            out[wide * (3 + k) + j] = value


def operational_space_compliance(sweep):
    """Ω of frames, ``arms`` (3 k,) away from bodies at ``place`` (k,), symmetric to the bit.

    O(N + k²): beside the filter about 150 flops for a hinge that is inboard of a frame, 400 for each pair of kept
    bodies, which ``rank`` numbers from 1. ``wide`` is 6 k.
    """
    row = sweep.row
    sweep.sweep_outward(moving=False)
    least = sweep.gather()
    for body in outward(sweep.robot):
        for _ in if_(row.rank[body.t] != 0):
            inboard = sweep.filter_force(body.t)
            sweep.answer_force(row.rank[body.t], row.rank[inboard])
    for i in loop(row.wide // 6):
        for j in loop(i + 1):
            sweep.shift_block(i, j)
    row.Omega.copy(sweep.entries, row.wide * row.wide)
    return least


COMPLIANCE = entry(
    operational_space_compliance,
    Compliance,
    [Q],
    [Given("Omega", ("wide", "wide"))],
    [
        Parameter("wide", "n"), Parameter("kept", "n"), Parameter("place", "i"), Parameter("arms", "f"),
        Parameter("rank", "i"),
    ],
)  # fmt: skip
