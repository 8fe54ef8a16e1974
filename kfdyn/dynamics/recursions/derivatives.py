"""Derivatives of inverse and forward dynamics, in tangent coordinates (THEORY section 16; Singh, Russell, Wensing).

Spatial vectors here are those of the point of each body that passes one fixed origin, in world orientation: then
nothing is shifted from body to body, and composite inertias are plain sums. The origin is that of the tree's root, so
that a robot far away loses no digits. A hinge of several screws is a chain of hinges of one dof on mass-less bodies; a
ball or a free hinge is one step whose columns are fixed in the child.
"""

from kfdyn.dynamics.recursions.forward import GRAVITY
from kfdyn.dynamics.recursions.mass_matrix_inverse import Units
from kfdyn.multibody.recursions.energy import Q, V
from kfdyn.multibody.recursions.hinges import zeros
from kfdyn.multibody.recursions.outward import WORK, axis_of, inertia_of, place_world, sweep_outward
from kfdyn.multibody.recursions.robot import REVOLUTE, ROBOT, SCREW, SCREWS, Body, dofs, inward, outward
from kfdyn.multibody.recursions.spatial import Spatial
from kfdyn.sweeps.algebra import Sym3, Vec3
from kfdyn.sweeps.control import carried, either, loop, when, while_
from kfdyn.sweeps.entry import Entry, Given
from kfdyn.sweeps.memory import clear
from kfdyn.sweeps.records import Record
from kfdyn.sweeps.values import choice, local, now


class Six:
    """A matrix (6, 6), row by row."""

    SIZE = 36

    def __init__(self, m):
        self.m = m

    @classmethod
    def of(cls, numbers):
        """The matrix of 36 numbers."""
        return cls(tuple(numbers))

    def numbers(self):
        """The 36 numbers."""
        return self.m

    def like(self, numbers):
        """A matrix of other numbers."""
        return Six(tuple(numbers))

    def __add__(self, other):
        return Six(tuple(a + b for a, b in zip(self.m, other.m)))

    def __matmul__(self, x):
        x = [*x.w, *x.v]
        return Spatial.of([_sum(self.m[6 * i + j] * x[j] for j in range(6)) for i in range(6)])

    def turned_back(self, x):
        """A* x."""
        x = [*x.w, *x.v]
        return Spatial.of([_sum(self.m[6 * j + i] * x[j] for j in range(6)) for i in range(6)])


def _sum(terms):
    total, *rest = terms
    for term in rest:
        total = total + term
    return total


class Rigid:
    """A rigid inertia about the world's origin: moment, first moment, mass."""

    def __init__(self, J, p, m):
        self.J, self.p, self.m = J, p, m

    def __matmul__(self, x):
        return Spatial((self.J @ x.w).plus_cross(self.p, x.v), (self.m * x.v).plus_cross(x.w, self.p))


def cross_motion(v, u):
    """v × u of motions."""
    return Spatial(v.w.cross(u.w), v.w.cross(u.v).plus_cross(v.v, u.w))


def cross_force(v, f):
    """v ×* f, of a motion and a force."""
    return Spatial(v.w.cross(f.w).plus_cross(v.v, f.v), v.w.cross(f.v))


def twice_B(inertia, v):
    """2 B(I, v) = (v×*) I − I (v×) + (I v)×̄*, column by column."""
    h, columns = inertia @ v, []
    for j in range(6):
        unit = Spatial.of([1.0 if i == j else 0.0 for i in range(6)])
        made = cross_force(v, inertia @ unit) - inertia @ cross_motion(v, unit) + cross_force(unit, h)
        columns.append([*made.w, *made.v])
    return Six(tuple(columns[j][i] for i in range(6) for j in range(6)))


#: Motion of each body: position of its origin, velocity and acceleration (less g). Row 0 is the world.
MOVED = Record(x=Vec3, v=Spatial, a=Spatial)

#: Of each dof: S, Ψ̇ = v_p × S, Ψ̈ = a_p × S + v_p × Ψ̇, and Ψ̇ + Ṡ.
COLUMN = Record(S=Spatial, psi=Spatial, psi2=Spatial, rate=Spatial)

