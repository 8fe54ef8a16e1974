"""Bodies that bend in the outward sweep: where their points are, and what these weigh.

A body's points are :class:`~kfdyn.multibody.flexible.body.Condensed`; numbers of a point or an attachment are r,
then Ψ of every mode, then B of every pair of them where there is one (THEORY section 17).
"""

from kfdyn.multibody.recursions.hinges import zeros
from kfdyn.multibody.recursions.outward import WORK
from kfdyn.multibody.recursions.robot import ROBOT
from kfdyn.multibody.recursions.robot_entry import put, vector
from kfdyn.multibody.recursions.spatial import Spatial
from kfdyn.sweeps.algebra import Sym3, Vec3
from kfdyn.sweeps.control_flow import if_, loop, loop_vars
from kfdyn.sweeps.records import Record, Table
from kfdyn.sweeps.values import where

#: What a body of the tree is: rigid; one that bends; a frame without mass on one that bends.
RIGID, BENT, ATTACHED = 0, 1, 2

#: Of a body that bends: modes, where they begin in q and v, its condensed points and where their numbers begin, whether
#: they have B, where K and then C and R begin among the numbers, and where its rows are in the workspace. Of an
#: attachment the same of the body it is on, its own numbers (Π_ω of every mode behind them), and the place of its Π.
FLEX = Record(form=int, modes=int, q=int, v=int, points=int, numbers=int, bends=int, matrices=int, rows=int, map=int)

#: The tables of a robot, with modes: ``most`` of one body, ``rows`` numbers that bodies and attachments keep.
FLEXIBLE = Table(**ROBOT.fields, flex=(int,), numbers=(float,), most=int, rows=int)

#: What the points of a body that bends are to its hinge, world orientation.
OWN = Record(moment=Sym3, first=Vec3, xi=Spatial)


class Bending:
    """The workspace of modes: coordinates and rates of one body, shapes of one point; behind them what is kept."""

    def __init__(self, robot, row, work):
        self.robot, self.row, most = robot, row, robot.most
        self.eta, self.rate, self.psi, self.kept = (work.part(i) for i in (0, most, 2 * most, 5 * most))

    @staticmethod
    def size(robot):
        """The size of the workspace, in numbers."""
        return 5 * robot.most + robot.rows

    def flex(self, body):
        """Indices of a body's modes."""
        return FLEX.rows(self.robot.flex)[body.t]

    def look(self, flex):
        """Take coordinates and rates of the modes."""
        for i in loop(flex.modes):
            self.eta[i] = self.row.q[flex.q + i]
            self.rate[i] = self.row.v[flex.v + i]

    def elastic_force(self, flex, i):
        """Kη + Cη̇ of mode i."""
        numbers, n, force = self.robot.numbers, flex.modes, loop_vars(zeros(self.robot).x)
        for k in loop(n):
            at = flex.matrices + i * n + k
            force.set(force.get() + numbers[at] * self.eta[k] + numbers[at + n * n] * self.rate[k])
        return force.get()

    def shape(self, i):
        """Ψ + Bη of mode i at the point that was looked at."""
        return vector(self.psi, 3 * i)

    def column(self, flex, i):
        """Π of mode i at an attachment."""
        return Spatial.of([self.kept[flex.map + 6 * i + k] for k in range(6)])

    def points(self, flex):
        """Over the condensed points of a body: its weight u, and what :meth:`point` tells."""
        n = flex.modes
        stride = 4 + 3 * n + where(flex.bends != 0, 3 * n * n, 0)
        for j in loop(flex.points):
            at = flex.numbers + j * stride
            yield self.robot.numbers[at], self.point(flex, at + 1)

    def point(self, flex, at):
        """s = r + Ψη + ½η*Bη, its rate, and η̇*Bη̇; shapes Ψ + Bη go to ``psi``."""
        numbers, n, none = self.robot.numbers, flex.modes, zeros(self.robot)
        state = loop_vars(vector(numbers, at) + none, none, none)
        for i in loop(n):
            psi, curved = loop_vars(vector(numbers, at + 3 + 3 * i) + none), loop_vars(none)
            straight = psi.get()
            for _ in if_(flex.bends != 0):
                for k in loop(n):
                    B = vector(numbers, at + 3 + 3 * n + 3 * (i * n + k))
                    psi.set(psi.get() + self.eta[k] * B)
                    curved.set(curved.get() + self.rate[k] * B)
            s, ds, bent = state.get()
            eta, rate, shape = self.eta[i], self.rate[i], psi.get()
            put(self.psi, 3 * i, shape)
            state.set(s + (0.5 * eta) * (straight + shape), ds + rate * shape, bent + rate * curved.get())
        return state.get()


def weigh(bending, body, work):
    """M_m and ξ of a body that bends: rows [M_ff, M_fr] of its modes, their ξ, and OWN of its hinge.

    Sums over condensed points in the body's axes, then turned to the world's. Rows have n + 6 numbers, of which those
    from the diagonal on count; R of an implicit step is part of M_ff, where it does the same (modes are not passed on).
    """
    robot, flex = bending.robot, bending.flex(body)
    n, numbers, kept = flex.modes, robot.numbers, bending.kept
    wide, z_at = n + 6, flex.rows + n * (n + 6)
    here = WORK.rows(work)[body.t]
    bending.look(flex)
    for i in loop(n):
        for k in loop(n):
            kept[flex.rows + i * wide + k] = zeros(robot).x + numbers[flex.matrices + (i + 2 * n) * n + k]
        for k in range(6):
            kept[flex.rows + i * wide + n + k] = zeros(robot).x
        kept[z_at + i] = bending.elastic_force(flex, i)
    R = here.R
    omega = R.turned_back(here.omega)
    none = zeros(robot)
    total = loop_vars(Sym3(*([none.x] * 6)), none, Spatial(none, none))
    for u, (s, ds, bent) in bending.points(flex):
        gamma = bent + omega.cross(omega.cross(s) + 2.0 * ds)
        for i in loop(n):
            psi, row = bending.shape(i), flex.rows + i * wide
            for k in loop(n, i):
                kept[row + k] += psi.dot(bending.shape(k))
            for k, x in enumerate([*s.cross(psi), *(u * psi)]):
                kept[row + n + k] += x
            kept[z_at + i] += psi.dot(gamma)
        moment, first, xi = total.get()
        x, y, z = s
        more = Sym3(y * y + z * z, -(x * y), -(x * z), x * x + z * z, -(y * z), x * x + y * y)
        total.set(moment + more, first + u * s, xi + Spatial(s.cross(gamma), u * gamma))
    for i in loop(n):
        at = flex.rows + i * wide + n
        put(kept, at, R @ vector(kept, at))
        put(kept, at + 3, R @ vector(kept, at + 3))
    moment, first, xi = total.get()
    turned = [R @ (moment @ R.row(i)) for i in range(3)]
    own = OWN.rows(kept.part(z_at + n))[0]
    own.moment = Sym3(turned[0].x, turned[1].x, turned[2].x, turned[1].y, turned[2].y, turned[2].z)
    own.first, own.xi = R @ first, Spatial(R @ xi.w, R @ xi.v)
