"""Small dense algebra in memory: the arithmetic of one node.

A :class:`Block` is a matrix of a node, a :class:`Column` a vector. Where their sizes are *known* while code is written,
rows go into registers (:mod:`small_blocks`); large ones are *tiled* (:mod:`tiles`); else plain loops are written: one
algorithm, three kernels.
"""

from kfdyn.estimation.recursions.linalg import small_blocks, tiles
from kfdyn.estimation.recursions.linalg.small_blocks import Row, combination, exact_pair, mirrored
from kfdyn.sweeps.control_flow import if_else, loop
from kfdyn.sweeps.trace_context import FAST, IN_ORDER, LANEWISE, arithmetic
from kfdyn.sweeps.values import broadcast, unboxed, where
from kfdyn.sweeps.variables import local


class Block:
    """A matrix (rows, columns) in memory, row by row, from ``start`` of a flat buffer on.

    It is a right factor as it stands where it is ``by_rows``; in plain loops a sum runs along rows of its transpose.
    """

    def __init__(self, flat, start, rows, columns, known=False, tiled=False):
        self.memory, self.known, self.tiled = flat.matrix(start, rows, columns), known, tiled
        self.by_rows = known or tiled
        self.shape = (unboxed(rows), unboxed(columns))
        self.count = flat.count

    def __getitem__(self, place):
        return self.memory[place]

    def __setitem__(self, place, value):
        self.memory[place] = value

    def row(self, i):
        """Row i in small_blocks."""
        return Row.load(self.memory, i * self.shape[1], self.shape[1])

    def set_rows(self, rows):
        """Write all rows."""
        for i, row in enumerate(rows):
            row.store(self.memory, i * self.shape[1])

    def numbers(self, i):
        """The numbers of row i, each loaded alone."""
        return [self.memory[i, j] for j in range(self.shape[1])]

    def column(self, j):
        """The numbers of column j, each loaded alone."""
        return [self.memory[i, j] for i in range(self.shape[0])]

    @property
    def place(self):
        """The address of its first number."""
        return self.memory.part(0)

    def line(self, i):
        """Row i as a vector."""
        return Column(self.memory, i * self.shape[1], self.shape[1], self.known)

    def clear(self):
        """All becomes 0."""
        for i in loop(self.shape[0]):
            for j in loop(self.shape[1]):
                self[i, j] = 0.0

    def copy(self, A):
        """Take the numbers of A."""
        for i in loop(self.shape[0]):
            for j in loop(self.shape[1]):
                self[i, j] = A[i, j]

    def subtract(self, A):
        """Less A."""
        for i in loop(self.shape[0]):
            for j in loop(self.shape[1]):
                self[i, j] = self[i, j] - A[i, j]


class Turned:
    """The transpose of a matrix, as one looks at it."""

    def __init__(self, A):
        self.A, self.shape = A, (A.shape[1], A.shape[0])

    @property
    def count(self):
        """The number of lanes of each number."""
        return self.A.count

    def __getitem__(self, place):
        return self.A[place[1], place[0]]

    def __setitem__(self, place, value):
        self.A[place[1], place[0]] = value

    def numbers(self, i):
        """The numbers of row i, each loaded alone."""
        return self.A.column(i)


class Identity:
    """1, of any size."""

    count = 1

    def __getitem__(self, place):
        return where(place[0] == place[1], 1.0, 0.0)


class Column:
    """A vector of so many numbers in memory."""

    def __init__(self, flat, start, size, known=False):
        self.memory, self.size, self.known = flat.part(start, size), unboxed(size), known
        self.count = flat.count

    def __getitem__(self, i):
        return self.memory[i]

    def __setitem__(self, i, value):
        self.memory[i] = value

    def clear(self):
        """All becomes 0."""
        for i in loop(self.size):
            self[i] = 0.0

    def keep(self, condition):
        """All becomes 0 in lanes where the condition does not hold; a number alone is asked for where it does."""
        if self.count > 1:
            for i in loop(self.size):
                self[i] = where(condition, self[i], 0.0)

    def row(self):
        """All in small_blocks."""
        return Row.load(self.memory, 0, self.size)

    def set_row(self, row):
        """Write all."""
        row.store(self.memory, 0)

    def numbers(self):
        """Its numbers, each loaded alone."""
        return [self.memory[i] for i in range(self.size)]


def nothing(*factors):
    """A variable that is 0 at first, in as many lanes as the factors of a sum have."""
    lanes = max(factor.count for factor in factors)
    return local(0.0 if lanes == 1 else broadcast(0.0, lanes))


