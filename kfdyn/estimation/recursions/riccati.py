"""The Riccati gather: P, D, G, P⁺ from the leaves to the roots (THEORY (2)), nodes of dense blocks on the page.

A node is measured in one of three ways. A scalar output is one output of the page; a vector output is one too, with a
matrix for its variance, or as many as it has rows once R is decorrelated.
"""

from kfdyn.estimation.recursions.dense import (
    Block,
    Column,
    add_congruence,
    add_scaled,
    cholesky,
    combine,
    dot,
    solve_lower,
    solve_lower_transposed,
    subtract_outer,
    subtract_pair,
)
from kfdyn.estimation.recursions.model import MODEL, inward
from kfdyn.estimation.recursions.page import Straight, filter_node
from kfdyn.sweeps import sweep
from kfdyn.sweeps.control import both, down, either, loop, when
from kfdyn.sweeps.functions import absolute, root
from kfdyn.sweeps.values import FAST, IN_ORDER, arithmetic, choice, local, no, now, real

_EPS = 2.220446049250313e-16

#: How vector outputs are measured: there are none; all at once by the factor of D; one by one.
NONE, BLOCK, UNIVARIATE = 0, 1, 2


@sweep(flags=IN_ORDER, tags=2)
def gather_covariances(sizes, how, model, covariances, work):
    """Fill P, P⁺, D, its Cholesky factor L, and G; returns −1, or the output (stacked) that failed.

    ::

        P(k)  = Σ_j φ(k,j) P⁺(j) φ*(k,j) + Q(k)
        D = H P H* + R,   G = P H* D⁻¹,   P⁺ = P − G D G*

    P arrives as a copy of Q and each node adds itself to its parent. ``sizes`` are the common sizes, if any; ``model``
    is its address, ``covariances`` are the arrays of :class:`Covariances`; ``work`` is for :func:`work_size`
    numbers. Cost per node: 3n³ + O(n²m) flops.
    """
    gather = Gather(how, MODEL.at(model), covariances, work)
    single = how == NONE or sizes.n is not None  # elsewhere it is not worth the time to compile it
    for node in inward(gather.model, sizes, until=gather.failed):
        own = Measured(gather, node)
        if not single:
            filter_node(own.of(VECTOR[how]))
            continue
        for alone in either(both(node.m == 1, lambda own: own.seen[0], own)):
            filter_node(own.of(Scalar if alone else VECTOR[how]))
    return gather.failed


def work_size(n, m):
    """Numbers that the gather works in, with at most n states and m outputs to a node."""
    return 2 * n * n + n + (n + m) * (n + 2 * m)


class Gather:
    """The sweep: what it fills, where it works, and the output that failed."""

    def __init__(self, how, model, found, work):
        self.model, self.found, self.how = model, found, how
        self.congruence, self.before = work, work.part(2 * model.most * model.most, model.most)
        self.scratch = work.part(2 * model.most * model.most + model.most)
        self.failed = local(-1)


class Measured:
    """A node whose covariance is measured: P, D, L, G of its own."""

    def __init__(self, gather, node):
        found = gather.found
        self.gather, self.node = gather, node
        self.P, self.P_plus, self.G = node.square(found.P), node.square(found.P_plus), node.gain(found.G)
        self.H, self.R = node.H, node.among(gather.model.R)
        self.D, self.L = node.among(found.D), node.among(found.L)
        self.seen = Column(found.seen, node.output, node.m)

    def of(self, way):
        """The same, measured in one of the ways."""
        other = way.__new__(way)
        other.__dict__.update(self.__dict__)
        return other

    def prior(self):
        """P; no z: it is for the gather of the states."""
        return Straight(Covariance(self, self.P), None)

    def fail(self, a):
        """Remember that output a says nothing new."""
        self.gather.failed.set(self.node.output + a)

    def pass_on(self, P, z):
        """φP⁺φ* into the parent's sum."""
        node, gather = self.node, self.gather
        for _ in when((node.parent >= 0) & (gather.failed < 0)):
            above = node.above()
            add_congruence(above.square(gather.found.P), node.step(above), P.block, gather.congruence)


class Scalar(Measured):
    """Of one output, which is seen."""

    def outputs(self):
        """The output."""
        n = self.node.n
        h, g = Column(self.H.memory, 0, n, self.node.known), Column(self.G.memory, 0, n, self.node.known)
        yield One(self, 0, h, self.R[0, 0], g, self.P, self.gather.scratch)

    def kept(self, output, d):
        """D and its root."""
        self.D[0, 0], self.L[0, 0] = d, root(d)


