"""A node of the Riccati gather whose blocks are large: all outputs at once, as :mod:`vector`, by tiles.

Everything of the shape of PH* is kept as rows of outputs, (m, n), so that the long axis is the one that runs along
memory: V = HP, then W* = L⁻¹V, then G* = L⁻*W*.
"""

from kfdyn.estimation.recursions.linalg import tiles
from kfdyn.estimation.recursions.linalg.matrices import Block, Turned, multiply, turn
from kfdyn.estimation.recursions.linalg.tolerances import bound, flush
from kfdyn.estimation.recursions.node_update import Output
from kfdyn.estimation.recursions.riccati.nodes import Measured
from kfdyn.sweeps.control_flow import if_, if_else, loop
from kfdyn.sweeps.trace_context import FAST, arithmetic
from kfdyn.sweeps.values import not_, now, where
from kfdyn.sweeps.variables import local

#: With R above that part of D nothing is lost that refinement would bring back: as for a scalar output.
NOISY = 0.01


class Tiled(Measured):
    """A node of any number of outputs."""

    def outputs(self):
        """All as one."""
        yield AllTiled(self)


class AllTiled(Output):
    """All outputs of a large node as one; which of them are missing, ``seen`` tells."""

    def __init__(self, node):
        n, m, scratch = node.node.n, node.node.m, node.gather.scratch
        self.node, self.sizes = node, (m, n)
        self.back = Block(scratch, 0, n, m, tiled=True)  # H*
        self.V, self.gain = (Block(scratch, i * n * m, m, n, tiled=True) for i in (1, 2))
        self.U, self.half = (Block(scratch, 3 * n * m + i * m * m, m, m, tiled=True) for i in range(2))
        self.whole = local(1)  # whether all outputs are seen
        for a in loop(m):
            self.whole.set(where(node.seen[a], self.whole, 0))

    def applied(self, P):
        """V = H P, and with it D = V H* + R: it is wanted of outputs that are missing, too."""
        node = self.node
        turn(self.back, node.H)
        multiply(self.V, node.H, P)
        multiply(node.D, self.V, self.back, base=node.R, symmetric=True)
        return self.V

    def variance(self, V):
        """The factor L of D, if D is more than rounding."""
        node, U, L, failed, (m, n) = self.node, self.U, self.node.L, local(-1), self.sizes
        before = node.gather.before
        for i in loop(n):
            before[i] = node.P[i, i]
        for a in loop(m, until=failed):
            for _ in if_(node.seen[a]):
                whole = size(node.R[a, a], node.H.line(a), before)
                for _ in if_(not_(node.D[a, a] > bound(n) * whole)):
                    failed.set(a)
        for _ in if_(failed < 0):
            self.fill_seen(U, lambda a, b: node.D[a, b])
            failed.set(tiles.factorise(U.place, m, bound(n + m)))
        for _ in if_(failed >= 0):
            node.fail(now(failed))
        tiles.turn(L.place, U.place, m, m)
        for a in loop(m):
            for b in loop(m, a + 1):
                L[a, b] = 0.0
        for _ in if_(failed >= 0):
            for a in loop(m):
                for b in loop(a + 1):
                    L[a, b] = where(a == b, 1.0, 0.0)
        return L

    def fill_seen(self, out, number):
        """A matrix of the outputs that are seen, the identity for others."""
        seen, (m, _) = self.node.seen, self.sizes
        for whole in if_else(self.whole != 0):
            for a in loop(m):
                for b in loop(m):
                    there = number(a, b)
                    out[a, b] = there if whole else where(seen[a] & seen[b], there, where(a == b, 1.0, 0.0))

    def gain_of(self, V, L):
        """G = P H* D⁻¹; V becomes W*, which is what P⁺ needs. Rows of what is not seen are 0."""
        node, gain, (m, n) = self.node, self.gain, self.sizes
        for _ in if_(self.whole == 0):
            for a in loop(m):
                for _ in if_(not_(node.seen[a])):
                    for i in loop(n):
                        V[a, i] = 0.0
        tiles.solve(L.place, m, V.place, n)
        gain.copy(V)
        tiles.solve_transposed(L.place, m, gain.place, n)
        turn(node.G, gain)
        return node.G

    def reduced(self, P, G, W):
        """P⁺ = P − W W*."""
        multiply(self.node.P_plus, Turned(W), W, base=P, sign=-1.0, symmetric=True)
        return self.node.P_plus

    def refined(self, P, G, L):
        """The refinement of :mod:`vector`, where R is less than a hundredth of D in some direction."""
        node, (m, _) = self.node, self.sizes
        self.fill_seen(self.half, lambda a, b: node.R[a, b] - NOISY * node.D[a, b])
        for _ in if_(tiles.factorise(self.half.place, m, 0.0) >= 0):
            self.refine(P)
        return P

    def refine(self, P):
        """P⁺ = B − Δ G* − G Δ* + G (HΔ) G*, Δ = B H* − G R; V becomes Δ*, then (Δ − G(HΔ)*/2)*."""
        node, V, gain, half, (m, _) = self.node, self.V, self.gain, self.half, self.sizes
        seen, noise = node.seen, local(0.0)
        multiply(V, node.H, P)
        multiply(V, node.R, gain, base=V, sign=-1.0)
        multiply(half, V, self.back)
        for a in loop(m):
            for b in loop(a + 1):
                mean = 0.25 * (half[a, b] + half[b, a])
                half[a, b] = mean
                half[b, a] = mean
                noise += where(seen[a] & seen[b], abs(node.R[a, b]), 0.0)
        multiply(V, half, gain, base=V, sign=-1.0)
        multiply(P, Turned(V), gain, base=P, sign=-1.0, lower=True)
        multiply(P, Turned(gain), V, base=P, sign=-1.0, symmetric=True)
        flush(node.gather.before, P, noise == 0.0)


@arithmetic(FAST)
def size(r, h, before):
    """r + Σ h_i² P_ii: the size of what the variance r + h P h* is a sum of."""
    s = local(r)
    for i in loop(h.size):
        s += h[i] * h[i] * before[i]
    return s
