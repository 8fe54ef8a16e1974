"""Filter and score of a series whose transition is constant, sparse and known beforehand, with one output.

What the engine does for any tree, on the same page, with what such a series spares: no model is packed for every set of
variances, F is a list of its entries that are not 0 (24 of 169 for a trend with twelve seasons), and the score is
summed on the way. Means and co-states of all rows are the columns of one matrix (n, rows).
"""

from typing import Any, NamedTuple

from kfdyn.estimation.recursions.costate_outputs import ScalarWeigh
from kfdyn.estimation.recursions.linalg.matrices import Block, Column, add_scaled, combine, dot, outer_sum
from kfdyn.estimation.recursions.node_update import Output, Straight, filter_node, smooth_covariance, smooth_node
from kfdyn.estimation.recursions.riccati.scalar import ScalarOutput
from kfdyn.estimation.recursions.sparse import Sparse
from kfdyn.sweeps import down, if_, if_else, local, loop, sqrt, sweep, where
from kfdyn.sweeps.workspace import Workspace


class Chain(NamedTuple):
    """A series of n states: F by its entries that are not 0 and ``at`` their rows and columns.

    Of H, ``h_step`` is 0 where all steps share it. ``seen`` says which steps are measured; e = D^-½ε (steps, rows), the
    gains G and D are what is found of them.
    """

    n: Any
    rows: Any
    at: Any
    F: Any
    H: Any
    h_step: Any
    seen: Any
    e: Any
    G: Any
    D: Any


class Measured(NamedTuple):
    """What is filtered: rows of y, (steps, rows), their means ``start`` at step 0, (n, rows); Q, P0 and the noise R."""

    y: Any
    start: Any
    Q: Any
    P0: Any
    noise: Any


class Asked(NamedTuple):
    """Sums over steps, all 0 at first: Σλλ* and ΣΛ over steps 1 …, then Σa² and ΣC, which are ``sums``.

    ``entries`` are rows and columns of what is asked for of the two matrices, which a process noise with few variances
    has few of; ``squares`` and ``Lambdas`` hold a number for each.
    """

    entries: Any
    squares: Any
    Lambdas: Any
    sums: Any


@sweep(tags=0)
def filter_chain(chain, given, work):
    """Filter rows of y; fills e, G and D; returns the step whose D is not positive, or −1.

    ``given`` is :class:`Measured`, ``work`` is for a :class:`Sweep`.
    """
    sweep, n = Sweep(chain, work), chain.n
    sweep.given, sweep.Q, sweep.failed = given, Block(given.Q, 0, n, n), local(-1)
    sweep.square.copy(Block(given.P0, 0, n, n))
    sweep.flow.copy(Block(given.start, 0, n, chain.rows))
    for k in loop(chain.seen.size, until=sweep.failed):
        filter_node(Filtered(sweep, k))
    return sweep.failed


@sweep(tags=0)
def score_chain(chain, asked, work):
    """Smooth rows of e and sum the score, which is :class:`Asked`; ``work`` is for a :class:`Sweep`."""
    sweep = Sweep(chain, work)
    sweep.asked = asked
    sweep.square.clear()
    sweep.flow.clear()
    for k in down(chain.seen.size):
        smooth_node(Smoothed(sweep, k))
        smooth_covariance(Weighed(sweep, k))


class Sweep(Workspace):
    """The chain, and what goes along it: P and z, or Λ and λ."""

    def __init__(self, chain, work):
        n, rows = chain.n, chain.rows
        super().__init__(work, n, rows)
        self.chain, self.F = chain, Sparse(chain.at, chain.F)
        self.square, self.spare_square = (Block(self.squares, i * n * n, n, n) for i in range(2))
        self.flow, self.spare_flow = (Block(self.flows, i * n * rows, n, rows) for i in range(2))
        self.line, self.spare_line = (Column(self.lines, i * rows, rows) for i in range(2))

    @staticmethod
    def layout(n, rows):
        """Of n states and so many rows."""
        return {"squares": 2 * n * n, "flows": 2 * n * rows, "scratch": 2 * n, "lines": 2 * rows}


class Step:
    """Step k of a chain: its row of H and its gain."""

    def __init__(self, sweep, k):
        self.sweep, self.k, self.seen = sweep, k, sweep.chain.seen[k]
        n, rows = sweep.chain.n, sweep.chain.rows
        self.h, self.g = Column(sweep.chain.H, k * sweep.chain.h_step, n), Column(sweep.chain.G, k * n, n)
        self.e = Column(sweep.chain.e, k * rows, rows)

    def add(self, sums, number):
        """Add what is asked for of a matrix, by row and column, to sums over steps 1 …."""
        entries = self.sweep.asked.entries
        for _ in if_(self.k > 0):
            for l in loop(sums.size):
                sums[l] = sums[l] + number(entries[2 * l], entries[2 * l + 1])


class Filtered(Step):
    """A step of the gather."""

    def prior(self):
        """P and z, where the step before left them."""
        return Straight(self.sweep.square, self.sweep.flow)

    def outputs(self):
        """The one, if it is seen."""
        for there in if_else(self.seen):
            if there:
                yield Innovated(self)
            else:
                self.sweep.chain.D[self.k] = 1.0
                self.e.clear()

    def pass_on(self, P, z):
        """F P⁺F* + Q and F z⁺, to the next step."""
        sweep = self.sweep
        for _ in if_(self.k + 1 < sweep.chain.seen.size):
            sweep.F.congruence(P, sweep.Q, sweep.spare_square)
            sweep.F.multiply(z, sweep.spare_flow)


class Innovated(ScalarOutput):
    """The output of a step in the gather, of all rows."""

    def __init__(self, step):
        super().__init__(step.h, step.sweep.given.noise, step.g, step.sweep.square, step.sweep.scratch)
        self.step, self.e = step, step.e

    def innovation(self, z):
        """ε = y − h z."""
        combine(self.e, self.h, z)
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
        sweep.failed.set(where(d > 0.0, -1, k))
        sweep.chain.D[k] = d


class Smoothed(Step):
    """A step of the scatter of co-states."""

    def arriving(self):
        """F*λ."""
        self.sweep.F.multiply(self.sweep.flow, self.sweep.spare_flow, turned=True)
        return Straight(self.sweep.flow)

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
        add_scaled(a, None, sqrt(1.0 / self.sweep.chain.D[self.step.k]), self.step.e)
        combine(spare, self.step.g, costate)
        add_scaled(a, a, -1.0, spare)
        return a

    def excited(self, costate, a):
        """λ⁺ + h*a."""
        outer_sum(costate, None, costate, 1.0, self.step.h, a)
        return costate

    def answer(self, a):
        """a² into the sum."""
        sums = self.sweep.asked.sums
        sums[0] = sums[0] + dot(a, a)


class Weighed(Step):
    """A step of the scatter of Λ."""

    def arriving(self):
        """F*ΛF."""
        self.sweep.F.congruence(self.sweep.square, None, self.sweep.spare_square, turned=True)
        return Straight(self.sweep.square)

    def outputs(self, backwards=False):
        """The one, if it is seen; it leaves C behind."""
        sweep, sums = self.sweep, self.sweep.asked.sums
        for _ in if_(self.seen):
            output = ScalarWeigh(sweep.square, self.h, self.g, 1.0 / sweep.chain.D[self.k], sweep.scratch)
            yield output
            sums[1] = sums[1] + output.inverse()

    def leave(self, Lambda):
        """Λ into the sum."""
        self.add(self.sweep.asked.Lambdas, lambda i, j: Lambda[i, j])