#: Of each body: composite moment, first moment, 2B and force.
SUMMED = Record(J=Sym3, p=Vec3, B=Six, f=Spatial)


class Derivatives:
    """The workspace of ∂τ/∂q and ∂τ/∂v, behind an outward sweep at rest; row by row, or column by column."""

    def __init__(self, robot, row, work, swept, H, by_columns=False):
        self.robot, self.row, self.swept, self.by_columns = robot, row, swept, by_columns
        self.bodies, self.rows_of_H = WORK.rows(swept), SCREW.rows(H)
        n, nv = robot.n + 1, robot.nv
        self.moved, self.moved_memory = MOVED.rows(work), work
        at = n * MOVED.width
        self.columns = COLUMN.rows(work.part(at))
        at = at + nv * COLUMN.width
        self.sums, self.sum_memory = SUMMED.rows(work.part(at)), work.part(at)
        at = at + n * SUMMED.width
        self.by_q = work.part(at)
        self.by_v = work.part(at + nv * nv)
        self.rest = work.part(at + 2 * nv * nv)

    @staticmethod
    def size(robot):
        """How many numbers it works in."""
        return (robot.n + 1) * (MOVED.width + SUMMED.width) + robot.nv * (COLUMN.width + 2 * robot.nv)

    def begin(self):
        """The world, and entries of unrelated hinges, which stay 0."""
        clear(self.moved_memory, MOVED.width)
        clear(self.by_q, self.robot.nv * self.robot.nv)
        clear(self.by_v, self.robot.nv * self.robot.nv)

    def run(self, a):
        """Fill both matrices at accelerations ``a[i]``."""
        g = Vec3(*(-self.row.gravity[i] for i in range(3)))
        self.moved[0].a = Spatial(zeros(self.robot), g)
        for body in outward(self.robot):
            self.move(body, a)
        for body in inward(self.robot):
            self.gather(body)

    def move(self, body, a):
        """Velocity, acceleration and the columns of a body's dofs; its own I, B and force."""
        row, up, here = self.row, self.moved[body.parent], self.bodies[body.t]
        v, acc = up.v, up.a
        x = Vec3(*(choice(body.parent == 0, 0.0, far) for far in up.x + here.l))
        self.moved[body.t].x = x
        for i in dofs(self.robot, body):  # rows of H as motions at the world's origin: [w; v + x × w]
            for revolute in either(body.kind == REVOLUTE):
                h = Spatial(axis_of(body.t, self.swept), Vec3.zero()) if revolute else self.rows_of_H[i].h
                self.columns[i].S = Spatial(h.w, x.cross(h.w) + h.v)
        before, after = carried(v, acc), carried(v, acc)
        chained = body.kind <= SCREWS
        for i in dofs(self.robot, body):
            column = self.columns[i]
            S, (v_p, a_p), (v_now, a_now) = column.S, before.get(), after.get()
            psi = cross_motion(v_p, S)
            column.psi, column.psi2 = psi, cross_motion(a_p, S) + cross_motion(v_p, psi)
            v_now = v_now + row.v[i] * S
            a_now = a_now + a[i] * S + row.v[i] * psi
            after.set(v_now, a_now)
            for _ in when(chained):
                before.set(v_now, a_now)
        v, acc = after.get()
        for i in dofs(self.robot, body):  # Ṡ = v × S where S is fixed in the child; else Ψ̇, as in a chain
            column = self.columns[i]
            for single in either(chained):
                column.rate = column.psi + (column.psi if single else cross_motion(v, column.S))
        kept = self.moved[body.t]
        kept.v, kept.a = v, acc
        J, p = inertia_of(body, self.swept)
        m, s = body.mass, J.s
        r = p + (0.5 * m) * x  # the parallel axis theorem
        xx, yy, zz = r.x * x.x, r.y * x.y, r.z * x.z
        moment = Sym3(
            s[0] + 2.0 * (yy + zz), s[1] - r.x * x.y - x.x * r.y, s[2] - r.x * x.z - x.x * r.z,
            s[3] + 2.0 * (xx + zz), s[4] - r.y * x.z - x.y * r.z, s[5] + 2.0 * (xx + yy),
        )  # fmt: skip
        inertia, own = Rigid(moment, p + m * x, m), self.sums[body.t]
        own.J, own.p, own.B = moment, inertia.p, twice_B(inertia, v)
        own.f = inertia @ acc + cross_force(v, inertia @ v)

    def gather(self, body):
        """Rows and columns of a body's dofs against all inboard, then its sums into its parent's."""
        own = self.sums[body.t]
        inertia, B, f = Rigid(own.J, own.p, body.all_mass), own.B, own.f
        for i in dofs(self.robot, body):
            self._dof(body, i, inertia, B, f)
        for _ in when(body.parent != 0):
            up = self.sums[body.parent]
            up.J, up.p, up.B, up.f = up.J + own.J, up.p + own.p, up.B + own.B, up.f + own.f

    def _dof(self, body, i, inertia, B, f):
        column = self.columns[i]
        S = column.S
        seen = (B.turned_back(S), inertia @ S)  # S*2B and S*I: what dof i feels
        by_q, by_v = B @ column.psi + inertia @ column.psi2, B @ S + inertia @ column.rate  # what dof i does
        with_force = by_q + cross_force(S, f)
        for j in dofs(self.robot, body):
            for _ in when(j <= i):
                self._feel(i, j, seen)
                for _ in when(j < i):
                    # in a ball or free hinge i and j move together, in others i is outboard of j
                    for chained in either(body.kind <= SCREWS):
                        self._cause(j, i, with_force if chained else by_q, by_v)
        at = local(body.parent)
        for _ in while_(lambda: at != 0):
            other = Body(self.robot, now(at))
            for j in dofs(self.robot, other):
                self._feel(i, j, seen)
                self._cause(j, i, with_force, by_v)
            at.set(other.parent)

    def _feel(self, i, j, seen):
        """∂τ_i/∂q_j = S_i*(2B Ψ̇_j + I Ψ̈_j), ∂τ_i/∂v_j = S_i*(2B S_j + I (Ψ̇_j + Ṡ_j))."""
        place, column = self.place(i, j), self.columns[j]
        self.by_q[place] = seen[0].dot(column.psi) + seen[1].dot(column.psi2)
        self.by_v[place] = seen[0].dot(column.S) + seen[1].dot(column.rate)

    def _cause(self, j, i, by_q, by_v):
        """∂τ_j/∂q_i = S_j*(2B Ψ̇_i + I Ψ̈_i + S_i ×* f), ∂τ_j/∂v_i = S_j*(2B S_i + I (Ψ̇_i + Ṡ_i))."""
        place, S = self.place(j, i), self.columns[j].S
        self.by_q[place] = S.dot(by_q)
        self.by_v[place] = S.dot(by_v)

    def place(self, i, j):
        """Where entry (i, j) is kept."""
        return j * self.robot.nv + i if self.by_columns else i * self.robot.nv + j


