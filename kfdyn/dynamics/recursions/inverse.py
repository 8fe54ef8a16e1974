"""Inverse dynamics (RNEA; R86 section 7): an outward sweep of motion, a gather of forces, in body frames.

Without articulated inertias nothing but vectors crosses a hinge, and turning five of them costs less than turning
every body's inertia to the world's orientation: so this outward sweep is another than that of :mod:`.outward`.
"""

from kfdyn.multibody.recursions.body_frames import BodyFrames, Rotated
from kfdyn.multibody.recursions.given import FORCES, GRAVITY, TAU, A, Q, V
from kfdyn.multibody.recursions.hinges import Hinges
from kfdyn.multibody.recursions.robot import KINDS, REVOLUTE, SLIDE, dofs, inward, outward, screw_of
from kfdyn.multibody.recursions.robot_entry import entry, push_on, vector
from kfdyn.multibody.recursions.spatial import Spatial
from kfdyn.sweeps.algebra import Mat3, Vec3
from kfdyn.sweeps.control_flow import if_, loop_vars, switch
from kfdyn.sweeps.memory import clear
from kfdyn.sweeps.records import Record

#: Kept for each body, all in its own frame: ω, α, acceleration of its origin, A = α~ + ω~ω~, moment and force. Row 0 is
#: the world.
MOTION = Record(omega=Vec3, alpha=Vec3, acc=Vec3, rate=Mat3, force=Spatial)

SUM = Record(f=Spatial)
TURN = Record(R=Mat3)


class NewtonEuler(BodyFrames):
    """The workspace of inverse dynamics."""

    def __init__(self, robot, row, work):
        super().__init__(robot, row, work)
        self.bodies, self.sums = self.take_rows(MOTION, robot.n + 1), self.take_rows(SUM, robot.slots)
        self.orientations = self.take_rows(TURN, robot.n + 1)

    def begin(self):
        """Slot 0 and the world."""
        clear(self.sums.memory, SUM.width)
        clear(self.bodies.memory, MOTION.width)
        self.orientations[0].R = Mat3.identity()

    def one_row(self, body, kind):
        """The row of H of a hinge of one dof, in the body's frame: what is 0 or 1 in it leaves no operation."""
        if kind == REVOLUTE:
            return Spatial(Vec3(0.0, 0.0, 1.0), Vec3.zero())
        return Spatial(Vec3.zero(), screw_of(self.robot, body.v).v)

    def move(self, body):
        """ω, α(k) = φ*α(p) + H*a + η, and the body's own force Mα + ξ (R86 5.4–5.6, 4.4)."""
        row, up = self.row, self.bodies[body.parent]
        for kind in switch(body.kind, KINDS):
            if kind in (REVOLUTE, SLIDE):
                step, h = self.step(body, kind), self.one_row(body, kind)
                spin, slide = row.v[body.v] * h.w, row.v[body.v] * h.v
                omega, alpha = step.into(up.omega), step.into(up.alpha)
                acc = step.into(up.rate.plus_applied(up.acc, step.l))
                motion = Spatial(alpha.plus_cross(omega, spin), acc.plus_cross(omega, 2.0 * slide))
                state = loop_vars(motion)
                for _ in if_(row.a.given):
                    state.set(motion + row.a[body.v] * h)
                self.turn(body, step)
                self.own_force(body, omega + spin, state.get().w, state.get().v)
            else:
                self._move_hinge(body, up)

    def _move_hinge(self, body, up):
        """The same for hinges of any number of dofs: cross them in the parent's orientation, then turn."""
        row = self.row
        spin, acc = up.alpha, up.acc
        moving = Hinges(self.robot, row, self.H, moving=True)
        R, l, omega, eta = moving.cross(body, body.rotation, body.position, up.omega)
        state = loop_vars(Spatial(eta.w + spin, (eta.v + acc).plus_cross(spin, l)))
        for _ in if_(row.a.given):
            for i in dofs(self.robot, body):
                state.set(state.get() + row.a[i] * self.rows_of_H[i].h)
        self.placed(body, R, l, omega, state.get())

    def placed(self, body, R, l, omega, motion):
        """Behind a hinge: turn what was found in the parent's orientation."""
        hinge = self.hinges[body.t]
        hinge.R, hinge.l = R, l
        step = Rotated(R, l)
        self.turn(body, step)
        self.own_force(body, step.into(omega), step.into(motion.w), step.into(motion.v))

    def turn(self, body, step):
        """The orientation of a body in the world, which only external forces ask for."""
        for _ in if_(self.row.external_forces.given):
            self.orientations[body.t].R = step.turn(self.orientations[body.parent].R)

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
        R, here, push = self.orientations[body.t].R, self.bodies[body.t], push_on(self.row, body)
        here.force = here.force - Spatial(R.turned_back(push.w), R.turned_back(push.v))

    def press(self, body):
        """tau = H f + R a, and f(p) += φ f (R86 4.1–4.3)."""
        f = self.bodies[body.t].force + self.sums[body.arrives].f
        for kind in switch(body.kind, KINDS):
            step = self.kept_step(body, kind)
            turned = Spatial(step.out_of(f.w), step.out_of(f.v))
            if kind in (REVOLUTE, SLIDE):
                self.feel(body.v, self.one_row(body, kind).dot(f), body.armature)
            else:
                for i in dofs(self.robot, body):
                    self.feel(i, self.rows_of_H[i].h.dot(turned), self.robot.armature[i])
            for _ in if_(body.parent != 0):
                self.sums[body.leaves].f = self.sums[body.base].f + turned.force_shifted(step.l)

    def feel(self, i, force, armature):
        """The generalised force of dof i."""
        felt = loop_vars(force)
        for _ in if_(self.row.a.given):
            felt.set(force + armature * self.row.a[i])
        self.row.tau[i] = felt.get()


def inverse_dynamics(sweep):
    """tau; without ``a`` that of a = 0, the bias.

    α = φ*α(p) + H*a + η outward, f = Σ φf + Mα + ξ inward, tau = H f + R a. About 250 flops for a body on one dof. The
    world's acceleration is −g.
    """
    robot, row = sweep.robot, sweep.row
    sweep.prepare_sines()
    sweep.bodies[0].acc = -vector(row.gravity)
    for body in outward(robot):
        sweep.move(body)
        for _ in if_(row.external_forces.given):
            sweep.push(body)
    for body in inward(robot):
        sweep.press(body)


INVERSE = entry(inverse_dynamics, NewtonEuler, [Q, V, A._replace(optional=True), FORCES, GRAVITY], [TAU], unroll=10)
