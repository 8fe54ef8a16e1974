"""Make arrays triangular from the right by Householder reflections, in memory, of one node or several in lanes.

A column keeps digits in proportion to its own size, not to that of the largest one, if each reflection has the largest
number of its row at its head (Cox and Higham 1998). So columns are exchanged, but only where they are *graded*, that is
where the head is much smaller than another number of the row: an exchange costs as much as a reflection.
"""

from kfdyn.estimation.recursions.linalg.lanes import zero
from kfdyn.sweeps.control_flow import if_, loop
from kfdyn.sweeps.functions import maximum, sqrt
from kfdyn.sweeps.trace_context import tracing
from kfdyn.sweeps.values import any_lanes, now, where
from kfdyn.sweeps.variables import local

#: A head may be smaller than another number of its row by that factor: so much of the digits may be lost.
GRADED = 16.0


class Array:
    """A matrix of numbers in a workspace, column by column; or beside those of other nodes, one in each lane.

    Where there is one lane, ``chunk`` rows are one number, and there are as many more rows as make whole ones; else row
    by row. ``spare`` is room for a row.
    """

    def __init__(self, flat, lanes, rows, columns):
        self.chunk, self.rows = chunk() if lanes == 1 else 1, whole(rows) if lanes == 1 else rows
        self.numbers, self.chunks = flat.lanes(lanes), flat.lanes(lanes * self.chunk)
        self.used = self.rows * columns
        self.spare = flat.part(self.used * lanes).lanes(lanes)
        self.zero, self.blank = zero(lanes), zero(lanes * self.chunk)
        self.steps = (1, self.rows) if lanes == 1 else (columns, 1)  # to the next row, to the next column

    def __getitem__(self, place):
        return self.numbers[place[0] * self.steps[0] + place[1] * self.steps[1]]

    def __setitem__(self, place, value):
        self.numbers[place[0] * self.steps[0] + place[1] * self.steps[1]] = value

    def clear(self):
        """All becomes 0."""
        for i in loop(self.used // self.chunk):
            self.chunks[i] = self.blank

    def part(self, i, j):
        """Chunk i of column j."""
        return self.chunks[self._place(i, j)]

    def set_part(self, i, j, value):
        """Set chunk i of column j."""
        self.chunks[self._place(i, j)] = value

    def _place(self, i, j):
        return i * self.steps[0] + j * (self.steps[1] // self.chunk)

    def parts(self, end, start=0):
        """Over the chunks that hold the rows ``start`` … ``end``."""
        return loop((end + (self.chunk - 1)) // self.chunk, start // self.chunk)


def array_size(rows, columns):
    """Numbers of a workspace, with so many lanes, that an array takes."""
    return (rows + 4) * columns + columns


def chunk():
    """Rows that are one number: four where code is written, and one where Python computes."""
    return 4 if tracing.builder is not None else 1


def whole(n):
    """The rows that n rows take, in whole chunks."""
    return n if chunk() == 1 else (n + (chunk() - 1)) // chunk() * chunk()


def triangularise(A, count, corner, end, others):
    """Make the square of A that begins at the corner (row, column) lower triangular: its columns mix with others.

    Reflection s has its head at ``corner + s`` and takes the columns ``others(s)``, (first, stop), to zero in its row;
    all rows up to ``end`` go along. There are ``count`` of them. Diagonals come out positive or 0. What is left above
    the diagonal, and of the others in rows that are done, is not to be used. 4 flops for each number that is touched.
    """
    for s in loop(count):
        head, columns = (corner[0] + s, corner[1] + s), others(s)
        most = local(A.zero)
        for j in loop(columns[1], columns[0]):
            most.set(maximum(most, abs(A[head[0], j])))
        graded = most > GRADED * abs(A[head])
        for _ in if_(any_lanes(graded), likely=False):
            _exchange(A, head, end, columns, graded, most)
        _reflect(A, head, end, columns)


def _exchange(A, head, end, columns, graded, most):
    """Bring the largest number of a row to its head, in the lanes that ask for it: from the first of equals."""
    (i, h), (first, stop), found = head, columns, local(A.zero)
    for j in loop(stop, first):
        here = graded & (abs(A[i, j]) == most) & (found == 0.0)
        found.set(where(here, 1.0, found))
        for _ in if_(any_lanes(here)):
            for l in loop(end, i):
                own, other = A[l, h], A[l, j]
                A[l, h] = where(here, other, own)
                A[l, j] = where(here, own, other)


def _reflect(A, head, end, columns):
    """All rows from that of the head on along it, of which the diagonal alone is left."""
    (i, h), (first, stop), norm, v = head, columns, local(A.zero), A.spare
    for j in loop(stop, first):
        x = A[i, j]
        v[j] = x
        norm += x * x
    along = Reflection(A[i, h], now(norm))
    for l in A.parts(end, i if A.chunk > 1 else i + 1):
        own, w = A.part(l, h), local(A.blank)
        for j in loop(stop, first):
            w += v[j] * A.part(l, j)
        t = along.share(own, w)
        A.set_part(l, h, along.head_of(own, w))
        for j in loop(stop, first):
            A.set_part(l, j, A.part(l, j) - t * v[j])
    A[i, h] = along.length


class Reflection:
    """The reflection that takes a row (d, v) to (length, 0), up to the sign that makes the length positive.

    Of another row (x, y), with w = y v*: its head becomes (d x + w)/length, which is the product of the two rows, and
    its rest y − t v. So the root is waited for, but no number of the row's own.
    """

    def __init__(self, d, norm):
        square = d * d + norm
        self.d, self.square, self.some, self.negative = d, square, norm > 0.0, d < 0.0
        length = sqrt(square)
        self.head = where(self.negative, d - length, d + length)
        safe = square > 0.0
        self.factor = 1.0 / where(safe, square + abs(d) * length, 1.0)
        self.length = where(self.some, length, abs(d))
        self.one_over = 1.0 / where(safe, length, 1.0)

    def share(self, x, w):
        """Return the share of v that the rest of a row loses."""
        return self.factor * (w + self.head * x)

    def head_of(self, x, w):
        """Return the new head of a row."""
        return where(self.some, self.one_over * (self.d * x + w), where(self.negative, -x, x))
