"""A vector output as the Riccati gather meets it: all outputs of a node at once, by the factor of D."""

from kfdyn.estimation.recursions.dense import Block, Column, Turned, multiply
from kfdyn.estimation.recursions.rounding import bound, flush
from kfdyn.estimation.recursions.triangular import cholesky, solve_lower, solve_lower_transposed
from kfdyn.sweeps.control import loop, when
from kfdyn.sweeps.functions import absolute
from kfdyn.sweeps.values import FAST, arithmetic, choice, local, no, now


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
        multiply(P_plus, self.U, Turned(self.U), base=P, sign=-1.0, symmetric=True)

    def refined(self, P, G, d):
        """The refinement of :meth:`One.refined` with Δ = B H* − G R: P⁺ = B − Δ G* − G Δ* + G (HΔ) G*.

        Columns of Δ of what is not seen are never used: they meet zeros of G.
        """
        node, U, V, P_plus, (m, n) = self.node, self.U, self.V, P.block, self.node.H.shape
        H, R, seen, noise = node.H, node.R, node.seen, local(0.0)
        multiply(U, P_plus, Turned(H))  # U ← Δ
        multiply(U, G, R, base=U, sign=-1.0)
        multiply(V, H, U)  # V ← HΔ
        for a in loop(m):
            for b in loop(a + 1):
                half = 0.25 * (V[a, b] + V[b, a])
                V[a, b] = half
                V[b, a] = half
                noise += choice(seen[a] & seen[b], absolute(R[a, b]), 0.0)
        multiply(U, G, V, base=U, sign=-1.0)  # U ← Δ − G (HΔ)* / 2
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
    multiply(U, node.P, Turned(node.H))
    multiply(node.D, node.H, U, base=node.R, symmetric=True)


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