class Unseen(Measured):
    """Of no output, or of one that is missing."""

    def prior(self):
        """P⁺ = P."""
        n, m = self.node.n, self.node.m
        innovations(self, Block(self.gather.scratch, 0, n, m))
        for i in loop(n):
            for j in loop(n):
                self.P_plus[i, j] = self.P[i, j]
            for a in loop(m):
                self.G[i, a] = 0.0
        for a in loop(m):
            self.L[a, a] = 1.0
        return Straight(Covariance(self, self.P_plus), None)

    def outputs(self):
        """None."""
        return ()


class Univariate(Measured):
    """Outputs one by one, scalar divisions only.

    R is decorrelated first, R = N r N* with N unit lower triangular and r diagonal; the rows h_a of N⁻¹H are then
    independent scalar measurements. Their gains g_a and variances δ_a are the parts of the block quantities
    (PART 9, 10): L = N L̄ δ^½ with L̄_ba = h_b g_a, and G L = [g_1 … g_m] δ^½.
    """

    def prior(self):
        """P, where P⁺ will be; and N, h."""
        n, m, scratch = self.node.n, self.node.m, self.gather.scratch
        innovations(self, Block(scratch, 0, n, m))
        self.N, self.h = Block(scratch, 0, m, m), Block(scratch, m * m, m, n, self.node.known)
        self.rest = scratch.part(m * (m + n))
        for i in loop(n):
            for j in loop(n):
                self.P_plus[i, j] = self.P[i, j]
        self._decorrelate()
        return Straight(Covariance(self, self.P_plus), None)

    def _decorrelate(self):
        """N r N* = R, r kept on the diagonal of N; h = N⁻¹H."""
        n, m, seen, N, h, L = self.node.n, self.node.m, self.seen, self.N, self.h, self.L
        for a in loop(m):
            for i in loop(n):
                h[a, i] = self.H[a, i]
                self.G[i, a] = 0.0
            for b in loop(a + 1):
                L[b, a] = 0.0
                L[a, b] = choice(a == b, 1.0, 0.0)
                N[a, b] = 0.0
                for _ in when(seen[a] & seen[b]):
                    s = local(self.R[a, b])
                    for c in loop(b):
                        s -= N[a, c] * N[b, c] * N[c, c]
                    for _ in when(a == b):
                        N[a, a] = choice(s > bound(m) * self.R[a, a], s, 0.0)
                    for _ in when((a != b) & (N[b, b] > 0.0)):
                        N[a, b] = s / N[b, b]
                        for i in loop(n):
                            h[a, i] = h[a, i] - N[a, b] * h[b, i]

    def outputs(self):
        """The rows of N⁻¹H that are seen; then L ← N L and G ← G L⁻¹."""
        n, m, L, N = self.node.n, self.node.m, self.L, self.N
        g = Column(self.rest, n + m, n, self.node.known)
        for a in loop(m, until=self.gather.failed):
            for _ in when(self.seen[a]):
                yield One(self, a, self.h.line(a), N[a, a], g, self.P_plus, self.rest)
        for a in down(m):  # from the last row: row a needs the earlier ones as they were
            for b in loop(a):
                for c in loop(b + 1):
                    L[a, c] = L[a, c] + N[a, b] * L[b, c]
        finish_gain(self, self.rest)

    def kept(self, output, d):
        """The parts of L and G L that are of one output."""
        n, m, a, g, h, L = self.node.n, self.node.m, output.a, output.row.gain, self.h, self.L
        deviation = root(d)
        for i in loop(n):
            self.G[i, a] = g[i] * deviation
        L[a, a] = deviation
        for b in loop(m, a + 1):
            for _ in when(self.seen[b]):
                s = local(0.0)
                for i in loop(n):
                    s += h[b, i] * g[i]
                L[b, a] = s * deviation


class Together(Measured):
    """All outputs at once, as one whose variance is the matrix D."""

    def outputs(self):
        """The one."""
        yield All(self)


VECTOR = {NONE: Unseen, BLOCK: Together, UNIVARIATE: Univariate}


class Covariance:
    """P, in memory; P⁺ is written where the node keeps it, which may be in its place."""

    def __init__(self, node, block):
        self.node, self.block = node, block

    def applied(self, row):
        """P h*."""
        return row.applied(self.block)

    def less(self, g, u):
        """P − g u*."""
        u.take(self.node.P_plus, self.block, g)
        return Covariance(self.node, self.node.P_plus)


