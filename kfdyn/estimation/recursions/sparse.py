"""Matrices and rows that are mostly zeros, by their entries: products with them, along rows of memory or in lanes."""

from kfdyn.estimation.recursions.linalg import tiles
from kfdyn.estimation.recursions.linalg.matrices import add_scaled, reflect
from kfdyn.sweeps.control_flow import if_, loop


class Sparse:
    """A square matrix by its entries, row after row: those of row i are starts[i] … starts[i + 1]."""

    def __init__(self, starts, columns, values):
        self.starts, self.columns, self.values = starts, columns, values

    def multiply(self, out, A):
        """out = F A."""
        for i in loop(A.shape[0]):
            self._combine(out.line(i), i, A.line)

    def congruence(self, out, S, spare):
        """out = F S F*, exactly symmetric; S is lost, ``spare`` is for a matrix like it."""
        self.multiply(spare, S)
        n = S.shape[0]
        if S.count > 1:
            for i in loop(n):
                self._combine(Lower(out, i, i), i, lambda k: Lower(spare, k, i))  # noqa: B023
        else:  # a transpose, so that all goes along rows of memory
            tiles.turn(S.place, spare.place, n, n)
            self.multiply(out, S)
        reflect(out)

    def _combine(self, to, i, source):
        """Make it Σ_j F_ij source(j)."""
        first, last = self.starts[i], self.starts[i + 1]
        for _ in if_(first == last):
            to.clear()
        for _ in if_(first < last):
            add_scaled(to, None, self.values[first], source(self.columns[first]))
        for l in loop(last, first + 1):
            add_scaled(to, to, self.values[l], source(self.columns[l]))


class Lower:
    """Column j of a matrix from row ``first`` on."""

    known = False

    def __init__(self, A, j, first):
        self.A, self.j, self.first, self.size, self.count = A, j, first, A.shape[0] - first, A.count

    def __getitem__(self, i):
        return self.A[self.first + i, self.j]

    def __setitem__(self, i, value):
        self.A[self.first + i, self.j] = value

    def clear(self):
        """All becomes 0."""
        for i in loop(self.size):
            self[i] = 0.0


class Picked:
    """Some of the rows of a matrix, or numbers of a vector, as if there were no others."""

    known = False

    def __init__(self, A, places):
        self.A, self.places, self.count, self.size = A, places, A.count, places.size
        self.shape = (places.size, *getattr(A, "shape", ())[1:])

    def __getitem__(self, place):
        return self.A[self._there(place)]

    def __setitem__(self, place, value):
        self.A[self._there(place)] = value

    def line(self, i):
        """Row i of them."""
        return self.A.line(self.places[i])

    def _there(self, place):
        return (self.places[place[0]], place[1]) if isinstance(place, tuple) else self.places[place]
