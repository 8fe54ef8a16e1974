"""Filter and score of a series whose transition is constant, sparse and known beforehand, with one output.

What the engine does for any tree, on the same page, with what such a series spares: no model is packed for every set of
variances, F is a list of its entries that are not 0 (24 of 169 for a trend with twelve seasons), and the score is
summed on the way. Means and co-states of all rows are the columns of one matrix (n, rows). What changes with the
variances may have lanes, one for each set of them (:mod:`many_models.many_chains`).
"""

from typing import Any, NamedTuple

from kfdyn.estimation.recursions.linalg.matrices import Block, Column, Turned, add_scaled, combine, dot, outer_sum
from kfdyn.estimation.recursions.node_update import Output, Straight, filter_node, smooth_covariance, smooth_node
from kfdyn.estimation.recursions.riccati.scalar import ScalarOutput
from kfdyn.estimation.recursions.sparse import Picked, Sparse
from kfdyn.sweeps import down, if_, if_else, local, loop, sqrt, sweep, where
from kfdyn.sweeps.workspace import Workspace


class Chain(NamedTuple):
    """A series of n states, by the entries that are not 0: those of F, then those of F*, row by row (:class:`Sparse`).

    Of H there are the columns at ``places``, ``h_step`` numbers a step, or 0 where all steps share them. Q has
    ``entries``, rows and columns. ``seen`` says which steps are measured.
    """

    n: Any
    rows: Any
    starts: Any
    columns: Any
    F: Any
    H: Any
    places: Any
    h_step: Any
    entries: Any
    seen: Any


class Found(NamedTuple):
    """Results of each step: e = D^-½ε (steps, rows), the gains G and D."""

    e: Any
    G: Any
    D: Any


class Measured(NamedTuple):
    """Inputs of the filter: rows of y, (steps, rows), means ``start`` (n, rows) at step 0; Q at its entries, P0, R."""

    y: Any
    start: Any
    Q: Any
    P0: Any
    noise: Any


class Last(NamedTuple):
    """The end of a gather: P⁺ and the means of all rows (n, rows)."""

    P: Any
    means: Any


class Asked(NamedTuple):
    """Sums over steps, all 0 at first: Σλλ* and ΣΛ over steps 1 …, then Σa² and ΣC, which are ``sums``.

    Of the two matrices ``squares`` and ``Lambdas`` hold a number for each entry of Q.
    """

    squares: Any
    Lambdas: Any
    sums: Any


@sweep(tags=0)
def filter_chain(chain, found, given, work):
    """Filter rows of y; fills e, G and D; returns the step whose D is not positive, or −1.

    ``given`` is :class:`Measured`, ``work`` is for a :class:`Sweep`.
    """
    sweep = Sweep(chain, found, work)
    sweep.failed = local(-1)
    filter_steps(sweep, given)
    return sweep.failed


def filter_steps(sweep, given):
    """The gather of :func:`filter_chain`; it goes on to the end where nobody asks which step failed."""
    chain = sweep.chain
    sweep.given = given
    sweep.square(0).copy(Block(given.P0, 0, chain.n, chain.n))
    sweep.flow(0).copy(Block(given.start, 0, chain.n, chain.rows))
    for k in loop(chain.seen.size, until=sweep.failed):
        filter_node(Filtered(sweep, k))


@sweep(tags=0)
def score_chain(chain, found, asked, work):
    """Smooth rows of e and sum the score, which is :class:`Asked`; ``work`` is for a :class:`Sweep`."""
    score_steps(Sweep(chain, found, work), asked)


def score_steps(sweep, asked):
    """The scatters of :func:`score_chain`."""
    sweep.asked = asked
    steps = sweep.chain.seen.size
    sweep.square(steps).clear()
    sweep.flow(steps).clear()
    for k in down(steps):
        smooth_node(Smoothed(sweep, k))
        smooth_covariance(Weighed(sweep, k))


