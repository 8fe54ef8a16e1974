"""Factors of covariances as columns in registers: the arithmetic of a node whose size is known in the code.

A root is a list of columns, each one machine register with a row in every lane. A reflection is then the same few
operations on each column, and rows never meet. What it waits for is what it costs: a root and a division, row by row.
"""

from functools import reduce

from kfdyn.estimation.recursions.linalg.lanes import zero
from kfdyn.estimation.recursions.linalg.reflections import GRADED, Reflection, chunk, whole
from kfdyn.estimation.recursions.linalg.small_blocks import Row
from kfdyn.sweeps.control_flow import if_, loop, loop_vars
from kfdyn.sweeps.functions import fma, maximum
from kfdyn.sweeps.trace_context import LANEWISE, arithmetic
from kfdyn.sweeps.values import from_lanes, lane, not_, where


def height(n):
    """Numbers in the register of a column of n."""
    return next(lanes for lanes in (1, 2, 4, 8) if lanes >= n)


class Stored:
    """A root (rows, columns) in memory, column by column, each as high as a register or as whole chunks; 0 to spare."""

    def __init__(self, flat, start, rows, columns, known):
        self.shape, self.height = (rows, columns), height(rows) if known else whole(rows)
        self.memory, self.known = flat.matrix(start, columns, self.height), known

    def __getitem__(self, place):
        return self.memory[place[1], place[0]]

    def __setitem__(self, place, value):
        self.memory[place[1], place[0]] = value

    def clear_spare(self):
        """Let the numbers that only fill a register be 0."""
        for i in loop(self.height, self.shape[0]):
            for j in loop(self.shape[1]):
                self[i, j] = 0.0

    def part(self, i, j):
        """Chunk i of column j, where sizes are not known."""
        return self.memory.part(j * self.height).lanes(chunk())[i]

    def turned(self):
        """Its transpose, row by row: what is stored."""
        return Turned(self)

    def columns(self):
        """Its columns in registers."""
        return [self._column(j)[0] for j in range(self.shape[1])]

    def set_columns(self, columns):
        """Write all columns."""
        for j, column in enumerate(columns):
            self._column(j)[0] = column

    def _column(self, j):
        return self.memory.part(j * self.height).lanes(self.height)


class Turned:
    """The transpose of a stored root, a matrix as :class:`~.matrices.Block` is one."""

    count = 1  # lane

    def __init__(self, stored):
        self.memory, self.shape, self.height = stored.memory, stored.shape[::-1], stored.height

    def __getitem__(self, place):
        return self.memory[place]

    def row(self, i):
        """Row i in registers."""
        return Row.load(self.memory, i * self.height, self.shape[1])


def column_of(numbers):
    """A column made of single numbers."""
    return from_lanes([*numbers, *[0.0] * (height(len(numbers)) - len(numbers))])


def numbers_of(column, n):
    """Its n numbers."""
    return [lane(column, i) for i in range(n)]


def blank(n):
    """A column of zeros."""
    return zero(height(n))


@arithmetic(LANEWISE)
def combined(numbers, columns):
    """Σ_l c_l C_l in two chains, every product but the first of each rounded together with its sum."""
    chains = []
    for start in (0, 1):
        terms = list(zip(numbers[start::2], columns[start::2]))
        if terms:
            chains.append(reduce(lambda s, term: fma(*term, s), terms[1:], terms[0][0] * terms[0][1]))
    return reduce(lambda a, b: a + b, chains)


def product(A, B):
    """The columns of A B."""
    return [combined(numbers_of(column, len(A)), A) for column in B]


def put_square(out, C):
    """out = C C*, exactly symmetric, since both numbers of a pair are the same sum."""
    n = out.shape[0]
    out.set_rows([Row.of(numbers_of(combined([lane(c, i) for c in C], C), n)) for i in range(n)])


@arithmetic(LANEWISE)
def absorb(left, right):
    """[S F] → [S' 0] for the columns of a lower triangular S and those of F, by reflections from the right."""
    for i in range(len(left)):
        row = [lane(column, i) for column in right]
        _, own, _, right = largest_first(lane(left[i], i), left[i], row, right)
        d, v = lane(own, i), [lane(column, i) for column in right]  # again: to carry them through is slower
        w = combined(v, right)
        along = Reflection(d, lane(w, i))
        t = along.share(own, w)
        left[i] = along.head_of(own, w) * column_of([0.0] * i + [1.0] * (len(left) - i))  # rows done have rounding
        right = [column - t * x for column, x in zip(right, v)]
    return left


def largest_first(d, own, row, columns):
    """A row (d, row) with the columns it belongs to, exchanged where it is graded: then its largest number is d."""
    sizes = [abs(x) for x in row]
    most = reduce(maximum, sizes)
    state = loop_vars(d, own, tuple(row), tuple(columns))
    for _ in if_(most > GRADED * abs(d), likely=False):
        head, first, found, numbers, others = d, own, most < 0.0, [], []
        for x, size, column in zip(row, sizes, columns):
            here = (size == most) & not_(found)
            found = found | here
            head, first = where(here, x, head), where(here, column, first)
            numbers.append(where(here, d, x))
            others.append(where(here, own, column))
        state.set(head, first, tuple(numbers), tuple(others))
    return state.get()
