"""Answers on their way from a workspace, where lanes lie side by side, to the rows of a caller's arrays.

Memory is what large answers wait for, so here stands all that spares it:

- Lanes become rows in registers, a *piece* at a time: as many numbers as there are lanes, of as many rows.
- Each number is looked at on its way, so that nobody need read the answers again to know whether they are finite.
- Answers larger than the caches are *streamed*: a line of 64 bytes that is written whole and past the cache need not be
  fetched from memory first. As rows begin anywhere within a line, each line is put together from two pieces. What is
  left at both ends of a row shares its line with other rows, and is stored as ever.
"""

from contextlib import contextmanager

from kfdyn.sweeps.control import either, loop, when
from kfdyn.sweeps.functions import declared
from kfdyn.sweeps.ir import INT, REAL, VOID, FunctionType, constant, vector
from kfdyn.sweeps.values import Place, Value, choice, ir_of, local, stack, wide

#: Numbers in a line of the cache.
LINE = 8

#: Numbers in the shortest row that is streamed: less is mostly ends.
SHORTEST = 8 * LINE

# Places of numbers among those of two pieces.
_PLACES = vector(INT, LINE)


def streams(lanes):
    """Whether lines can be streamed: where an instruction of AVX-512 puts together as much as a line holds."""
    from kfdyn.sweeps.driver import machine

    return lanes == LINE and "avx512f" in machine().has


def settle(streamed):
    """Have all that was streamed, if anything was, be seen before what is stored from now on."""
    for _ in when(streamed):
        Place.builder.call(declared("llvm.x86.sse.sfence", FunctionType(VOID, [])), [])


class Pieces:
    """The first ``count`` numbers of a workspace, on their way to a :class:`~kfdyn.sweeps.memory.Column`."""

    def __init__(self, column, numbers, count):
        self.column, self.numbers, self.count, self.lanes = column, numbers, count, column.lanes
        self.seen = None

    def copy(self):
        """Copy them all."""
        for enough in either(self.count >= self.lanes):
            if not enough:
                self._one_by_one()
                continue
            for streamed in either(self.column.streamed):
                if streamed:
                    self._lines()
                else:
                    self._squares()

    def _one_by_one(self):
        """Fewer numbers than lanes."""
        with self._looking():
            for i in loop(self.count):
                x = ir_of(self.numbers[i], wide(self.lanes))
                self._look([x])
                self.column.put(i, Value(x))

    def _squares(self):
        """Pieces as they are; the last one looks back at numbers already copied."""
        with self._looking():
            for i in loop(self.count, step=self.lanes):
                i = self._inside(i)
                for place, row in zip(self.column.places(i), self._transposed(i)):
                    _put(row, self.column.memory.part(place).data)

    def _lines(self):
        """Stream line k of each row, the one that begins in its piece k and ends in the next; then the ends."""
        build, numbers = Place.builder, wide(LINE)
        joined = declared("llvm.x86.avx512.vpermi2var.pd.512", FunctionType(numbers, [numbers, _PLACES, numbers]))
        lines = self.count // LINE - 1  # as many as there are whole pieces behind the first
        starts = [self._start(place) for place in self.column.places(0)]
        with self._looking():
            before = [local(Value(row)) for row in self._transposed(0)]
            for k in loop(lines):
                behind = self._transposed((k + 1) * LINE)
                for (row, _, places), one, other in zip(starts, before, behind):
                    line = build.call(joined, [one.ir, places, other], pure=True)
                    place = build.cast("bitcast", row.part(k * LINE).data, line.type.as_pointer())
                    to = f"{place.type} {place.name}, align {8 * LINE}, !nontemporal !{{i32 1}}"
                    build.line(f"store {line.type} {line.name}, {to}")
                    one.set(Value(other))
            self._ends(starts, lines)

    def _start(self, place):
        """Of a row, the memory from its first line on; how many numbers are before that; where a line's are in pieces.

        A line has the numbers offset, offset + 1, … of two pieces, one behind the other.
        """
        build, row = Place.builder, self.column.memory.part(place)
        address = Value(build.cast("ptrtoint", row.data, INT))
        offset = Value(ir_of(-(address // 8), INT)) & (LINE - 1)
        alike = build.insert_element(constant(_PLACES, None), offset.ir, 0)
        alike = build.shuffle_vector(alike, constant(_PLACES, None), [0] * LINE)
        counted = ", ".join(f"i64 {l}" for l in range(LINE))
        return row.part(offset), offset, build.pure(_PLACES, f"add {_PLACES} {alike.name}, <{counted}>")

    def _ends(self, starts, lines):
        """What of each row comes before its first line and behind its last: fewer numbers than two lines have."""
        build, waiting = Place.builder, stack(REAL, 3 * LINE)
        pieces = [self._transposed(i) for i in (0, self.count - 2 * LINE, self.count - LINE)]
        for l, (row, offset, _) in enumerate(starts):
            for at, piece in enumerate(pieces):
                _put(piece[l], build.gep(waiting, constant(INT, at * LINE)))
            rest = self.count - offset - lines * LINE
            for size, at, to in ((offset, 0, 0 - offset), (rest, 3 * LINE - rest, lines * LINE)):
                done = 0
                for part in (8, 4, 2, 1):
                    for _ in when((size & part) != 0):
                        _put(_get(build.gep(waiting, ir_of(at + done, INT)), part), row.part(to + done).data)
                    done = done + (size & part)

    def _inside(self, i):
        return choice(i > self.count - self.lanes, self.count - self.lanes, i)

    def _transposed(self, i):
        """Numbers i, i + 1, … of each row, by exchange of halves, quarters, …"""
        count, half, build = self.lanes, 1, Place.builder
        rows = [ir_of(self.numbers[i + j], wide(count)) for j in range(count)]
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
        """Look at what is copied here, if somebody wants to know.

        The sum is the loop's own, so that it has a register: one that lives longer may have none.
        """
        total = self.column.total
        if total is not None:
            self.seen = local(Value(constant(wide(self.lanes), 0.0)))
        yield
        if total is not None:
            total += self.seen
            self.seen = None

    def _look(self, numbers):
        """Add 0 for each number, or NaN where it is not finite."""
        if self.seen is None:
            return
        build, zero, flags = Place.builder, constant(numbers[0].type, 0.0), ("contract",)
        vanishing = build.real("fmul", numbers[0], zero, flags)
        for x in numbers[1:]:
            vanishing = build.real("fadd", build.real("fmul", x, zero, flags), vanishing, flags)
        self.seen += Value(vanishing)


def _put(value, place):
    Place.builder.store(value, Place.builder.cast("bitcast", place, value.type.as_pointer()), align=8)


def _get(place, count):
    kind = REAL if count == 1 else vector(REAL, count)
    return Place.builder.load(Place.builder.cast("bitcast", place, kind.as_pointer()), align=8)


__all__ = ["LINE", "Pieces", "settle", "streams"]