def _inverse_parts(robot, row, work):
    """An outward sweep at rest, and the derivatives behind it."""
    at = (robot.n + 1) * WORK.width
    return work, work.part(at), Derivatives(robot, row, work.part(at + robot.nv * SCREW.width), work, work.part(at))


def inverse_dynamics_derivatives(robot, row, work):
    """∂τ/∂q and ∂τ/∂v at (q, v, a); O(N depth), about 90 flops for each pair of a dof and one inboard."""
    swept, H, derivatives = _inverse_parts(robot, row, work)
    sweep_outward(robot, row, swept, H, moving=False)
    derivatives.run(row.a)
    row.by_q.copy(derivatives.by_q, robot.nv * robot.nv)
    row.by_v.copy(derivatives.by_v, robot.nv * robot.nv)


def begin_inverse(robot, row, work):
    """What stays from row to row."""
    swept, _, derivatives = _inverse_parts(robot, row, work)
    place_world(swept)
    derivatives.begin()


def _forward_parts(robot, row, work):
    """The filter with all its unit measurements, accelerations, and the derivatives behind them."""
    units = Units(robot, row, work, moving=True)
    rest = units.entries.part(robot.nv * robot.nv)
    f = units.filter
    return units, rest, Derivatives(robot, row, rest.part(robot.nv), f.work, f.H, by_columns=True)


class NoForce:
    """External forces that are not given."""

    given = False