class Sweep(Workspace):
    """The chain, and what goes along it: P and z, or Λ and λ."""

    failed = None  # a variable for the step that failed, if anybody asks

    def __init__(self, chain, found, work):
        n, rows = chain.n, chain.rows
        super().__init__(work, n, rows)
        self.chain, self.found = chain, found
        self.F = Sparse(chain.starts, chain.columns, chain.F)
        self.back = Sparse(chain.starts.part(n), chain.columns, chain.F)
        self.spare = Block(self.squares, 2 * n * n, n, n)
        self.line, self.spare_line = (Column(self.lines, i * rows, rows) for i in range(2))

    def square(self, k):
        """P or Λ of step k; those of its neighbours are elsewhere."""
        n = self.chain.n
        return Block(self.squares, k % 2 * n * n, n, n)

    def flow(self, k):
        """z or λ of step k."""
        n, rows = self.chain.n, self.chain.rows
        return Block(self.flows, k % 2 * n * rows, n, rows)

    @classmethod
    def last(cls, work, n, rows, steps):
        """P⁺ and the means of the last step, after the gather."""
        sizes, odd = cls.layout(n, rows), (steps - 1) % 2
        P, means = work[odd * n * n :][: n * n], work[sizes["squares"] + odd * n * rows :][: n * rows]
        return Last(P.reshape(n, n), means.reshape(n, rows))

    @staticmethod
    def layout(n, rows):
        """Return the layout for n states and that many rows."""
        return {"squares": 3 * n * n, "flows": 2 * n * rows, "scratch": 2 * n, "lines": 2 * rows}


class Step:
    """Step k of a chain: its row of H and its gain."""

    def __init__(self, sweep, k):
        self.sweep, self.k, self.seen = sweep, k, sweep.chain.seen[k]
        n, rows = sweep.chain.n, sweep.chain.rows
        self.h = Column(sweep.chain.H, k * sweep.chain.h_step, sweep.chain.places.size)
        self.g = Column(sweep.found.G, k * n, n)
        self.e = Column(sweep.found.e, k * rows, rows)

    def add(self, sums, number):
        """Add the entries of a matrix that Q has, by row and column, to sums over steps 1 …."""
        entries = self.sweep.chain.entries
        for _ in if_(self.k > 0):
            for l in loop(sums.size):
                sums[l] = sums[l] + number(entries[2 * l], entries[2 * l + 1])


class Filtered(Step):
    """A step of the gather."""

    def prior(self):
        """P and z, where the step before left them."""
        return Straight(self.sweep.square(self.k), self.sweep.flow(self.k))

    def outputs(self):
        """The one, if it is seen."""
        for there in if_else(self.seen):
            if there:
                yield Innovated(self)
            else:
                self.sweep.found.D[self.k] = 1.0
                self.e.clear()

    def pass_on(self, P, z):
        """F P⁺F* + Q and F z⁺, to the next step."""
        sweep = self.sweep
        for _ in if_(self.k + 1 < sweep.chain.seen.size):
            ahead = sweep.square(self.k + 1)
            sweep.F.congruence(ahead, P, sweep.spare)
            for l in loop(sweep.given.Q.size):
                i, j = sweep.chain.entries[2 * l], sweep.chain.entries[2 * l + 1]
                ahead[i, j] = ahead[i, j] + sweep.given.Q[l]
            sweep.F.multiply(sweep.flow(self.k + 1), z)


class Innovated(ScalarOutput):
    """The output of a step in the gather, of all rows."""

    def __init__(self, step):
        super().__init__(step.h, step.sweep.given.noise, step.g, step.sweep.square(step.k), step.sweep.scratch)
        self.step, self.e, self.places = step, step.e, step.sweep.chain.places
        self.u = Column(step.sweep.scratch, 0, step.g.size)

    def applied(self, P):
        """u = P h*."""
        return super().applied(Picked(P, self.places))

    def variance(self, u):
        """d = h u + r."""
        return super().variance(Picked(u, self.places))

    def innovation(self, z):
        """ε = y − h z."""
        combine(self.e, self.h, Picked(z, self.places))
        add_scaled(self.e, Column(self.step.sweep.given.y, self.step.k * self.e.size, self.e.size), -1.0, self.e)
        return self.e

    def corrected(self, z, g, eps):
        """z + g ε."""
        outer_sum(z, None, z, 1.0, g, eps)
        return z

    def residual(self, eps, d):
        """D^-½ε: ν itself nobody asks for."""
        add_scaled(eps, None, sqrt(1.0 / d), eps)
        return eps

    def keep(self, g, d, nu):
        """D, and whether it is positive."""
        sweep, k = self.step.sweep, self.step.k
        if sweep.failed is not None:
            sweep.failed.set(where(d > 0.0, -1, k))
        sweep.found.D[k] = d


