"""Vectors of a node, many side by side: numbers with lanes, and their products with one node's matrix.

The order of operations is kept, and what is fused, so that a vector gets the same bits however many go with it.
"""

from kfdyn.estimation.recursions.registers import Row
from kfdyn.sweeps.control import down, either, loop, when
from kfdyn.sweeps.functions import fused
from kfdyn.sweeps.memory import LINE
from kfdyn.sweeps.values import Value, arithmetic, choice, local, no, number

#: Numbers to ask for in addition to those that a sweep works in, which are aligned.
SPARE = LINE

#: No liberty for the compiler: it would choose what to fuse for each number of lanes anew.
ALONE = ()

#: Vectors that one pass of a sweep carries side by side.
LANES = 16


def zero(lanes):
    """0 in every lane."""
    return 0.0 if lanes == 1 else Value(number(0.0, lanes))


def passes(lanes, first, last):
    """Over the rows first … last, a lane for each: the first row and the number of rows of each pass."""
    for at in loop(last, first, step=lanes):
        yield at, 1 if lanes == 1 else choice(last - at < lanes, last - at, lanes)


class Batch:
    """Workspace of numbers with lanes, and the rows of a pass that it exchanges them with."""

    def __init__(self, lanes, work):
        self.lanes, self.flat, self.used = lanes, work.aligned(), 0
        self.rows = None

    def numbers(self, count):
        """So many numbers of the workspace."""
        found = self.flat.part(self.used * self.lanes, count * self.lanes)
        self.used = self.used + count
        return Numbers(self, found, count)


class Numbers:
    """Numbers with lanes, one after the other in memory; ``known``: how many is known while code is written."""

    def __init__(self, batch, flat, size, known=False):
        self.batch, self.flat, self.size, self.wide = batch, flat, size, flat.lanes(batch.lanes)
        self.known = known and batch.lanes == 1  # then they go into registers together

    def __getitem__(self, i):
        return self.wide[i]

    def __setitem__(self, i, value):
        self.wide[i] = value

    def part(self, start, size, known=False):
        """So many numbers from ``start`` on."""
        lanes = self.batch.lanes
        return Numbers(self.batch, self.flat.part(start * lanes, size * lanes), size, known)

    def clear(self):
        """All become 0."""
        for i in loop(self.size):
            self[i] = zero(self.batch.lanes)

    def copy(self, x):
        """Take the values of x."""
        if self.known:
            Row.load(x.flat, 0, self.size).store(self.flat, 0)
            return
        for i in loop(self.size):
            self[i] = x[i]

    def add(self, x):
        """Add x."""
        for i in loop(self.size):
            self[i] = self[i] + x[i]

    def erase(self, seen):
        """Zero where nothing is seen."""
        for i in loop(self.size):
            for _ in when(no(seen[i])):
                self[i] = zero(self.batch.lanes)

    @arithmetic(ALONE)
    def add_product(self, sign, A, x):
        """Add ± A x for A (r, n)."""
        if self.known and x.known:
            given = [x[j] for j in range(x.size)]
            sums = [_sum([A[i, j] for j in range(x.size)], given) for i in range(self.size)]
            (Row.load(self.flat, 0, self.size) + sign * Row.of(sums)).store(self.flat, 0)
            return
        for i in loop(A.shape[0]):
            s = local(zero(self.batch.lanes))
            for j in loop(A.shape[1]):
                s.set(fused(A[i, j], x[j], s))
            self[i] = self[i] + sign * s

    @arithmetic(ALONE)
    def add_transposed(self, sign, A, x):
        """Add ± A* x for A (r, n); a symmetric A is best applied in this way."""
        if self.known and x.known:
            rows = [A.row(i).registers for i in range(x.size)]
            sums = Row([_sum(column, [x[i] for i in range(x.size)]) for column in zip(*rows)])
            (Row.load(self.flat, 0, self.size) + sign * sums).store(self.flat, 0)
            return
        for j in loop(A.shape[1]):
            s = local(zero(self.batch.lanes))
            for i in loop(A.shape[0]):
                s.set(fused(A[i, j], x[i], s))
            self[j] = self[j] + sign * s

    @arithmetic(ALONE)
    def solve(self, L):
        """Become (L L*)⁻¹ of themselves, L lower triangular."""
        m = L.shape[0]
        for i in loop(m):
            s = local(self[i])
            for j in loop(i):
                s.set(fused(-L[i, j], self[j], s))
            self[i] = (1.0 / L[i, i]) * s
        for i in down(m):
            s = local(self[i])
            for j in loop(m, i + 1):
                s.set(fused(-L[j, i], self[j], s))
            self[i] = (1.0 / L[i, i]) * s

    def load(self, given, width, start=0, step=None):
        """Take columns from ``start`` on of the rows of the pass, which lie ``width`` apart; spare lanes get 0.

        ``step`` 0 stands for one row that serves every lane, and None for rows that do not share.
        """
        lanes, (first, count) = self.batch.lanes, self.batch.rows
        step = width if step is None else step
        if lanes == 1:
            self.copy(Numbers(self.batch, given.part(first * step + start, self.size), self.size))
            return
        for alone in either(step == 0) if step is not width else (False,):
            if alone:
                for i in loop(self.size):
                    self[i] = Value(number(given[start + i], lanes))
                continue
            for l in loop(lanes):
                source = given.part((first + l) * step + start)
                for used in either(l < count):
                    for i in loop(self.size):
                        self.flat[i * lanes + l] = source[i] if used else 0.0

    def store(self, out, width, start=0):
        """Write the lanes to columns from ``start`` on of the rows of the pass."""
        lanes, (first, count) = self.batch.lanes, self.batch.rows
        if lanes == 1:
            Numbers(self.batch, out.part(first * width + start, self.size), self.size, self.known).copy(self)
            return
        for l in loop(count):
            target = out.part((first + l) * width + start)
            for i in loop(self.size):
                target[i] = self.flat[i * lanes + l]


def _sum(a, x):
    """Σ a_i x_i, one after the other."""
    s = a[0] * x[0]
    for b, y in zip(a[1:], x[1:]):
        s = fused(b, y, s)
    return s
