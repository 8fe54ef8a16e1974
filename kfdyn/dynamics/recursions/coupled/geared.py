"""Dynamics of trees whose hinges are geared: everything goes through X (THEORY section 12).

    X*𝓜X a + X*(c + 𝓜Ẋv) = tau,       c and 𝓜 those of the open tree, Ẋ = 0 unless hinges follow polynomials

𝓜 comes from composite bodies and c from Newton and Euler, so that a hinge may move nothing by itself as long as its
coordinate does. The reduced matrix is solved as L D L*: gears are few, and it is small.
"""

from kfdyn.dynamics.recursions import hybrid
from kfdyn.dynamics.recursions.articulated import ROUNDING, everything
from kfdyn.dynamics.recursions.inverse import INVERSE
from kfdyn.dynamics.recursions.mass_matrix import LOADED_MASS_MATRIX
from kfdyn.dynamics.recursions.slopes.derivatives_inverse import INVERSE_DERIVATIVES
from kfdyn.dynamics.recursions.small_ldl import factor, solve_rows, solve_upper
from kfdyn.multibody.recursions.given import FORCES, GRAVITY, TAU, A, Q, V, changed
from kfdyn.multibody.recursions.robot_entry import entry, put_both
from kfdyn.multibody.recursions.variants.geared import GEARED, LARGEST, Around, Kept, own
from kfdyn.multibody.recursions.workspace import Workspace
from kfdyn.sweeps.control_flow import if_else, loop, loop_vars
from kfdyn.sweeps.entry import Given
from kfdyn.sweeps.functions import minimum
from kfdyn.sweeps.specialise import Absent
from kfdyn.sweeps.values import where


class Weighed(Workspace):
    """The workspace: X*𝓜X by the recursion of the tree, and its factor."""

    def __init__(self, robot, row, work):
        super().__init__(robot, row, work)
        self.n = robot.own_nv
        self.diagonal, self.inverse = self.take(self.n), self.take(self.n * self.n)
        self.matrix, self.noise, self.parts = Kept(None), Kept(None), []
        self.mass = self.around(LOADED_MASS_MATRIX, matrix=self.matrix, load=self.noise)

    def around(self, recursion, **others):
        """The recursion of an entry of trees, on a row with some columns changed, in a part of this workspace."""
        made = Around(recursion, self.robot, changed(self.row, **others), self.rest)
        self.take(made.size)
        self.parts.append(made)
        return made

    def begin(self):
        """Prepare what stays from row to row."""
        for part in self.parts:
            part.begin()

    def factor(self, x=None):
        """L D L* of X*𝓜X, x ← L⁻¹x; the least of what is left of a pivot above rounding, as it is judged there."""
        return self.factor_matrix(self.mass.run(), x)

    def factor_matrix(self, fine, x=None):
        """The same of the matrix as it stands, if it is fine; pivots take the place of the diagonal."""
        n, matrix, noise, least = self.n, self.matrix, self.noise, loop_vars(fine)

        def inverted(j, pivot):
            """A row that is taken from another passes its rounding on with the square of the gain."""
            margin, inverse = pivot - ROUNDING * noise[j], 1.0 / pivot
            least.set(minimum(least.get(), where(margin <= LARGEST, margin, -1.0)))  # beyond doubles nothing is known
            self.diagonal[j] = pivot
            for i in loop(n, j + 1):
                gain = matrix[i * n + j] * inverse
                noise[i] += (gain * gain) * noise[j]
            return inverse

        factor(matrix, n, inverted, x)
        return least.get()

    def put_inverse(self, out):
        """(X*𝓜X)⁻¹, symmetric to the bit: what is above the diagonal is not computed but copied."""
        n, inverse = self.n, self.inverse
        for i in loop(n):
            for j in loop(i):
                inverse[i * n + j] = everything(self.robot, 0.0)
            inverse[i * n + i] = everything(self.robot, 1.0)
        solve_rows(self.matrix, n, inverse, n, lambda j: j + 1)
        for i in loop(n):
            for j in loop(i):
                inverse[j * n + i] = inverse[i * n + j]
        out.copy(inverse, n * n)


class Driven(Weighed):
    """The same, and X*c at the row's q and v."""

    def __init__(self, robot, row, work):
        super().__init__(robot, row, work)
        self.vector, self.load = self.take(self.n), Kept(None)
        forces = getattr(row, "external_forces", Absent())
        self.bias = self.around(INVERSE, a=Absent(), external_forces=forces, tau=self.load)

    def accelerate(self):
        """a = (X*𝓜X)⁻¹(tau − X*c) into ``vector``; the least pivot."""
        self.bias.run()
        for i in loop(self.n):
            self.vector[i] = self.row.tau[i] - self.load[i]
        least = self.factor(self.vector)
        solve_upper(self.matrix, self.n, self.vector)
        return least


class Prescribed(Weighed):
    """The workspace of hybrid dynamics: forces X*(𝓜Xa + c) at accelerations that become known."""

    def __init__(self, robot, row, work):
        super().__init__(robot, row, work)
        self.a, self.free, self.felt = self.take(self.n), self.take(self.n), Kept(None)
        self.forces = self.around(INVERSE, a=Kept(self.a), tau=self.felt)

    def each(self):
        """Over the coordinates, and whether their acceleration is prescribed."""
        for i in loop(self.n):
            for given in if_else(self.row.prescribed[i] != 0):
                yield i, given

    def leave_out(self, i):
        """Row and column i of X*𝓜X are those of a unit matrix, exactly."""
        n, matrix = self.n, self.matrix
        for j in loop(n):
            put_both(matrix, n, i, j, everything(self.robot, 0.0))
        matrix[i * n + i] = everything(self.robot, 1.0)
        self.noise[i] = everything(self.robot, 0.0)


