"""The means in compiled lanes: the gather, a scatter of accelerations and multipliers, and a gather of forces."""

from kfdyn.dynamics.recursions.sensing.gather import Sensing
from kfdyn.dynamics.recursions.sensing.tables import ANSWERS, PROGRAM
from kfdyn.multibody.recursions.given import GRAVITY, Q, V
from kfdyn.multibody.recursions.hinges import zeros
from kfdyn.multibody.recursions.outward import inertia_of
from kfdyn.multibody.recursions.robot import SCREW, dofs, inward, outward
from kfdyn.multibody.recursions.spatial import Spatial
from kfdyn.multibody.recursions.swept import entry, vector
from kfdyn.sweeps.algebra import Vec3
from kfdyn.sweeps.control_flow import if_, loop, loop_vars
from kfdyn.sweeps.entry import Given, Parameter
from kfdyn.sweeps.memory import clear
from kfdyn.sweeps.values import now
from kfdyn.sweeps.variables import local


class Means(Sensing):
    """The workspace, and λ in the system's order and then the world's."""

    means = True

    @staticmethod
    def layout(robot, row):
        """That of all sweeps, and λ."""
        return {**Sensing.layout(robot, row), "lam": (SCREW, robot.n + 1)}

    def smooth(self, body, node):
        """w = −X(α', g) − 𝒦⁻¹γ, α = α' + H*q̈, λ = g + S*m."""
        row, here, up, k = self.row, self.bodies[body.t], self.number(body.parent), local(node.unknowns)
        alpha = self.alpha[up].h.motion_shifted(here.l) + here.eta
        g = self.lam[up].h.motion_shifted(here.l)
        moved, pulled = loop_vars(alpha), loop_vars(g)

        def answered(total, h):
            X = self.X[now(k)]
            w = -(X.alpha.dot(alpha) + X.lam.dot(g) + X.gamma)
            total.set(total.get() + w * h)
            k.set(k + 1)
            return w

        for i in dofs(self.robot, body):
            self.a[i] = answered(moved, self.rows_of_H[i].h)
        for i in loop(node.rows_end, node.rows):
            pull = answered(pulled, self.S[i].h)
            for _ in if_(row.n_m != 0):
                row.m[i] = pull
        self.alpha[body.body].h, self.lam[body.body].h = moved.get(), pulled.get()
        for _ in if_(row.n_x != 0):
            self._push(body, node, pulled.get())

    def _push(self, body, node, lam):
        """External force x = P(μ + ΣP*λ)."""
        total = loop_vars(Spatial(zeros(self.robot), zeros(self.robot)))
        for i in loop(node.push_end, node.push):
            one = self.pushes[i]
            force = loop_vars(self.row.y[one.reading])
            for j, w in self.weights(one, i):
                force.set(force.get() + w * self.push_column(body, self.pushes[j]).dot(lam))
            total.set(total.get() + force.get() * self.push_column(body, one))
        self.x[body.body].h = total.get()

    def press(self, body):
        """f = Σφf + Mα + ξ − x, and tau = H f + R q̈; then α counts gravity again."""
        k, up, here, omega = body.body, self.number(body.parent), self.bodies[body.t], self.bodies[body.t].omega
        (J, p), alpha = inertia_of(body, self.work), self.alpha[k].h
        moment = (J @ alpha.w).plus_cross(p, alpha.v).plus_cross(omega, J @ omega)
        push = (body.mass * alpha.v).plus_cross(alpha.w, p) + omega.cross(omega.cross(p))
        whole = loop_vars(self.f[k].h + Spatial(moment, push))
        for _ in if_(self.row.n_x != 0):
            whole.set(whole.get() - self.x[k].h)
        f = whole.get()
        for i in dofs(self.robot, body):
            self.tau[i] = self.rows_of_H[i].h.dot(f) + self.robot.armature[i] * self.a[i]
        self.f[k].h, self.f[up].h = f, self.f[up].h + f.force_shifted(here.l)
        self.alpha[k].h = Spatial(alpha.w, alpha.v + vector(self.row.gravity))


def sense(s):
    """Means of accelerations and forces. About 1500 flops for a body on one dof with one reading."""
    row, n, least = s.row, s.robot.n, s.gather()
    s.alpha[n].h, s.lam[n].h = Spatial(Vec3.zero(), -vector(row.gravity)), Spatial.zero()
    for body in outward(s.robot):
        s.smooth(body, s.nodes[body.t])
    clear(s.f.memory, 6 * (n + 1))
    for body in inward(s.robot):
        s.press(body)
    s.answer()
    row.lam.copy(s.lam.memory, 6 * row.n_lam)
    return least


#: λ, m and pivots are told or not as external forces are: 0 of them where nobody asks.
SENSE = entry(
    sense,
    Means,
    [Q, V, Given("y", ("n_readings",)), GRAVITY],
    [*ANSWERS, Given("lam", ("n_lam", 6)), Given("m", ("n_m",)), Given("pivot", ("n_pivot",))],
    [*PROGRAM, *(Parameter(name, "n") for name in ("n_x", "n_lam", "n_m", "n_pivot"))],
)
