"""Controllers and compliances of trees whose hinges are geared, in the coordinates that couplings leave.

    Ω = J X (X*𝓜X)⁻¹ X*J*                                                                       THEORY section 12

X*𝓜X is factored once, and L⁻¹X*J* gives Ω; what the outward sweep of 𝓜 has left tells J.
"""

from kfdyn.dynamics.recursions import control
from kfdyn.dynamics.recursions.articulated import everything
from kfdyn.dynamics.recursions.compliance import COMPLIANCE
from kfdyn.dynamics.recursions.control import OnAxes, add_gains, matrix
from kfdyn.dynamics.recursions.coupled.geared import Driven, Weighed, like_that_of_trees
from kfdyn.dynamics.recursions.inverse import INVERSE
from kfdyn.dynamics.recursions.small_ldl import solve_lower_rows
from kfdyn.multibody.recursions.displacement import difference
from kfdyn.multibody.recursions.frames import ACCELERATION
from kfdyn.multibody.recursions.given import changed
from kfdyn.multibody.recursions.robot import inboard
from kfdyn.multibody.recursions.robot_entry import Swept, put_both, six, vector
from kfdyn.multibody.recursions.variants.geared import Around, Kept, coordinates
from kfdyn.multibody.recursions.workspace import Workspace
from kfdyn.sweeps.control_flow import flattened, loop, loop_vars
from kfdyn.sweeps.functions import minimum
from kfdyn.sweeps.memory import clear


class Tracking(Workspace):
    """The workspace of computed torque: errors, the acceleration asked for, and inverse dynamics around it."""

    def __init__(self, robot, row, work):
        super().__init__(robot, row, work)
        self.error, self.rate, self.a = (self.take(robot.own_nv) for _ in range(3))
        self.forces = Around(INVERSE, robot, changed(row, a=Kept(self.a)), self.rest)
        self.take(self.forces.size)

    def begin(self):
        """Prepare what stays from row to row."""
        self.forces.begin()


def geared_computed_torque(sweep):
    """Tau of a_d + Kd (v_d − v) + Kp (q_d ⊖ q), by inverse dynamics."""
    robot, row, a = coordinates(sweep.robot), sweep.row, sweep.a
    reach = difference(Workspace(robot, changed(row, q2=row.q_d, dv=sweep.error), sweep.memory))
    for i in loop(robot.nv):
        sweep.rate[i], a[i] = row.v_d[i] - row.v[i], row.a_d[i]
    add_gains(robot.nv, row.dense, row.gains, sweep.error, sweep.rate, a)
    return minimum(reach, sweep.forces.run())


class Sighted:
    """Frames in a workspace with X*𝓜X: J and Ω."""

    @property
    def swept(self):
        """Bodies and rows of H, where the recursion of 𝓜 has them."""
        return Swept(self.robot, self.mass.tree, self.mass.rest)

    def lever(self, t, arm):
        """From the origin of body t to the frame's, the tables' ``arm`` turned."""
        return self.swept.bodies[t].R @ arm

    def put_jacobian(self, t, arm, out, width):
        """X*J* of a frame, a row of six numbers for each coordinate, rows ``width`` numbers apart."""
        robot, swept, X = self.robot, self.swept, self.mass.X
        lever = loop_vars(self.lever(t, arm))
        for k in loop(self.n):
            clear(out.part(k * width), 6)
        for body in inboard(robot, t):
            l = lever.get()
            for i, h in swept.rows(body):
                column = h.motion_shifted(l)
                for k, ratio in X.terms(robot.nq + i):
                    for r, x in enumerate(flattened(column)):
                        out[k * width + r] += ratio * x
            lever.set(l + swept.bodies[body.t].l)

    def comply(self, rows, width, out):
        """Ω = (L⁻¹X*J*)* D⁻¹ L⁻¹X*J* of rows X*J*, which are lost; symmetric to the bit."""
        solve_lower_rows(self.matrix, self.n, rows, width)
        for i in loop(width):
            for j in loop(i + 1):
                total = loop_vars(everything(self.robot, 0.0))
                for k in loop(self.n):
                    inverse = self.matrix[k * self.n + k]
                    total.set(total.get() + (inverse * rows[k * width + i]) * rows[k * width + j])
                put_both(out, width, i, j, total.get())


