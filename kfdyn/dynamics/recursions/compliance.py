"""The operational space compliance of frames: the filter's gains of all bodies, then a tree of those that matter.

Kept are bodies with frames, and bodies where branches with frames meet: fewer than 2k for k frames. A force on kept
body b is filtered hinge by hinge down to the next kept body p, or the world: X = ψ(p, b), and the hinges between answer
with S = Σ (h x)* d⁻¹ (h x), x being what has come to them of X. Then, from the roots to the leaves,

    Ω(b, b) = X* Ω(p, p) X + S,   Ω(b, c) = X* Ω(p, c) for all c kept before      THEORY section 4, SKO 48–50

and a frame is its body seen from a lever's length away.
"""

from kfdyn.dynamics.recursions.articulated import Filter
from kfdyn.multibody.recursions.energy import Q
from kfdyn.multibody.recursions.outward import sweep_outward
from kfdyn.multibody.recursions.robot import KINDS, REVOLUTE, ROBOT, SCREW, SLIDE, Body, dofs, outward
from kfdyn.sweeps.algebra import Vec3
from kfdyn.sweeps.control import carried, cases, loop, when, while_
from kfdyn.sweeps.entry import Entry, Given, Parameter
from kfdyn.sweeps.memory import clear
from kfdyn.sweeps.values import local, now

#: Numbers of a path: X column by column 36, h x 6, S row by row 36 (what is above its diagonal is not used).
_SEEN, ANSWER, _PATH = 36, 42, 78


class Compliance:
    """The workspace of the compliance: the filter's, a path, blocks of Ω between kept bodies, the result."""

    def __init__(self, robot, row, work, moving=False):
        self.robot, self.row, self.filter = robot, row, Filter(robot, row, work, moving)
        self.width = row.kept + 1
        rest = self.filter.rest
        self.path, self.X = rest, SCREW.rows(rest)
        self.blocks = rest.part(_PATH)
        self.entries = rest.part(_PATH + 36 * self.width * self.width)

    @staticmethod
    def size(robot, row):
        """How many numbers it works in: row.wide is 6 k."""
        width = row.kept + 1
        return Filter.size(robot) + _PATH + row.wide * row.wide + 36 * width * width

    @staticmethod
    def moving_size(robot, row):
        """How many numbers it works in where it follows one frame of a robot that moves."""
        return Filter.size(robot) + _PATH + 36 + 36 * 4

    def filter_force(self, t):
        """X = ψ(p, t) and S of unit forces on body t, p being the kept body next inboard, or the world; return p."""
        for i in range(36):
            self.path[i] = 1.0 if i % 7 == 0 else 0.0
            self.path[ANSWER + i] = 0.0
        at, going = local(t), local(1)
        for _ in while_(lambda: going != 0):
            body = Body(self.robot, now(at))
            for kind in cases(body.kind, KINDS):
                if kind in (REVOLUTE, SLIDE):
                    h, l, gain = self.filter.one_dof(body, kind)
                    for c in loop(6):
                        x = self.X[c].h
                        seen = h.dot(x)
                        self.path[_SEEN + c] = seen
                        self.X[c].h = x.force_shifted(l) - seen * gain
                    self._add_answer(self.filter.dofs[body.v].inverse)
                else:
                    self._filter_at_hinge(body)
            at.set(body.parent)
            for _ in when((body.parent == 0) | (self.row.rank[body.parent] != 0)):
                going.set(0)
        return now(at)

    def _filter_at_hinge(self, body):
        f = self.filter
        l = f.bodies[body.t].l
        for i in dofs(self.robot, body):
            for c in loop(6):
                x = self.X[c].h
                seen = f.rows_of_H[i].h.dot(x)
                self.path[_SEEN + c] = seen
                self.X[c].h = x - seen * f.dofs[i].gain
            self._add_answer(f.dofs[i].inverse)
        for c in loop(6):
            self.X[c].h = self.X[c].h.force_shifted(l)

    def _add_answer(self, inverse):
        """S += (h x)* d⁻¹ (h x)."""
        for i in loop(6):
            weighed = inverse * self.path[_SEEN + i]
            for j in loop(i + 1):
                place = ANSWER + 6 * i + j
                self.path[place] = self.path[place] + weighed * self.path[_SEEN + j]

    def answer_force(self, r, p):
        """Blocks of Ω between kept body r and those numbered before it, and its own; p is the next one inboard.

        Without one, r has nothing in common with any before it: those blocks are 0 and have never been anything else.
        """
        width, blocks = self.width, self.blocks
        for _ in when(p != 0):
            for c in loop(r, 1):
                above, here, there = 36 * (width * p + c), 36 * (width * r + c), 36 * (width * c + r)
                for i in loop(6):
                    for j in loop(6):
                        value = self._column_by(6 * i, blocks, above + j, 6)
                        blocks[here + 6 * i + j] = value
                        blocks[there + 6 * j + i] = value
        own, above = 36 * (width * r + r), 36 * (width * p + p)
        for j in loop(6):
            for _ in when(p != 0):
                for i in loop(6):  # a column of Ω(p, p) X; the place of h x is free now
                    self.path[_SEEN + i] = self._column_by(6 * j, blocks, above + 6 * i, 1)
            for i in loop(6, j):
                value = carried(self.path[ANSWER + 6 * i + j])
                for _ in when(p != 0):
                    value.set(value.get() + self._column_by(6 * i, self.path, _SEEN, 1))
                blocks[own + 6 * i + j] = value.get()
                blocks[own + 6 * j + i] = value.get()

    def _column_by(self, column, values, start, step):
        """Column of X times six numbers."""
        total = self.path[column] * values[start]
        for i in range(1, 6):
            total = total + self.path[column + i] * values[start + step * i]
        return total

    def shift_block(self, f, g):
        """Ω(f, g) = φ* Ω φ from the bodies' origins to the frames', and its mirror image Ω(g, f)."""
        wide, row, entries = self.row.wide, self.row, self.entries
        block = 36 * (self.width * row.rank[row.place[f]] + row.rank[row.place[g]])
        right, left = self._arm(g), self._arm(f)
        rows = wide * 6 * f + 6 * g
        for i in loop(6):
            x, y = (Vec3(*(self.blocks[block + 6 * i + half + k] for k in range(3))) for half in (0, 3))
            for k, value in enumerate([*x, *y.plus_cross(x, right)]):
                entries[rows + wide * i + k] = value
        for j in loop(6):
            x, y = (Vec3(*(entries[rows + wide * (half + k) + j] for k in range(3))) for half in (0, 3))
            for k, value in enumerate(y.plus_cross(x, left)):
                entries[rows + wide * (3 + k) + j] = value
        for i in loop(6):
            for j in loop(6):
                for _ in when((f != g) | (j < i)):
                    entries[wide * (6 * g + j) + 6 * f + i] = entries[rows + wide * i + j]

    def _arm(self, f):
        """From the body's origin to the frame's, world orientation."""
        R = self.filter.bodies[self.row.place[f]].R
        return R @ Vec3(*(self.row.arms[3 * f + i] for i in range(3)))


