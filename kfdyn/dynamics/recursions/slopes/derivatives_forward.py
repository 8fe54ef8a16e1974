"""Derivatives of forward dynamics in tangent coordinates: each dof's change of the motion, filtered and smoothed.

If dof j moves or its velocity changes, all that is outboard of it gets a velocity Ψ̇ and an acceleration Ψ̈ more, or S
and Ψ̇ + Ṡ, and every body there a bias force 2B Ψ̇ + I Ψ̈. What the filter makes of these forces is the same linear
function of Ψ̇ and Ψ̈ for every j: of Ψ̈ it is P itself, of Ψ̇ a matrix Z that is gathered as P is (THEORY section 16,
solved by its section 4). So a column begins at its own body, goes inward as z, comes back as λ, and goes on outward;
branches that it meets on its way see nothing of it but λ, and answer by z of their own unit measurements.
"""

from collections import namedtuple

from kfdyn.dynamics.recursions.articulated import everything
from kfdyn.dynamics.recursions.mass_matrix_inverse import Units
from kfdyn.dynamics.recursions.slopes.derivatives import Motion
from kfdyn.multibody.recursions.given import GRAVITY, TAU, A, Q, V, changed
from kfdyn.multibody.recursions.hinges import zeros
from kfdyn.multibody.recursions.robot import KINDS, SCREWS, SLIDE, Body, children, dofs, inboard, inward, outward
from kfdyn.multibody.recursions.robot_entry import entry
from kfdyn.multibody.recursions.spatial import Articulated, Spatial
from kfdyn.sweeps.algebra import Mat3, Vec3
from kfdyn.sweeps.batch.streaming_store import late
from kfdyn.sweeps.control_flow import if_, loop, loop_vars, switch, while_
from kfdyn.sweeps.entry import Given
from kfdyn.sweeps.memory import clear
from kfdyn.sweeps.records import Record
from kfdyn.sweeps.specialise import Absent
from kfdyn.sweeps.values import now, where
from kfdyn.sweeps.variables import local


class Response(namedtuple("Response", "X Y")):
    """Z = [[X, 0], [Y, 0]]: the force that the filter makes of a velocity of all that is outboard. 18 numbers."""

    SIZE = 18

    @classmethod
    def of(cls, numbers):
        """The matrix of 18 numbers."""
        return cls(Mat3(*numbers[:9]), Mat3(*numbers[9:]))

    @classmethod
    def of_body(cls, drag):
        """2 B of a rigid body."""
        x, y, z = 2.0 * drag.h
        return cls(drag.X, Mat3(0.0 * x, z, -y, -z, 0.0 * x, x, y, -x, 0.0 * x))

    def __add__(self, other):
        return Response(self.X + other.X, self.Y + other.Y)

    def __matmul__(self, w):
        """The force, of an angular velocity."""
        return Spatial(self.X @ w, self.Y @ w)

    def seen_by(self, S):
        """S*Z, less the columns that are 0."""
        return self.Y.T.plus_applied(self.X.turned_back(S.w), S.v)

    def less(self, g, seen):
        """Z − g (S*Z)."""
        return Response(_less(self.X, g.w, seen), _less(self.Y, g.v, seen))


def _less_product(start, x, y):
    """start − x*y, as two short sums side by side: a column waits for this number at every dof of its way."""
    a, u = x.w, y.w
    return (start - a.x * u.x - a.y * u.y - a.z * u.z) - x.v.dot(y.v)


def _less(A, x, y):
    """A − x y*."""
    return Mat3(*(A.m[3 * i + j] - a * b for i, a in enumerate(x) for j, b in enumerate(y)))


#: Of each body: P about its hinge point; Z and the force of all that is outboard, about the origin; λ of a column
#: that is on its way outward, for q and for v.
KEPT = Record(P=Articulated, Z=Response, f=Spatial, by_q=Spatial, by_v=Spatial)

#: Of each dof: its gain about the origin, and S*Z / d.
GAIN = Record(gain=Spatial, seen=Vec3)


