"""Numbers in memory: unchecked indices in compiled code, checked ones in Python."""

from typing import Any, NamedTuple

from kfdyn.sweeps.batch.streaming_store import LINE, Pieces
from kfdyn.sweeps.compiler.ir import BIT, BYTE, INT, REAL
from kfdyn.sweeps.control_flow import loop
from kfdyn.sweeps.trace_context import settled, tracing
from kfdyn.sweeps.values import broadcast, from_lanes, ir_of, lane, now, unboxed, vanishing, where, wide

# What takes integers and no other numbers.
_WHOLE = ("int64", "bool")


class Memory:
    """Base of all memory; refuses what lists can do and compiled code cannot.

    ``name`` is what the caller calls it, and where he does not want it ``changeable``, it is not. Each number has
    ``count`` lanes.
    """

    name, changeable, count = "this array", True, 1

    def change(self):
        """Refuse memory that is read-only."""
        if not self.changeable:
            raise TypeError(f"{self.name} is read-only, and this function changes it: pass a copy of it")

    def __iter__(self):
        raise TypeError(f"{self.name} is run through by its indices: for i in loop(x.size), and then x[i]")

    def __len__(self):
        raise TypeError(f"{self.name} has no len(...): x.size, of a matrix x.shape, says how many numbers there are")

    def __bool__(self):
        return True

    def __array_ufunc__(self, ufunc, *args, **more):
        raise TypeError(f"NumPy's {ufunc.__name__} takes no memory of a sweep: take number after number, x[i]")


def _counted(i, name):
    """Refuse an index known to be negative: memory has no end to count from."""
    if isinstance(i, int) and i < 0:
        raise IndexError(f"{i} is no place in {name}: indices are counted from 0 on, not from the end")


class Vector(Memory):
    """Numbers in memory, each with its lanes side by side; ``size`` of them if that is known."""

    def __init__(self, data, size=None, lanes=1):
        self.data, self.size, self.count = data, size, lanes
        self.kind = data.type.pointee if lanes == 1 else wide(lanes)
        self._align = None if lanes == 1 else 8

    def __getitem__(self, i):
        value = tracing.builder.load(self._at(i), self._align)
        return tracing.builder.cast("trunc", value, BIT) if self.kind is BYTE else value

    def __setitem__(self, i, value):
        self.change()
        tracing.builder.store(ir_of(value, self.kind), self._at(i), self._align)

    def _at(self, i):
        place = self.part(i).data
        return place if self.count == 1 else tracing.builder.cast("bitcast", place, self.kind.as_pointer())

    def part(self, start, size=None):
        """Return the numbers from ``start`` on."""
        _counted(start, self.name)
        place = tracing.builder.gep(self.data, ir_of(start * self.count, INT))
        return self._with(Vector(place, size, self.count))

    def matrix(self, start, rows, columns):
        """Return the numbers from ``start`` on as a matrix (rows, columns)."""
        return Matrix(self.part(start), (rows, columns))

    def lanes(self, count):
        """Return the same memory as numbers with so many lanes."""
        return self._with(Vector(self.data, None, count))

    def _with(self, part):
        """Give a part the name and the rights of the whole."""
        if not self.changeable:
            part.changeable = False
        if "name" in vars(self):
            part.name = self.name
        return part

    def number(self, i):
        """Return a number that is the same in all lanes."""
        return self.lanes(1)[i * self.count]

    def aligned(self):
        """Return the memory from its first cache line on: loads across two lines take twice as long."""
        address = tracing.builder.cast("ptrtoint", self.data, INT)
        return pointer((address + (8 * LINE - 1)) & (-8 * LINE))


class Checked(Memory):
    """Numbers of an array or a list of Python; an index outside is an error, −1 included.

    While straight-line code is written, a list holds its values: what is put there stays in registers.
    """

    def __init__(self, numbers, start=0, size=None, depth=None):
        self.numbers, self.start, self.size = numbers, start, len(numbers) if size is None else size
        self.depth = tracing.depth if depth is None else depth

    def _at(self, i):
        i = unboxed(i)
        if isinstance(i, float):
            raise TypeError(f"{i} is not an index")
        if not 0 <= i < self.size:
            raise IndexError(f"{i} is not in {self.size} numbers")
        return self.start + i

    def __getitem__(self, i):
        value = self.numbers[self._at(i)]
        return value.item() if hasattr(value, "item") else value

    def __setitem__(self, i, value):
        settled(self.depth)
        self.change()
        value = now(value)
        if isinstance(value, float) and getattr(self.numbers, "dtype", None) in _WHOLE:
            raise TypeError(f"{value} is not an index, and cannot be put into an array of {self.numbers.dtype}")
        self.numbers[self._at(i)] = value

    def part(self, start, size=None):
        """Return the numbers from ``start`` on."""
        start, size = unboxed(start), unboxed(size)
        inside = self.size - start if size is None else size
        if start < 0 or inside < 0 or start + inside > self.size:
            raise IndexError(f"{inside} numbers from {start} on are not in {self.size}")
        part = Checked(self.numbers, self.start + start, inside, self.depth)
        part.changeable, part.name = self.changeable, self.name
        return part

    def matrix(self, start, rows, columns):
        """Return the numbers from ``start`` on as a matrix (rows, columns)."""
        rows, columns = unboxed(rows), unboxed(columns)
        return Matrix(self.part(start, rows * columns), (rows, columns))

    def lanes(self, count):
        """Return itself: Python's numbers have one lane."""
        if count != 1:
            raise ValueError(f"Python's numbers have one lane, not {count}: run the recursion with Tag(1)")
        return self

    def aligned(self):
        """Return itself."""
        return self


