"""The scatter of the co-state covariances: Λ⁺, Λ and S from the roots to the leaves (THEORY (5))."""

from kfdyn.estimation.recursions.dense import (
    Block,
    Column,
    add_scaled,
    combine,
    solve_lower,
    solve_lower_transposed,
    subtract_congruence,
    subtract_outer,
    transposed_congruence,
)
from kfdyn.estimation.recursions.model import MODEL, outward
from kfdyn.estimation.recursions.page import Straight, smooth_covariance
from kfdyn.sweeps import sweep
from kfdyn.sweeps.control import both, either, loop
from kfdyn.sweeps.values import choice, count, local

CANCELLED = 0.01  # of P⁺: a smaller S is a difference that has lost two digits or more


@sweep(tags=3)
def scatter_covariances(sizes, vectorial, smoothed, model, covariances, Lambda, S, work):
    """Fill Λ and the smoothed error covariance S for every node; returns how many S have lost digits (see rts).

    ::

        Λ⁺(k) = φ* Λ(p) φ,   Λ(k) = τ̄* Λ⁺ τ̄ + H* D⁻¹ H,   S(k) = P⁺ − P⁺ Λ⁺ P⁺

    ``smoothed`` None leaves S out, ``vectorial`` None vector outputs. ``work`` is for :func:`work_size` numbers.
    Cost per node: 7n³ + O(n²m) flops, 3n³ without S.
    """
    scatter = Scatter(MODEL.at(model), covariances, Lambda, None if smoothed is None else S, work)
    single = vectorial is None or sizes.n is not None  # elsewhere it is not worth the time to compile it
    for node in outward(scatter.model, sizes):
        own = Weighed(scatter, node)
        if not single:
            smooth_covariance(own.measured_by(All))
            continue
        own.arrive()
        for alone in either(both(node.m == 1, lambda own: own.seen[0], own)):
            smooth_covariance(own.measured_by(One if alone else All if vectorial is not None else None))
    return scatter.lost


def work_size(n, m):
    """Numbers that the scatter works in, with at most n states and m outputs to a node."""
    return 2 * n * n + 2 * n * m + 2 * n + m


def cancelled(P_plus, S):
    """Whether some variance of S is so small a remainder of P⁺ that P⁺ − P⁺Λ⁺P⁺ has lost digits."""
    lost = local(0)
    for i in loop(P_plus.shape[0]):
        lost.set(choice(S[i, i] < CANCELLED * P_plus[i, i], 1, lost))
    return lost != 0


class Scatter:
    """The sweep: what it fills and where it works."""

    def __init__(self, model, known, Lambda, S, work):
        self.model, self.known, self.Lambda, self.S, self.work = model, known, Lambda, S, work
        self.half, self.scratch = work.part(model.most * model.most), work.part(2 * model.most * model.most)
        self.lost = local(0)


class Weighed:
    """A node of the scatter."""

    def __init__(self, scatter, node):
        known = scatter.known
        self.scatter, self.node = scatter, node
        self.H, self.G, self.L = node.H, node.gain(known.G), node.among(known.L)
        self.seen = Column(known.seen, node.output, node.m)
        self.Lambda, self.plus = node.square(scatter.Lambda), Block(scatter.work, 0, node.n, node.n, node.known)
        self.arrived = False

    def measured_by(self, output):
        """The same with an output of this kind, None for no output."""
        self.output = output
        return self

    def arrive(self):
        """Λ⁺, and S, which needs no more."""
        scatter, node, plus = self.scatter, self.node, self.plus
        P_plus, S = node.square(scatter.known.P_plus), None if scatter.S is None else node.square(scatter.S)
        for inner in either(node.parent >= 0):
            if inner:
                above = node.above()
                transposed_congruence(plus, node.step(above), above.square(scatter.Lambda), scatter.half)
                if S is not None:
                    subtract_congruence(S, P_plus, plus, scatter.half)
                    scatter.lost += count(cancelled(P_plus, S))
                continue
            for i in loop(node.n):
                for j in loop(node.n):
                    plus[i, j] = 0.0
                    if S is not None:
                        S[i, j] = P_plus[i, j]
        self.arrived = True

    def arriving(self):
        """Λ⁺."""
        if not self.arrived:
            self.arrive()
        return Straight(Costates(self, self.plus))

    def outputs(self, backwards=False):
        """The one, if any; a vector output is one."""
        if self.output is not None:
            yield self.output(self)

    def leave(self, Lambda):
        """It is where it belongs, unless nothing was measured."""
        if self.output is None:
            for i in loop(self.node.n):
                for j in loop(self.node.n):
                    self.Lambda[i, j] = self.plus[i, j]


