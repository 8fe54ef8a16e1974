"""Trees whose hinges are geared: everything goes through X, which is constant (THEORY section 12).

    q_tree = X q + offset,  v_tree = X v,       X*𝓜X a + X*c = tau,       c and 𝓜 those of the open tree

𝓜 comes from composite bodies and c from Newton and Euler, so that a hinge may move nothing by itself as long as its
coordinate does. The reduced matrix is solved as L D L*: gears are few, and it is small.
"""

from kfdyn.dynamics.recursions.articulated import ROUNDING, everything
from kfdyn.dynamics.recursions.elimination import factor, solve_lower, solve_upper
from kfdyn.dynamics.recursions.forward import FORCES, GRAVITY
from kfdyn.dynamics.recursions.inverse import NewtonEuler, newton_euler
from kfdyn.dynamics.recursions.mass_matrix import Composites
from kfdyn.multibody.arguments import QUATERNION_TOLERANCE
from kfdyn.multibody.recursions.outward import sweep_outward
from kfdyn.multibody.recursions.robot import BALL, POSE, ROBOT, inward, outward
from kfdyn.multibody.recursions.workspace import Workspace
from kfdyn.sweeps.control import carried, loop, when
from kfdyn.sweeps.entry import Entry, Given, Parameter
from kfdyn.sweeps.functions import absolute, root, smaller
from kfdyn.sweeps.records import Fields
from kfdyn.sweeps.values import choice


class Geared(Workspace):
    """The workspace: coordinates of the open tree, Newton–Euler's, that of 𝓜, the reduced matrix and its vector."""

    @staticmethod
    def layout(robot, row):
        """Parts, and how many numbers each has."""
        n = row.nv_own
        return {
            "q": robot.nq, "v": robot.nv, "a": robot.nv, "tau": robot.nv,
            "forces": NewtonEuler.size(robot), "inertias": Composites.size(robot),
            "matrix": n * n, "vector": n, "diagonal": n, "inverse": n * n,
        }  # fmt: skip

    def begin(self):
        """What stays from row to row."""
        NewtonEuler(self.robot, Fields(), self.forces).begin()
        Composites(self.robot, Fields(), self.inertias).begin()

    def terms(self, i):
        """Over column and ratio of the terms of row i of X; rows of positions come before those of rates."""
        row = self.row
        for s in loop(row.starts[i + 1], row.starts[i]):
            yield row.columns[s], row.ratios[s]

    def expand(self, given, out, first, count, offsets=None):
        """Rows ``first`` … of X times what is given."""
        for i in loop(count):
            total = carried(everything(self.robot, 0.0))
            for column, ratio in self.terms(first + i):
                total.set(total.get() + ratio * given[column])
            out[i] = total.get() if offsets is None else total.get() + offsets[i]

    def place(self):
        """The tree's configuration; 1, or −1 where a quaternion is not of unit length."""
        robot = self.robot
        self.expand(self.row.q, self.q, 0, robot.nq, self.row.offsets)
        fine = carried(everything(robot, 1.0))
        for body in outward(robot):
            for _ in when(body.kind >= BALL):
                at = body.q + choice(body.kind == POSE, 3, 0)
                x, y, z, w = (self.q[at + i] for i in range(4))
                off = absolute(root(x * x + y * y + z * z + w * w) - 1.0)
                fine.set(choice(off <= QUATERNION_TOLERANCE, fine.get(), everything(robot, -1.0)))
        return fine.get()

    def press(self, a=None):
        """X*(𝓜Xa + c) into ``vector``, a = 0 if not given."""
        robot, row, given = self.robot, self.row, a is not None and a.given
        self.expand(row.v, self.v, robot.nq, robot.nv)
        for _ in when(given):
            self.expand(a, self.a, robot.nq, robot.nv)
        inner = Fields()
        inner.q, inner.v, inner.a, inner.tau = self.q, self.v, self.a, self.tau
        inner.external_forces, inner.gravity, inner.a.given = row.external_forces, row.gravity, given
        newton_euler(NewtonEuler(robot, inner, self.forces))
        for i in loop(row.nv_own):
            self.vector[i] = everything(robot, 0.0)
        for i in loop(robot.nv):
            for column, ratio in self.terms(robot.nq + i):
                self.vector[column] = self.vector[column] + ratio * self.tau[i]

    def weigh(self):
        """X*𝓜X into ``matrix``."""
        robot, n = self.robot, self.row.nv_own
        inner = Fields()
        inner.q = self.q
        bodies = Composites(robot, inner, self.inertias)
        sweep_outward(robot, inner, bodies.work, bodies.H, moving=False)
        for body in inward(robot):
            bodies.weigh(body)
        for i in loop(n * n):
            self.matrix[i] = everything(robot, 0.0)
        for i in loop(robot.nv):
            for j in loop(i + 1):  # of two entries that mirror each other, one is read, and both are written
                entry = bodies.entries[i * robot.nv + j]
                for column, ratio in self.terms(robot.nq + i):
                    for other, by in self.terms(robot.nq + j):
                        term = (ratio * by) * entry
                        self.matrix[column * n + other] = self.matrix[column * n + other] + term
                        for _ in when(i != j):
                            self.matrix[other * n + column] = self.matrix[other * n + column] + term

    def factor(self, x=None):
        """L D L* of ``matrix``, x ← L⁻¹x; the least pivot less rounding, as a part of what stood on the diagonal."""
        n, least = self.row.nv_own, carried(everything(self.robot, 1.0))
        for j in loop(n):
            self.diagonal[j] = self.matrix[j * n + j]

        def inverted(j, pivot):
            least.set(smaller(least.get(), pivot / self.diagonal[j] - ROUNDING))
            return 1.0 / pivot

        factor(self.matrix, n, inverted, x)
        return least.get()