def forward_dynamics_derivatives(robot, row, work):
    """a, and ∂a/∂q = −𝓜⁻¹ ∂τ/∂q, ∂a/∂v = −𝓜⁻¹ ∂τ/∂v at (q, v, a), ∂a/∂τ = 𝓜⁻¹.

    One filter serves a and 𝓜⁻¹. Products leave out pairs of dofs on different branches, between which ∂τ/∂q is 0.
    """
    row.external_forces = NoForce()
    units, a, derivatives = _forward_parts(robot, row, work)
    f, nv, answers = units.filter, robot.nv, row.a
    sweep_outward(robot, row, f.work, f.H, moving=True)
    least = f.gather(units.gather)
    row.a = a
    f.scatter()
    row.a = answers
    clear(units.column_memory, 6 * nv)
    for body in outward(robot):
        units.scatter(body)
    derivatives.run(a)
    row.by_tau.copy(units.entries, nv * nv)
    answers.copy(a, nv)
    _minus_product(robot, row, units.entries, derivatives)
    return least


#: Rows of 𝓜⁻¹ that a product takes at a time: they fit in the nearest cache, and their sums in registers.
_STRIP = 6


def _minus_product(robot, row, inverse, derivatives):
    """∂a = −𝓜⁻¹ ∂τ for q and for v, a strip of rows at a time; the last strip looks back at rows already done."""
    nv = robot.nv
    for wide in either(nv >= _STRIP):
        strip = _STRIP if wide else 1
        for first in loop(nv, step=strip):
            i = choice(first > nv - strip, nv - strip, first)
            _strip(robot, inverse, derivatives, i, strip)
            for k, result in enumerate((row.by_q, row.by_v)):
                result.part(i * nv).copy(derivatives.rest.part(k * strip * nv), strip * nv)


def _strip(robot, inverse, derivatives, i, strip):
    """Rows i … i + strip, column by column: those dofs k that are inboard or outboard of the column's, or its own."""
    nv, none = robot.nv, zeros(robot).x
    for body in outward(robot):
        for c in loop(body.own_end, body.column):
            j = robot.entries[c]
            sums = carried([none] * strip, [none] * strip)

            def add(k, j=j, sums=sums):
                (by_q, by_v), place = sums.get(), derivatives.place(k, j)
                x, y = derivatives.by_q[place], derivatives.by_v[place]
                seen = [inverse[(i + r) * nv + k] for r in range(strip)]
                sums.set([t - n * x for t, n in zip(by_q, seen)], [t - n * y for t, n in zip(by_v, seen)])

            for other in loop(body.column_end, body.column):
                add(robot.entries[other])
            at = local(body.parent)
            for _ in while_(lambda at=at: at != 0):
                up = Body(robot, now(at))
                for k in dofs(robot, up):
                    add(k)
                at.set(up.parent)
            for k, total in enumerate(sums.get()):
                for r, value in enumerate(total):
                    derivatives.rest[(k * strip + r) * nv + j] = value


def begin_forward(robot, row, work):
    """What stays from row to row."""
    units, _, derivatives = _forward_parts(robot, row, work)
    units.filter.begin()
    clear(units.entries, robot.nv * robot.nv)
    derivatives.begin()


INVERSE_DERIVATIVES = Entry(
    inverse_dynamics_derivatives,
    ROBOT,
    [Q, V, Given("a", ("nv",)), GRAVITY],
    [Given("by_q", ("nv", "nv")), Given("by_v", ("nv", "nv"))],
    lambda robot, row: (robot.n + 1) * WORK.width + robot.nv * SCREW.width + Derivatives.size(robot),
    begin_inverse,
    block=8,  # what is looked at for overflow is then still in the cache
    unroll=10,
)

FORWARD_DERIVATIVES = Entry(
    forward_dynamics_derivatives,
    ROBOT,
    [Q, V, Given("tau", ("nv",)), GRAVITY],
    [Given("by_q", ("nv", "nv")), Given("by_v", ("nv", "nv")), Given("by_tau", ("nv", "nv")), Given("a", ("nv",))],
    lambda robot, row: Units.size(robot) + robot.nv + Derivatives.size(robot) + 2 * _STRIP * robot.nv,
    begin_forward,
    block=8,
    unroll=10,
)