class Matrix(Memory):
    """Numbers in memory as a matrix, row by row."""

    def __init__(self, vector, shape):
        self.vector, self.shape = vector, shape

    @property
    def name(self):
        """Name of the array in error messages."""
        return self.vector.name

    @property
    def count(self):
        """Number of lanes of each number."""
        return self.vector.count

    def _row(self, i):
        _counted(i, self.vector.name)
        return self.vector.part(i * self.shape[1], self.shape[1])

    def __getitem__(self, place):
        i, j = _both(place)
        return self._row(i)[j]

    def __setitem__(self, place, value):
        i, j = _both(place)
        self._row(i)[j] = value

    def part(self, start, size=None):
        """Return the numbers from ``start`` on, row after row."""
        return self.vector.part(start, size)

    def matrix(self, start, rows, columns):
        """Return the numbers from ``start`` on as a matrix (rows, columns)."""
        return self.vector.matrix(start, rows, columns)


def _both(place):
    """Return row and column."""
    if not isinstance(place, tuple):
        raise TypeError("a matrix has numbers x[i, j]; row i of it is x.part(i * x.shape[1])")
    return place


class Result(NamedTuple):
    """A column's knowledge of its result array.

    ``width`` is how many numbers a row has; ``streamed``, whether all rows are more than caches hold; and ``total`` a
    variable that stays 0 as long as what is written is finite, None where somebody else looks at it.
    """

    width: Any = None
    streamed: Any = False
    total: Any = None


_NONE = Result()


class Column(Memory):
    """Numbers of the caller's rows: lane l of number i is element i of row l, rows ``step`` apart."""

    given = True

    def __init__(self, memory, at, step, lanes, result=_NONE):
        self.memory, self.at, self.step, self.lanes = memory, at, step, lanes
        self.width, self.streamed, self.total = result

    @property
    def name(self):
        """Name of the array in error messages."""
        return self.memory.name

    def __getitem__(self, i):
        if self.lanes == 1:
            return self.memory[self.at + i]
        return from_lanes([self.memory[place] for place in self.places(i)])

    def __setitem__(self, i, value):
        value = broadcast(value, self.lanes)
        if self.total is not None:
            self.total += vanishing(value)
        self.put(i, value)

    def put(self, i, value):
        """Set number i to one that was checked already."""
        for l, place in enumerate(self.places(i)):
            self.memory[place] = lane(value, l)

    def places(self, i):
        """Return where number i of each lane's row is."""
        places = [self.at + i]
        for _ in range(self.lanes - 1):
            places.append(places[-1] + self.step)
        return places

    def part(self, start):
        """Return the numbers from ``start`` on."""
        return Column(self.memory, self.at + start, self.step, self.lanes, Result(total=self.total))

    def copy(self, numbers, count):
        """Set the first ``count`` numbers to those of a workspace; as many at a time as there are lanes."""
        if self.lanes > 1:
            Pieces(self, numbers, count).copy()
            return
        for i in loop(count):
            self[i] = numbers[i]


def passes(lanes, first, last):
    """Loop over the rows first … last, one in each lane; yield the first lane's row and the step between lanes.

    The last lanes look back at rows already done, which costs nothing and changes nothing; where there are fewer rows
    than lanes, all lanes are one row. So one state runs the same machine code as many, and gets the same bits.
    """
    if lanes == 1:
        for row in loop(last, first):
            yield row, 1
        return
    enough = last - first >= lanes
    for row in loop(last, first, step=where(enough, lanes, 1)):
        beyond = row + lanes > last
        yield where(enough, where(beyond, last - lanes, row), row), where(enough, 1, 0)


def clear(numbers, count):
    """Set the first numbers of a workspace to 0."""
    for i in loop(count):
        numbers[i] = 0.0


def pointer(address, kind=REAL):
    """Return the memory at an address."""
    return Vector(tracing.builder.cast("inttoptr", ir_of(address, INT), kind.as_pointer()))
