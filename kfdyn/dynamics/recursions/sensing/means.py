"""The means in compiled lanes: the gather, a scatter of accelerations and multipliers, and a gather of forces."""

from kfdyn.dynamics.recursions.articulated import everything
from kfdyn.dynamics.recursions.sensing.gather import Sensing
from kfdyn.dynamics.recursions.sensing.general import General
from kfdyn.dynamics.recursions.sensing.tables import ANSWERS, GENERAL, LOOPS, PROGRAM
from kfdyn.multibody.recursions.given import GRAVITY, Q, V
from kfdyn.multibody.recursions.hinges import zeros
from kfdyn.multibody.recursions.outward import inertia_of
from kfdyn.multibody.recursions.robot import SCREW, Body, dofs, inward, outward
from kfdyn.multibody.recursions.robot_entry import entry, six, vector
from kfdyn.multibody.recursions.spatial import Spatial
from kfdyn.sweeps.algebra import Vec3
from kfdyn.sweeps.control_flow import if_, if_else, loop, loop_vars
from kfdyn.sweeps.entry import Given, Parameter
from kfdyn.sweeps.memory import clear
from kfdyn.sweeps.values import now
from kfdyn.sweeps.variables import local


class Means(Sensing):
    """The workspace, and λ in the system's order and then the world's."""

    means = True

    @staticmethod
    def layout(robot, row):
        """Lay out the memory of all sweeps, λ, and the values of unknowns."""
        return {**Sensing.layout(robot, row), "lam": (SCREW, robot.n + 1), "values": row.n_values}

    def smooth(self, body, node):
        """Smooth: take what the parent knows, then decide at this node."""
        here, up = self.bodies[body.t], self.number(body.parent)
        alpha = self.alpha[up].h.motion_shifted(here.l) + here.eta
        g = self.lam[up].h.motion_shifted(here.l)
        for pair in if_else(node.way != GENERAL):
            if pair:
                self._smooth_pair(body, node, alpha, g)
            else:
                self._smooth_general(General(self, body), alpha, g)

    def _smooth_pair(self, body, node, alpha, g):
        """w = −X(α', g) − 𝒦⁻¹γ, α = α' + H*q̈, λ = g + S*m."""
        row, k = self.row, node.unknowns

        def answered(X):
            return -(X.alpha.dot(alpha) + X.lam.dot(g) + X.gamma)

        a, pull = answered(self.X[k]), answered(self.X[k + 1])
        self.a[body.v] = a
        for _ in if_(row.n_m != 0):
            row.m[node.rows] = pull
        lam = g + pull * self.S[node.rows].h
        self.alpha[body.body].h, self.lam[body.body].h = alpha + a * self.rows_of_H[body.v].h, lam
        for _ in if_(row.n_x != 0):
            self._push(body, node, lam)

    def _smooth_general(self, of, alpha, g):
        """w = −X(α', g, u_kept) − 𝒦⁻¹γ; children get their shares of u."""
        row, body, node = self.row, of.body, of.node
        w = self.decide(of, alpha, g)
        moved, pulled = loop_vars(alpha), loop_vars(g)
        for i in dofs(self.robot, body):
            value = w[of.left + (i - body.v)]
            self.a[i] = value
            moved.set(moved.get() + value * self.rows_of_H[i].h)
        for i in loop(node.rows_end, node.rows):
            value = w[of.left + of.m + (i - node.rows)]
            pulled.set(pulled.get() + value * self.S[i].h)
            for _ in if_(row.n_m != 0):
                row.m[i] = value
        for _ in if_(row.n_source != 0):
            pulled.set(pulled.get() - self.shift_of(body))
        self.alpha[body.body].h, self.lam[body.body].h = moved.get(), pulled.get()
        for j in loop(of.wide.end_end, of.wide.end):  # a loop pulls at the body, and is no external force
            one = self.ends[j]
            self.f[body.body].h = self.f[body.body].h - w[one.nu] * six(row.ends, 6 * one.at)
        for _ in if_(row.n_x != 0):
            lam = loop_vars(pulled.get())
            for _ in if_(row.n_source != 0):  # what reads the force moves its mean
                lam.set(lam.get() + self.source(self.ON_X, body))
            self._push(body, node, lam.get())
            for j in loop(of.wide.loose_end, of.wide.loose):
                one = self.loose[j]
                force = w[one.to] * self.push_column(body, self.pushes[one.push])
                self.x[body.body].h = self.x[body.body].h + force
        self.hand_out(of, w)

    def decide(self, of, alpha, g):
        """The values of a node's unknowns, of which those that are carried are there already."""
        w = self.values.part(of.wide.values)
        for p in loop(of.gone):
            X = self.X[of.node.unknowns + p]
            x = local(X.alpha.dot(alpha) + X.lam.dot(g) + X.gamma)
            for c in loop(of.kept):
                x.set(x + self.beside[of.wide.beside + p * of.kept + c] * w[of.carried(c)])
            w[of.place(p)] = -now(x)
        return w

    def hand_out(self, of, w):
        """To every child the values of what it carried inward."""
        row = self.row
        for j in loop(of.wide.child_end, of.wide.child):
            one = self.inner_nodes[j]
            child = self.wides[one.wide]
            for a in loop(child.kept):
                x = local(everything(self.robot, 0.0))
                for c in loop(of.left):
                    x.set(x + row.numbers[one.T + a * of.left + c] * w[c])
                self.values[child.values + row.places[child.order + 2 * child.gone + a]] = now(x)

    def _push(self, body, node, lam):
        """External force x = P(μ + ΣP*λ)."""
        total = loop_vars(Spatial(zeros(self.robot), zeros(self.robot)))
        for i in loop(node.push_end, node.push):
            one = self.pushes[i]
            force = self.row.y[one.reading] + self.pulled_push(body, i, lam)
            total.set(total.get() + force * self.push_column(body, one))
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
    clear(s.f.memory, 6 * (n + 1))
    fall = Spatial(Vec3.zero(), -vector(row.gravity))
    s.alpha[n].h, s.lam[n].h = fall, Spatial.zero()
    for _ in if_(s.nodes[0].way == GENERAL):
        world = General(s, Body(s.robot, 0))
        s.hand_out(world, s.decide(world, fall, Spatial.zero()))
    for body in outward(s.robot):
        s.smooth(body, s.nodes[body.t])
    for body in inward(s.robot):
        s.press(body)
    s.answer()
    row.lam.copy(s.lam.memory, 6 * row.n_lam)
    row.w.copy(s.values, row.n_w)
    return least


#: λ, m, pivots and the unknowns of nodes in general are told or not as external forces are: 0 of them where nobody
#: asks. A source s adds −s·(a, tau, α, f, x) to what is made stationary; there is none of 0 numbers.
SENSE = entry(
    sense,
    Means,
    [Q, V, Given("y", ("n_readings",)), GRAVITY, *LOOPS, Given("source", ("n_source",))],
    [
        *ANSWERS, Given("lam", ("n_lam", 6)), Given("m", ("n_m",)), Given("pivot", ("n_pivot",)),
        Given("w", ("n_w",)),
    ],
    [*PROGRAM, *(Parameter(name, "n") for name in ("n_source", "n_x", "n_lam", "n_m", "n_pivot", "n_w"))],
)  # fmt: skip
