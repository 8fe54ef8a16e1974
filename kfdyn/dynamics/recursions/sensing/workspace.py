"""Where the sweeps of sensors work, and what enters at a body: readings of its acceleration, pushes, rows of forces."""

from kfdyn.dynamics.recursions.articulated import everything
from kfdyn.dynamics.recursions.sensing.message import ALPHA_AT, C_AT, J_AT, LAMBDA_AT, MESSAGE, SIX, UPPER, total
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
from kfdyn.sweeps.algebra import Mat3, Vec3
from kfdyn.sweeps.control import loop, when
from kfdyn.sweeps.memory import clear
from kfdyn.sweeps.values import choice, local, now


class Workspace:
    """Bodies, rows of H, messages in slots, one to work on, columns and solutions of unknowns; then what is behind.

    ``means``: whether readings go with the matrices.
    """

    def __init__(self, robot, row, work, means):
        self.robot, self.row, self.means = robot, row, means
        self.zero = everything(robot, 0.0)
        self.nodes, self.rows, self.own = NODE.rows(row.nodes), ROW.rows(row.rows), OWN.rows(row.own)
        self.pushes, self.frames = PUSH.rows(row.push), FRAME.rows(row.frames)
        at = (robot.n + 1) * WORK.width
        self.work, self.bodies = work, WORK.rows(work)
        self.H = work.part(at)
        at = at + robot.nv * SCREW.width
        self.slots = work.part(at)
        at = at + (robot.slots + 1) * MESSAGE
        self.here = work.part(at)
        at = at + MESSAGE
        self.S = work.part(at)  # six numbers a row
        at = at + 6 * row.n_rows
        self.X = work.part(at)  # thirteen a unknown
        at = at + 13 * row.n_unknowns
        self.columns = work.part(at)  # of one node: twelve a unknown
        at = at + 12 * row.most
        self.matrix = work.part(at)
        at = at + row.most * (2 * row.most + 13)
        self.rest = work.part(at)

    @staticmethod
    def size(robot, row):
        """How many numbers all but the rest has."""
        fixed = (robot.n + 1) * WORK.width + robot.nv * SCREW.width + (robot.slots + 2) * MESSAGE
        return fixed + 6 * row.n_rows + 13 * row.n_unknowns + row.most * (2 * row.most + 25)

    def begin(self):
        """Slot 0 and the world."""
        place_world(self.work)
        clear(self.slots, MESSAGE)

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

    def inform(self, body, node):
        """J += K*R⁻¹K and γ_α −= K*R⁻¹(y − offset): constants of the body, turned."""
        row, here, R = self.row, self.here, self.bodies[body.t].R
        fixed = row.numbers.part(node.inform)
        J = [fixed[MATRIX + i] for i in range(21)]
        block = dict(zip(UPPER, J))
        top = R @ Mat3(*(block[min(a, b), max(a, b)] for a in range(3) for b in range(3))) @ R.T
        side = R @ Mat3(*(block[a, 3 + b] for a in range(3) for b in range(3))) @ R.T
        low = R @ Mat3(*(block[3 + min(a, b), 3 + max(a, b)] for a in range(3) for b in range(3))) @ R.T
        for i, (a, b) in enumerate(UPPER):
            part = top if b < 3 else side if a < 3 else low
            here[J_AT + i] += part.m[3 * (a % 3) + b % 3]
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
            here[ALPHA_AT + c] -= x

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
        row, here = self.row, self.here
        for i in loop(node.push_end, node.push):
            one = self.pushes[i]
            p = self.push_column(body, one)
            if self.means:
                y = row.y[one.reading]
                for c in SIX:
                    here[LAMBDA_AT + c] -= p[c] * y
            for j in loop(one.first + one.count, one.first):
                w = row.numbers[one.weight + (i - one.first) * one.count + (j - one.first)]
                q = self.push_column(body, self.pushes[j])
                for k, (c, d) in enumerate(UPPER):
                    here[C_AT + k] += (0.5 * w) * (p[c] * q[d] + q[c] * p[d])
