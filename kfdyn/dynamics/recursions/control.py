"""Controllers as recursions: computed torque is inverse dynamics, operational space control a filter and a smoother."""

from kfdyn.dynamics.recursions.articulated import Filter, everything
from kfdyn.dynamics.recursions.compliance import ANSWER, Compliance
from kfdyn.dynamics.recursions.forward import FORCES, GRAVITY
from kfdyn.dynamics.recursions.gains import add_gains
from kfdyn.dynamics.recursions.inverse import NewtonEuler, inverse_dynamics
from kfdyn.multibody.recursions.displacement import Quaternion, difference
from kfdyn.multibody.recursions.energy import Q, V
from kfdyn.multibody.recursions.hinges import zeros
from kfdyn.multibody.recursions.outward import sweep_outward
from kfdyn.multibody.recursions.robot import REVOLUTE, ROBOT, Body, dofs
from kfdyn.multibody.recursions.spatial import Spatial
from kfdyn.sweeps.algebra import Mat3, Vec3
from kfdyn.sweeps.control import carried, either, loop, when, while_
from kfdyn.sweeps.entry import Entry, Given, Parameter
from kfdyn.sweeps.functions import absolute, root, smaller
from kfdyn.sweeps.records import Fields
from kfdyn.sweeps.values import choice, local, now

#: A target's rotation is one to this; else the caller looks at it.
ROTATION_TOLERANCE = 1e-9

#: trace Ω · trace Ω⁻¹ bounds the condition of Ω: beyond this the caller looks at its eigenvalues.
CONDITION = 1e8


def computed_torque(robot, row, work):
    """Tau of a_d + Kd (v_d − v) + Kp (q_d ⊖ q), by inverse dynamics."""
    at, nv = NewtonEuler.size(robot), robot.nv
    error, rate, a = (work.part(at + k * nv) for k in range(3))
    pair, state = Fields(), Fields()
    pair.q, pair.q2, pair.dv = row.q, row.q_d, error
    pair.left_inverse, pair.tolerance = row.left_inverse, row.tolerance
    reach = difference(robot, pair, work)
    for i in loop(nv):
        rate[i], a[i] = row.v_d[i] - row.v[i], row.a_d[i]
    add_gains(nv, row.dense, row.gains, error, rate, a)
    a.given = True
    state.q, state.v, state.a, state.tau = row.q, row.v, a, row.tau
    state.external_forces, state.gravity = row.external_forces, row.gravity
    inverse_dynamics(robot, state, work)
    return reach


def begin_computed_torque(robot, row, work):
    """Slot 0 and the world."""
    NewtonEuler(robot, row, work).begin()


class NobodyElse:
    """Ranks of bodies beside the frame's: a force on it is followed to the world."""

    def __getitem__(self, t):
        return 0


