"""Products and triangular solutions of larger matrices by tiles: the third kernel, where sizes are of twenty and more.

A tile is some rows by up to three machine vectors of a result, which stay in registers while a whole sum runs; each
number of the left factor meets three registers of the right one. Every number is one chain of fused products, in the
order of its sum: its bits depend on no tile and on no thread.

All memory is row by row. The left factor is taken by two strides, so its transpose costs nothing; the right one is
taken as it lies. The last vector of a row lies back over what is done already and leaves that alone, so that nothing
outside a matrix is read.
"""

from kfdyn.estimation.recursions.linalg.small_blocks import turned
from kfdyn.sweeps.compiler.ir import INT, vector
from kfdyn.sweeps.control_flow import down, if_, if_else, loop, switch
from kfdyn.sweeps.functions import fma, sqrt
from kfdyn.sweeps.routine import routine
from kfdyn.sweeps.trace_context import IN_ORDER, arithmetic, tracing
from kfdyn.sweeps.values import constant, ir_of, not_, now, number, where
from kfdyn.sweeps.variables import local

#: Vectors of a tile side by side.
_ACROSS = 3
#: Rows of a factor that are solved for together.
PANEL = 8


def width():
    """Doubles of a machine vector."""
    return 1 if tracing.builder is None else tracing.machine.register


def height():
    """Rows of a tile: with three vectors across, what 32 or 16 registers hold."""
    if tracing.builder is None:
        return PANEL
    return 8 if tracing.machine.register == 8 or tracing.machine.is_arm else 4


def least(a, b):
    """The smaller of two indices."""
    return where(a < b, a, b)


def before(count, lanes):
    """The condition that a lane is one of the first ``count``."""
    if tracing.builder is None:
        return count > 0
    kind = vector(INT, lanes)
    return tracing.builder.compare(
        "<", constant(kind, tuple(range(lanes))), tracing.builder.in_all_lanes(ir_of(count, INT), kind)
    )


def zero(lanes):
    """0 in every lane."""
    return 0.0 if tracing.builder is None else number(0.0, lanes)


def starts(j, last, count, lanes):
    """Return the starts of ``count`` vectors from column j to ``last``, and how much the last of them repeats."""
    behind = j + (count - 1) * lanes
    back = least(behind, last - lanes)
    return [j + v * lanes for v in range(count - 1)] + [back], behind - back


