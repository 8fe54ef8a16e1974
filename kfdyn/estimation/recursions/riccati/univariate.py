"""A vector output of the Riccati gather as scalar ones."""

from kfdyn.estimation.recursions.linalg.matrices import Block, Column
from kfdyn.estimation.recursions.linalg.tolerances import bound
from kfdyn.estimation.recursions.linalg.triangular import solve_lower_transposed
from kfdyn.estimation.recursions.node_update import Straight
from kfdyn.estimation.recursions.riccati.nodes import Measured
from kfdyn.estimation.recursions.riccati.scalar import Measurement
from kfdyn.estimation.recursions.riccati.vector import innovations
from kfdyn.sweeps.control_flow import down, if_, loop
from kfdyn.sweeps.functions import sqrt
from kfdyn.sweeps.values import where
from kfdyn.sweeps.variables import local


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
        self.P_plus.copy(self.P)
        self._decorrelate()
        return Straight(self.P_plus, None)

    def _decorrelate(self):
        """N r N* = R, r kept on the diagonal of N; h = N⁻¹H."""
        n, m, seen, N, h, L = self.node.n, self.node.m, self.seen, self.N, self.h, self.L
        for a in loop(m):
            for i in loop(n):
                h[a, i] = self.H[a, i]
                self.G[i, a] = 0.0
            for b in loop(a + 1):
                L[b, a] = 0.0
                L[a, b] = where(a == b, 1.0, 0.0)
                N[a, b] = 0.0
                for _ in if_(seen[a] & seen[b]):
                    s = local(self.R[a, b])
                    for c in loop(b):
                        s -= N[a, c] * N[b, c] * N[c, c]
                    for _ in if_(a == b):
                        N[a, a] = where(s > bound(m) * self.R[a, a], s, 0.0)
                    for _ in if_((a != b) & (N[b, b] > 0.0)):
                        N[a, b] = s / N[b, b]
                        for i in loop(n):
                            h[a, i] = h[a, i] - N[a, b] * h[b, i]

    def outputs(self):
        """The rows of N⁻¹H that are seen; then L ← N L and G ← G L⁻¹."""
        n, m, L, N = self.node.n, self.node.m, self.L, self.N
        g = Column(self.rest, n, n, self.node.known)
        for a in loop(m, until=self.gather.failed):
            for _ in if_(self.seen[a]):
                output = Measurement(self, a, self.h.line(a), N[a, a], g, self.rest)
                yield output
                self._keep(a, g, sqrt(output.d))
        for a in down(m):  # from the last row: row a needs the earlier ones as they were
            for b in loop(a):
                for c in loop(b + 1):
                    L[a, c] = L[a, c] + N[a, b] * L[b, c]
        for i in loop(n):
            solve_lower_transposed(L, self.G.line(i))

    def _keep(self, a, g, deviation):
        """The parts of L and G L that are of output a."""
        n, m, h, L = self.node.n, self.node.m, self.h, self.L
        for i in loop(n):
            self.G[i, a] = g[i] * deviation
        L[a, a] = deviation
        for b in loop(m, a + 1):
            for _ in if_(self.seen[b]):
                s = local(0.0)
                for i in loop(n):
                    s += h[b, i] * g[i]
                L[b, a] = s * deviation
