"""Where the sweeps of sensors work, and what enters at a body: readings of its acceleration, pushes, rows of forces."""

from kfdyn.dynamics.recursions.articulated import everything
from kfdyn.dynamics.recursions.sensing.message import ALPHA, LAMBDA, MESSAGE, SIX, UPPER, Block, Message, total
from kfdyn.dynamics.recursions.sensing.tables import (
    FORCE,
    FRAME,
    MATRIX,
    NODE,
    OWN,
    PUSH,
    ROW,
    TORQUE,
    TURNING,
    WEIGHTS,
)
from kfdyn.multibody.recursions.outward import WORK, place_world
from kfdyn.multibody.recursions.robot import INDEX, SCREW
from kfdyn.multibody.recursions.workspace import Workspace
from kfdyn.sweeps.algebra import Mat3, Vec3
from kfdyn.sweeps.control import loop, when
from kfdyn.sweeps.memory import clear
from kfdyn.sweeps.values import choice, local, now


class Sensing(Workspace):
    """The program, and where its sweeps work."""

    #: Whether readings go with the matrices.
    means: bool

    def __init__(self, robot, row, work):
        super().__init__(robot, row, work)
        self.work, self.bodies, self.zero = work, WORK.rows(work), everything(robot, 0.0)
        self.nodes, self.rows, self.own = NODE.rows(row.nodes), ROW.rows(row.rows), OWN.rows(row.own)
        self.pushes, self.frames = PUSH.rows(row.push), FRAME.rows(row.frames)

    @staticmethod
    def layout(robot, row):
        """Bodies, rows of H, messages in slots, one to work on, rows of S; X of unknowns, columns and 𝒦 of one node."""
        return {
            "bodies": (WORK, robot.n + 1), "H": robot.nv * SCREW.width, "slots": (robot.slots + 1) * MESSAGE,
            "here": MESSAGE, "S": 6 * row.n_rows, "X": 13 * row.n_unknowns, "columns": 12 * row.most,
            "matrix": row.most * (2 * row.most + 13),
        }  # fmt: skip

    def begin(self):
        """Slot 0 and the world."""
        place_world(self.work)
        clear(self.slots, MESSAGE)

    def weights(self, one, i):
        """Over the others of the piece that entry i of a table is of, itself included: which, and the weight."""
        for j in loop(one.first + one.count, one.first):
            yield j, self.row.numbers[one.weight + (i - one.first) * one.count + (j - one.first)]

    def number(self, t):
        """A body's number in the system; the world comes last."""
        return choice(t == 0, self.robot.n, INDEX.rows(self.robot.index)[t].body)

    def row_of_H(self, i):
        """The row of dof i."""
        return [self.H[6 * i + c] for c in SIX]

    def row_of_S(self, i):
        """Row i of S, as it was kept."""
        return [self.S[6 * i + c] for c in SIX]

    def turned(self, body, numbers):
        """Two vectors of a body's axes in the world's."""
        R = self.bodies[body.t].R
        return [*(R @ Vec3(*numbers[:3])), *(R @ Vec3(*numbers[3:]))]

    def keep_row_of_S(self, body, i):
        """S of row i: the dof's row of H, a force in the body's axes turned, or nothing."""
        one, S, scale = self.rows[i], self.S.part(6 * i), self.row.scale[2 * i]
        for c in SIX:
            S[c] = 0.0
        for _ in when(one.kind == TORQUE):
            for c, x in enumerate(self.row_of_H(one.at)):
                S[c] = scale * x
        for _ in when(one.kind == FORCE):
            for c, x in enumerate(self.turned(body, [self.row.numbers[one.S + c] for c in SIX])):
                S[c] = x

    def keep_pair(self, body, node, r, X, K, M):
        """Of an elimination of one dof and one row what the way back needs: S = r, and X; not 𝒦⁻¹ and the message M."""
        for c in SIX:
            self.S[6 * node.rows + c] = r[c]
        for i, x in enumerate(X):
            for c, number in enumerate(x):
                self.X[13 * (node.unknowns + i) + c] = number

    def keep_general(self, body, node, count, wide):
        """Of any elimination, whose S and X are kept: nothing more."""

    def inform(self, body, node):
        """J += K*R⁻¹K and γ_α −= K*R⁻¹(y − offset): constants of the body, turned."""
        row, here, R = self.row, self.here, self.bodies[body.t].R
        fixed = row.numbers.part(node.inform)
        K, J = Block(fixed, MATRIX), Message(here).J
        for left, right in ((0, 0), (0, 3), (3, 3)):
            turned = R @ Mat3(*(K[left + a, right + b] for a in range(3) for b in range(3))) @ R.T
            for a in range(3):
                for b in range(a if left == right else 0, 3):
                    J[left + a, right + b] += turned.m[3 * a + b]
        if not self.means:
            return
        w = R.turned_back(self.bodies[body.t].omega)
        products = (w.x * w.x, w.x * w.y, w.x * w.z, w.y * w.y, w.y * w.z, w.z * w.z)
        h = [local(total(fixed[TURNING + 6 * c + i] * x for i, x in enumerate(products))) for c in SIX]
        for i in loop(node.seen_end, node.seen):
            y = row.y[row.seen[i]]
            for c in SIX:
                h[c] += fixed[WEIGHTS + 6 * (i - node.seen) + c] * y
        for c, x in enumerate(self.turned(body, [now(x) for x in h])):
            here[ALPHA + c] -= x

    def push_column(self, body, one):
        """Column of P: a unit of a force at a frame, as one at the body's origin; in its axes, or in the world's."""
        R = self.bodies[body.t].R
        frame, of, zero = self.frames[one.frame], one.of, self.zero
        R, r = R @ frame.R, R @ frame.p
        unit = everything(self.robot, 1.0)
        units = [Vec3(*(unit if i == c else zero for i in range(3))) for c in range(3)]
        out = [local(zero) for _ in SIX]
        for c in SIX:
            for start, axis in ((0, R.column(c % 3)), (6, units[c % 3])):
                for _ in when(of == start + c):
                    value = (*axis, zero, zero, zero) if c < 3 else (*r.cross(axis), *axis)
                    for x, y in zip(out, value):
                        x.set(y)
        return [now(x) for x in out]

    def spread(self, body, node):
        """C += PΣP* and γ_λ −= Pμ of external forces."""
        row, here, C = self.row, self.here, Message(self.here).C
        for i in loop(node.push_end, node.push):
            one = self.pushes[i]
            p = self.push_column(body, one)
            if self.means:
                y = row.y[one.reading]
                for c in SIX:
                    here[LAMBDA + c] -= p[c] * y
            for j, w in self.weights(one, i):
                q = self.push_column(body, self.pushes[j])
                for c, d in UPPER:
                    C[c, d] += (0.5 * w) * (p[c] * q[d] + q[c] * p[d])