def geared_forward_dynamics(robot, row, work):
    """a = (X*𝓜X)⁻¹(tau − X*c)."""
    sweep = Geared(robot, row, work)
    fine = sweep.place()
    sweep.press()
    for i in loop(row.nv_own):
        sweep.vector[i] = row.tau[i] - sweep.vector[i]
    sweep.weigh()
    least = sweep.factor(sweep.vector)
    solve_upper(sweep.matrix, row.nv_own, sweep.vector)
    for i in loop(row.nv_own):
        row.acceleration[i] = sweep.vector[i]
    return smaller(fine, least)


def geared_inverse_dynamics(robot, row, work):
    """tau = X*(𝓜Xa + c)."""
    sweep = Geared(robot, row, work)
    fine = sweep.place()
    sweep.press(row.a)
    for i in loop(row.nv_own):
        row.tau[i] = sweep.vector[i]
    return fine


def geared_mass_matrix(robot, row, work):
    """X*𝓜X."""
    sweep = Geared(robot, row, work)
    fine = sweep.place()
    sweep.weigh()
    row.matrix.copy(sweep.matrix, row.nv_own * row.nv_own)
    return fine


def geared_mass_matrix_inverse(robot, row, work):
    """(X*𝓜X)⁻¹, symmetric to the bit: of each column what is on and below the diagonal."""
    sweep, n = Geared(robot, row, work), row.nv_own
    fine = sweep.place()
    sweep.weigh()
    least, out = sweep.factor(), sweep.inverse
    for j in loop(n):
        for i in loop(n):
            sweep.vector[i] = everything(robot, 0.0)
        sweep.vector[j] = everything(robot, 1.0)
        solve_lower(sweep.matrix, n, sweep.vector, j)
        solve_upper(sweep.matrix, n, sweep.vector)
        for i in loop(n, j):
            out[i * n + j] = sweep.vector[i]
            out[j * n + i] = sweep.vector[i]
    row.matrix.copy(out, n * n)
    return smaller(fine, least)


#: Sizes of q and v, and X: row i has terms starts[i] … of ``columns`` and ``ratios``; offsets of positions.
GEARS = [
    Parameter("nq_own", "n"), Parameter("nv_own", "n"), Parameter("starts", "i"), Parameter("columns", "i"),
    Parameter("ratios", "f"), Parameter("offsets", "f"),
]  # fmt: skip
_Q, _V = Given("q", ("nq_own",)), Given("v", ("nv_own",))


def _entry(recursion, given, result):
    return Entry(recursion, ROBOT, [*GEARS, *given], [result], Geared)


GEARED_FORWARD = _entry(
    geared_forward_dynamics, [_Q, _V, Given("tau", ("nv_own",)), FORCES, GRAVITY], Given("acceleration", ("nv_own",))
)
GEARED_INVERSE = _entry(
    geared_inverse_dynamics,
    [_Q, _V, Given("a", ("nv_own",), optional=True), FORCES, GRAVITY],
    Given("tau", ("nv_own",)),
)
GEARED_MASS_MATRIX = _entry(geared_mass_matrix, [_Q], Given("matrix", ("nv_own", "nv_own")))
GEARED_MASS_MATRIX_INVERSE = _entry(geared_mass_matrix_inverse, [_Q], Given("matrix", ("nv_own", "nv_own")))
