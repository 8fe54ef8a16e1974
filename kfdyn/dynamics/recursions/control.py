"""Controllers as recursions: computed torque is inverse dynamics, operational space control a filter and a smoother."""

from kfdyn.dynamics.recursions.articulated import everything
from kfdyn.dynamics.recursions.compliance import ForcePath, shift
from kfdyn.dynamics.recursions.inverse import NewtonEuler, inverse_dynamics
from kfdyn.dynamics.recursions.small_ldl import factor, solve_lower, solve_upper
from kfdyn.multibody.recursions.displacement import REACH, Quaternion, difference
from kfdyn.multibody.recursions.given import FORCES, GRAVITY, TAU, Q, V, changed
from kfdyn.multibody.recursions.hinges import zeros
from kfdyn.multibody.recursions.robot import inboard
from kfdyn.multibody.recursions.robot_entry import entry, put, put_both, six, sped, vector
from kfdyn.multibody.recursions.spatial import Spatial
from kfdyn.multibody.recursions.workspace import Workspace
from kfdyn.sweeps.algebra import Mat3, Vec3
from kfdyn.sweeps.control_flow import if_, if_else, loop, loop_vars
from kfdyn.sweeps.entry import Given, Parameter
from kfdyn.sweeps.functions import minimum, sqrt
from kfdyn.sweeps.memory import clear
from kfdyn.sweeps.values import where


def add_gains(size, dense, gains, error, rate, out):
    """out += Kp error + Kd rate; gains (2, size), or (2, size, size) if dense."""
    for full in if_else(dense != 0):
        for i in loop(size):
            total = loop_vars(out[i])
            if full:
                for j in loop(size):
                    pull = gains[i * size + j] * error[j] + gains[(size + i) * size + j] * rate[j]
                    total.set(total.get() + pull)
            else:
                total.set(total.get() + (gains[i] * error[i] + gains[size + i] * rate[i]))
            out[i] = total.get()


#: A target's rotation is one to this; else the caller looks at it.
ROTATION_TOLERANCE = 1e-9

#: trace Ω · trace Ω⁻¹ bounds the condition of Ω: beyond this the caller looks at its eigenvalues.
CONDITION = 1e8


class ComputedTorque(NewtonEuler):
    """The workspace of computed torque: inverse dynamics, errors, and the acceleration asked for."""

    def __init__(self, robot, row, work):
        super().__init__(robot, changed(row), work)
        self.error, self.rate, self.row.a = (self.take(robot.nv) for _ in range(3))
        self.row.a.given = True


def computed_torque(sweep):
    """Tau of a_d + Kd (v_d − v) + Kp (q_d ⊖ q), by inverse dynamics."""
    robot, row = sweep.robot, sweep.row
    reach = difference(Workspace(robot, changed(row, q2=row.q_d, dv=sweep.error), sweep.memory))
    for i in loop(robot.nv):
        sweep.rate[i], row.a[i] = row.v_d[i] - row.v[i], row.a_d[i]
    add_gains(robot.nv, row.dense, row.gains, sweep.error, sweep.rate, row.a)
    inverse_dynamics(sweep)
    return reach


class OnAxes:
    """Memory of a frame on the axes that are controlled: error, rate, acceleration wanted, force."""

    def take_axes(self):
        """Room for it."""
        self.error, self.rate, self.wanted, self.f, self.column = (self.take(6) for _ in range(5))
        self.L, self.whole = self.take(36), self.take(18)

    def aim(self, R, place, speed, free):
        """Error, rate and wanted less free acceleration of a frame that is there, on the controlled axes.

        How far the goal is from no rotation.
        """
        row, whole, goal = self.row, self.whole, matrix(self.row.rotation)
        put(whole, 0, quaternion_of(goal @ R.T).log(), vector(row.position) - place)
        put(whole, 6, six(row.velocity) - speed, six(row.acceleration) - free)
        for i in loop(row.axes):
            r = row.rows[i]
            self.error[i], self.rate[i], self.wanted[i] = whole[r], whole[6 + r], whole[12 + r]
        add_gains(row.axes, row.dense, row.gains, self.error, self.rate, self.wanted)
        return ROTATION_TOLERANCE - off_rotation(goal)

    def solve(self, Omega):
        """f = Ω⁻¹ wanted on the controlled axes, by L D L*; how far Ω is from singular.

        trace Ω⁻¹ is the sum of the squares of L⁻¹, weighed by D⁻¹.
        """
        m, rows, L, f, column = self.row.axes, self.row.rows, self.L, self.f, self.column
        none = everything(self.robot, 0.0)
        trace, inverse, least = loop_vars(none), loop_vars(none), loop_vars(none + 1.0)
        for i in loop(m):
            f[i] = self.wanted[i]
            trace.set(trace.get() + Omega[7 * rows[i]])
            for j in loop(i + 1):
                L[m * i + j] = Omega[6 * rows[i] + rows[j]]

        def inverted(j, d):
            least.set(minimum(least.get(), d))
            return 1.0 / where(d > 0.0, d, 1.0)

        factor(L, m, inverted, f)
        solve_upper(L, m, f)
        for c in loop(m):
            for i in loop(m, c):
                column[i] = where(i == c, none + 1.0, none)
            solve_lower(L, m, column, c)
            for i in loop(m, c):
                inverse.set(inverse.get() + L[m * i + i] * column[i] * column[i])
        return minimum(least.get(), CONDITION - trace.get() * inverse.get())

    def take_posture(self, tau, count):
        """τ₀, or 0 if none is given."""
        clear(tau, count)
        for _ in if_(self.row.posture.given):
            for i in loop(count):
                tau[i] = self.row.posture[i]


