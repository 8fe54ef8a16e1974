"""Rows of a small matrix as machine registers: how the code of :mod:`rows` is emitted.

A row of n numbers is cut into registers of 4, 2 and 1 numbers (6 = 4 + 2); left to the compiler, a row of 6 is done
number by number.
"""

from functools import partial, reduce

from llvmlite import ir

_CONTRACT = ("contract", "nsz")
_INDEX = ir.IntType(32)


def pieces(n):
    """(start, width) of the registers that hold a row of n numbers."""
    start, found = 0, []
    for width in (4, 2, 1):
        while n - start >= width:
            found.append((start, width))
            start += width
    return found


def pieces_of(row):
    """(start, width) of the registers of a row."""
    return pieces(sum(piece.type.count if isinstance(piece.type, ir.VectorType) else 1 for piece in row))


class Matrix:
    """The numbers behind a pointer, row by row, as values of the function under construction."""

    def __init__(self, builder, data, n):
        self.builder, self.data, self.n = builder, data, n

    def _place(self, at, width):
        place = self.builder.gep(self.data, [ir.Constant(ir.IntType(64), at)])
        if width == 1:
            return place
        return self.builder.bitcast(place, ir.VectorType(ir.DoubleType(), width).as_pointer())

    def numbers(self, first, count, step=1):
        """Single numbers, each a load of its own: a load that broadcasts is free."""
        return [self.builder.load(self._place(first + i * step, 1), align=8) for i in range(count)]

    def row(self, i):
        """Row i as registers."""
        return [self.builder.load(self._place(i * self.n + start, width), align=8) for start, width in pieces(self.n)]

    def set_row(self, i, row):
        """Write row i."""
        for (start, width), piece in zip(pieces(self.n), row):
            self.builder.store(piece, self._place(i * self.n + start, width), align=8)


def splat(builder, value, like):
    """A number in every place of a register like the given one."""
    if not isinstance(like.type, ir.VectorType):
        return value
    bottom = ir.Constant(like.type, ir.Undefined)
    mask = ir.Constant(ir.VectorType(_INDEX, like.type.count), [0] * like.type.count)
    return builder.shuffle_vector(builder.insert_element(bottom, value, ir.Constant(_INDEX, 0)), bottom, mask)


def times(builder, number, row):
    """A number times a row."""
    return [builder.fmul(splat(builder, number, piece), piece, flags=_CONTRACT) for piece in row]


def plus(builder, left, right):
    """The sum of two rows."""
    return [builder.fadd(a, b, flags=_CONTRACT) for a, b in zip(left, right)]


def minus(builder, left, right):
    """The difference of two rows."""
    return [builder.fsub(a, b, flags=_CONTRACT) for a, b in zip(left, right)]


def product(builder, left, right):
    """Two rows multiplied number by number."""
    return [builder.fmul(a, b, flags=_CONTRACT) for a, b in zip(left, right)]


def total(builder, row):
    """The sum of a row's numbers: registers of one width are added, then the halves of their sum."""
    widths = [width for _, width in pieces_of(row)]
    half = None
    for width in (4, 2, 1):
        alike = [piece for piece, its in zip(row, widths) if its == width] + ([] if half is None else [half])
        if not alike:
            continue
        half = reduce(lambda a, b: builder.fadd(a, b, flags=_CONTRACT), alike)
        if width > 1:
            given = numbers(builder, [half])
            low, high = (from_numbers(builder, part)[0] for part in (given[: width // 2], given[width // 2 :]))
            half = builder.fadd(low, high, flags=_CONTRACT)
    return half


def exact_pair(builder, a, x, b, y):
    """a x + b y with both products rounded, so that a swap of the two changes nothing."""
    return [
        builder.fadd(builder.fmul(splat(builder, a, left), left), builder.fmul(splat(builder, b, right), right))
        for left, right in zip(x, y)
    ]


def combination(builder, factors, rows):
    """Σ_l c_l B_l in two chains, which halves the wait for one sum to enter the next."""
    terms = [times(builder, number, row) for number, row in zip(factors, rows)]
    add = partial(plus, builder)
    return reduce(add, [reduce(add, terms[first::2]) for first in (0, 1) if terms[first:]])


def numbers(builder, row):
    """The numbers of a row, one by one."""
    out = []
    for piece in row:
        if isinstance(piece.type, ir.VectorType):
            out += [builder.extract_element(piece, ir.Constant(_INDEX, i)) for i in range(piece.type.count)]
        else:
            out.append(piece)
    return out


def from_numbers(builder, given):
    """A row made of single numbers."""
    row = []
    for start, width in pieces(len(given)):
        if width == 1:
            row.append(given[start])
            continue
        piece = ir.Constant(ir.VectorType(ir.DoubleType(), width), ir.Undefined)
        for i in range(width):
            piece = builder.insert_element(piece, given[start + i], ir.Constant(_INDEX, i))
        row.append(piece)
    return row


def mirrored(builder, n, rows):
    """Full rows of the symmetric matrix whose lower triangle is given."""
    given = [numbers(builder, row) for row in rows]
    return [from_numbers(builder, [given[max(i, j)][min(i, j)] for j in range(n)]) for i in range(n)]
