"""Outputs as the scatter of Λ meets them: a row h with its gain g and precision d⁻¹, or H with G and D⁻¹.

Every product of the page is computed into a place of its own: U = (Λ⁺G)*, V = G*A − D⁻¹H.
"""

from kfdyn.estimation.recursions.linalg import tiles
from kfdyn.estimation.recursions.linalg.matrices import (
    Block,
    Column,
    Identity,
    Turned,
    add_scaled,
    by_rows,
    combine,
    dot,
    multiply,
)
from kfdyn.estimation.recursions.linalg.triangular import solve_lower, solve_lower_transposed
from kfdyn.estimation.recursions.node_update import Output
from kfdyn.sweeps.control_flow import loop
from kfdyn.sweeps.trace_context import IN_ORDER, arithmetic
from kfdyn.sweeps.values import where


class Weigh(Output):
    """H and G*, one row or several; where nothing is seen, rows of H meet zeros of U and V. Λ goes where it belongs."""

    def __init__(self, Lambda, H, G, U, V):
        self.Lambda, self.H, self.G, self.U, self.V = Lambda, H, G, U, V

    @arithmetic(IN_ORDER)
    def projected(self, Lambda_plus):
        """A = Λ⁺ − (Λ⁺G) H, in the place of Λ."""
        multiply(self.U, self.G, Lambda_plus if self.U.by_rows else Turned(Lambda_plus))
        multiply(self.Lambda, Turned(self.U), self.H, base=Lambda_plus, sign=-1.0)
        return self.Lambda

    def remainder(self, A):
        """V = G*A − D⁻¹H."""
        multiply(self.V, self.G, A)
        self.take_weighted_row()
        return self.V

    @arithmetic(IN_ORDER)
    def weighed(self, A, V):
        """Λ = A − H* V."""
        multiply(A, Turned(self.H), V, base=A, sign=-1.0, symmetric=True)
        return A


class ScalarWeigh(Weigh):
    """One output, which is seen; its row and its gain are matrices of one row."""

    def __init__(self, Lambda, h, g, precision, scratch):
        places = ((h.memory, 0), (g.memory, 0), (scratch, 0), (scratch, h.size))
        super().__init__(Lambda, *(Block(*place, 1, h.size, h.known) for place in places))
        self.precision = precision

    @classmethod
    def of(cls, node):
        """The output of a node of a tree."""
        h, g = (Column(block.memory, 0, node.node.n, node.node.known) for block in (node.H, node.G))
        return cls(node.Lambda, h, g, 1.0 / (node.L[0, 0] * node.L[0, 0]), node.scratch)

    def take_weighted_row(self):
        """V less d⁻¹h."""
        add_scaled(self.V.line(0), self.V.line(0), -self.precision, self.H.line(0))

    def inverse(self):
        """d⁻¹ + g*Λ⁺g."""
        return self.precision + dot(self.G.line(0), self.U.line(0))

    def fill_inverse(self, C):
        """C = d⁻¹ + g*Λ⁺g."""
        C[0, 0] = self.inverse()

    def fill_slope(self, out, P_plus):
        """−(Ch − g*Λ⁺)P = (Λ⁺g)*P⁺ − g*, since hP = dg* and P = P⁺ + g d g*."""
        line = out.line(0)
        combine(line, self.U.line(0), P_plus)
        add_scaled(line, line, -1.0, self.G.line(0))


class VectorWeigh(Weigh):
    """All outputs of a node as one, some of which may be missing."""

    def __init__(self, node):
        n, m, scratch = node.node.n, node.node.m, node.scratch
        U, V, self.weighted = (Block(scratch, i * n * m, m, n, tiled=node.node.tiled) for i in range(3))
        super().__init__(node.Lambda, node.H, Turned(node.G), U, V)
        self.L, self.seen, self.line = node.L, node.seen, Column(scratch, 3 * n * m, m)

    def take_weighted_row(self):
        """V less D⁻¹H."""
        self._solve(self.weighted, self.H)
        self.V.subtract(self.weighted)

    def fill_inverse(self, C):
        """C = D⁻¹ + G*Λ⁺G."""
        self._solve(C, Identity())
        left, right = (self.U, self.G.A) if C.tiled else (self.G, Turned(self.U))
        multiply(C, left, right, base=C, symmetric=True)

    def fill_slope(self, out, P_plus):
        """−(CH − G*Λ⁺)P = (Λ⁺G)*P⁺ − G*, since HP = DG* and P = P⁺ + G D G*; 0 where nothing is seen, as G is."""
        multiply(out, self.U, by_rows(P_plus))
        out.subtract(self.G)

    def _solve(self, out, right):
        """Fill in D⁻¹ of a matrix, of what is seen, and 0 elsewhere."""
        m, columns = out.shape
        if out.tiled:
            for a in loop(m):
                for j in loop(columns):
                    out[a, j] = where(self.seen[a], right[a, j], 0.0)
            tiles.solve(self.L.place, m, out.place, columns)
            tiles.solve_transposed(self.L.place, m, out.place, columns)
            return
        for j in loop(columns):
            for a in loop(m):
                self.line[a] = where(self.seen[a], right[a, j], 0.0)
            solve_lower(self.L, self.line)
            solve_lower_transposed(self.L, self.line)
            for a in loop(m):
                out[a, j] = where(self.seen[a], self.line[a], 0.0)