class Task:
    """The workspace of operational space control: the filter's, and what is seen of the frame on its axes."""

    def __init__(self, robot, row, work):
        self.robot, self.row = robot, row
        self.state = state = Fields()
        state.q, state.v, state.gravity, state.external_forces = row.q, row.v, row.gravity, row.external_forces
        state.kept, state.rank, at = 1, NobodyElse(), Compliance.moving_size(robot, row)
        for name, size in (("tau", robot.nv), ("a", robot.nv), ("error", 6), ("rate", 6), ("wanted", 6), ("f", 6)):
            setattr(self, name, work.part(at))
            at = at + size
        self.L, self.column = work.part(at), work.part(at + 36)
        state.tau, state.a = self.tau, self.a
        self.compliance = Compliance(robot, state, work, moving=True)
        self.filter = self.compliance.filter

    @staticmethod
    def size(robot, row):
        """How many numbers it works in."""
        return Compliance.moving_size(robot, row) + 2 * robot.nv + 24 + 42

    def inboard(self):
        """Over the bodies from the frame's to the root."""
        at = local(self.row.body)
        for _ in while_(lambda: now(at) != 0):
            body = Body(self.robot, now(at))
            yield body
            at.set(body.parent)

    def look(self):
        """Error, rate and wanted less free acceleration of the frame, on the controlled axes."""
        robot, row, f = self.robot, self.row, self.filter
        here = f.bodies[row.body]
        arm = here.R @ Vec3(*(row.arm[i] for i in range(3)))
        place, speed = carried(arm), carried(zeros(robot).plus_cross(here.omega, arm))
        for body in self.inboard():
            own = f.bodies[body.t]
            place.set(place.get() + own.l)
            speed.set(speed.get().plus_cross(f.bodies[body.parent].omega, own.l))
            for _ in when(body.kind != REVOLUTE):
                for i in dofs(robot, body):
                    speed.set(speed.get() + row.v[i] * f.rows_of_H[i].h.v)
        R = here.R @ Mat3(*(row.turn[i] for i in range(9)))
        goal = Mat3(*(row.rotation[i] for i in range(9)))
        turn = quaternion_of(goal @ R.T).log()
        shift = Vec3(*(row.position[i] for i in range(3))) - place.get()
        # the smoother's λ + η is the acceleration of the body, less g
        g, fall = Vec3(*(row.gravity[i] for i in range(3))), here.eta
        free = Spatial(fall.w, (fall.v + fall.w.cross(arm)) + here.omega.cross(here.omega.cross(arm)) + g)
        now_ = Spatial(here.omega, speed.get())
        whole = self.compliance.path  # what the filter has left there is used up
        for i, (e, v, a) in enumerate(zip([*turn, *shift], [*now_.w, *now_.v], [*free.w, *free.v])):
            whole[i], whole[6 + i], whole[12 + i] = e, row.velocity[i] - v, row.acceleration[i] - a
        for i in loop(row.axes):
            r = row.rows[i]
            self.error[i], self.rate[i], self.wanted[i] = whole[r], whole[6 + r], whole[12 + r]
        add_gains(row.axes, row.dense, row.gains, self.error, self.rate, self.wanted)
        return ROTATION_TOLERANCE - off_rotation(goal)

    def comply(self):
        """Ω of the frame into the place of S: φ* S φ, what the hinges between it and the world answer with."""
        self.compliance.filter_force(self.row.body)
        path, arm = (
            self.compliance.path.part(ANSWER),
            self.filter.bodies[self.row.body].R @ Vec3(*(self.row.arm[i] for i in range(3))),
        )
        for i in range(6):
            for j in range(i):
                path[6 * j + i] = path[6 * i + j]
        for i in range(6):  # rows, then columns
            x, y = (Vec3(*(path[6 * i + half + k] for k in range(3))) for half in (0, 3))
            for k, value in enumerate(y.plus_cross(x, arm)):
                path[6 * i + 3 + k] = value
        for j in range(6):
            x, y = (Vec3(*(path[6 * (half + k) + j] for k in range(3))) for half in (0, 3))
            for k, value in enumerate(y.plus_cross(x, arm)):
                path[6 * (3 + k) + j] = value
        return path

    def solve(self, Omega):
        """f = Ω⁻¹ wanted on the controlled axes, by Cholesky's factor; how far Ω is from singular.

        1/√ of the pivots stand on the diagonal of L. trace Ω⁻¹ is the sum of the squares of L⁻¹.
        """
        m, rows, L, f, robot = self.row.axes, self.row.rows, self.L, self.f, self.robot
        one, none = everything(robot, 1.0), zeros(robot).x
        trace, inverse, least = carried(none), carried(none), carried(one)

        def less(i, j, start):
            total = carried(start)
            for k in loop(j):
                total.set(total.get() - L[6 * i + k] * L[6 * j + k])
            return total.get()

        for i in loop(m):
            for j in loop(i):
                L[6 * i + j] = less(i, j, Omega[6 * rows[i] + rows[j]]) * L[6 * j + j]
            own = Omega[6 * rows[i] + rows[i]]
            d = less(i, i, own)
            trace.set(trace.get() + own)
            least.set(smaller(least.get(), d))
            L[6 * i + i] = 1.0 / root(choice(d > 0.0, d, 1.0))
        for c in loop(m):  # columns of L⁻¹
            for i in loop(m, c):
                total = carried(none)
                for k in loop(i, c):
                    total.set(total.get() - L[6 * i + k] * self.column[k])
                x = choice(i == c, one, total.get()) * L[6 * i + i]
                self.column[i] = x
                inverse.set(inverse.get() + x * x)
        for i in loop(m):
            total = carried(self.wanted[i])
            for k in loop(i):
                total.set(total.get() - L[6 * i + k] * f[k])
            f[i] = total.get() * L[6 * i + i]
        for back in loop(m):
            i = m - 1 - back
            total = carried(f[i])
            for k in loop(m, i + 1):
                total.set(total.get() - L[6 * k + i] * f[k])
            f[i] = total.get() * L[6 * i + i]
        return smaller(least.get(), CONDITION - trace.get() * inverse.get())

    def push(self):
        """τ = τ₀ + J* f, inward along the path of the frame."""
        robot, row, f, wrench = self.robot, self.row, self.filter, self.compliance.path
        for i in range(6):
            wrench[i] = zeros(robot).x
        for i in loop(row.axes):
            wrench[row.rows[i]] = self.f[i]
        arm = f.bodies[row.body].R @ Vec3(*(row.arm[i] for i in range(3)))
        force = carried(Spatial.of([wrench[i] for i in range(6)]).force_shifted(arm))
        for i in loop(robot.nv):
            row.control[i] = self.tau[i]
        for body in self.inboard():
            here = force.get()
            for revolute in either(body.kind == REVOLUTE):
                if revolute:
                    R = f.bodies[body.t].R
                    row.control[body.v] = self.tau[body.v] + R.column(2).dot(here.w)
                else:
                    for i in dofs(robot, body):
                        row.control[i] = self.tau[i] + f.rows_of_H[i].h.dot(here)
            force.set(here.force_shifted(f.bodies[body.t].l))


