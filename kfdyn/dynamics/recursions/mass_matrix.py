"""The mass matrix by composite bodies (CRBA; SKO "mass-algorithm"): a gather of ℛ, then walks to the root."""

from kfdyn.multibody.recursions.given import Q
from kfdyn.multibody.recursions.hinges import zeros
from kfdyn.multibody.recursions.robot import inboard, inward
from kfdyn.multibody.recursions.robot_entry import Swept, entry, put_both
from kfdyn.multibody.recursions.spatial import Rigid, Spatial
from kfdyn.sweeps.algebra import Sym3, Vec3
from kfdyn.sweeps.control_flow import if_, loop, loop_vars
from kfdyn.sweeps.entry import Given
from kfdyn.sweeps.memory import clear
from kfdyn.sweeps.records import Record

#: A composite body: moment of inertia about the hinge point, first moment. Its mass is a constant.
COMPOSITE = Record(J=Sym3, p=Vec3)


class Diagonal(Swept):
    """The workspace of the sum of the 𝓜(i, i), which needs no walks and keeps no entries."""

    def __init__(self, robot, row, work):
        super().__init__(robot, row, work)
        self.sums = self.take_rows(COMPOSITE, robot.slots)

    def begin(self):
        """Slot 0 and the world."""
        super().begin()
        clear(self.sums.memory, COMPOSITE.width)

    def weigh(self, body):
        """ℛ of a body, what its hinge asks of the hinges inboard of it, and ℛ(p) += φ ℛ φ* (R86 7.9)."""
        own, arrived = self.inertia(body), self.sums[body.arrives]
        whole = Rigid(own.J + arrived.J, own.p + arrived.p, body.all_mass)
        for i, h in self.rows(body):
            f = whole @ h
            self.own(i, h.dot(f) + self.robot.armature[i])
            self.bear(i, h, whole)
            self.walk(body, i, f)
        for _ in if_(body.parent != 0):
            seen, out, base = whole.shifted(self.bodies[body.t].l), self.sums[body.leaves], self.sums[body.base]
            out.J, out.p = base.J + seen.J, base.p + seen.p

    def own(self, i, value):
        """Add 𝓜(i, i)."""
        self.total.set(self.total.get() + value)

    def bear(self, i, h, whole):
        """Nothing that anybody asks for."""

    def walk(self, body, i, f):
        """Nowhere."""


class Composites(Diagonal):
    """The workspace of the mass matrix."""

    def __init__(self, robot, row, work):
        super().__init__(robot, row, work)
        self.entries = row.matrix if robot.alone and hasattr(row, "matrix") else self.take(robot.nv * robot.nv)

    def begin(self):
        """Slot 0, the world, and the entries between unrelated hinges, which stay 0."""
        super().begin()
        clear(self.entries, self.robot.nv * self.robot.nv)

    def own(self, i, value):
        """Put 𝓜(i, i)."""
        self.entries[i * self.robot.nv + i] = value

    def walk(self, body, i, f):
        """f = ℛ h of dof i, seen by dofs of its own hinge and by the hinges inboard: 𝓜(i, j) = h(j) φ f."""
        nv = self.robot.nv
        for other in loop(i, body.v):
            put_both(self.entries, nv, i, other, self.rows_of_H[other].h.dot(f))
        state = loop_vars(f.w, self.bodies[body.t].l)
        for other in inboard(self.robot, body.parent):
            moment, l = state.get()
            moment = moment.plus_cross(l, f.v)
            for k, h in self.rows(other):
                put_both(self.entries, nv, i, k, h.dot(Spatial(moment, f.v)))
            state.set(moment, self.bodies[other.t].l)


class Loads(Composites):
    """The workspace of the mass matrix, and of the loads that say what is rounding in it."""

    def __init__(self, robot, row, work):
        super().__init__(robot, row, work)
        self.loads = self.take(robot.nv)

    def bear(self, i, h, whole):
        """|ω|² tr J + |v|² m + armature of dof i: an axis through a mass may feel little of what rounds."""
        J = whole.J.s
        turned, slid = (J[0] + J[3] + J[5]) * h.w.dot(h.w), whole.m * h.v.dot(h.v)
        self.loads[i] = turned + slid + self.robot.armature[i]


def trace(sweep):
    """Σ 𝓜(i, i) = Σ h ℛ h* + r (SKO "trace"). O(N)."""
    sweep.total = loop_vars(zeros(sweep.robot).x)
    sweep.sweep_outward(moving=False)
    for body in inward(sweep.robot):
        sweep.weigh(body)
    sweep.row.trace[0] = sweep.total.get()


def mass_matrix(sweep):
    """𝓜, zeros between unrelated hinges included. O(N depth)."""
    robot = sweep.robot
    sweep.sweep_outward(moving=False)
    for body in inward(robot):
        sweep.weigh(body)
    sweep.row.matrix.copy(sweep.entries, robot.nv * robot.nv)


def loaded_mass_matrix(sweep):
    """𝓜, and for each dof how large the numbers are that its diagonal entry is a sum of."""
    mass_matrix(sweep)
    sweep.row.load.copy(sweep.loads, sweep.robot.nv)


MASS_MATRIX = entry(mass_matrix, Composites, [Q], [Given("matrix", ("nv", "nv"))], unroll=12)
LOADED_MASS_MATRIX = entry(loaded_mass_matrix, Loads, [Q], [Given("matrix", ("nv", "nv")), Given("load", ("nv",))])
TRACE = entry(trace, Diagonal, [Q], [Given("trace", ())])
