"""Vectors of a node, many side by side: numbers with lanes, and their products with one node's matrix.

The order of operations is kept, and what is fused, so that a vector gets the same bits however many go with it.
"""

from functools import cache
from typing import Any, NamedTuple

from kfdyn.estimation.recursions.linalg.matrices import Block, Turned
from kfdyn.estimation.recursions.linalg.small_blocks import Row, pieces, turned
from kfdyn.sweeps.control_flow import down, if_, loop
from kfdyn.sweeps.functions import fma
from kfdyn.sweeps.memory import LINE
from kfdyn.sweeps.trace_context import arithmetic, tracing
from kfdyn.sweeps.values import from_lanes, lane, not_, now, number, where
from kfdyn.sweeps.variables import local
from kfdyn.sweeps.workspace import Workspace

#: Numbers to ask for in addition to those that a sweep works in, which are aligned.
SPARE = LINE

#: No liberty for the compiler: it would choose what to fuse for each number of lanes anew.
ALONE = ()

#: Vectors that one pass of a sweep carries side by side.
LANES = 16

#: Sums of one vector that run side by side.
BESIDE = 8

#: Rows that become lanes at a time, and lanes that become rows.
SIDE = 4


def zero(lanes):
    """0 in every lane."""
    return 0.0 if lanes == 1 else number(0.0, lanes)


class Share(NamedTuple):
    """Rows first … last of a batch, and the memory in which they are done."""

    first: Any
    last: Any
    work: Any


class Batch(Workspace):
    """Workspace of numbers with lanes, and the rows of a pass that it exchanges them with."""

    def __init__(self, lanes, work, *sizes):
        self.lanes, self.rows = lanes, None
        super().__init__(work.aligned(), *sizes)

    @classmethod
    @cache  # it is asked before every call
    def size(cls, *sizes):
        """The size, in numbers, with those that it takes to align them."""
        return super().size(*sizes) + SPARE

    def part(self, start, count):
        """Take that many numbers of the memory, with their lanes."""
        return Numbers(self, self.memory.part(start * self.lanes, count * self.lanes), count)

    def passes(self, share):
        """Over the rows of a share, a lane for each: ``rows`` are the first row and the number of rows of each pass."""
        lanes, last = self.lanes, share.last
        for at in loop(last, share.first, step=lanes):
            self.rows = at, 1 if lanes == 1 else where(last - at < lanes, last - at, lanes)
            yield