@arithmetic(FAST)
def combine(y, x, A):
    """y = A* x: the rows of A combined, which for a symmetric A is A x."""
    if A.known:
        with arithmetic(LANEWISE):
            y.set_row(combination(x.numbers(), [A.row(l) for l in range(A.shape[0])]))
        return
    r, n = A.shape
    for wide in if_else(n >= tiles.PANEL) if max(x.count, A.count) == 1 else (False,):
        if wide:  # along rows of memory
            y.clear()
            for i in loop(r):
                add_scaled(y, y, x[i], A.line(i))
            continue
        for j in loop(n):
            s = nothing(x, A)
            for i in loop(r):
                s += x[i] * A[i, j]
            y[j] = s


@arithmetic(FAST)
def dot(x, y):
    """x* y."""
    if x.known and y.known:
        with arithmetic(LANEWISE):
            return x.row().dot(y.row())
    s = nothing(x, y)
    for i in loop(y.size):
        s += x[i] * y[i]
    return s


@arithmetic(IN_ORDER)
def add_scaled(y, base, c, x):
    """y = base + c x; ``base`` None stands for zero."""
    if y.known:
        row = c * x.row()
        y.set_row(row if base is None else base.row() + row)
        return
    for i in loop(y.size):
        y[i] = c * x[i] if base is None else base[i] + c * x[i]


@arithmetic(IN_ORDER)
def subtract_outer(out, base, x, y):
    """out = base − x y*, known to be symmetric: its lower triangle is computed and mirrored."""
    if out.known:
        row = y.row()
        out.set_rows(mirrored([base.row(i) - c * row for i, c in enumerate(x.numbers())]))
        return
    for i in loop(x.size):
        c = x[i]
        for j in loop(i + 1):
            out[i, j] = base[i, j] - c * y[j]
    reflect(out)


def reflect(S):
    """The upper triangle of S becomes that of the lower one: by tiles where a column is long."""
    n = S.shape[0]
    for tiled in if_else(n >= tiles.PANEL) if S.count == 1 else (False,):
        if tiled:
            tiles.mirror(S.place, n)
            continue
        for i in loop(n):
            for j in loop(i):
                S[j, i] = S[i, j]


@arithmetic(IN_ORDER)
def outer_sum(out, share, base, scale, x, y):
    """out = share · base + scale · x y*; ``share`` None stands for 1."""
    if out.known:
        row = y.row()
        for i, c in enumerate(x.numbers()):
            before = base.row(i) if share is None else share * base.row(i)
            (before + (scale * c) * row).store(out.memory, i * out.shape[1])
        return
    for i in loop(x.size):
        c = scale * x[i]
        for j in loop(y.size):
            out[i, j] = (base[i, j] if share is None else share * base[i, j]) + c * y[j]


@arithmetic(IN_ORDER)
def subtract_pair(S, x, y):
    """S −= x y* + y x*, exactly symmetric where S was: the two products are rounded alike."""
    if S.known:
        x_row, y_row = x.row(), y.row()
        pairs = zip(x.numbers(), y.numbers())
        S.set_rows([S.row(i) - exact_pair(a, y_row, b, x_row) for i, (a, b) in enumerate(pairs)])
        return
    for i in loop(x.size):
        for j in loop(i + 1):
            s = S[i, j] - (x[i] * y[j] + y[i] * x[j])
            S[i, j] = s
            S[j, i] = s


def multiply(out, A, B, base=None, sign=1.0, symmetric=False, lower=False):
    """out = base ± A B, ``base`` None for zero; where ``symmetric``, its lower triangle, which is mirrored.

    By tiles ``lower`` leaves it at that triangle. A sum is fast where it runs along rows of memory in A and in B*: so
    callers say Turned(S) of a symmetric S.
    """
    if all(getattr(block, "known", False) and isinstance(block.shape[0], int) for block in (out, B)):
        small_blocks.multiply(out, A, B, base, sign, symmetric)
        return
    if getattr(out, "tiled", False):
        _multiply_tiled(out, A, B, base, sign, symmetric, lower)
        return
    if max(A.count, B.count) > 1:
        _multiply_in_lanes(out, A, B, base, sign, symmetric)
        return
    for i in loop(A.shape[0]):
        for j in loop(i + 1 if symmetric else B.shape[1]):
            s = nothing(A, B) if base is None else local(base[i, j])
            for l in loop(A.shape[1]):
                s.set(s + A[i, l] * B[l, j] if sign > 0 else s - A[i, l] * B[l, j])
            out[i, j] = s
            if symmetric:
                out[j, i] = s