class Smoothed(Step):
    """A step of the scatter of co-states."""

    def arriving(self):
        """F*λ."""
        own = self.sweep.flow(self.k)
        self.sweep.back.multiply(own, self.sweep.flow(self.k + 1))
        return Straight(own)

    def outputs(self, backwards=False):
        """The one, if it is seen."""
        for _ in if_(self.seen):
            yield Answered(self)

    def leave(self, costate):
        """λλ* into the sum."""
        self.add(self.sweep.asked.squares, lambda i, j: dot(costate.line(i), costate.line(j)))


class Answered(Output):
    """The output of a step in the scatter of co-states, of all rows."""

    def __init__(self, step):
        self.step, self.sweep = step, step.sweep

    def response(self, costate):
        """a = ν − g*λ."""
        a, spare = self.sweep.line, self.sweep.spare_line
        add_scaled(a, None, sqrt(1.0 / self.sweep.found.D[self.step.k]), self.step.e)
        combine(spare, self.step.g, costate)
        add_scaled(a, a, -1.0, spare)
        return a

    def excited(self, costate, a):
        """λ⁺ + h*a."""
        line = Picked(costate, self.sweep.chain.places)
        outer_sum(line, None, line, 1.0, self.step.h, a)
        return costate

    def answer(self, a):
        """a² into the sum."""
        sums = self.sweep.asked.sums
        sums[0] = sums[0] + dot(a, a)


class Weighed(Step):
    """A step of the scatter of Λ."""

    def arriving(self):
        """F*ΛF."""
        own = self.sweep.square(self.k)
        self.sweep.back.congruence(own, self.sweep.square(self.k + 1), self.sweep.spare)
        return Straight(own)

    def outputs(self, backwards=False):
        """The one, if it is seen; it leaves C behind."""
        sums = self.sweep.asked.sums
        for _ in if_(self.seen):
            output = Projected(self)
            yield output
            sums[1] = sums[1] + output.precision + dot(self.g, output.U)

    def leave(self, Lambda):
        """Λ into the sum."""
        self.add(self.sweep.asked.Lambdas, lambda i, j: Lambda[i, j])


class Projected(Output):
    """The output of a step in the scatter of Λ, which stays in its place."""

    def __init__(self, step):
        scratch, n = step.sweep.scratch, step.g.size
        self.h, self.g, self.places = step.h, step.g, step.sweep.chain.places
        self.precision = 1.0 / step.sweep.found.D[step.k]
        self.U, self.V = Column(scratch, 0, n), Column(scratch, n, n)

    def projected(self, Lambda):
        """A = Λ⁺ − (Λ⁺g) h."""
        combine(self.U, self.g, Lambda)
        columns = Picked(Turned(Lambda), self.places)
        outer_sum(columns, None, columns, -1.0, self.h, self.U)
        return Lambda

    def remainder(self, A):
        """v = g*A − d⁻¹h."""
        combine(self.V, self.g, A)
        some = Picked(self.V, self.places)
        add_scaled(some, some, -self.precision, self.h)
        return self.V

    def weighed(self, A, V):
        """Λ = A − h*v: rows of it that h sees change, and the lower triangle is right."""
        for l in loop(self.places.size):
            i = self.places[l]
            for j in loop(i + 1):
                A[i, j] = A[i, j] - self.h[l] * V[j]
            for j in loop(i):
                A[j, i] = A[i, j]
            for j in loop(A.shape[0], i + 1):
                A[i, j] = A[j, i]
        return A
