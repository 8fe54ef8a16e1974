"""Reflections of arrays whose sizes are known while code is written: rows lie in lanes, four to a number."""

from kfdyn.sweeps.functions import absolute, root
from kfdyn.sweeps.values import choice, from_lanes, lane

LANES = 4


def absorb_in_lanes(r, c, S, F, extra, C, E):
    """[S F] → [S' 0] as :func:`~.square_root.absorb` does it, all rows of [S F] and [C E] at once.

    A column is a list of numbers with four rows each, so that a reflection is the same few operations on each number.
    Rows that are done stay in them and are not looked at again. F is left as it was.
    """
    array = Columns(r, c, S, F, extra, C, E)
    for i in range(r):
        array.bring_largest(i)
        array.reflect(i)
    array.put(S, C, E)


class Columns:
    """The columns of [S F] over those of [C E]; ``left`` and ``right`` of the bar."""

    def __init__(self, r, c, S, F, extra, C, E):
        self.r, self.c, self.extra, self.diagonal = r, c, extra, []
        spare = [0.0] * (-(r + extra) % LANES)
        self.left = [
            _numbers([S[l, j] if l >= j else 0.0 for l in range(r)] + [C[l, j] for l in range(extra)] + spare)
            for j in range(r)
        ]
        self.right = [_numbers([F[l, j] for l in range(r)] + [E[l, j] for l in range(extra)] + spare) for j in range(c)]

    def bring_largest(self, i):
        """Exchange column i of S with the column of F that has the largest number in row i, if that is larger."""
        sizes = [(absolute(_row(column, i)), j) for j, column in enumerate(self.right)]
        while len(sizes) > 1:  # in rounds: one comparison after the other would take longer than the reflection
            rounds = [_larger(*sizes[j : j + 2]) for j in range(0, len(sizes) - 1, 2)]
            sizes = rounds + sizes[2 * len(rounds) :]
        (most, best), own = sizes[0], self.left[i]
        larger = most > absolute(_row(own, i))
        new = list(own)
        for j, column in enumerate(self.right):
            here = larger & (best == j) if len(self.right) > 1 else larger
            for g in self.live(i):
                new[g], column[g] = choice(here, column[g], new[g]), choice(here, own[g], column[g])
        self.left[i] = new

    def reflect(self, i):
        """All rows along row i of [S F], whose diagonal becomes positive or stays 0."""
        d, v = _row(self.left[i], i), [_row(column, i) for column in self.right]
        norm = _sum([x * x for x in v])
        some, negative = norm > 0.0, d < 0.0
        length = root(d * d + norm)
        head = d + choice(negative, -length, length)
        factor = choice(some, 1.0, 0.0) / choice(some, length * (length + absolute(d)), 1.0)
        sign = choice(some, choice(negative, 1.0, -1.0), choice(negative, -1.0, 1.0))
        for g in self.live(i):
            own = self.left[i][g]
            t = factor * _sum([own * head] + [column[g] * x for column, x in zip(self.right, v)])
            self.left[i][g] = sign * (own - t * head)
            for column, x in zip(self.right, v):
                column[g] = column[g] - t * x
        self.diagonal.append(choice(some, length, absolute(d)))

    def live(self, i):
        """Numbers with a row from i on."""
        return range(i // LANES, len(self.left[0]))

    def put(self, S, C, E):
        """Write S', and what has become of C and E."""
        for j, column in enumerate(self.left):
            S[j, j] = self.diagonal[j]
            for l in range(j + 1, self.r):
                S[l, j] = _row(column, l)
            for l in range(self.extra):
                C[l, j] = _row(column, self.r + l)
        for j, column in enumerate(self.right):
            for l in range(self.extra):
                E[l, j] = _row(column, self.r + l)


def _numbers(rows):
    return [from_lanes(rows[g : g + LANES]) for g in range(0, len(rows), LANES)]


def _row(column, l):
    return lane(column[l // LANES], l % LANES)


def _larger(a, b):
    """The pair with the larger number; the first of equals."""
    further = b[0] > a[0]
    return choice(further, b[0], a[0]), choice(further, b[1], a[1])


def _sum(terms):
    """The sum in rounds."""
    while len(terms) > 1:
        terms = [terms[j] + terms[j + 1] if j + 1 < len(terms) else terms[j] for j in range(0, len(terms), 2)]
    return terms[0]