@routine
def product(out, base, step, based, sign, A, down_A, along_A, B, step_B, rows, cols, count, lower):
    """out = base ± A B for A (rows, count), B (count, cols); out and base have rows ``step`` apart, and may be one.

    A_il lies at ``i down_A + l along_A``. Without ``based`` base is 0, with ``lower`` only the lower triangle is right.
    """
    lanes, most = width(), height()
    for narrow in if_else(cols < lanes):
        if narrow:
            _narrow(out, base, step, based, sign, A, down_A, along_A, B, step_B, rows, cols, count)
            continue
        for i in loop(rows, step=most):
            last = where(lower != 0, least(cols, i + most), cols)
            for few in if_else(rows - i <= most // 2):
                here = most // 2 if few else most
                for j in loop(last, step=_ACROSS * lanes):
                    for across in switch((last - j + (lanes - 1)) // lanes, tuple(range(1, _ACROSS + 1))):
                        columns, done = starts(j, last, across, lanes)
                        lines = [where(i + a < rows, i + a, rows - 1) * down_A for a in range(here)]
                        sums = _sums(A, lines, along_A, B, columns, step_B, count, lanes)
                        for a in range(here):
                            for _ in if_(i + a < rows):
                                for v, at in enumerate(columns):
                                    place = (i + a) * step + at
                                    old = where(based != 0, base.part(place).lanes(lanes)[0], zero(lanes))
                                    new = fma(sign, sums[a][v], old)
                                    if v == across - 1:
                                        new = where(before(done, lanes), out.part(place).lanes(lanes)[0], new)
                                    out.part(place).lanes(lanes)[0] = new


def _sums(A, lines, along, B, columns, step, count, lanes):
    """Σ_l A_il B_lj of a tile, in registers."""
    sums = [[local(zero(lanes)) for _ in columns] for _ in lines]
    for l in loop(count):
        given = [B.part(column + l * step).lanes(lanes)[0] for column in columns]
        for line, row in zip(lines, sums):
            x = A[line + l * along]
            for s, y in zip(row, given):
                s.set(fma(x, y, s))
    return [[now(s) for s in row] for row in sums]


def _narrow(out, base, step, based, sign, A, down_A, along_A, B, step_B, rows, cols, count):
    """The same for fewer columns than a vector has lanes."""
    for i in loop(rows):
        for j in loop(cols):
            s = local(0.0)
            for l in loop(count):
                s.set(fma(A[i * down_A + l * along_A], B[l * step_B + j], s))
            out[i * step + j] = fma(sign, s, where(based != 0, base[i * step + j], 0.0))


@routine
def mirror(S, n):
    """The upper triangle of S (n, n) becomes that of the lower one."""
    side = 1 if tracing.builder is None else 4
    for i in loop(n, step=side):
        for whole in if_else(i + side <= n):
            for j in loop(i, step=side) if whole else ():
                for a, row in enumerate(_square([S.part((i + b) * n + j) for b in range(side)], side)):
                    S.part((j + a) * n + i).lanes(side)[0] = row
            first = i if whole else 0
            for a in loop(i + side if whole else n, i):
                for b in loop(a, first):
                    S[b * n + a] = S[a * n + b]


@routine
def turn(out, A, rows, cols):
    """out (cols, rows) = A*."""
    side = 1 if tracing.builder is None else 4
    for small in if_else((rows < side) | (cols < side)):
        if small:
            for i in loop(rows):
                for j in loop(cols):
                    out[j * rows + i] = A[i * cols + j]
            continue
        for i in loop(rows, step=side):
            at = least(i, rows - side)
            for j in loop(cols, step=side):
                to = least(j, cols - side)
                for a, row in enumerate(_square([A.part((at + b) * cols + to) for b in range(side)], side)):
                    out.part((to + a) * rows + at).lanes(side)[0] = row


def _square(lines, side):
    """Registers with the columns of a square."""
    rows = [line.lanes(side)[0] for line in lines]
    return rows if side == 1 else turned(rows, side)


@routine
def solve(L, m, X, n):
    """X ← L⁻¹ X in place, L (m, m) lower triangular, X (m, n)."""
    for a in loop(m, step=PANEL):
        here = least(m - a, PANEL)
        own = X.part(a * n)
        for _ in if_(a > 0):
            product(own, own, n, 1, -1.0, L.part(a * m), m, 1, X, n, here, n, a, 0)
        _panel(L.part(a * m + a), m, 1, own, n, here, 0)


@routine
def solve_transposed(L, m, X, n):
    """X ← L⁻* X in place, L (m, m) lower triangular, X (m, n)."""
    panels = (m + (PANEL - 1)) // PANEL
    for i in down(panels):
        a = i * PANEL
        here = least(m - a, PANEL)
        below, own = a + here, X.part(a * n)
        for _ in if_(below < m):
            product(own, own, n, 1, -1.0, L.part(below * m + a), 1, m, X.part(below * n), n, here, n, m - below, 0)
        _panel(L.part(a * m + a), 1, m, own, n, here, 1)


@routine
def _panel(T, down_T, along_T, X, n, rows, back):
    """Solve for so many rows of X by a triangle of at most PANEL rows; from the last row on where ``back``.

    Rows that are not there repeat the last one, and are not written.
    """
    lanes = width()
    order = [where(a < rows, a, rows - 1) for a in range(PANEL)]
    order = [where(back != 0, (rows - 1) - a, a) for a in order]
    over = [1.0 / T[a * (down_T + along_T)] for a in order]
    for narrow in if_else(n < lanes):
        lanes_here = 1 if narrow else lanes
        for j in loop(n, step=lanes_here):
            (at,), done = starts(j, n, 1, lanes_here) if not narrow else ((j,), 0)
            places = [X.part(a * n + at).lanes(lanes_here) for a in order]
            found = []
            for a, place in enumerate(places):
                s = place[0]
                for b in range(a):
                    s = fma(-T[order[a] * down_T + order[b] * along_T], found[b], s)
                found.append(over[a] * s)
            for a, place in enumerate(places):
                for _ in if_(a < rows):
                    place[0] = found[a] if narrow else where(before(done, lanes), place[0], found[a])


@routine
def factorise(U, m, tol):
    """U ← upper U with U*U = S, S in the place of its upper triangle; −1, or the first pivot no more than tol S_aa.

    What lies below the diagonal is not changed for the better: it has no meaning.
    """
    failed = local(-1)
    for first in loop(m, step=PANEL, until=failed):
        here, own = least(m - first, PANEL), U.part(first * m + first)
        sizes = [own[where(i < here, i, 0) * (m + 1)] for i in range(PANEL)]
        for _ in if_(first > 0):
            product(own, own, m, 1, -1.0, U.part(first), 1, m, U.part(first), m, here, m - first, first, 0)
        for i, whole in enumerate(sizes):
            for _ in if_((i < here) & (failed < 0)):
                _eliminate(U, m, first, first + i)
                pivot = U[(first + i) * (m + 1)]
                for bad in if_else(not_(pivot > tol * whole)):
                    if bad:
                        failed.set(first + i)
                    else:
                        over = 1.0 / sqrt(pivot)
                        for j in loop(m, first + i):
                            U[(first + i) * m + j] = U[(first + i) * m + j] * over
    return failed


@routine
@arithmetic(IN_ORDER)
def _eliminate(U, m, first, a):
    """Row a of S less what the rows from ``first`` on of the factor say of it."""
    for b in loop(a, first):
        x = U[b * m + a]
        for j in loop(m, a):
            U[a * m + j] = U[a * m + j] - x * U[b * m + j]
