"""Derivatives of inverse dynamics in tangent coordinates: what each dof does to those inboard, and feels of them."""

from kfdyn.dynamics.recursions.slopes.derivatives import Drag, Motion
from kfdyn.multibody.recursions.given import GRAVITY, A, Q, V
from kfdyn.multibody.recursions.robot import SCREWS, dofs, inboard, inward
from kfdyn.multibody.recursions.robot_entry import Swept, entry, put_both
from kfdyn.multibody.recursions.spatial import Rigid, Spatial
from kfdyn.sweeps.algebra import Sym3, Vec3
from kfdyn.sweeps.batch.streaming_store import late
from kfdyn.sweeps.control_flow import if_, if_else
from kfdyn.sweeps.entry import Given
from kfdyn.sweeps.memory import clear
from kfdyn.sweeps.records import Record

#: Of each body: moment, first moment, drag and force of the composite body outboard of its hinge.
SUMMED = Record(J=Sym3, p=Vec3, drag=Drag, f=Spatial)


class InverseDerivatives(Swept):
    """The workspace: an outward sweep at rest, the motion, composite bodies, and the answers."""

    def __init__(self, robot, row, work):
        super().__init__(robot, row, work)
        self.motion, self.sums = Motion(self), self.take_rows(SUMMED, robot.n + 1)
        self.by_q, self.by_v, self.by_a = (self.take(robot.nv * robot.nv) for _ in range(3))

    def begin(self):
        """The world, and entries of unrelated hinges, which stay 0."""
        super().begin()
        self.motion.begin()
        for entries in (self.by_q, self.by_v, self.by_a):
            clear(entries, self.robot.nv * self.robot.nv)

    def run(self):
        """Fill all three matrices."""
        robot, row = self.robot, self.row
        copies = late(row, self.matrices, robot.nv * robot.nv, robot.n)
        self.sweep_outward(moving=False)
        for waiting in if_else(copies.waiting):  # else nothing is to be done between the bodies
            self.motion.run(row.a, self._keep, copies.some if waiting else None)
        copies.rest()
        for body in inward(robot):
            self._gather(body)
        copies.leave(row)

    def matrices(self):
        """The results, and where they are; by the workspace itself, as this is asked for at several places."""
        own = InverseDerivatives(self.robot, self.row, self.memory)
        return [("by_q", own.by_q), ("by_v", own.by_v), ("by_a", own.by_a)]

    def _keep(self, body, inertia, drag, f):
        own = self.sums[body.t]
        own.J, own.p, own.drag, own.f = inertia.J, inertia.p, drag, f

    def _gather(self, body):
        """Rows and columns of a body's dofs against all inboard, then its sums into its parent's."""
        own = self.sums[body.t]
        inertia, drag, f = Rigid(own.J, own.p, body.all_mass), own.drag, own.f
        for i in dofs(self.robot, body):
            self._dof(body, i, inertia, drag, f)
        for _ in if_(body.parent != 0):
            up = self.sums[body.parent]
            up.J, up.p, up.drag, up.f = up.J + own.J, up.p + own.p, up.drag + own.drag, up.f + own.f

    def _dof(self, body, i, inertia, drag, f):
        column = self.motion.columns[i]
        S = column.S
        seen = drag.turned_back(S), inertia @ S  # (2B)*S and I S: what dof i feels with
        by_q, by_v = drag @ column.psi + inertia @ column.psi2, drag @ S + inertia @ column.rate  # what dof i does
        with_force = by_q + S.cross_force(f)
        for j in dofs(self.robot, body):
            for _ in if_(j <= i):
                S_j = self.motion.columns[j].S
                self._feel(i, j, seen, S_j)
                for _ in if_(j < i):
                    # in a ball or free hinge i and j move together, in others i is outboard of j
                    for chained in if_else(body.kind <= SCREWS):
                        self._cause(j, i, (S_j.dot(with_force if chained else by_q), S_j.dot(by_v)))
        own = i * self.robot.nv + i
        self.by_a[own] = self.by_a[own] + self.robot.armature[i]
        for other in inboard(self.robot, body.parent):
            for j in dofs(self.robot, other):
                S = self.motion.columns[j].S
                caused = S.dot(with_force), S.dot(by_v)  # before anything is stored, so that S is read once
                self._feel(i, j, seen, S)
                self._cause(j, i, caused)

    def _feel(self, i, j, seen, S):
        """∂τ_i/∂q_j = S_i*(2B Ψ̇_j + I Ψ̈_j), ∂τ_i/∂v_j = S_i*(2B S_j + I (Ψ̇_j + Ṡ_j)), 𝓜 = S_i*I S_j."""
        (turned, moved), column, nv = seen, self.motion.columns[j], self.robot.nv
        by_q = turned.dot(column.psi.w) + moved.dot(column.psi2)
        by_v, by_a = turned.dot(S.w) + moved.dot(column.rate), moved.dot(S)
        self.by_q[i * nv + j], self.by_v[i * nv + j] = by_q, by_v
        put_both(self.by_a, nv, i, j, by_a)

    def _cause(self, j, i, caused):
        """∂τ_j/∂q_i = S_j*(2B Ψ̇_i + I Ψ̈_i + S_i ×* f), ∂τ_j/∂v_i = S_j*(2B S_i + I (Ψ̇_i + Ṡ_i))."""
        place = j * self.robot.nv + i
        self.by_q[place], self.by_v[place] = caused


def inverse_dynamics_derivatives(sweep):
    """∂τ/∂q, ∂τ/∂v and 𝓜 at (q, v, a); O(N depth), 36 products for each pair of a dof and one inboard."""
    sweep.run()


INVERSE_DERIVATIVES = entry(
    inverse_dynamics_derivatives,
    InverseDerivatives,
    [Q, V, A, GRAVITY],
    [Given(name, ("nv", "nv")) for name in ("by_q", "by_v", "by_a")],
    block=8,  # what is looked at for overflow is then still in the cache
    unroll=10,
)