def _multiply_in_lanes(out, A, B, base, sign, symmetric):
    """The same in lanes, four sums at a time: to load what fills a register takes as long as to multiply it."""
    (rows, cols), count = out.shape, A.shape[1]

    def some(i, j, height, width, lower=False):
        sums = {}
        for place in ((a, b) for a in range(height) for b in range(width)):
            at = i + place[0], j + place[1]
            sums[place] = nothing(A, B) if base is None else local(broadcast(base[at], max(A.count, B.count)))
        for l in loop(count):
            left, right = [A[i + a, l] for a in range(height)], [B[l, j + b] for b in range(width)]
            for (a, b), s in sums.items():
                s.set(s + left[a] * right[b] if sign > 0 else s - left[a] * right[b])
        for (a, b), s in sums.items():
            if not lower or b <= a:
                out[i + a, j + b] = s
                if symmetric:
                    out[j + b, i + a] = s

    def along(i, height):
        end = i if symmetric else cols
        for j in loop(end - end % 2, step=2):
            some(i, j, height, 2)
        if symmetric:  # i is even
            some(i, i, height, height, lower=True)
            return
        for j in loop(cols, cols - cols % 2):
            some(i, j, height, 1)

    for i in loop(rows - rows % 2, step=2):
        along(i, 2)
    for i in loop(rows, rows - rows % 2):
        along(i, 1)


def _multiply_tiled(out, A, B, base, sign, symmetric, lower):
    """The same by tiles; A may be turned, B may not."""
    (rows, count), (_, cols) = A.shape, B.shape
    turned_A = isinstance(A, Turned)
    left, steps = (A.A, (1, rows)) if turned_A else (A, (count, 1))
    before = out if base is None else base
    tiles.product(
        out.place, before.place, cols, int(base is not None), float(sign), left.place, *steps, B.place, cols,
        rows, cols, count, int(symmetric or lower),
    )  # fmt: skip
    if symmetric:
        tiles.mirror(out.place, rows)


def by_rows(S):
    """A symmetric S as a right factor: in registers and tiles its rows are combined, in loops a sum runs along them."""
    return S if S.by_rows else Turned(S)


@arithmetic(FAST)
def add_congruence(out, A, S, work):
    """out += A S A* for A (r, n), symmetric S (n, n), out kept exactly symmetric. About 3rn² flops.

    ``work`` is for 2rn numbers.
    """
    r, n = A.shape
    half, back = Block(work, 0, r, n, A.known, A.tiled), Turned(A)
    if A.by_rows:
        back = Block(work, r * n, n, r, A.known, A.tiled)
        turn(back, A)  # waits for nothing, so it costs no time while S is on its way
    multiply(half, A, by_rows(S))
    multiply(out, half, back, base=out, symmetric=True)


@arithmetic(FAST)
def transposed_congruence(out, A, S, work):
    """out = A* S A for A (r, n), symmetric S (r, r), exactly symmetric; returns A* S. ``work`` is for 2rn numbers."""
    r, n = A.shape
    half, back = Block(work, 0, n, r, A.known, A.tiled), turned(A, work.part(n * r))
    multiply(half, back, by_rows(S))
    multiply(out, half, A if A.by_rows else Turned(back), symmetric=True)
    return half


@arithmetic(FAST)
def negative_product(out, half, P, work):
    """out = −half* P for half (n, r), symmetric P (n, n); ``work`` is for rn numbers."""
    multiply(out, turned(half, work), by_rows(P), sign=-1.0)


def turn(out, A):
    """out = A*, in registers or by tiles."""
    if A.known:
        small_blocks.turn(out, A)
    else:
        tiles.turn(out.place, A.place, *A.shape)


def turned(A, work):
    """A*; in loops a copy of it, so that every sum runs along two rows: that is five times as fast where n is 13."""
    if A.by_rows:
        return Turned(A)
    copied = Block(work, 0, A.shape[1], A.shape[0])
    copied.copy(Turned(A))
    return copied


@arithmetic(FAST)
def subtract_congruence(out, P, S, work):
    """out = P − P S P for symmetric P and S (n, n), exactly symmetric; ``work`` is for 2n² numbers."""
    n = P.shape[0]
    if P.by_rows:
        half = Block(work, 0, n, n, P.known, P.tiled)
        multiply(half, S, P)
        multiply(out, P, half, base=P, sign=-1.0, symmetric=True)
        return
    half = Block(work, 0, n, n)
    multiply(half, P, Turned(S))
    multiply(out, half, Turned(P), base=P, sign=-1.0, symmetric=True)