class Compliance(Sighted, Weighed):
    """The workspace of the compliance."""

    def __init__(self, robot, row, work):
        super().__init__(robot, row, work)
        self.rows, self.entries = self.take(self.n * row.wide), self.take(row.wide * row.wide)


def geared_compliance(sweep):
    """Ω of frames, ``arms`` (3 k,) away from bodies at ``place`` (k,); ``wide`` is 6 k."""
    row, wide = sweep.row, sweep.row.wide
    least = sweep.factor()
    for f in loop(wide // 6):
        sweep.put_jacobian(row.place[f], vector(row.arms, 3 * f), sweep.rows.part(6 * f), wide)
    sweep.comply(sweep.rows, wide, sweep.entries)
    row.Omega.copy(sweep.entries, wide * wide)
    return least


class Task(OnAxes, Sighted, Driven):
    """The workspace of operational space control: a under τ₀, and what is seen of the frame on its axes."""

    def __init__(self, robot, row, work):
        super().__init__(robot, changed(row), work)
        self.drive = self.row.tau = self.take(self.n)
        self.take_axes()
        self.J, self.rows, self.Omega, self.free = (
            self.take(6 * self.n), self.take(6 * self.n), self.take(36), self.take(6),
        )  # fmt: skip
        self.falling = self.around(ACCELERATION, a=Kept(self.vector), acceleration=self.free)

    def look(self):
        """Aim from where the frame is, with its motion and the acceleration that τ₀ leaves it."""
        row, swept = self.row, self.swept
        self.put_jacobian(row.body, vector(row.arm), self.J, 6)
        self.falling.run()
        none = everything(self.robot, 0.0)
        speed = [loop_vars(none) for _ in range(6)]
        for k in loop(self.n):
            for r, x in enumerate(speed):
                x.set(x.get() + self.J[6 * k + r] * row.v[k])
        place = loop_vars(self.lever(row.body, vector(row.arm)))
        for body in inboard(self.robot, row.body):
            place.set(place.get() + swept.bodies[body.t].l)
        R = swept.bodies[row.body].R @ matrix(row.turn)
        return self.aim(R, place.get(), six([x.get() for x in speed]), six(self.free))

    def push(self):
        """τ = τ₀ + X*J* f."""
        row = self.row
        for k in loop(self.n):
            total = loop_vars(self.drive[k])
            for i in loop(row.axes):
                total.set(total.get() + self.J[6 * k + row.rows[i]] * self.f[i])
            row.control[k] = total.get()


def geared_operational_space_control(task):
    """τ₀ + X*J* Ω⁻¹ (α* − free acceleration)."""
    task.take_posture(task.drive, task.n)
    least = minimum(task.accelerate(), task.look())
    for i in loop(6 * task.n):
        task.rows[i] = task.J[i]
    task.comply(task.rows, 6, task.Omega)
    least = minimum(least, task.solve(task.Omega))
    task.push()
    return least


_CONTROL = control.OPERATIONAL_SPACE_CONTROL

GEARED_COMPUTED_TORQUE = like_that_of_trees(
    control.COMPUTED_TORQUE, geared_computed_torque, Tracking, control.COMPUTED_TORQUE.parameters
)
GEARED_OPERATIONAL_SPACE_CONTROL = like_that_of_trees(
    _CONTROL, geared_operational_space_control, Task, _CONTROL.parameters
)
GEARED_COMPLIANCE = like_that_of_trees(COMPLIANCE, geared_compliance, Compliance, COMPLIANCE.parameters)
