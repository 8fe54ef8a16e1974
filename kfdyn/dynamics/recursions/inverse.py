"""Inverse dynamics: one outward sweep of motion, one gather of forces (Newton–Euler; R86 section 7), in body frames.

Without articulated inertias nothing but vectors crosses a hinge, and turning five of them costs less than turning
every body's inertia to the world's orientation: so this outward sweep is another than that of :mod:`.outward`.
"""

from kfdyn.dynamics.recursions.forward import FORCES, GRAVITY
from kfdyn.multibody.recursions.energy import Q, V
from kfdyn.multibody.recursions.hinges import cross_hinge
from kfdyn.multibody.recursions.outward import into_body, sines, turned_frame
from kfdyn.multibody.recursions.robot import KINDS, REVOLUTE, ROBOT, SCREW, SLIDE, dofs, inward, outward, screw_of
from kfdyn.multibody.recursions.spatial import Spatial
from kfdyn.sweeps.algebra import Mat3, Vec3
from kfdyn.sweeps.control import carried, cases, when
from kfdyn.sweeps.entry import Entry, Given
from kfdyn.sweeps.functions import sine_cosine
from kfdyn.sweeps.memory import clear
from kfdyn.sweeps.records import Record

#: Kept for each body, all in its own frame: sine and cosine of its angle, ω, α, acceleration of its origin, A = α~ +
#: ω~ω~, moment and force. Row 0 is the world.
MOTION = Record(sine=float, cosine=float, omega=Vec3, alpha=Vec3, acc=Vec3, rate=Mat3, force=Spatial)

#: Kept for hinges other than revolute ones: orientation in the parent's frame, l; of a slide only l.
HINGE = Record(R=Mat3, l=Vec3)

SUM = Record(f=Spatial)
TURN = Record(R=Mat3)


