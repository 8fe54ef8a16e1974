"""The arithmetic of a node whose sizes are known when the kernel is compiled, all of it combinations of rows:

::

    out_i = base_i + Σ_l c_il B_l ,

with c a number that is broadcast and B_l a row in registers: no horizontal sums, and a transposed C costs nothing. The
tag gives n, see :func:`~kfdyn._kernels.sizes.static`. Everything is read before anything is written, so
that ``out`` may be one of the operands.
"""

import kfdyn._kernels.compiler  # isort: skip  # noqa: F401

from numba import types

from kfdyn.estimation._kernels.emit import emitted
from kfdyn.estimation._kernels.registers import (
    Matrix,
    combination,
    exact_pair,
    from_numbers,
    minus,
    mirrored,
    numbers,
    pieces,
    plus,
    product,
    times,
    total,
)
from kfdyn.estimation._kernels.values import Value, builder, number


def _opened(n, *arrays):
    return [Matrix(builder(), array.data, n) for array in arrays]


def _write(out, rows):
    for i, row in enumerate(rows):
        out.set_row(i, row)


@emitted(types.none)
def multiply(n, out, A, B):
    """out = A B, (n, n) all. n³ fused multiply-adds."""
    target, left, right = _opened(n, out, A, B)
    B_rows = [right.row(l) for l in range(n)]
    _write(target, [combination(builder(), left.numbers(i * n, n), B_rows) for i in range(n)])


@emitted(types.none)
def add_symmetric(n, out, base, sign, A, transposed, B):
    """out = base + sign · A B, or A* B, a product known to be symmetric: its lower triangle is computed and mirrored.

    ``base`` None stands for zero and no sign; ``transposed`` None for A as it is.
    """
    target, left, right = _opened(n, out, A, B)
    B_rows = [right.row(l) for l in range(n)]
    rows = []
    for i in range(n):
        C = left.numbers(i * n, n) if transposed is None else left.numbers(i, n, n)
        kept = sum(start <= i for start, _ in pieces(n))  # registers that reach the lower triangle
        rows.append(combination(builder(), C, [row[:kept] for row in B_rows]))
    if base is not None:
        (given,) = _opened(n, base)
        rows = [plus(builder(), given.row(i), times(builder(), number(sign), row)) for i, row in enumerate(rows)]
    _write(target, mirrored(builder(), n, rows))


@emitted(types.none)
def turn(n, out, A):
    """out = A*."""
    target, given = _opened(n, out, A)
    A_rows = [numbers(builder(), given.row(i)) for i in range(n)]
    _write(target, [from_numbers(builder(), [A_rows[j][i] for j in range(n)]) for i in range(n)])


@emitted(types.none)
def combine(n, out, x, B):
    """out = B* x, a vector."""
    target, factors, right = _opened(n, out, x, B)
    _write(target, [combination(builder(), factors.numbers(0, n), [right.row(l) for l in range(n)])])


@emitted(types.float64)
def dot(n, x, y):
    """x* y for vectors."""
    left, right = _opened(n, x, y)
    return Value(total(builder(), product(builder(), left.row(0), right.row(0))))


@emitted(types.none)
def add_scaled(n, out, base, c, x):
    """out = base + c x for vectors; ``base`` None stands for zero."""
    target, given = _opened(n, out, x)
    row = times(builder(), number(c), given.row(0))
    if base is not None:
        (start,) = _opened(n, base)
        row = plus(builder(), start.row(0), row)
    _write(target, [row])


@emitted(types.none)
def subtract_outer(n, out, base, x, y, symmetric):
    """out = base − x y*; mirrored from its lower triangle where ``symmetric`` says that it is known to be so."""
    target, given, left, right = _opened(n, out, base, x, y)
    row = right.row(0)
    rows = [minus(builder(), given.row(i), times(builder(), c, row)) for i, c in enumerate(left.numbers(0, n))]
    _write(target, rows if symmetric is None else mirrored(builder(), n, rows))


@emitted(types.none)
def subtract_pair(n, out, base, x, y):
    """out = base − (x y* + y x*), exactly symmetric where base is: the two products are rounded alike."""
    target, given, left, right = _opened(n, out, base, x, y)
    x_row, y_row = left.row(0), right.row(0)
    rows = [
        minus(builder(), given.row(i), exact_pair(builder(), a, y_row, b, x_row))
        for i, (a, b) in enumerate(zip(left.numbers(0, n), right.numbers(0, n)))
    ]
    _write(target, rows)


@emitted(types.none)
def copy(n, y, x):
    """y = x, a vector."""
    target, given = _opened(n, y, x)
    _write(target, [given.row(0)])


@emitted(types.none)
def apply(r, n, y, sign, A, x):
    """y += sign · A x for A (r, n)."""
    (target,) = _opened(r, y)
    left, right = _opened(n, A, x)
    given = right.row(0)
    sums = [total(builder(), product(builder(), left.row(i), given)) for i in range(r)]
    row = times(builder(), number(sign), from_numbers(builder(), sums))
    _write(target, [plus(builder(), target.row(0), row)])


@emitted(types.none)
def apply_transposed(r, n, y, sign, A, x):
    """y += sign · A* x for A (r, n)."""
    target, left = _opened(n, y, A)
    (factors,) = _opened(r, x)
    row = combination(builder(), factors.numbers(0, r), [left.row(i) for i in range(r)])
    _write(target, [plus(builder(), target.row(0), times(builder(), number(sign), row))])