class Costates:
    """Λ⁺, then Λ⁺τ̄, then Λ: in memory, each where the node keeps Λ."""

    def __init__(self, node, block):
        self.node, self.block = node, block

    def applied(self, gain):
        """Λ⁺ g."""
        return gain.applied(self.block)

    def less(self, u, row):
        """A = Λ⁺ − u h."""
        row.take(self.node.Lambda, self.block, u)
        return Costates(self.node, self.node.Lambda)

    def turned(self, gain):
        """g*A."""
        return gain.turned(self.block)

    def less_symmetric(self, row, v):
        """Λ = A − h*v."""
        row.take_symmetric(self.block, v)
        return self


class One:
    """A scalar output: the numbers of its row and gain, with room for Λ⁺g and v."""

    def __init__(self, node):
        n, known, scratch, d = node.node.n, node.node.known, node.scatter.scratch, node.L[0, 0]
        self.h, self.g = Column(node.H.memory, 0, n, known), Column(node.G.memory, 0, n, known)
        self.u, self.v = Column(scratch, 0, n, known), Column(scratch, n, n, known)
        self.row = self.gain = self
        self.precision = 1.0 / (d * d)

    def applied(self, Lambda):
        """u = Λ⁺ g."""
        combine(self.u, self.g, Lambda)
        return self.u

    def take(self, A, Lambda, u):
        """A = Λ⁺ − u h."""
        subtract_outer(A, Lambda, u, self.h, False)

    def turned(self, A):
        """v = g* A, of which more is taken."""
        combine(self.v, self.g, A)
        return self

    def __rmul__(self, precision):
        """h/d, not yet computed."""
        return precision

    def __sub__(self, precision):
        """v = g* A − h/d."""
        add_scaled(self.v, self.v, -precision, self.h)
        return self.v

    def take_symmetric(self, Lambda, v):
        """Λ = A − h* v."""
        subtract_outer(Lambda, Lambda, self.h, v, True)


class All:
    """All outputs of a node as one: its row is H, its gain G, its precision D⁻¹."""

    def __init__(self, node):
        n, m, scratch = node.node.n, node.node.m, node.scatter.scratch
        self.node, self.row, self.gain, self.precision = node, self, self, self
        self.U, self.V, self.line = Block(scratch, 0, n, m), Block(scratch, n * m, m, n), Column(scratch, 2 * n * m, m)

    def applied(self, Lambda):
        """U = Λ⁺ G."""
        U, G = self.U, self.node.G
        n, m = G.shape
        for i in loop(n):
            for a in loop(m):
                s = local(0.0)
                for j in loop(n):
                    s += Lambda[i, j] * G[j, a]
                U[i, a] = s
        return U

    def take(self, A, Lambda, U):
        """A = Λ⁺ − U H."""
        H, (n, m) = self.node.H, self.node.G.shape
        for i in loop(n):
            for j in loop(n):
                s = local(Lambda[i, j])
                for a in loop(m):
                    s -= U[i, a] * H[a, j]
                A[i, j] = s

    def turned(self, A):
        """G* A, to be computed with what is taken of it."""
        self.A = A
        return self

    def __mul__(self, row):
        """D⁻¹ H, likewise."""
        return row

    def __sub__(self, other):
        """V = G* A − D⁻¹ H, column by column."""
        node, line, V, (n, m) = self.node, self.line, self.V, self.node.G.shape
        for j in loop(n):
            for a in loop(m):
                line[a] = choice(node.seen[a], node.H[a, j], 0.0)
            solve_lower(node.L, line)
            solve_lower_transposed(node.L, line)
            for a in loop(m):
                s = local(choice(node.seen[a], -line[a], 0.0))
                for i in loop(n):
                    s += node.G[i, a] * self.A[i, j]
                V[a, j] = s
        return V

    def take_symmetric(self, Lambda, V):
        """Λ = A − H* V."""
        H, seen, (n, m) = self.node.H, self.node.seen, self.node.G.shape
        for i in loop(n):
            for j in loop(i + 1):
                s = local(Lambda[i, j])
                for a in loop(m):
                    s -= choice(seen[a], H[a, i], 0.0) * V[a, j]
                Lambda[i, j] = s
                Lambda[j, i] = s