def operational_space_control(robot, row, work):
    """τ₀ + J* Ω⁻¹ (α* − free acceleration): one filter gives the free acceleration and Ω, and J is never formed."""
    task = Task(robot, row, work)
    f = task.filter
    for i in loop(robot.nv):
        task.tau[i] = zeros(robot).x
    for _ in when(row.posture.given):
        for i in loop(robot.nv):
            task.tau[i] = row.posture[i]
    sweep_outward(robot, task.state, f.work, f.H, moving=True)
    least = f.gather()
    f.scatter()
    least = smaller(least, task.look())
    least = smaller(least, task.solve(task.comply()))
    task.push()
    return least


def begin_task(robot, row, work):
    """Slot 0 and the world."""
    Filter(robot, row, work, moving=True).begin()


def quaternion_of(R):
    """The unit quaternion of a rotation matrix, by the largest of its four squares."""
    m = R.m
    squares = [1.0 + m[0] + m[4] + m[8], 1.0 + m[0] - m[4] - m[8], 1.0 - m[0] + m[4] - m[8], 1.0 - m[0] - m[4] + m[8]]
    xw, yw, zw = m[7] - m[5], m[2] - m[6], m[3] - m[1]
    xy, xz, yz = m[1] + m[3], m[2] + m[6], m[5] + m[7]
    ways = [
        (xw, yw, zw, squares[0]), (squares[1], xy, xz, xw), (xy, squares[2], yz, yw), (xz, yz, squares[3], zw),
    ]  # fmt: skip
    best, largest = ways[0], squares[0]
    for way, square in zip(ways[1:], squares[1:]):
        better = square > largest
        best = tuple(choice(better, a, b) for a, b in zip(way, best))
        largest = choice(better, square, largest)
    x, y, z, w = best
    r = 1.0 / root(x * x + y * y + z * z + w * w)
    return Quaternion(Vec3(x * r, y * r, z * r), w * r)


def off_rotation(R):
    """How far R R* is from 1, or, where R is a reflection, 1."""
    x, y, z = (R.row(i) for i in range(3))
    off = absolute(x.dot(x) - 1.0) + absolute(y.dot(y) - 1.0) + absolute(z.dot(z) - 1.0)
    off = off + absolute(x.dot(y)) + absolute(y.dot(z)) + absolute(z.dot(x))
    return choice(x.cross(y).dot(z) > 0.0, off, 1.0)


_GAINS = [Parameter("dense", "n"), Parameter("gains", "f")]

COMPUTED_TORQUE = Entry(
    computed_torque,
    ROBOT,
    [
        Q, V, Given("q_d", ("nq",), sound=Q.sound), Given("v_d", ("nv",)), Given("a_d", ("nv",)), FORCES, GRAVITY,
    ],
    [Given("tau", ("nv",))],
    lambda robot, row: NewtonEuler.size(robot) + 3 * robot.nv,
    begin_computed_torque,
    [*_GAINS, Parameter("left_inverse", "f"), Parameter("tolerance", "f")],
)  # fmt: skip

OPERATIONAL_SPACE_CONTROL = Entry(
    operational_space_control,
    ROBOT,
    [
        Q, V, Given("rotation", (3, 3), shared=True), Given("position", (3,), shared=True),
        Given("velocity", (6,), shared=True), Given("acceleration", (6,), shared=True),
        Given("posture", ("nv",), optional=True), FORCES, GRAVITY,
    ],
    [Given("control", ("nv",))],
    Task.size,
    begin_task,
    [
        *_GAINS, Parameter("axes", "n"), Parameter("rows", "i"), Parameter("body", "n"), Parameter("arm", "f"),
        Parameter("turn", "f"),
    ],
)  # fmt: skip
