"""Copy results from a workspace, where lanes lie side by side, to the rows of the caller's arrays.

Memory is what large answers wait for, so here stands all that spares it:

- Lanes become rows in registers, a *piece* at a time: as many numbers as there are lanes, of as many rows.
- Each number is looked at on its way, so that nobody need read the answers again to know whether they are finite.
- Answers larger than the caches are *streamed*: a line of 64 bytes that is written whole and past the cache need not be
  fetched from memory first. As rows begin anywhere within a line, each line is put together from two pieces. What is
  left at both ends of a row shares its line with other rows, and is stored as ever.
- What is streamed may come :class:`Late`, while the next rows are worked on.
"""

from contextlib import contextmanager

from kfdyn.sweeps.compiler.ir import INT, VOID, WORD, vector
from kfdyn.sweeps.control_flow import if_, if_else, loop
from kfdyn.sweeps.trace_context import tracing
from kfdyn.sweeps.values import broadcast, constant, ir_of, now, number, vanishing, where, wide
from kfdyn.sweeps.variables import local

#: Numbers in a line of the cache.
LINE = 8

#: Numbers in the shortest row that is streamed: less is mostly ends.
SHORTEST = 8 * LINE

# Places of numbers among those of two pieces, and those of the first.
_PLACES = vector(INT, LINE)
_FIRST = constant(_PLACES, tuple(range(LINE)))


def streams(lanes):
    """Return True if lines can be streamed: one AVX-512 instruction joins as much as a line holds."""
    return lanes == LINE and "avx512f" in tracing.machine.has


def settle(streamed):
    """Issue a store fence after non-temporal stores, if there were any."""
    for _ in if_(streamed):
        tracing.builder.call("llvm.x86.sse.sfence", VOID, [])