def operational_space_compliance(robot, row, work):
    """Ω of frames, ``arms`` (3 k,) away from bodies at ``place`` (k,), symmetric to the bit.

    O(N + k²): beside the filter about 150 flops for a hinge that is inboard of a frame, 400 for each pair of kept
    bodies, which ``rank`` numbers from 1.
    """
    sweep = Compliance(robot, row, work)
    f = sweep.filter
    sweep_outward(robot, row, f.work, f.H, moving=False)
    least = f.gather()
    for body in outward(robot):
        for _ in when(row.rank[body.t] != 0):
            inboard = sweep.filter_force(body.t)
            sweep.answer_force(row.rank[body.t], row.rank[inboard])
    frames = row.wide // 6
    for i in loop(frames):
        for j in loop(i + 1):
            sweep.shift_block(i, j)
    row.Omega.copy(sweep.entries, row.wide * row.wide)
    return least


def begin(robot, row, work):
    """What stays from row to row."""
    sweep = Compliance(robot, row, work)
    sweep.filter.begin()
    clear(sweep.blocks, 36 * sweep.width * sweep.width)


COMPLIANCE = Entry(
    operational_space_compliance,
    ROBOT,
    [Q],
    [Given("Omega", ("wide", "wide"))],
    Compliance.size,
    begin,
    [
        Parameter("wide", "n"),
        Parameter("kept", "n"),
        Parameter("place", "i"),
        Parameter("arms", "f"),
        Parameter("rank", "i"),
    ],
)