class ForwardDerivatives(Units):
    """The workspace: the filter with all its unit measurements, accelerations, the motion, and the columns' answers."""

    def __init__(self, robot, row, work):
        super().__init__(robot, changed(row, external_forces=Absent()), work)
        self.results, self.a = row, self.take(robot.nv)
        self.row.a, self.motion = self.a, Motion(self)
        self.kept, self.gains = self.take_rows(KEPT, robot.n + 1), self.take_rows(GAIN, robot.nv)
        self.answers = [self.take(robot.nv * robot.nv) for _ in range(2)]

    def begin(self):
        """The world, and entries between different trees, which stay 0."""
        super().begin()
        self.motion.begin()
        for entries in self.answers:
            clear(entries, self.robot.nv * self.robot.nv)

    def prior(self, body, *more):
        """As always, and P is kept."""
        prior = super().prior(body, *more)
        self.kept[body.t].P = prior.P
        return prior

    def filtered(self, body, *more):
        """As always, and some of the results of rows before are copied."""
        super().filtered(body, *more)
        self.copies.some()

    def run(self):
        """Fill all three matrices, and the accelerations; the least d less rounding."""
        robot, row = self.robot, self.results
        self.copies = copies = late(row, self.matrices, robot.nv * robot.nv, robot.n)
        self.sweep_outward()
        least = self.gather()
        self.scatter()
        self.scatter_columns()
        self.motion.run(self.a, self._keep)
        for body in inward(robot):
            self._gather(body)
        copies.rest()
        for body in outward(robot):
            for j in dofs(robot, body):
                self._column(body, j)
        copies.leave(row)
        row.by_tau.copy(self.entries, robot.nv * robot.nv)
        row.a.copy(self.a, robot.nv)
        return least

    def matrices(self):
        """The results that take longest, and where they are; by the workspace itself, as this is asked for twice."""
        by_q, by_v = ForwardDerivatives(self.robot, self.results, self.memory).answers
        return [("by_q", by_q), ("by_v", by_v)]

    def _keep(self, body, inertia, drag, f):
        own = self.kept[body.t]
        own.Z, own.f = Response.of_body(drag), f

    def _gather(self, body):
        """Gains about the origin; what the hinge lets pass of Z, into the parent's, and the force."""
        own = self.kept[body.t]
        Z = loop_vars(own.Z)
        for kind in switch(body.kind, KINDS):
            if kind <= SLIDE:
                gain = self.dofs[body.v].inverse * own.P.applied(self.one_row(body, kind))
                self._measure(body, body.v, gain, Z)
            else:
                for i in dofs(self.robot, body):
                    self._measure(body, i, self.dofs[i].gain, Z)
        for _ in if_(body.parent != 0):
            up = self.kept[body.parent]
            up.Z, up.f = up.Z + Z.get(), up.f + own.f

    def _measure(self, body, i, gain, state):
        Z, gain = state.get(), gain.force_shifted(self.motion.moved[body.t].x)
        seen = Z.seen_by(self.motion.columns[i].S)
        self.gains[i].gain, self.gains[i].seen = gain, self.dofs[i].inverse * seen
        state.set(Z.less(gain, seen))

    def _column(self, body, j):
        """Column j of ∂a/∂q and of ∂a/∂v: inward, back, and on outward."""
        own, column, x = self.kept[body.t], self.motion.columns[j], self.motion.moved[body.t].x
        S, P, Z = column.S, own.P, own.Z
        turning, pushed = (column.psi.w, S.w), (column.psi2, column.rate)
        push = S.cross_force(own.f)
        state = loop_vars(
            *(Z @ w + P.applied(m.motion_shifted(x)).force_shifted(x) for w, m in zip(turning, pushed))
        )  # fmt: skip
        for i in dofs(self.robot, body):  # in a chain of screws those inboard of j feel that the force turns, too
            before = loop_vars(everything(self.robot, 0.0))
            for _ in if_((body.kind <= SCREWS) & (i < j)):
                before.set(self.motion.columns[i].S.dot(push))
            self._inward(i, j, state, before.get())
        by_q, by_v = state.get()
        state.set(by_q + push, by_v)
        for other in inboard(self.robot, body.parent):
            for k in dofs(self.robot, other):
                self._inward(k, j, state, 0.0)
        none = Spatial(zeros(self.robot), zeros(self.robot))
        state.set(none, none)
        self._path(body, j, state)
        state.set(*(costate + m for costate, m in zip(state.get(), pushed)))
        self._leave(body, state)
        for t in loop(body.end, body.t + 1):
            other = Body(self.robot, t)
            for _ in if_(other.parent != t - 1):
                state.set(self.kept[other.parent].by_q, self.kept[other.parent].by_v)
            for i in dofs(self.robot, other, backwards=True):
                self._outward(i, j, state, [-self.gains[i].seen.dot(w) for w in turning])
            self._leave(other, state)

    def _place(self, i, j):
        return i * self.robot.nv + j

    def _inward(self, k, j, state, before):
        """ε = −S z, and z⁺ = z + g ε; ε waits where the answer will be."""
        S, gain, place = self.motion.columns[k].S, self.gains[k].gain, self._place(k, j)
        after = []
        for entries, start, z in zip(self.answers, (-before, 0.0), state.get()):
            eps = _less_product(start, S, z)
            entries[place] = eps
            after.append(z + eps * gain)
        state.set(*after)

    def _outward(self, i, j, state, nu):
        """The answer a = ν − g λ, and λ + S a."""
        S, gain, place = self.motion.columns[i].S, self.gains[i].gain, self._place(i, j)
        after = []
        for entries, start, costate in zip(self.answers, nu, state.get()):
            a = _less_product(start, gain, costate)
            entries[place] = a
            after.append(costate + a * S)
        state.set(*after)

    def _path(self, body, j, state):
        """From the root to the body, its hinge included; branches that leave the path answer on the way."""
        for other in path(self.robot, body):
            for k in dofs(self.robot, other, backwards=True):
                place = self._place(k, j)
                self._outward(k, j, state, [entries[place] * self.dofs[k].inverse for entries in self.answers])
            for _ in if_((other.snap >= 0) & (other.t != body.t)):
                self._branches(other, body, j, state)

    def _branches(self, other, body, j, state):
        """a(i) = −z(i) λ of all branches of a body but the one that leads to the column's own."""
        x = self.motion.moved[other.t].x
        by_q, by_v = (costate.motion_shifted(x) for costate in state.get())
        for child in children(self.robot, other):
            for _ in if_((body.t < child.t) | (child.end <= body.t)):
                for i, z in self.kept_columns(other, child.column_end, child.column):
                    place = self._place(i, j)
                    self.answers[0][place], self.answers[1][place] = -z.dot(by_q), -z.dot(by_v)

    def _leave(self, body, state):
        """Keep λ where branches will ask for it."""
        for _ in if_(body.snap >= 0):
            self.kept[body.t].by_q, self.kept[body.t].by_v = state.get()


def path(robot, body):
    """Over the bodies from the root to this one, outward: of those counted before it, what has it outboard."""
    at = local(1)
    for _ in while_(lambda: at <= body.t):
        other = Body(robot, now(at))
        at.set(where(other.end <= body.t, other.end, other.t + 1))
        for _ in if_(other.end > body.t):
            yield other


def forward_dynamics_derivatives(sweep):
    """a, and ∂a/∂q = −𝓜⁻¹ ∂τ/∂q, ∂a/∂v = −𝓜⁻¹ ∂τ/∂v at (q, v, a), ∂a/∂τ = 𝓜⁻¹; one filter serves them all."""
    return sweep.run()


FORWARD_DERIVATIVES = entry(
    forward_dynamics_derivatives,
    ForwardDerivatives,
    [Q, V, TAU, GRAVITY],
    [*(Given(name, ("nv", "nv")) for name in ("by_q", "by_v", "by_tau")), A],
    block=8,  # what is looked at for overflow is then still in the cache
    unroll=10,
)