class NewtonEuler:
    """The workspace of inverse dynamics."""

    def __init__(self, robot, row, work):
        self.robot, self.row = robot, row
        at = robot.slots * SUM.width
        self.sums, self.bodies = SUM.rows(work), MOTION.rows(work.part(at))
        self.memory, self.motion = work, work.part(at)
        at = at + (robot.n + 1) * MOTION.width
        self.H, self.rows_of_H = work.part(at), SCREW.rows(work.part(at))
        at = at + robot.nv * SCREW.width
        self.hinges = HINGE.rows(work.part(at))
        at = at + (robot.n + 1) * HINGE.width
        self.turns, self.orientations = work.part(at), TURN.rows(work.part(at))

    @staticmethod
    def size(robot):
        """How many numbers it works in."""
        widths = MOTION.width + HINGE.width + TURN.width
        return (robot.n + 1) * widths + robot.nv * SCREW.width + robot.slots * SUM.width

    def begin(self):
        """Slot 0 and the world."""
        clear(self.memory, SUM.width)
        clear(self.motion, MOTION.width)
        self.orientations[0].R = Mat3.identity()

    def put_sine(self, t, s, c):
        """Keep a sine and a cosine for a body."""
        here = self.bodies[t]
        here.sine, here.cosine = s, c

    def move(self, body):
        """ω, α(k) = φ*α(p) + H*a + η, and the body's own force Mα + ξ (R86 5.4–5.6, 4.4)."""
        row, up = self.row, self.bodies[body.parent]
        pushed = row.external_forces.given
        for kind in cases(body.kind, KINDS):
            if kind == REVOLUTE:
                here, rate = self.bodies[body.t], row.v[body.v]
                if not self.robot.alone:
                    here.sine, here.cosine = sine_cosine(row.q[body.q], body.offset)
                s, c = here.sine, here.cosine
                omega, alpha = into_body(body, s, c, up.omega), into_body(body, s, c, up.alpha)
                acc = into_body(body, s, c, up.rate.plus_applied(up.acc, body.position))
                alpha = Vec3(alpha.x + omega.y * rate, alpha.y - omega.x * rate, alpha.z)
                spun = carried(alpha)
                for _ in when(row.a.given):
                    spun.set(Vec3(alpha.x, alpha.y, alpha.z + row.a[body.v]))
                for _ in when(pushed):
                    turned = turned_frame(body, self.orientations[body.parent].R, s, c)
                    self.orientations[body.t].R = turned
                self.own_force(body, Vec3(omega.x, omega.y, omega.z + rate), spun.get(), acc)
            elif kind == SLIDE:
                R, slide = body.rotation, screw_of(self.robot, body.v).v
                l = body.position + row.q[body.q] * (R @ slide)
                self.hinges[body.t].l = l
                acc = R.turned_back(up.rate.plus_applied(up.acc, l))
                omega = R.turned_back(up.omega)
                acc = acc.plus_cross(omega, (2.0 * row.v[body.v]) * slide)
                sped = carried(acc)
                for _ in when(row.a.given):
                    sped.set(acc + row.a[body.v] * slide)
                for _ in when(pushed):
                    self.orientations[body.t].R = self.orientations[body.parent].R @ R
                self.own_force(body, omega, R.turned_back(up.alpha), sped.get())
            else:
                self._move_hinge(body, up)

    def _move_hinge(self, body, up):
        """The same for hinges of any number of dofs: cross them in the parent's orientation, then turn."""
        row = self.row
        spin, acc = up.alpha, up.acc
        R, l, omega, eta = cross_hinge(self.robot, body, row, body.rotation, body.position, up.omega, self.H, True)
        state = carried(Spatial(eta.w + spin, (eta.v + acc).plus_cross(spin, l)))
        for _ in when(row.a.given):
            for i in dofs(self.robot, body):
                state.set(state.get() + row.a[i] * self.rows_of_H[i].h)
        self.placed(body, R, l, omega, state.get())

    def placed(self, body, R, l, omega, motion):
        """Behind a hinge: turn what was found in the parent's orientation."""
        hinge = self.hinges[body.t]
        hinge.R, hinge.l = R, l
        for _ in when(self.row.external_forces.given):
            self.orientations[body.t].R = self.orientations[body.parent].R @ R
        self.own_force(body, R.turned_back(omega), R.turned_back(motion.w), R.turned_back(motion.v))

    def own_force(self, body, omega, alpha, acc):
        """[Jα + ω × Jω + m p × a; m a + A m p] with A = α~ + ω~ω~, which also leads on to the children."""
        here, (x, y, z) = self.bodies[body.t], omega
        A = Mat3(
            -(y * y) - z * z, x * y - alpha.z, x * z + alpha.y,
            x * y + alpha.z, -(x * x) - z * z, y * z - alpha.x,
            x * z - alpha.y, y * z + alpha.x, -(x * x) - y * y,
        )  # fmt: skip
        here.omega, here.alpha, here.acc, here.rate = omega, alpha, acc, A
        J, p = body.moment, body.first
        moment = (J @ alpha).plus_cross(p, acc).plus_cross(omega, J @ omega)
        here.force = Spatial(moment, A.plus_applied(body.mass * acc, p))

    def push(self, body):
        """Less the external force, seen in the body's frame."""
        R, here = self.orientations[body.t].R, self.bodies[body.t]
        push = self.row.external_forces.part(6 * body.body)
        n, f = Vec3(push[0], push[1], push[2]), Vec3(push[3], push[4], push[5])
        here.force = here.force - Spatial(R.turned_back(n), R.turned_back(f))

    def press(self, body):
        """tau = H f + R a, and f(p) += φ f (R86 4.1–4.3)."""
        f = self.bodies[body.t].force + self.sums[body.arrives].f
        for kind in cases(body.kind, KINDS):
            if kind == REVOLUTE:
                self.feel(body.v, f.w.z, body.armature)
                for _ in when(body.parent != 0):
                    here = self.bodies[body.t]
                    s, c = here.sine, here.cosine
                    turned = Spatial(out_of_body(body, s, c, f.w), out_of_body(body, s, c, f.v))
                    self.pass_on(body, body.position, turned)
            elif kind == SLIDE:
                self.feel(body.v, screw_of(self.robot, body.v).v.dot(f.v), body.armature)
                for _ in when(body.parent != 0):
                    R = body.rotation
                    self.pass_on(body, self.hinges[body.t].l, Spatial(R @ f.w, R @ f.v))
            else:
                hinge = self.hinges[body.t]
                R = hinge.R
                turned = Spatial(R @ f.w, R @ f.v)
                for i in dofs(self.robot, body):
                    self.feel(i, self.rows_of_H[i].h.dot(turned), self.robot.armature[i])
                for _ in when(body.parent != 0):
                    self.pass_on(body, hinge.l, turned)

    def feel(self, i, force, armature):
        """The generalised force of dof i."""
        felt = carried(force)
        for _ in when(self.row.a.given):
            felt.set(force + armature * self.row.a[i])
        self.row.tau[i] = felt.get()

    def pass_on(self, body, l, f):
        """Add a force to the parent's sum."""
        self.sums[body.leaves].f = self.sums[body.base].f + f.force_shifted(l)


def out_of_body(body, s, c, v):
    """Rz(a) Rx(alpha) Rz(b + q) v: a vector of the body's frame seen in the parent's."""
    x, y, z = v
    x, y = c * x - s * y, s * x + c * y
    ct, st = body.tilt
    y, z = ct * y - st * z, st * y + ct * z
    last = carried(x, y)
    for _ in when(body.twisted != 0):
        ca, sa = body.twist
        last.set(ca * x - sa * y, sa * x + ca * y)
    x, y = last.get()
    return Vec3(x, y, z)


def inverse_dynamics(robot, row, work):
    """tau; without ``a`` that of a = 0, the bias.

    α = φ*α(p) + H*a + η outward, f = Σ φf + Mα + ξ inward, tau = H f + R a. About 250 flops for a body on one dof.
    """
    newton_euler(NewtonEuler(robot, row, work))


def newton_euler(sweep):
    """The two sweeps; the world's acceleration is −g."""
    robot, row = sweep.robot, sweep.row
    if robot.alone:
        sines(robot, row, sweep.put_sine)
    sweep.bodies[0].acc = Vec3(*(-row.gravity[i] for i in range(3)))
    for body in outward(robot):
        sweep.move(body)
        for _ in when(row.external_forces.given):
            sweep.push(body)
    for body in inward(robot):
        sweep.press(body)


def begin(robot, row, work):
    """Slot 0 and the world stay as they are from row to row."""
    NewtonEuler(robot, row, work).begin()


INVERSE = Entry(
    inverse_dynamics,
    ROBOT,
    [Q, V, Given("a", ("nv",), optional=True), FORCES, GRAVITY],
    [Given("tau", ("nv",))],
    lambda robot, row: NewtonEuler.size(robot),
    begin,
    unroll=10,
)
