"""The gather of messages, and what enters at a body: readings of its acceleration, pushes, rows of forces."""

from kfdyn.dynamics.recursions.articulated import everything
from kfdyn.dynamics.recursions.sensing import tables
from kfdyn.dynamics.recursions.sensing.general import General
from kfdyn.dynamics.recursions.sensing.message import ALPHA, LAMBDA, MESSAGE, SIX, UPPER, Block, Message, total
from kfdyn.dynamics.recursions.sensing.unknowns import Unknowns
from kfdyn.multibody.recursions.given import changed
from kfdyn.multibody.recursions.hinges import zeros
from kfdyn.multibody.recursions.robot import INDEX, REVOLUTE, SCREW, Body, dofs, inward
from kfdyn.multibody.recursions.robot_entry import Swept, six
from kfdyn.multibody.recursions.spatial import Spatial
from kfdyn.sweeps.algebra import Mat3, Vec3
from kfdyn.sweeps.control_flow import flattened, if_, if_else, loop, loop_vars, switch
from kfdyn.sweeps.memory import clear
from kfdyn.sweeps.values import now, where
from kfdyn.sweeps.variables import local


class Sensing(Swept):
    """The program, and where its sweeps work."""

    #: Whether readings go with the matrices.
    means: bool

    #: Places of a source: of a and tau by dof, of α, f and external forces by body.
    ON_A, ON_TAU = 0, 1
    ON_ALPHA, ON_F, ON_X = 0, 1, 2

    def __init__(self, robot, row, work):
        row = changed(row, **vars(tables.TABLES.at(row.program)))
        super().__init__(robot, row, work)
        self.nodes, self.measured = tables.NODE.rows(row.nodes), tables.ROW.rows(row.rows)
        self.own = tables.OWN.rows(row.own)
        self.pushes, self.frames = tables.PUSH.rows(row.push), tables.FRAME.rows(row.frames)
        self.wides, self.loads = tables.WIDE.rows(row.wide), tables.LOAD.rows(row.loads)
        self.loose, self.inner_nodes = tables.LOOSE.rows(row.loose), tables.CHILD.rows(row.inner_nodes)
        self.ends = tables.END.rows(row.loop_ends)

    @staticmethod
    def layout(robot, row):
        """Messages in slots, one to work on, rows of S and K; X; columns and Γ of one node; what is carried.

        Then answers: α, f and external forces in the system's order and then the world's, q̈ and tau.
        """
        n, nv, most = robot.n + 1, robot.nv, row.most
        return {
            "slots": (robot.slots + 1) * MESSAGE, "here": MESSAGE, "S": (SCREW, row.n_rows), "K": (SCREW, row.n_rows),
            "X": (tables.SOLVED, row.n_unknowns), "columns": 13 * most, "matrix": most * (most + 13),
            "whole": most * most, "half": most * most, "store": row.n_store, "beside": row.n_beside,
            "sizes": 6, "before": ALPHA,
            "alpha": (SCREW, n), "f": (SCREW, n), "x": (SCREW, n), "a": nv, "tau": nv,
        }  # fmt: skip

    def begin(self):
        """Slot 0 and the world."""
        super().begin()
        clear(self.slots, MESSAGE)

    def gather(self):
        """From the tips to the base, eliminate unknowns; the least that a pivot is above what it may not fall below."""
        self.sweep_outward(self.means)
        self.least = local(everything(self.robot, 1e300))
        for body in inward(self.robot):
            node = self.nodes[body.t]
            for _ in if_(body.kind == REVOLUTE):
                self.rows_of_H[body.v].h = self.one_row(body, REVOLUTE)
            for quiet in if_else(node.way >= tables.QUIET):
                unknowns = Unknowns(self, body, quiet)
                message = unknowns.message
                message.arrive(body)
                if not quiet:
                    for _ in if_(node.seen_end > node.seen):
                        self.inform(body, node)
                self.spread(body, node)
                for simple in (True,) if quiet else if_else(node.way == tables.PAIR):
                    if simple:
                        self._eliminate_pair(unknowns)
                    else:
                        General(self, body).eliminate()
                for _ in if_(body.parent != 0):
                    message.leave(body)
                    if quiet:
                        for _ in if_(node.way == tables.QUIET):
                            message.pass_unknown(body)
        for _ in if_(self.nodes[0].way == tables.GENERAL):  # what loops and couplings of several trees share
            General(self, Body(self.robot, 0)).eliminate()
        return now(self.least)

    def _eliminate_pair(self, unknowns):
        """Eliminate a revolute hinge: half of its row of H is zero, which pays where only means are wanted."""
        body = unknowns.body
        for turns in if_else(body.kind == REVOLUTE) if self.means else (False,):
            h = self.one_row(body, REVOLUTE) if turns else self.rows_of_H[body.v].h
            unknowns.eliminate_pair(flattened(h))

    def answer(self):
        """Copy what was found to where it was asked for."""
        row, robot = self.row, self.robot
        row.a.copy(self.a, robot.nv)
        row.tau.copy(self.tau, robot.nv)
        row.alpha.copy(self.alpha.memory, 6 * robot.n)
        row.f.copy(self.f.memory, 6 * robot.n)
        row.x.copy(self.x.memory, 6 * row.n_x)

    def weights(self, one, i):
        """Over the others of the piece that entry i of a table is of, itself included: which, and the weight."""
        for j in loop(one.first + one.count, one.first):
            yield j, self.row.numbers[one.weight + (i - one.first) * one.count + (j - one.first)]

    def number(self, t):
        """A body's number in the system; the world comes last."""
        return where(t == 0, self.robot.n, INDEX.rows(self.robot.index)[t].body)

    def turned(self, body, x):
        """Two vectors of a body's axes in the world's."""
        R = self.bodies[body.t].R
        return Spatial(R @ x.w, R @ x.v)

    def keep_row_of_S(self, body, i):
        """S of row i: the dof's row of H, a force in the body's axes turned, or nothing."""
        one, S = self.measured[i], self.S[i]
        S.h = Spatial.zero()
        for _ in if_(one.kind == tables.TORQUE):
            S.h = self.row.scale[2 * i] * self.rows_of_H[one.at].h
        for _ in if_(one.kind == tables.FORCE):
            S.h = self.turned(body, six(self.row.numbers, one.S))

    def keep_solved(self, i, x):
        """X of an unknown: twelve numbers, and one if there are readings."""
        for c, number in enumerate(x):
            self.X.memory[tables.SOLVED.width * i + c] = number

    def inform(self, body, node):
        """J += K*R⁻¹K and γ_α −= K*R⁻¹(y − offset): constants of the body, turned."""
        row, here, R = self.row, self.here, self.bodies[body.t].R
        fixed = row.numbers.part(node.inform)
        K, J = Block(fixed, tables.MATRIX), Message(self).J
        for left, right in ((0, 0), (0, 3), (3, 3)):
            turned = R @ Mat3(*(K[left + a, right + b] for a in range(3) for b in range(3))) @ R.T
            for a in range(3):
                for b in range(a if left == right else 0, 3):
                    J[left + a, right + b] += turned.m[3 * a + b]
        if not self.means:
            return
        w = R.turned_back(self.bodies[body.t].omega)
        products = (w.x * w.x, w.x * w.y, w.x * w.z, w.y * w.y, w.y * w.z, w.z * w.z)
        h = [local(total(fixed[tables.TURNING + 6 * c + i] * x for i, x in enumerate(products))) for c in SIX]
        for i in loop(node.seen_end, node.seen):
            y = row.y[row.seen[i]]
            for c in SIX:
                h[c] += fixed[tables.WEIGHTS + 6 * (i - node.seen) + c] * y
        for c, x in enumerate(flattened(self.turned(body, Spatial.of([now(x) for x in h])))):
            here[ALPHA + c] -= x

    def push_column(self, body, one):
        """Column of P: a unit of a force at a frame, as one at the body's origin; in its axes, or in the world's."""
        R, frame, none = self.bodies[body.t].R, self.frames[one.frame], zeros(self.robot)
        turn, arm, column = R @ frame.R, R @ frame.p, loop_vars(Spatial(none, none))
        for c in switch(one.of, range(12)):
            axis = (turn if c < 6 else Mat3.identity()).column(c % 3)
            column.set(Spatial(axis, Vec3.zero()) if c % 6 < 3 else Spatial(arm.cross(axis), axis))
        return column.get()

    def source(self, of, body):
        """The source of one of the quantities of a body."""
        return six(self.row.source, 2 * self.robot.nv + 6 * (of * self.robot.n + body.body))

    def shift_of(self, body):
        """Return the shift of λ where f and tau = H f + R q̈ have sources."""
        shift = loop_vars(self.source(self.ON_F, body))
        for i in dofs(self.robot, body):
            shift.set(shift.get() + self.row.source[self.ON_TAU * self.robot.nv + i] * self.rows_of_H[i].h)
        return shift.get()

    def pulled_push(self, body, i, pull):
        """ΣP* of a spatial vector for one push."""
        out = local(everything(self.robot, 0.0))
        for j, w in self.weights(self.pushes[i], i):
            out.set(out + w * self.push_column(body, self.pushes[j]).dot(pull))
        return now(out)

    def spread(self, body, node):
        """C += PΣP* and γ_λ −= Pμ of external forces."""
        C = Message(self).C
        for i in loop(node.push_end, node.push):
            one = self.pushes[i]
            p = flattened(self.push_column(body, one))
            if self.means:
                y = self.row.y[one.reading]
                for c in SIX:
                    self.here[LAMBDA + c] -= p[c] * y
            for j, w in self.weights(one, i):
                q = flattened(self.push_column(body, self.pushes[j]))
                for c, d in UPPER:
                    C[c, d] += (0.5 * w) * (p[c] * q[d] + q[c] * p[d])