class One:
    """One scalar output: its row, its noise r, and where its gain goes."""

    def __init__(self, node, a, h, r, gain, P, scratch):
        self.node, self.a, self.noise = node, a, r
        self.row, self.before = ScalarRow(self, h, gain, scratch), node.gather.before
        scale = local(r)
        for i in loop(h.size):
            self.before[i] = P[i, i]
            scale += h[i] * h[i] * self.before[i]
        self.scale = scale

    def variance(self, hu):
        """d = h u + r, if that is more than rounding."""
        d = local(hu + self.noise)
        for _ in when(no(d > bound(self.row.h.size) * self.scale), likely=False):
            self.node.fail(self.a)
            d.set(1.0)
        return now(d)

    def refined(self, P, g, d):
        """P⁺ as P − g u* would be without rounding.

        B = P − u u*/d loses what is small against P when r ≪ d. Then one step of refinement with the residual
        δ = B h* − r g, which is zero in exact arithmetic, brings it back (the Joseph form's virtue at the price of a
        rank-two correction): P⁺ = B − δ g* − g δ* + (hδ) g g*.
        """
        r, h, u = self.noise, self.row.h, self.row.u
        for _ in when(no(r > 0.01 * d)):
            combine(u, h, P.block)
            add_scaled(u, u, -r, g)
            add_scaled(u, u, -0.5 * dot(h, u), g)  # δ − κ g / 2: the correction is then u g* + g u*
            subtract_pair(P.block, u, g)
            for _ in when(r == 0.0):
                flush(self.before, P.block)
        return P

    def keep(self, g, d, nu):
        """The gain is where it belongs; the node keeps d."""
        self.node.kept(self, d)


class ScalarRow:
    """A row h of H, with room for u = P h* and for g."""

    def __init__(self, output, h, gain, scratch):
        self.output, self.h, self.gain = output, h, gain
        self.u = Column(scratch, 0, h.size, h.known)

    def applied(self, P):
        """u = P h*."""
        combine(self.u, self.h, P)
        return Applied(self)

    def dot(self, u):
        """h u, to which the noise is added."""
        return Sum(self.output, dot(self.h, self.u))


class Sum:
    """h P h*, which with the noise is the variance of the innovation."""

    def __init__(self, output, value):
        self.output, self.value = output, value

    def __add__(self, noise):
        return self.output.variance(self.value)


class Applied:
    """u = P h*."""

    def __init__(self, row):
        self.row = row

    def __rmul__(self, inverse):
        """g = u/d."""
        add_scaled(self.row.gain, None, inverse, self.row.u)
        return self.row.gain

    def take(self, P_plus, P, g):
        """P⁺ = P − u g*."""
        subtract_outer(P_plus, P, self.row.u, g, True)


