"""The mass matrix by composite bodies: a gather of ℛ, then walks from each hinge to the root (SKO "mass-algorithm")."""

from kfdyn.multibody.recursions.energy import Q
from kfdyn.multibody.recursions.hinges import zeros
from kfdyn.multibody.recursions.outward import WORK, axis_of, inertia_of, place_world, sweep_outward
from kfdyn.multibody.recursions.robot import REVOLUTE, ROBOT, SCREW, Body, dofs, inward
from kfdyn.multibody.recursions.spatial import Spatial
from kfdyn.sweeps.algebra import Sym3, Vec3
from kfdyn.sweeps.control import carried, either, loop, when, while_
from kfdyn.sweeps.entry import Entry, Given
from kfdyn.sweeps.memory import clear
from kfdyn.sweeps.records import Record
from kfdyn.sweeps.values import local, now

#: A composite body: moment of inertia about the hinge point, first moment. Its mass is a constant.
COMPOSITE = Record(J=Sym3, p=Vec3)


class Composites:
    """The workspace of the mass matrix."""

    def __init__(self, robot, row, work):
        self.robot, self.row, self.memory = robot, row, work
        at = robot.slots * COMPOSITE.width
        self.sums, self.work, self.bodies = COMPOSITE.rows(work), work.part(at), WORK.rows(work.part(at))
        at = at + (robot.n + 1) * WORK.width
        self.H, self.rows_of_H = work.part(at), SCREW.rows(work.part(at))
        self.entries = row.matrix if robot.alone and hasattr(row, "matrix") else work.part(at + robot.nv * SCREW.width)

    @staticmethod
    def size(robot):
        """How many numbers it works in."""
        width = SCREW.width + robot.nv
        return (robot.n + 1) * WORK.width + robot.nv * width + robot.slots * COMPOSITE.width

    def begin(self):
        """Slot 0, the world, and the entries between unrelated hinges, which stay 0."""
        clear(self.memory, COMPOSITE.width)
        clear(self.entries, self.robot.nv * self.robot.nv)
        place_world(self.work)

    def put(self, i, j, value):
        """𝓜(i, j) and 𝓜(j, i)."""
        nv = self.robot.nv
        self.entries[i * nv + j] = value
        self.entries[j * nv + i] = value

    def own(self, i, value):
        """𝓜(i, i)."""
        self.entries[i * self.robot.nv + i] = value

    def weigh(self, body):
        """ℛ of a body, what its hinge asks of the hinges inboard of it, and ℛ(p) += φ ℛ φ* (R86 7.9).

        The parallel axis theorem: J + 2 r·l 1 − r l* − l r* with r = p + m l / 2.
        """
        J, p = inertia_of(body, self.work)
        arrived, l, m = self.sums[body.arrives], self.bodies[body.t].l, body.all_mass
        J, p = J + arrived.J, p + arrived.p
        for revolute in either(body.kind == REVOLUTE):
            if revolute:
                w = axis_of(body.t, self.work)
                moment = J @ w
                self.own(body.v, w.dot(moment) + body.armature)
                self.walk(body, body.v, Spatial(moment, w.cross(p)))
            else:
                self._weigh_hinge(body, J, p, m)
        for _ in when(body.parent != 0):
            r = p + (0.5 * m) * l
            x, y, z, s = r.x * l.x, r.y * l.y, r.z * l.z, J.s
            out, base = self.sums[body.leaves], self.sums[body.base]
            out.J = base.J + Sym3(
                s[0] + 2.0 * (y + z), s[1] - r.x * l.y - l.x * r.y, s[2] - r.x * l.z - l.x * r.z,
                s[3] + 2.0 * (x + z), s[4] - r.y * l.z - l.y * r.z, s[5] + 2.0 * (x + y),
            )  # fmt: skip
            out.p = base.p + (p + m * l)

    def _weigh_hinge(self, body, J, p, m):
        for i in dofs(self.robot, body):
            h = self.rows_of_H[i].h
            f = Spatial((J @ h.w).plus_cross(p, h.v), (m * h.v).plus_cross(h.w, p))
            self.own(i, h.dot(f) + self.robot.armature[i])
            self.walk(body, i, f)

    def walk(self, body, i, f):
        """f = ℛ h of dof i, seen by dofs of its own hinge and by the hinges inboard: 𝓜(i, j) = h(j) φ f."""
        for other in loop(i, body.v):
            self.put(i, other, self.rows_of_H[other].h.dot(f))
        j, state = local(body.parent), carried(f.w, self.bodies[body.t].l)
        for _ in while_(lambda: j != 0):
            other = Body(self.robot, now(j))
            moment, l = state.get()
            moment = moment.plus_cross(l, f.v)
            for revolute in either(other.kind == REVOLUTE):
                if revolute:
                    self.put(i, other.v, axis_of(other.t, self.work).dot(moment))
                else:
                    for k in dofs(self.robot, other):
                        self.put(i, k, self.rows_of_H[k].h.dot(Spatial(moment, f.v)))
            state.set(moment, self.bodies[other.t].l)
            j.set(other.parent)


class Diagonal(Composites):
    """The sum of the 𝓜(i, i), which needs no walks and keeps no entries."""

    def __init__(self, robot, row, work):
        super().__init__(robot, row, work)
        self.total = carried(zeros(robot).x)

    @staticmethod
    def size(robot):
        """How many numbers it works in."""
        return (robot.n + 1) * WORK.width + robot.nv * SCREW.width + robot.slots * COMPOSITE.width

    def begin(self):
        """Slot 0 and the world."""
        clear(self.memory, COMPOSITE.width)
        place_world(self.work)

    def own(self, i, value):
        """Add it."""
        self.total.set(self.total.get() + value)

    def walk(self, body, i, f):
        """Nowhere."""


def trace(robot, row, work):
    """Σ 𝓜(i, i) = Σ h ℛ h* + r (SKO "trace"). O(N)."""
    sweep = Diagonal(robot, row, work)
    sweep_outward(robot, row, sweep.work, sweep.H, moving=False)
    for body in inward(robot):
        sweep.weigh(body)
    row.trace[0] = sweep.total.get()


def mass_matrix(robot, row, work):
    """𝓜, zeros between unrelated hinges included. O(N depth)."""
    sweep = Composites(robot, row, work)
    sweep_outward(robot, row, sweep.work, sweep.H, moving=False)
    for body in inward(robot):
        sweep.weigh(body)
    row.matrix.copy(sweep.entries, robot.nv * robot.nv)


def begin(robot, row, work):
    """What stays from row to row."""
    Composites(robot, row, work).begin()


MASS_MATRIX = Entry(
    mass_matrix,
    ROBOT,
    [Q],
    [Given("matrix", ("nv", "nv"))],
    lambda robot, row: Composites.size(robot),
    begin,
    unroll=12,
)
TRACE = Entry(
    trace,
    ROBOT,
    [Q],
    [Given("trace", ())],
    lambda robot, row: Diagonal.size(robot),
    lambda robot, row, work: Diagonal(robot, row, work).begin(),
)
