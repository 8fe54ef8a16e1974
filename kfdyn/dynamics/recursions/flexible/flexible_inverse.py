"""Inverse dynamics where bodies bend: Newton and Euler over the points of a body, in its own frame.

No M_m is made: with γ the acceleration of a point, Σ J*γ are the forces of modes and hinge, O(points · modes).
"""

from kfdyn.dynamics.recursions.flexible.flexible_filter import flexible_entry
from kfdyn.dynamics.recursions.inverse import NewtonEuler, inverse_dynamics
from kfdyn.multibody.recursions.attachments import carried_frame
from kfdyn.multibody.recursions.flexible_bodies import ATTACHED, BENT, Bending
from kfdyn.multibody.recursions.given import FORCES, GRAVITY, TAU, A, Q, V
from kfdyn.multibody.recursions.hinges import zeros
from kfdyn.multibody.recursions.spatial import Spatial
from kfdyn.sweeps.control_flow import if_, if_else, loop, loop_vars


class FlexibleNewtonEuler(NewtonEuler):
    """The workspace of inverse dynamics with bodies that bend."""

    def __init__(self, robot, row, work):
        super().__init__(robot, row, work)
        self.bending = Bending(robot, row, self.take(Bending.size(robot)))

    def modal(self, flex):
        """Return the accelerations and the forces of the modes of a body."""
        rows = self.bending.kept.part(flex.rows)
        return rows, rows.part(flex.modes)

    def move(self, body):
        """Motion and own force of a body of any form."""
        form = self.bending.flex(body).form
        for attached in if_else(form == ATTACHED):
            if attached:
                self._attach(body)
            else:
                super().move(body)
                for _ in if_(form == BENT):
                    self._bend(body)

    def _attach(self, body):
        """A frame on a body that bends: α = φ*α(p) + Πη̈ and what η̇ brings; no mass."""
        flex, up = self.bending.flex(body), self.bodies[body.parent]
        frame, omega = carried_frame(self.bending, body), up.omega
        R, l, drift = frame.R, frame.l, frame.drift
        alpha = (up.alpha + drift.w).plus_cross(omega, frame.spin)
        acc = up.rate.plus_applied(up.acc + drift.v, l).plus_cross(omega, 2.0 * frame.slide)
        state, accelerations = loop_vars(Spatial(alpha, acc)), self.modal(flex)[0]
        for i in loop(flex.modes):
            state.set(state.get() + accelerations[i] * self.bending.column(flex, i))
        self.placed(body, R, l, omega + frame.spin, state.get())

    def _bend(self, body):
        """Σ J*γ over the points with γ = Ψη̈ + α × s + u a + ω × (ω × s) + 2ω × ṡ + η̇*Bη̇, and Kη + Cη̇ + Rη̈."""
        robot, bending, here = self.robot, self.bending, self.bodies[body.t]
        flex, numbers = bending.flex(body), robot.numbers
        n, (accelerations, forces) = flex.modes, self.modal(flex)
        bending.look(flex)
        for i in loop(n):
            accelerations[i] = 0.0
            for _ in if_(self.row.a.given):
                accelerations[i] = self.row.a[flex.v + i]
        for i in loop(n):
            force = loop_vars(bending.elastic_force(flex, i))
            for k in loop(n):
                force.set(force.get() + numbers[flex.matrices + (i + 2 * n) * n + k] * accelerations[k])
            forces[i] = force.get()
        omega, acc, A = here.omega, here.acc, here.rate
        total = loop_vars(Spatial(zeros(robot), zeros(robot)))
        for u, (s, ds, bent) in bending.points(flex):
            sped = loop_vars(A.plus_applied(u * acc + bent, s).plus_cross(omega, 2.0 * ds))
            for i in loop(n):
                sped.set(sped.get() + accelerations[i] * bending.shape(i))
            gamma = sped.get()
            for i in loop(n):
                forces[i] += bending.shape(i).dot(gamma)
            total.set(total.get() + Spatial(s.cross(gamma), u * gamma))
        here.force = total.get()

    def press(self, body):
        """Forces of hinge and modes, and what is passed on; an attachment presses on the modes, too."""
        flex = self.bending.flex(body)
        forces = self.modal(flex)[1]
        for _ in if_(flex.form == ATTACHED):
            f, R = self.bodies[body.t].force + self.sums[body.arrives].f, self.hinges[body.t].R
            turned = Spatial(R @ f.w, R @ f.v)
            for i in loop(flex.modes):
                forces[i] += self.bending.column(flex, i).dot(turned)
        super().press(body)
        for _ in if_(flex.form == BENT):
            for i in loop(flex.modes):
                self.row.tau[flex.v + i] = forces[i]


def flexible_inverse_dynamics(sweep):
    """tau of hinges and modes; without ``a`` that of a = 0, the bias. O(points · modes) a body."""
    inverse_dynamics(sweep)


FLEXIBLE_INVERSE = flexible_entry(
    flexible_inverse_dynamics, FlexibleNewtonEuler, [Q, V, A._replace(optional=True), FORCES, GRAVITY], [TAU]
)
