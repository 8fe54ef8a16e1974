"""The means in compiled lanes: the gather, a scatter of accelerations and multipliers, and a gather of forces."""

from kfdyn.dynamics.recursions.forward import GRAVITY
from kfdyn.dynamics.recursions.sensing.gather import gather
from kfdyn.dynamics.recursions.sensing.message import SIX, dot
from kfdyn.dynamics.recursions.sensing.tables import PROGRAM
from kfdyn.dynamics.recursions.sensing.workspace import Sensing
from kfdyn.multibody.recursions.energy import Q, V
from kfdyn.multibody.recursions.outward import inertia_of
from kfdyn.multibody.recursions.robot import ROBOT, dofs, inward, outward
from kfdyn.multibody.recursions.spatial import Spatial
from kfdyn.sweeps.algebra import Vec3
from kfdyn.sweeps.control import carried, loop, when
from kfdyn.sweeps.entry import Entry, Given, Parameter
from kfdyn.sweeps.values import local, now


class Means(Sensing):
    """The workspace with answers: α, λ, f and external forces, six a body in the system's order, then the world's."""

    means = True

    @staticmethod
    def layout(robot, row):
        """That of all sweeps, and answers."""
        six = 6 * (robot.n + 1)
        answers = {"alpha": six, "lam": six, "force": six, "push": six, "a": robot.nv, "tau": robot.nv}
        return {**Sensing.layout(robot, row), **answers}

    def smooth(self, body, node):
        """w = −X(α', g) − 𝒦⁻¹γ, α = α' + H*q̈, λ = g + S*m."""
        row, here, up, k = self.row, self.bodies[body.t], 6 * self.number(body.parent), local(node.unknowns)
        a = Spatial.of([self.alpha[up + i] for i in SIX]).motion_shifted(here.l) + here.eta
        g = Spatial.of([self.lam[up + i] for i in SIX]).motion_shifted(here.l)
        kept = [*a.w, *a.v, *g.w, *g.v]
        moved, pulled = carried(*kept[:6]), carried(*kept[6:])

        def answered(total, h):
            X = self.X.part(13 * now(k))
            w = -dot([X[c] for c in range(13)], [*kept, 1.0])
            total.set(*(x + y * w for x, y in zip(total.get(), h)))
            k.set(k + 1)
            return w

        for i in dofs(self.robot, body):
            self.a[i] = answered(moved, self.row_of_H(i))
        for i in loop(node.rows_end, node.rows):
            pull = answered(pulled, self.row_of_S(i))
            for _ in when(row.n_m != 0):
                row.m[i] = pull
        for memory, found in ((self.alpha, moved), (self.lam, pulled)):
            for c, x in enumerate(found.get()):
                memory[6 * body.body + c] = x
        for _ in when(row.n_x != 0):
            self._push(body, node, self.lam.part(6 * body.body))

    def _push(self, body, node, pulled):
        """External force x = P(μ + ΣP*λ)."""
        row, push = self.row, self.push.part(6 * body.body)
        for c in SIX:
            push[c] = 0.0
        for i in loop(node.push_end, node.push):
            one = self.pushes[i]
            p, x = self.push_column(body, one), local(row.y[one.reading])
            for j, w in self.weights(one, i):
                q = self.push_column(body, self.pushes[j])
                x.set(x + w * dot(q, [pulled[c] for c in SIX]))
            for c in SIX:
                push[c] += p[c] * now(x)

    def press(self, body):
        """f = Σφf + Mα + ξ − x, and tau = H f + R q̈; then α counts gravity again."""
        row, at = self.row, 6 * body.body
        moved, f, pushed = self.alpha.part(at), self.force.part(at), self.push.part(at)
        J, p = inertia_of(body, self.work)
        omega = self.bodies[body.t].omega
        w, v = Vec3(*(moved[i] for i in range(3))), Vec3(*(moved[3 + i] for i in range(3)))
        moment = (J @ w).plus_cross(p, v).plus_cross(omega, J @ omega)
        push = (body.mass * v).plus_cross(w, p) + omega.cross(omega.cross(p))
        for i, x in enumerate((*moment, *push)):
            f[i] += x
        for _ in when(row.n_x != 0):
            for i in SIX:
                f[i] -= pushed[i]
        whole = [f[i] for i in SIX]
        for i in dofs(self.robot, body):
            self.tau[i] = dot(self.row_of_H(i), whole) + self.robot.armature[i] * self.a[i]
        shift = Spatial.of(whole).force_shifted(self.bodies[body.t].l)
        up = self.force.part(6 * self.number(body.parent))
        for i, x in enumerate((*shift.w, *shift.v)):
            up[i] += x
        for i in range(3):
            moved[3 + i] = moved[3 + i] + row.gravity[i]


def sense(robot, row, work):
    """Means of accelerations and forces. About 1500 flops for a body on one dof with one reading."""
    s, n = Means(robot, row, work), robot.n
    least = gather(s)
    for i in SIX:
        s.alpha[6 * n + i], s.lam[6 * n + i] = (-row.gravity[i - 3] if i >= 3 else 0.0), 0.0
    for body in outward(robot):
        s.smooth(body, s.nodes[body.t])
    for i in loop(6 * (n + 1)):
        s.force[i] = 0.0
    for body in inward(robot):
        s.press(body)
    row.a.copy(s.a, robot.nv)
    row.tau.copy(s.tau, robot.nv)
    row.alpha.copy(s.alpha, 6 * n)
    row.f.copy(s.force, 6 * n)
    row.x.copy(s.push, 6 * row.n_x)
    row.lam.copy(s.lam, 6 * row.n_lam)
    return least


def begin(robot, row, work):
    """Slot 0 and the world stay as they are."""
    Means(robot, row, work).begin()


#: ``n_x`` bodies have external forces told, all or none; λ, m and pivots likewise: 0 of them where nobody asks.
SENSE = Entry(
    sense,
    ROBOT,
    [Q, V, Given("y", ("n_readings",)), GRAVITY],
    [
        *(Given(name, ("nv",)) for name in ("a", "tau")),
        *(Given(name, ("n", 6)) for name in ("alpha", "f")),
        Given("x", ("n_x", 6)),
        Given("lam", ("n_lam", 6)),
        Given("m", ("n_m",)),
        Given("pivot", ("n_pivot",)),
    ],
    Means.size,
    begin,
    [*PROGRAM, *(Parameter(name, "n") for name in ("n_x", "n_lam", "n_m", "n_pivot"))],
)