class All:
    """All outputs of a node as one: its row is H, its noise R, its variance D."""

    def __init__(self, node):
        self.node, self.row, self.noise = node, self, node.R
        n, m, scratch = node.node.n, node.node.m, node.gather.scratch
        self.U, self.V = Block(scratch, 0, n, m), Block(scratch, n * m, m, m)
        self.line = Column(scratch, n * m + m * m, m)

    def applied(self, P):
        """U = P H*, and with it D = H U + R: it is wanted of outputs that are missing, too."""
        innovations(self.node, self.U)
        return self

    def dot(self, u):
        """H U, to which the noise is added."""
        return self

    def __add__(self, noise):
        """D, if that is more than rounding."""
        return self

    def __rtruediv__(self, one):
        """D⁻¹, by the factor L of D."""
        node, (m, n) = self.node, self.node.H.shape
        P, H, R, D, failed = node.P, node.H, node.R, node.D, local(-1)
        for a in loop(m, until=failed):
            for _ in when(node.seen[a]):
                scale = local(R[a, a])
                for i in loop(n):
                    scale += H[a, i] * H[a, i] * P[i, i]
                for _ in when(no(D[a, a] > bound(n) * scale)):
                    failed.set(a)
        for _ in when(failed < 0):
            failed.set(cholesky(D, node.L, node.seen, bound(n + m)))
        for _ in when(failed >= 0):
            node.fail(now(failed))
            for a in loop(m):
                node.L[a, a] = 1.0
        return self

    def __mul__(self, u):
        """G = U D⁻¹; U ← W = U L⁻*, which is what P⁺ needs."""
        node, U, line, (m, n) = self.node, self.U, self.line, self.node.H.shape
        for i in loop(n):
            for a in loop(m):
                line[a] = choice(node.seen[a], U[i, a], 0.0)
            solve_lower(node.L, line)
            for a in loop(m):
                node.G[i, a] = line[a]
                U[i, a] = line[a]
        finish_gain(node, line)
        return node.G

    def take(self, P_plus, P, g):
        """P⁺ = P − W W*."""
        W, (m, n) = self.U, self.node.H.shape
        for i in loop(n):
            for j in loop(i + 1):
                s = local(P[i, j])
                for a in loop(m):
                    s -= W[i, a] * W[j, a]
                P_plus[i, j] = s
                P_plus[j, i] = s

    def refined(self, P, G, d):
        """The refinement of :meth:`One.refined` with Δ = B H* − G R: P⁺ = B − Δ G* − G Δ* + G (HΔ) G*."""
        node, U, V, P_plus, (m, n) = self.node, self.U, self.V, P.block, self.node.H.shape
        H, R, seen, noise = node.H, node.R, node.seen, local(0.0)
        for i in loop(n):  # U ← Δ
            for a in loop(m):
                s = local(0.0)
                for _ in when(seen[a]):
                    for j in loop(n):
                        s += P_plus[i, j] * H[a, j]
                    for b in loop(m):
                        s -= G[i, b] * R[b, a]
                U[i, a] = s
        for a in loop(m):  # V ← HΔ
            for b in loop(m):
                s = local(0.0)
                for _ in when(seen[a] & seen[b]):
                    for i in loop(n):
                        s += H[a, i] * U[i, b]
                    noise += absolute(R[a, b])
                V[a, b] = s
        for i in loop(n):  # U ← Δ − G (HΔ)* / 2
            for a in loop(m):
                for b in loop(m):
                    U[i, a] = U[i, a] - 0.25 * G[i, b] * (V[a, b] + V[b, a])
        for i in loop(n):
            for j in loop(i + 1):
                s = local(P_plus[i, j])
                for a in loop(m):
                    s -= U[i, a] * G[j, a] + G[i, a] * U[j, a]
                P_plus[i, j] = s
                P_plus[j, i] = s
        for _ in when((noise == 0.0) & (m > 0)):
            before = self.node.gather.before
            for i in loop(n):
                before[i] = node.P[i, i]
            flush(before, P_plus)
        return P

    def keep(self, g, d, nu):
        """All is where it belongs."""


@arithmetic(FAST)
def innovations(node, U):
    """U = P H* (n, m) and D = H P H* + R, symmetric by construction."""
    P, H, R, D, (m, n) = node.P, node.H, node.R, node.D, node.H.shape
    for i in loop(n):
        for a in loop(m):
            s = local(0.0)
            for j in loop(n):
                s += P[i, j] * H[a, j]
            U[i, a] = s
    for a in loop(m):
        for b in loop(a + 1):
            s = local(R[a, b])
            for i in loop(n):
                s += H[a, i] * U[i, b]
            D[a, b] = s
            D[b, a] = s


def bound(n):
    """What a sum of n squares may lose by rounding: 4 n ε."""
    return 4 * _EPS * real(n)


def finish_gain(node, line):
    """G ← G L⁻¹ row by row, with zero columns where nothing was seen."""
    G, seen = node.G, node.seen
    n, m = G.shape
    for i in loop(n):
        for a in loop(m):
            line[a] = G[i, a]
        solve_lower_transposed(node.L, line)
        for a in loop(m):
            G[i, a] = choice(seen[a], line[a], 0.0)


def flush(before, P_plus):
    """Zero the rows of P⁺ that an exact measurement has left at rounding level, covariances included.

    A perfectly known state must read as known: its leftover of order εP would pass for a variance at the next
    node and let a singular model through. A small variance alone is no sign of that: after H = [1, δ] the first state
    has variance δ² and the covariance −δ, which is far above rounding.
    """
    n = P_plus.shape[0]
    for i in loop(n):
        limit = bound(n) * root(before[i])
        lost = local(0)
        for j in loop(n):
            for _ in when(no(absolute(P_plus[i, j]) <= limit * root(before[j]))):
                lost.set(1)
        for _ in when(lost == 0):
            for j in loop(n):
                P_plus[i, j] = 0.0
                P_plus[j, i] = 0.0
