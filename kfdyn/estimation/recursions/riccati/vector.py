"""A vector output as the Riccati gather meets it: all outputs of a node at once, by the factor of D."""

import math

from kfdyn.estimation.recursions.linalg.matrices import Block, Turned, multiply, nothing
from kfdyn.estimation.recursions.linalg.tolerances import bound, flush, scale
from kfdyn.estimation.recursions.linalg.triangular import cholesky, solve_lower, solve_lower_transposed
from kfdyn.estimation.recursions.node_update import Output
from kfdyn.sweeps.control_flow import if_, loop
from kfdyn.sweeps.trace_context import FAST, arithmetic
from kfdyn.sweeps.values import not_, now, where
from kfdyn.sweeps.variables import local


class All(Output):
    """All outputs of a node as one: its row is H, its noise R, its variance D, which is known by its factor L."""

    def __init__(self, node):
        n, m, scratch = node.node.n, node.node.m, node.gather.scratch
        self.node, self.U, self.V = node, Block(scratch, 0, n, m), Block(scratch, n * m, m, m)

    def applied(self, P):
        """U = P H*, and with it D = H U + R: it is wanted of outputs that are missing, too."""
        innovations(self.node, self.U)
        return self.U

    def variance(self, U):
        """The factor L of D, if D is more than rounding."""
        node, (m, n) = self.node, self.node.H.shape
        P, H, R, D, failed = node.P, node.H, node.R, node.D, local(-1)
        if D.count > 1:
            return self._variance_in_lanes()
        for a in loop(m, until=failed):
            for _ in if_(node.seen[a]):
                for _ in if_(not_(D[a, a] > bound(n) * scale(R[a, a], H.line(a), P))):
                    failed.set(a)
        for _ in if_(failed < 0):
            failed.set(cholesky(D, node.L, node.seen, bound(n + m)))
        for _ in if_(failed >= 0):
            node.fail(now(failed))
            for a in loop(m):
                node.L[a, a] = 1.0
        return node.L

    def _variance_in_lanes(self):
        """The same; where D is no more than rounding, the node is told so, and L is not a number."""
        node, (m, n), lost = self.node, self.node.H.shape, nothing(self.node.D)
        for a in loop(m):
            for _ in if_(node.seen[a]):
                low = not_(node.D[a, a] > bound(n) * scale(node.R[a, a], node.H.line(a), node.P))
                lost.set(where(low, math.nan, lost))
        cholesky(node.D, node.L, node.seen, bound(n + m))
        for a in loop(m):
            lost += 0.0 * node.L[a, a]
        node.fail(0, lost != 0.0)
        return node.L

    def gain_of(self, U, L):
        """G = U D⁻¹; U ← W = U L⁻*, which is what P⁺ needs. Columns of what is not seen are 0."""
        node, G, (m, n) = self.node, self.node.G, self.node.H.shape
        for i in loop(n):
            row = U.line(i)
            for a in loop(m):
                row[a] = where(node.seen[a], row[a], 0.0)
            solve_lower(L, row)
        G.copy(U)
        for i in loop(n):
            solve_lower_transposed(L, G.line(i))
        return G

    def reduced(self, P, G, W):
        """P⁺ = P − W W*."""
        multiply(self.node.P_plus, W, Turned(W), base=P, sign=-1.0, symmetric=True)
        return self.node.P_plus

    def refined(self, P, G, L):
        """The refinement of a scalar measurement with Δ = B H* − G R: P⁺ = B − Δ G* − G Δ* + G (HΔ) G*.

        Columns of Δ of what is not seen are never used: they meet zeros of G.
        """
        node, U, V, (m, n) = self.node, self.U, self.V, self.node.H.shape
        H, R, seen, noise = node.H, node.R, node.seen, nothing(node.R)
        multiply(U, P, Turned(H))  # U ← Δ
        multiply(U, G, R, base=U, sign=-1.0)
        multiply(V, H, U)  # V ← HΔ
        for a in loop(m):
            for b in loop(a + 1):
                half = 0.25 * (V[a, b] + V[b, a])
                V[a, b] = half
                V[b, a] = half
                noise += where(seen[a] & seen[b], abs(R[a, b]), 0.0)
        multiply(U, G, V, base=U, sign=-1.0)  # U ← Δ − G (HΔ)* / 2
        for i in loop(n):
            for j in loop(i + 1):
                s = local(P[i, j])
                for a in loop(m):
                    s -= U[i, a] * G[j, a] + G[i, a] * U[j, a]
                P[i, j] = s
                P[j, i] = s
        for _ in if_(m > 0):
            before = self.node.gather.before
            for i in loop(n):
                before[i] = node.P[i, i]
            flush(before, P, noise == 0.0)
        return P


@arithmetic(FAST)
def innovations(node, U):
    """U = P H* (n, m) and D = H P H* + R, symmetric by construction."""
    multiply(U, node.P, Turned(node.H))
    multiply(node.D, node.H, U, base=node.R, symmetric=True)