class Task(OnAxes, ForcePath):
    """The workspace of operational space control: the filter's, and what is seen of the frame on its axes."""

    def __init__(self, robot, row, work):
        super().__init__(robot, changed(row), work)
        self.tau = self.row.tau = self.take(robot.nv)
        self.row.a = self.take(robot.nv)
        self.take_axes()

    def inboard(self):
        """Over the bodies from the frame's to the root."""
        return inboard(self.robot, self.row.body)

    def arm(self):
        """From the body's origin to the frame's."""
        return self.bodies[self.row.body].R @ vector(self.row.arm)

    def look(self):
        """Aim from where the frame is, with its motion and the acceleration that τ₀ leaves it."""
        robot, row, here, arm = self.robot, self.row, self.bodies[self.row.body], self.arm()
        omega, fall = here.omega, here.eta
        place, speed = loop_vars(arm), loop_vars(zeros(robot).plus_cross(omega, arm))
        for body in self.inboard():
            place.set(place.get() + self.bodies[body.t].l)
            speed.set(sped(self, body, speed.get(), row.v))
        # the smoother's λ + η is the acceleration of the body, less g
        free = Spatial(fall.w, (fall.v + fall.w.cross(arm)) + omega.cross(omega.cross(arm)) + vector(row.gravity))
        return self.aim(here.R @ matrix(row.turn), place.get(), Spatial(omega, speed.get()), free)

    def comply(self):
        """Ω of the frame: φ* S φ, what the hinges between it and the world answer with."""
        self.filter_force(self.row.body)
        Omega, arm = self.answer, self.arm()
        for i in range(6):
            for j in range(i):
                put_both(Omega, 6, i, j, Omega[6 * i + j])
        shift(Omega, 6, Omega, 6, arm, arm)
        return Omega

    def push(self):
        """τ = τ₀ + J* f, inward along the path of the frame."""
        robot, row, wrench = self.robot, self.row, self.whole
        clear(wrench, 6)
        for i in loop(row.axes):
            wrench[row.rows[i]] = self.f[i]
        force = loop_vars(six(wrench).force_shifted(self.arm()))
        for i in loop(robot.nv):
            row.control[i] = self.tau[i]
        for body in self.inboard():
            for i, h in self.rows(body):
                row.control[i] = self.tau[i] + h.dot(force.get())
            force.set(force.get().force_shifted(self.bodies[body.t].l))


def operational_space_control(task):
    """τ₀ + J* Ω⁻¹ (α* − free acceleration): one filter gives the free acceleration and Ω, and J is never formed."""
    task.take_posture(task.tau, task.robot.nv)
    task.sweep_outward()
    least = task.gather()
    task.scatter()
    least = minimum(least, task.look())
    least = minimum(least, task.solve(task.comply()))
    task.push()
    return least


def matrix(numbers):
    """Nine numbers of a column as a matrix."""
    return Mat3(*(numbers[i] for i in range(9)))


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
        best = tuple(where(better, a, b) for a, b in zip(way, best))
        largest = where(better, square, largest)
    x, y, z, w = best
    r = 1.0 / sqrt(x * x + y * y + z * z + w * w)
    return Quaternion(Vec3(x * r, y * r, z * r), w * r)


def off_rotation(R):
    """Return the distance of R R* from 1, or, where R is a reflection, 1."""
    x, y, z = (R.row(i) for i in range(3))
    off = abs(x.dot(x) - 1.0) + abs(y.dot(y) - 1.0) + abs(z.dot(z) - 1.0)
    off = off + abs(x.dot(y)) + abs(y.dot(z)) + abs(z.dot(x))
    return where(x.cross(y).dot(z) > 0.0, off, 1.0)


_GAINS = [Parameter("dense", "n"), Parameter("gains", "f")]

COMPUTED_TORQUE = entry(
    computed_torque,
    ComputedTorque,
    [Q, V, Q._replace(name="q_d"), V._replace(name="v_d"), V._replace(name="a_d"), FORCES, GRAVITY],
    [TAU],
    [*_GAINS, *REACH],
)

OPERATIONAL_SPACE_CONTROL = entry(
    operational_space_control,
    Task,
    [
        Q, V, Given("rotation", (3, 3), shared=True), Given("position", (3,), shared=True),
        Given("velocity", (6,), shared=True), Given("acceleration", (6,), shared=True),
        Given("posture", ("nv",), optional=True), FORCES, GRAVITY,
    ],
    [Given("control", ("nv",))],
    [
        *_GAINS, Parameter("axes", "n"), Parameter("rows", "i"), Parameter("body", "n"), Parameter("arm", "f"),
        Parameter("turn", "f"), Parameter("length", "n"), Parameter("path", "i"),
    ],
)  # fmt: skip