class Pieces:
    """Copy the first ``count`` numbers of a workspace to a :class:`~kfdyn.sweeps.memory.Column`, piece by piece."""

    def __init__(self, column, numbers, count):
        self.column, self.numbers, self.count, self.lanes = column, numbers, count, column.lanes
        self.seen = None
        column.memory.change()

    def copy(self):
        """Copy them all."""
        for streamed in if_else(self.column.streamed):
            (self.stream if streamed else self.store)()

    def store(self):
        """Copy them through the cache."""
        for enough in if_else(self.count >= self.lanes):
            if enough:
                self._squares()
            else:
                self._one_by_one()

    def stream(self):
        """Copy them past the cache; there are :data:`SHORTEST` or more."""
        self.lines(0, self.whole())
        self.ends()

    def _one_by_one(self):
        """Copy fewer numbers than there are lanes."""
        with self._looking():
            for i in loop(self.count):
                x = broadcast(self.numbers[i], self.lanes)
                self._look([x])
                self.column.put(i, x)

    def _squares(self):
        """Copy whole pieces; the last one overlaps numbers already copied."""
        with self._looking():
            for i in loop(self.count, step=self.lanes):
                i = where(i > self.count - self.lanes, self.count - self.lanes, i)
                for place, row in zip(self.column.places(i), self._transposed(i)):
                    _put(row, self.column.memory.part(place).data)

    def whole(self):
        """Return how many lines are streamed: one less than there are whole pieces."""
        return self.count // LINE - 1

    def lines(self, first, last):
        """Stream lines first … last of each row; line k begins in its piece k and ends in the next."""
        build, join, starts = tracing.builder, "llvm.x86.avx512.vpermi2var.pd.512", self._starts()
        places = [build.operate("add", _FIRST, ir_of(offset, _PLACES)) for _, offset in starts]
        with self._looking():
            before = [local(piece) for piece in self._transposed(first * LINE)]
            for k in loop(last, first):
                for (row, offset), at, one, other in zip(starts, places, before, self._transposed((k + 1) * LINE)):
                    line = build.call(join, wide(LINE), [one.ir, at, other], pure=True)
                    place = build.cast("bitcast", row.part(k * LINE + offset).data, line.type.as_pointer())
                    build.line(f"store {line}, {place}, align {8 * LINE}, !nontemporal !{{i32 1}}")
                    one.set(other)

    def ends(self):
        """Store what lies before the first line of each row and behind its last: less than two lines."""
        build, starts, lines = tracing.builder, self._starts(), self.whole() * LINE
        with self._looking():
            for i in (0, self.count - 2 * LINE, self.count - LINE):
                for (row, offset), piece in zip(starts, self._transposed(i)):
                    ends = (offset - i > _FIRST) | (offset + lines - i <= _FIRST)
                    place = build.cast("bitcast", row.part(i).data, piece.type.as_pointer())
                    kind = "p0" if str(place.type) == "ptr" else f"p0v{LINE}f64"
                    build.call(f"llvm.masked.store.v{LINE}f64.{kind}", VOID, [piece, place, constant(WORD, 8), ends])

    def _starts(self):
        """Return for each row its memory and how many numbers lie before its first line."""
        starts = []
        for place in self.column.places(0):
            row = self.column.memory.part(place)
            address = tracing.builder.cast("ptrtoint", row.data, INT)
            starts.append((row, -(address // 8) & (LINE - 1)))
        return starts

    def _transposed(self, i):
        """Return numbers i, i + 1, … of each row, by exchange of halves, quarters, …"""
        count, half, build = self.lanes, 1, tracing.builder
        rows = [number(self.numbers[i + j], count) for j in range(count)]
        self._look(rows)
        while half < count:
            low = [l if not l & half else count + l - half for l in range(count)]
            high = [l + half if not l & half else count + l for l in range(count)]
            for j in range(count):
                if not j & half:
                    a, b = rows[j], rows[j + half]
                    rows[j], rows[j + half] = build.shuffle_vector(a, b, low), build.shuffle_vector(a, b, high)
            half *= 2
        return rows

    @contextmanager
    def _looking(self):
        """Check for numbers that are not finite while copying here, if the caller asked.

        The sum is the loop's own, so that it has a register: one that lives longer may have none.
        """
        total = self.column.total
        if total is not None:
            self.seen = local(broadcast(0.0, self.lanes))
        yield
        if total is not None:
            total += self.seen
            self.seen = None

    def _look(self, numbers):
        """Add 0 to the check for each finite number, NaN otherwise."""
        if self.seen is None:
            return
        total = vanishing(numbers[0])
        for x in numbers[1:]:
            total = tracing.builder.operate("fadd contract", vanishing(x), total)
        self.seen += total


class Late:
    """Stream matrices one pass late, some lines at every step of the next pass.

    Memory then works while the processor does: that keeps a hundred stores waiting and computes on, but for thousands
    in a row it waits itself. The template has one of these for all passes; recursions call it by :func:`late`.

    Parameters
    ----------
    column_of : callable
        ``column_of(name, start, step)``: the result of this name, of the rows from ``start`` on.
    """

    def __init__(self, column_of):
        self.column_of, self.matrices = column_of, None
        self.start, self.step, self.waiting = local(0), local(0), local(False)

    def begin(self, matrices, count, steps):
        """Begin a pass, see :func:`late`."""
        self.matrices, self.count = matrices, count
        self.parts = self._parts()
        self.each = self.parts[0].whole()
        self.all = self.each * len(self.parts)
        self.at, self.burst = local(where(self.waiting, 0, self.all)), local(0)
        for _ in if_(self.waiting, likely=False):  # skip the division when nothing is pending
            self.burst.set((self.all + (steps - 1)) // steps)

    def some(self):
        """Stream some of the waiting lines."""
        for _ in if_(self.at < self.all, likely=False):
            first, last = now(self.at), self.at + self.burst
            for k, part in enumerate(self.parts):
                begin, end = (_between(x - k * self.each, self.each) for x in (first, last))
                for _ in if_(begin < end):
                    part.lines(begin, end)
            self.at.set(last)

    def rest(self):
        """Store what is left of the waiting results."""
        for _ in if_(self.waiting):
            for part in self.parts:
                part.ends()
            self.waiting.set(False)

    def leave(self, row):
        """Let the results of this pass wait if they are streamed; store them at once if caches hold them."""
        for name, numbers in self.matrices():
            column = getattr(row, name)
            for streamed in if_else(column.streamed):
                if streamed:
                    self.waiting.set(True)
                else:
                    Pieces(column, numbers, self.count).store()

    def flush(self):
        """Copy what waits."""
        for _ in if_(self.waiting) if self.matrices is not None else ():
            for part in self._parts():
                part.stream()
            self.waiting.set(False)

    def _parts(self):
        start, step = now(self.start), now(self.step)
        columns = [(self.column_of(name, start, step), numbers) for name, numbers in self.matrices()]
        return [Pieces(column, numbers, column.width) for column, numbers in columns]


class AtOnce:
    """Same interface as :class:`Late` where nothing is streamed, or there is no next pass."""

    waiting = False

    def __init__(self, matrices, count):
        self.matrices, self.count = matrices, count

    def some(self):
        """Do nothing: nothing waits."""

    rest = some

    def leave(self, row):
        """Copy the results."""
        for name, numbers in self.matrices():
            getattr(row, name).copy(numbers, self.count)


def late(row, matrices, count, steps):
    """Return the object that copies matrices to the results, streamed ones while the next rows are computed.

    ``matrices()`` are pairs: the name of a result, and where its numbers are in the workspace, ``count`` of them, all
    that a row has. Where these numbers are about to change, the recursion must have called ``some()`` ``steps`` times
    or oftener, and then ``rest()``; when they are there, it calls ``leave(row)``.
    """
    if tracing.builder is None or not getattr(row, "late", None):
        return AtOnce(matrices, count)
    row.late.begin(matrices, count, steps)
    return row.late


def _between(i, last):
    return where(i < 0, 0, where(i < last, i, last))


def _put(value, place):
    tracing.builder.store(value, tracing.builder.cast("bitcast", place, value.type.as_pointer()), align=8)