class Numbers:
    """Numbers with lanes, one after the other in memory; ``known``: how many is known while code is written."""

    def __init__(self, batch, flat, size, known=False):
        self.batch, self.flat, self.size, self.wide = batch, flat, size, flat.lanes(batch.lanes)
        self.counted = known
        self.known = known and batch.lanes == 1  # then they go into registers together

    def __getitem__(self, i):
        return self.wide[i]

    def __setitem__(self, i, value):
        self.wide[i] = value

    def part(self, start, size, known=False):
        """Take that many numbers from ``start`` on."""
        lanes = self.batch.lanes
        return Numbers(self.batch, self.flat.part(start * lanes, size * lanes), size, known)

    def clear(self):
        """All become 0."""
        for i in loop(self.size):
            self[i] = zero(self.batch.lanes)

    def copy(self, x):
        """Take the values of x."""
        if self.known:
            self.row = x.row
            return
        for i in loop(self.size):
            self[i] = x[i]

    def add(self, x):
        """Add x."""
        if self.known:
            self.row = self.row + x.row
            return
        for i in loop(self.size):
            self[i] = self[i] + x[i]

    def erase(self, seen):
        """Zero where nothing is seen."""
        for i in loop(self.size):
            for _ in if_(not_(seen[i])):
                self[i] = zero(self.batch.lanes)

    @property
    def row(self):
        """All in registers."""
        return Row.load(self.flat, 0, self.size)

    @row.setter
    def row(self, row):
        row.store(self.flat, 0)

    @arithmetic(ALONE)
    def multiply(self, A, x, base=None, sign=1.0):
        """Become base ± A x for A (r, n); ``base`` None stands for zero."""
        if self.counted and x.counted:
            given = [x[j] for j in range(x.size)]
            for i in range(self.size):
                s = sign * _sum([A[i, j] for j in range(x.size)], given)
                self[i] = s if base is None else base[i] + s
            return
        rows, beside = A.shape[0], BESIDE if self.batch.lanes == 1 else 2
        for i in loop(rows - rows % beside, step=beside):
            self._combine(i, beside, A, x, base, sign)
        for i in loop(rows, rows - rows % beside):
            self._combine(i, 1, A, x, base, sign)

    def _combine(self, i, count, A, x, base, sign):
        """Compute that many numbers of base ± A x from the i-th on, side by side: a sum waits for itself only."""
        if count == BESIDE and tracing.builder is not None and isinstance(A, Block):
            sums = _by_squares(A, i, x)
        else:
            sums = [local(zero(self.batch.lanes)) for _ in range(count)]
            for j in loop(A.shape[1]):
                y = x[j]
                for a, s in enumerate(sums):
                    s.set(fma(A[i + a, j], y, s))
        for a, s in enumerate(sums):
            self[i + a] = sign * s if base is None else base[i + a] + sign * s

    @arithmetic(ALONE)
    def multiply_turned(self, A, x, base=None, sign=1.0):
        """Become base ± A* x for A (r, n); a symmetric A is best applied in this way."""
        if not (self.known and x.known):
            self.multiply(Turned(A), x, base, sign)
            return
        rows = [A.row(i).registers for i in range(x.size)]
        sums = sign * Row([_sum(column, [x[i] for i in range(x.size)]) for column in zip(*rows)])
        self.row = sums if base is None else base.row + sums

    @arithmetic(ALONE)
    def solve(self, L):
        """Become (L L*)⁻¹ of themselves, L lower triangular."""
        m = L.shape[0]
        for j in loop(m):
            y = (1.0 / L[j, j]) * self[j]
            self[j] = y
            for i in loop(m, j + 1):  # no number waits for another
                self[i] = fma(-L[i, j], y, self[i])
        for j in down(m):
            y = (1.0 / L[j, j]) * self[j]
            self[j] = y
            for i in loop(j):
                self[i] = fma(-L[j, i], y, self[i])

    def load(self, given, width, start=0, step=None):
        """Take columns from ``start`` on of the rows of the pass, which lie ``width`` apart.

        ``step`` 0 stands for one row that serves every lane, and None for rows that do not share.
        """
        step = width if step is None else step
        if self.batch.lanes == 1:
            self.copy(self._alone(given, self.batch.rows[0] * step + start))
            return
        for l, rows in self._sides():
            for i, count in self._pieces():
                numbers = turned([given.part(row * step + start + i).lanes(count)[0] for row in rows], count)
                for j, x in enumerate(numbers):
                    self._beside(i + j, l, rows)[0] = x

    def store(self, out, width, start=0, base=None):
        """Write the lanes to columns from ``start`` on of the rows of the pass, added to those of ``base`` if given."""
        if self.batch.lanes == 1:
            at = self.batch.rows[0] * width + start
            to = self._alone(out, at)
            to.copy(self)
            if base is not None:
                to.add(self._alone(base, at))
            return
        for l, rows in self._sides():
            for i, count in self._pieces():
                numbers = [self._beside(i + j, l, rows)[0] for j in range(count)]
                for row, x in zip(rows, turned(numbers, len(rows))):
                    at = row * width + start + i
                    before = 0.0 if base is None else base.part(at).lanes(count)[0]
                    out.part(at).lanes(count)[0] = x + before

    def _alone(self, memory, start):
        """The numbers of one row, which are there already."""
        return Numbers(self.batch, memory.part(start, self.size), self.size, self.known)

    def _sides(self):
        """Over the lanes in use, some at a time: the first of them, and the rows that belong to them.

        They are filled up to a multiple of SIDE: lanes to spare have the last row once more, all that is loaded of it,
        so what they store is the same. One at a time where code for squares would take too long to compile.
        """
        first, count = self.batch.rows
        together = SIDE if self.counted else 1
        for side in loop((count + (SIDE - 1)) // SIDE * (SIDE // together)):
            l = together * side
            yield l, [first + where(l + r < count, l + r, count - 1) for r in range(together)]

    def _beside(self, i, l, rows):
        """Number i in the lanes from l on, one for each row."""
        return self.flat.part(i * self.batch.lanes + l).lanes(len(rows))

    def _pieces(self):
        """Over numbers, some at a time: the first of them, and how many."""
        return pieces(self.size) if self.counted else ((i, 1) for i in loop(self.size))


def _sum(a, x):
    """Σ a_i x_i, one after the other."""
    s = a[0] * x[0]
    for b, y in zip(a[1:], x[1:]):
        s = fma(b, y, s)
    return s


def _by_squares(A, i, x):
    """The same sums for one vector: columns of A in registers, which are squares of it that are turned there."""
    n, firsts = A.shape[1], range(0, BESIDE, SIDE)
    sums = [local(zero(SIDE)) for _ in firsts]
    for j in loop(n - n % SIDE, step=SIDE):
        for first, s in zip(firsts, sums):
            rows = [A.memory.part((i + first + a) * n + j).lanes(SIDE)[0] for a in range(SIDE)]
            for l, column in enumerate(turned(rows, SIDE)):
                s.set(fma(column, x[j + l], s))
    for j in loop(n, n - n % SIDE):
        for first, s in zip(firsts, sums):
            s.set(fma(from_lanes([A[i + first + a, j] for a in range(SIDE)]), x[j], s))
    return [lane(s, l) for s in map(now, sums) for l in range(SIDE)]
