"""The arithmetic of a node whose sizes are known when the kernel is compiled, all of it combinations of rows:

::

    out_i = base_i + Σ_l c_il B_l ,

with c a number that is broadcast and B_l a row in registers: no horizontal sums, and a transposed C costs nothing. The
tag gives n, see :func:`~kfdyn.estimation._kernels.sizes.static`. Everything is read before anything is written, so
that ``out`` may be one of the operands.
"""

from numba import types
from numba.extending import intrinsic

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


def _opened(context, builder, signature, args, n, which):
    return [Matrix(context, builder, signature.args[i], args[i], n) for i in which]


def _written(context, out, rows):
    for i, row in enumerate(rows):
        out.set_row(i, row)
    return context.get_dummy_value()


@intrinsic
def multiply(typingctx, tag, out, A, B):
    """out = A B, (n, n) all. n³ fused multiply-adds."""
    n = tag.count

    def codegen(context, builder, signature, args):
        target, left, right = _opened(context, builder, signature, args, n, (1, 2, 3))
        B_rows = [right.row(l) for l in range(n)]
        return _written(context, target, [combination(builder, left.numbers(i * n, n), B_rows) for i in range(n)])

    return types.none(tag, out, A, B), codegen


@intrinsic
def add_symmetric(typingctx, tag, out, base, sign, A, transposed, B):
    """out = base + sign · A B, or A* B, a product known to be symmetric: its lower triangle is computed and mirrored.

    ``base`` None stands for zero and no sign; ``transposed`` None for A as it is.
    """
    n = tag.count

    def codegen(context, builder, signature, args):
        target, left, right = _opened(context, builder, signature, args, n, (1, 4, 6))
        B_rows = [right.row(l) for l in range(n)]
        rows = []
        for i in range(n):
            C = left.numbers(i * n, n) if transposed == types.none else left.numbers(i, n, n)
            kept = sum(start <= i for start, _ in pieces(n))  # registers that reach the lower triangle
            rows.append(combination(builder, C, [row[:kept] for row in B_rows]))
        if base != types.none:
            (given,) = _opened(context, builder, signature, args, n, (2,))
            rows = [plus(builder, given.row(i), times(builder, args[3], row)) for i, row in enumerate(rows)]
        return _written(context, target, mirrored(builder, n, rows))

    return types.none(tag, out, base, sign, A, transposed, B), codegen


@intrinsic
def turn(typingctx, tag, out, A):
    """out = A*."""
    n = tag.count

    def codegen(context, builder, signature, args):
        target, given = _opened(context, builder, signature, args, n, (1, 2))
        A_rows = [numbers(builder, given.row(i)) for i in range(n)]
        return _written(context, target, [from_numbers(builder, [A_rows[j][i] for j in range(n)]) for i in range(n)])

    return types.none(tag, out, A), codegen


@intrinsic
def combine(typingctx, tag, out, x, B):
    """out = B* x, a vector."""
    n = tag.count

    def codegen(context, builder, signature, args):
        target, factors, right = _opened(context, builder, signature, args, n, (1, 2, 3))
        return _written(
            context, target, [combination(builder, factors.numbers(0, n), [right.row(l) for l in range(n)])]
        )

    return types.none(tag, out, x, B), codegen


@intrinsic
def dot(typingctx, tag, x, y):
    """x* y for vectors."""
    n = tag.count

    def codegen(context, builder, signature, args):
        left, right = _opened(context, builder, signature, args, n, (1, 2))
        return total(builder, product(builder, left.row(0), right.row(0)))

    return types.float64(tag, x, y), codegen


@intrinsic
def add_scaled(typingctx, tag, out, base, c, x):
    """out = base + c x for vectors; ``base`` None stands for zero."""
    n = tag.count

    def codegen(context, builder, signature, args):
        target, given = _opened(context, builder, signature, args, n, (1, 4))
        row = times(builder, args[3], given.row(0))
        if base != types.none:
            (start,) = _opened(context, builder, signature, args, n, (2,))
            row = plus(builder, start.row(0), row)
        return _written(context, target, [row])

    return types.none(tag, out, base, c, x), codegen


@intrinsic
def subtract_outer(typingctx, tag, out, base, x, y, symmetric):
    """out = base − x y*; mirrored from its lower triangle where ``symmetric`` says that it is known to be so."""
    n = tag.count

    def codegen(context, builder, signature, args):
        target, given, left, right = _opened(context, builder, signature, args, n, (1, 2, 3, 4))
        row = right.row(0)
        rows = [minus(builder, given.row(i), times(builder, c, row)) for i, c in enumerate(left.numbers(0, n))]
        return _written(context, target, rows if symmetric == types.none else mirrored(builder, n, rows))

    return types.none(tag, out, base, x, y, symmetric), codegen


@intrinsic
def subtract_pair(typingctx, tag, out, base, x, y):
    """out = base − (x y* + y x*), exactly symmetric where base is: the two products are rounded alike."""
    n = tag.count

    def codegen(context, builder, signature, args):
        target, given, left, right = _opened(context, builder, signature, args, n, (1, 2, 3, 4))
        x_row, y_row = left.row(0), right.row(0)
        rows = [
            minus(builder, given.row(i), exact_pair(builder, a, y_row, b, x_row))
            for i, (a, b) in enumerate(zip(left.numbers(0, n), right.numbers(0, n)))
        ]
        return _written(context, target, rows)

    return types.none(tag, out, base, x, y), codegen


@intrinsic
def copy(typingctx, n, y, x):
    """y = x, a vector."""

    def codegen(context, builder, signature, args):
        target, given = _opened(context, builder, signature, args, n.count, (1, 2))
        return _written(context, target, [given.row(0)])

    return types.none(n, y, x), codegen


@intrinsic
def apply(typingctx, r, n, y, sign, A, x):
    """y += sign · A x for A (r, n)."""

    def codegen(context, builder, signature, args):
        (target,) = _opened(context, builder, signature, args, r.count, (2,))
        left, right = _opened(context, builder, signature, args, n.count, (4, 5))
        given = right.row(0)
        sums = [total(builder, product(builder, left.row(i), given)) for i in range(r.count)]
        row = times(builder, args[3], from_numbers(builder, sums))
        return _written(context, target, [plus(builder, target.row(0), row)])

    return types.none(r, n, y, sign, A, x), codegen


@intrinsic
def apply_transposed(typingctx, r, n, y, sign, A, x):
    """y += sign · A* x for A (r, n)."""

    def codegen(context, builder, signature, args):
        target, left = _opened(context, builder, signature, args, n.count, (2, 4))
        (factors,) = _opened(context, builder, signature, args, r.count, (5,))
        row = combination(builder, factors.numbers(0, r.count), [left.row(i) for i in range(r.count)])
        return _written(context, target, [plus(builder, target.row(0), times(builder, args[3], row))])

    return types.none(r, n, y, sign, A, x), codegen