class Differentiated(Driven):
    """The same, and the derivatives of X*(𝓜Xa + c) at that a."""

    def __init__(self, robot, row, work):
        super().__init__(robot, row, work)
        self.by_q, self.by_v = Kept(None), Kept(None)
        answers = {"by_q": self.by_q, "by_v": self.by_v, "by_a": Kept(None)}
        self.forces = self.around(INVERSE_DERIVATIVES, a=Kept(self.vector), **answers)


def geared_forward_dynamics(sweep):
    """a = (X*𝓜X)⁻¹(tau − X*c)."""
    least = sweep.accelerate()
    sweep.row.a.copy(sweep.vector, sweep.n)
    return least


def geared_mass_matrix_inverse(sweep):
    """(X*𝓜X)⁻¹."""
    least = sweep.factor()
    sweep.put_inverse(sweep.row.matrix)
    return least


def geared_innovation_variances(sweep):
    """The pivots of X*𝓜X, whose product is its determinant."""
    least = sweep.factor()
    sweep.row.d.copy(sweep.diagonal, sweep.n)
    return least


def geared_hybrid_dynamics(sweep):
    """All of tau and a, given tau of the free coordinates f and a of those prescribed, p.

    ::

        (X*𝓜X)_ff a_f = tau_f − X*(𝓜X a_p + c)_f,     tau_p = X*(𝓜Xa + c)_p
    """
    row = sweep.row
    for i, given in sweep.each():
        sweep.a[i] = row.known[i] if given else everything(sweep.robot, 0.0)
    sweep.forces.run()
    fine = sweep.mass.run()
    for i, given in sweep.each():
        if given:
            sweep.free[i] = everything(sweep.robot, 0.0)
            sweep.leave_out(i)
        else:
            sweep.free[i] = row.tau[i] - sweep.felt[i]
    least = sweep.factor_matrix(fine, sweep.free)
    solve_upper(sweep.matrix, sweep.n, sweep.free)
    for i in loop(sweep.n):
        sweep.a[i] = sweep.a[i] + sweep.free[i]
    sweep.forces.run()
    for i, given in sweep.each():
        row.a[i] = sweep.a[i]
        row.all_tau[i] = sweep.felt[i] if given else row.tau[i]
    return least


def geared_forward_derivatives(sweep):
    """∂a/∂q = −(X*𝓜X)⁻¹ ∂τ/∂q, ∂a/∂v likewise, ∂a/∂τ = (X*𝓜X)⁻¹, and a."""
    n, row, least = sweep.n, sweep.row, sweep.accelerate()
    sweep.forces.run()
    for by, out in ((sweep.by_q, row.by_q), (sweep.by_v, row.by_v)):
        for i in loop(n * n):
            by[i] = -by[i]
        solve_rows(sweep.matrix, n, by, n)
        out.copy(by.numbers, n * n)
    sweep.put_inverse(row.by_tau)
    row.a.copy(sweep.vector, n)
    return least


def _entry(recursion, workspace, given, results, **options):
    given, results = ([own(about) for about in some] for some in (given, results))
    return entry(recursion, workspace, given, results, table=GEARED, **options)


#: What rows are given of all hinges, as those of the open tree have it.
_OF_HINGES = ("hinges",)


def like_that_of_trees(tree, recursion, workspace, parameters):
    """The entry of a recursion that takes and answers what an entry of trees does, but for its parameters."""
    given = [about if about.name in _OF_HINGES else own(about) for about in tree.given]
    results = [own(about) for about in tree.results]
    return entry(recursion, workspace, given, results, parameters, table=GEARED, **tree.options._asdict())


def _of_own(about):
    """The same for as many coordinates as couplings leave; what looks at its numbers does so as before."""
    return about._replace(tail=own(about).tail)


_MATRIX = Given("matrix", ("nv", "nv"))
_BY = [Given(name, ("nv", "nv")) for name in ("by_q", "by_v", "by_tau")]

GEARED_FORWARD = _entry(geared_forward_dynamics, Driven, [Q, V, TAU, FORCES, GRAVITY], [A], unroll=10)
GEARED_MASS_MATRIX_INVERSE = _entry(geared_mass_matrix_inverse, Weighed, [Q], [_MATRIX], unroll=10)
GEARED_VARIANCES = _entry(geared_innovation_variances, Weighed, [Q], [Given("d", ("nv",))])
GEARED_HYBRID = entry(
    geared_hybrid_dynamics,
    Prescribed,
    [own(Q), *(_of_own(about) for about in hybrid.GIVEN[1:])],
    [own(about) for about in hybrid.ANSWERS],
    hybrid.MARKS,
    table=GEARED,
)
GEARED_FORWARD_DERIVATIVES = _entry(
    geared_forward_derivatives, Differentiated, [Q, V, TAU, GRAVITY], [*_BY, A], block=8
)
