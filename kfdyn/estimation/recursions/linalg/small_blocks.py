"""Rows of a small matrix as machine registers: the arithmetic of a node whose sizes are known while code is written.

A row of n numbers is cut into registers of 4, 2 and 1 numbers (6 = 4 + 2); left to the compiler, a row of 6 is done
number by number. All is made of combinations of rows,

    out_i = base_i + Σ_l c_il B_l ,

with c a number that is broadcast and B_l a row in registers: no horizontal sums, and a transposed C costs nothing. A
number that is to be broadcast is loaded from memory, where that is free. Python's own numbers are rows of single ones.
"""

from functools import reduce
from operator import add

from kfdyn.sweeps.trace_context import LANEWISE, arithmetic, tracing
from kfdyn.sweeps.values import from_lanes, lane


def pieces(n):
    """(start, width) of the registers that hold a row of n numbers."""
    start, found = 0, []
    for width in (4, 2, 1) if tracing.builder is not None else (1,):
        while n - start >= width:
            found.append((start, width))
            start += width
    return found


class Row:
    """A row in registers."""

    def __init__(self, registers):
        self.registers = registers

    @classmethod
    def load(cls, memory, start, n):
        """The n numbers of memory from ``start`` on."""
        return cls([memory.part(start + at).lanes(width)[0] for at, width in pieces(n)])

    @classmethod
    def of(cls, numbers):
        """A row made of single numbers."""
        return cls(
            [from_lanes(numbers[at : at + width]) if width > 1 else numbers[at] for at, width in pieces(len(numbers))]
        )

    def store(self, memory, start):
        """Write it to memory from ``start`` on."""
        for (at, width), register in zip(pieces(len(self)), self.registers):
            memory.part(start + at).lanes(width)[0] = register

    def __len__(self):
        return sum(map(_width, self.registers))

    def numbers(self):
        """Its numbers, one by one."""
        return [lane(register, l) for register in self.registers for l in range(_width(register))]

    def reaching(self, count):
        """The registers that hold the first ``count`` numbers."""
        return Row([register for (at, _), register in zip(pieces(len(self)), self.registers) if at < count])

    def __add__(self, other):
        return Row([a + b for a, b in zip(self.registers, other.registers)])

    def __sub__(self, other):
        return Row([a - b for a, b in zip(self.registers, other.registers)])

    def __rmul__(self, number):
        return Row([number * register for register in self.registers])

    def dot(self, other):
        """The sum of products, number by number: registers of one width are added, then the halves of their sum."""
        half, products = None, [a * b for a, b in zip(self.registers, other.registers)]
        for width in (4, 2, 1):
            alike = [x for x in products if _width(x) == width] + ([] if half is None else [half])
            if not alike:
                continue
            half = reduce(add, alike)
            if width > 1:
                given = Row([half]).numbers()
                low, high = (from_lanes(part) for part in (given[: width // 2], given[width // 2 :]))
                half = low + high
        return half


def shuffled(a, b, places):
    """The numbers of two registers at these places, those of the second counted behind the first's."""
    return tracing.builder.shuffle_vector(a.ir, b.ir, places)


def _width(register):
    kind = getattr(getattr(register, "ir", None), "type", None)
    return getattr(kind, "count", 1)


def turned(given, count):
    """Transpose registers: the first result has the first number of each of those given, and so on."""
    if not len(given) == count == 4:
        return [from_lanes([lane(x, l) for x in given]) for l in range(count)]
    a, b, c, d = given
    pairs = [shuffled(x, y, places) for x, y in ((a, b), (c, d)) for places in ((0, 4, 2, 6), (1, 5, 3, 7))]
    return [shuffled(*pairs[first::2], places) for places in ((0, 1, 4, 5), (2, 3, 6, 7)) for first in (0, 1)]


def exact_pair(a, x, b, y):
    """Rows a x + b y with both products rounded, so that a swap of the two changes nothing."""
    with arithmetic(()):
        return a * x + b * y


def combination(factors, rows):
    """Σ_l c_l B_l in two chains, which halves the wait for one sum to enter the next."""
    terms = [number * row for number, row in zip(factors, rows)]
    return reduce(add, [reduce(add, terms[first::2]) for first in (0, 1) if terms[first:]])


def mirrored(rows):
    """Full rows of the symmetric matrix whose lower triangle is given."""
    given = [row.numbers() for row in rows]
    n = len(rows)
    return [Row.of([given[max(i, j)][min(i, j)] for j in range(n)]) for i in range(n)]


@arithmetic(LANEWISE)
def multiply(out, A, B, base=None, sign=1.0, symmetric=False):
    """out = base ± A B, ``base`` None for zero; where ``symmetric``, its lower triangle, which is mirrored.

    Everything is read before anything is written.
    """
    given, rows = [B.row(l) for l in range(B.shape[0])], []
    for i in range(out.shape[0]):
        count = i + 1 if symmetric else out.shape[1]
        row = sign * combination(A.numbers(i), [row.reaching(count) for row in given])
        rows.append(row if base is None else base.row(i).reaching(count) + row)
    out.set_rows(mirrored(rows) if symmetric else rows)


@arithmetic(LANEWISE)
def turn(out, A):
    """out = A*."""
    rows = [A.row(i).numbers() for i in range(A.shape[0])]
    out.set_rows([Row.of([row[i] for row in rows]) for i in range(A.shape[1])])
