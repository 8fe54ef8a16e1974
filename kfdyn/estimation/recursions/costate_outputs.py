"""Outputs as the scatter of Λ meets them: a row h with its gain g and precision d⁻¹, or H with G and D⁻¹.

Every product of the page is computed when it is written, into a place of its own: u = Λ⁺g, v = g*A − d⁻¹h.
"""

from kfdyn.estimation.recursions.dense import (
    Block,
    Column,
    Identity,
    Turned,
    add_scaled,
    combine,
    dot,
    multiply,
    solve_lower,
    solve_lower_transposed,
    subtract_outer,
)
from kfdyn.sweeps.control import loop
from kfdyn.sweeps.values import choice


class ScalarOutput:
    """One output, which is seen."""

    def __init__(self, h, g, precision, scratch):
        self.row, self.precision = ScalarRow(h), precision
        u, v = (Column(scratch, i * h.size, h.size, h.known) for i in range(2))
        self.gain = ScalarGain(g, u, v)

    @classmethod
    def of(cls, node):
        """The output of a node of a tree."""
        h, g = (Column(block.memory, 0, node.node.n, node.node.known) for block in (node.H, node.G))
        return cls(h, g, 1.0 / (node.L[0, 0] * node.L[0, 0]), node.scratch)

    def inverse(self):
        """d⁻¹ + g*Λ⁺g."""
        return self.precision + dot(self.gain.g, self.gain.u)

    def fill_inverse(self, C):
        """C = d⁻¹ + g*Λ⁺g."""
        C[0, 0] = self.inverse()

    def fill_slope(self, out, P_plus):
        """−(Ch − g*Λ⁺)P = (Λ⁺g)*P⁺ − g*, since hP = dg* and P = P⁺ + g d g*."""
        line = out.line(0)
        combine(line, self.gain.u, P_plus)
        add_scaled(line, line, -1.0, self.gain.g)


class ScalarRow:
    """h."""

    def __init__(self, h):
        self.h = h

    def __rmul__(self, number):
        """A multiple of h."""
        return Multiple(number, self.h)

    def take(self, A, Lambda, u):
        """A = Λ⁺ − u h."""
        subtract_outer(A, Lambda, u, self.h, False)

    def take_symmetric(self, Lambda, v):
        """Λ = A − h* v."""
        subtract_outer(Lambda, Lambda, self.h, v, True)


class ScalarGain:
    """g, with room for Λ⁺g and g*A."""

    def __init__(self, g, u, v):
        self.g, self.u, self.v = g, u, v

    def applied(self, Lambda):
        """u = Λ⁺ g."""
        combine(self.u, self.g, Lambda)
        return self.u

    def turned(self, A):
        """v = g* A."""
        combine(self.v, self.g, A)
        return Difference(self.v)


class Multiple:
    """A number times a vector."""

    def __init__(self, number, vector):
        self.number, self.vector = number, vector


class Difference:
    """v = g* A, of which a multiple of h is taken."""

    def __init__(self, v):
        self.v = v

    def __sub__(self, multiple):
        """v less a multiple of h, in its place."""
        add_scaled(self.v, self.v, -multiple.number, multiple.vector)
        return self.v


class VectorOutput:
    """All outputs of a node as one, some of which may be missing."""

    def __init__(self, node):
        n, m, scratch = node.node.n, node.node.m, node.scratch
        U, V, DH = Block(scratch, 0, n, m), Block(scratch, n * m, m, n), Block(scratch, 2 * n * m, m, n)
        self.row = VectorRow(node.H)
        self.gain = VectorGain(node.G, U, V)
        self.precision = Precision(node.L, node.seen, DH, Column(scratch, 3 * n * m, m))

    def fill_inverse(self, C):
        """C = D⁻¹ + G*Λ⁺G."""
        G, U = self.gain.G, self.gain.U
        self.precision.store(C)
        multiply(C, Turned(G), U, base=C, symmetric=True)

    def fill_slope(self, out, P_plus):
        """−(CH − G*Λ⁺)P = (Λ⁺G)*P⁺ − G*, since HP = DG* and P = P⁺ + G D G*; 0 where nothing is seen, as G is."""
        G, U = self.gain.G, self.gain.U
        multiply(out, Turned(U), Turned(P_plus))
        _ = Product(out) - Turned(G)


class VectorRow:
    """H; where nothing is seen, rows of it meet zeros of U and V."""

    def __init__(self, H):
        self.H = H

    def take(self, A, Lambda, U):
        """A = Λ⁺ − U H."""
        multiply(A, U, self.H, base=Lambda, sign=-1)

    def take_symmetric(self, Lambda, V):
        """Λ = A − H* V."""
        multiply(Lambda, Turned(self.H), V, base=Lambda, sign=-1, symmetric=True)


class VectorGain:
    """G, with room for Λ⁺G and G*A."""

    def __init__(self, G, U, V):
        self.G, self.U, self.V = G, U, V

    def applied(self, Lambda):
        """U = Λ⁺ G."""
        multiply(self.U, Lambda, self.G)
        return self.U

    def turned(self, A):
        """V = G* A."""
        multiply(self.V, Turned(self.G), A)
        return Product(self.V)


class Product:
    """A matrix of which another is taken, in its place."""

    def __init__(self, block):
        self.block = block

    def __sub__(self, other):
        V, (m, n) = self.block, self.block.shape
        for a in loop(m):
            for j in loop(n):
                V[a, j] = V[a, j] - other[a, j]
        return V


class Precision:
    """D⁻¹ of what is seen, 0 elsewhere, by its factor L; ``line`` is for m numbers."""

    def __init__(self, L, seen, out, line):
        self.L, self.seen, self.out, self.line = L, seen, out, line

    def __mul__(self, row):
        """D⁻¹ H."""
        self._solve(self.out, row.H)
        return self.out

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
