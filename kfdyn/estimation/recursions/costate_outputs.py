"""Outputs as the scatter of Λ meets them: a row h with its gain g and precision d⁻¹, or H with G and D⁻¹.

Every product of the page is computed when it is written, into a place of its own: u = Λ⁺g, v = g*A − d⁻¹h.
"""

from kfdyn.estimation.recursions.dense import Block, Column, Identity, Turned, add_scaled, combine, dot, multiply
from kfdyn.estimation.recursions.triangular import solve_lower, solve_lower_transposed
from kfdyn.sweeps.control import loop
from kfdyn.sweeps.values import IN_ORDER, arithmetic, choice


class ScalarOutput:
    """One output, which is seen; its row and its gain are matrices of one row."""

    def __init__(self, h, g, precision, scratch):
        h, g, u, v = (
            Block(*place, 1, h.size, h.known)
            for place in ((h.memory, 0), (g.memory, 0), (scratch, 0), (scratch, h.size))
        )
        self.row, self.gain, self.precision = Row(h), Gain(g, u, v), Number(precision)

    @classmethod
    def of(cls, node):
        """The output of a node of a tree."""
        h, g = (Column(block.memory, 0, node.node.n, node.node.known) for block in (node.H, node.G))
        return cls(h, g, 1.0 / (node.L[0, 0] * node.L[0, 0]), node.scratch)

    def inverse(self):
        """d⁻¹ + g*Λ⁺g."""
        return self.precision.number + dot(self.gain.G.line(0), self.gain.U.line(0))

    def fill_inverse(self, C):
        """C = d⁻¹ + g*Λ⁺g."""
        C[0, 0] = self.inverse()

    def fill_slope(self, out, P_plus):
        """−(Ch − g*Λ⁺)P = (Λ⁺g)*P⁺ − g*, since hP = dg* and P = P⁺ + g d g*."""
        line = out.line(0)
        combine(line, self.gain.U.line(0), P_plus)
        add_scaled(line, line, -1.0, self.gain.G.line(0))


class VectorOutput:
    """All outputs of a node as one, some of which may be missing."""

    def __init__(self, node):
        n, m, scratch = node.node.n, node.node.m, node.scratch
        U, V, DH = (Block(scratch, i * n * m, m, n) for i in range(3))
        self.row, self.gain = Row(node.H), Gain(Turned(node.G), U, V)
        self.precision = Precision(node.L, node.seen, DH, Column(scratch, 3 * n * m, m))

    def fill_inverse(self, C):
        """C = D⁻¹ + G*Λ⁺G."""
        self.precision.store(C)
        multiply(C, self.gain.G, Turned(self.gain.U), base=C, symmetric=True)

    def fill_slope(self, out, P_plus):
        """−(CH − G*Λ⁺)P = (Λ⁺G)*P⁺ − G*, since HP = DG* and P = P⁺ + G D G*; 0 where nothing is seen, as G is."""
        multiply(out, self.gain.U, Turned(P_plus))
        _ = Product(out) - Whole(self.gain.G)


class Row:
    """H; where nothing is seen, rows of it meet zeros of U and V."""

    def __init__(self, H):
        self.H = H

    @arithmetic(IN_ORDER)
    def take(self, A, Lambda, U):
        """A = Λ⁺ − (U*)* H."""
        multiply(A, Turned(U), self.H, base=Lambda, sign=-1.0)

    @arithmetic(IN_ORDER)
    def take_symmetric(self, Lambda, V):
        """Λ = A − H* V."""
        multiply(Lambda, Turned(self.H), V, base=Lambda, sign=-1.0, symmetric=True)


class Gain:
    """G*, with room for U* = G*Λ⁺ and V = G*A."""

    def __init__(self, G, U, V):
        self.G, self.U, self.V = G, U, V

    def applied(self, Lambda):
        """G* Λ⁺, which is (Λ⁺ G)*."""
        multiply(self.U, self.G, Lambda if self.U.known else Turned(Lambda))
        return self.U

    def turned(self, A):
        """V = G* A."""
        multiply(self.V, self.G, A)
        return Product(self.V)


class Product:
    """A matrix of which another is taken, in its place."""

    def __init__(self, block):
        self.block = block

    def __sub__(self, other):
        other.taken_from(self.block)
        return self.block


class Multiple:
    """A number times a row."""

    def __init__(self, number, row):
        self.number, self.row = number, row

    def taken_from(self, V):
        """V less all of it."""
        add_scaled(V.line(0), V.line(0), -self.number, self.row.line(0))


class Whole:
    """All of a matrix."""

    def __init__(self, block):
        self.block = block

    def taken_from(self, V):
        """V less all of it."""
        for a in loop(V.shape[0]):
            for j in loop(V.shape[1]):
                V[a, j] = V[a, j] - self.block[a, j]


class Number:
    """d⁻¹."""

    def __init__(self, number):
        self.number = number

    def __mul__(self, row):
        """d⁻¹ h."""
        return Multiple(self.number, row.H)


class Precision:
    """D⁻¹ of what is seen, 0 elsewhere, by its factor L; ``line`` is for m numbers."""

    def __init__(self, L, seen, out, line):
        self.L, self.seen, self.out, self.line = L, seen, out, line

    def __mul__(self, row):
        """D⁻¹ H."""
        self._solve(self.out, row.H)
        return Whole(self.out)

    def store(self, out):
        """Write D⁻¹ itself."""
        self._solve(out, Identity())

    def _solve(self, out, right):
        m, columns = out.shape
        for j in loop(columns):
            for a in loop(m):
                self.line[a] = choice(self.seen[a], right[a, j], 0.0)
            solve_lower(self.L, self.line)
            solve_lower_transposed(self.L, self.line)
            for a in loop(m):
                out[a, j] = choice(self.seen[a], self.line[a], 0.0)
