"""L D L* of a symmetric matrix in memory, and solutions by it: for what gears and loops leave, which is small."""

from kfdyn.sweeps.control_flow import down, loop, loop_vars


def factor(A, n, inverted, x=None):
    """L D below the diagonal of A (n, n), D⁻¹ on it, and x ← L⁻¹x on the way.

    ``inverted(j, d)`` tells 1/d, or 0 to leave row j out; x[j] is known by then.
    """
    for j in loop(n):
        inverse = inverted(j, A[j * n + j])
        A[j * n + j] = inverse
        for i in loop(n, j + 1):
            scaled = A[i * n + j] * inverse
            for k in loop(i + 1, j + 1):
                A[i * n + k] -= scaled * A[k * n + j]
            if x is not None:
                x[i] -= scaled * x[j]


def solve_lower(A, n, x, first=0):
    """x ← L⁻¹x, x being 0 before ``first``."""
    for j in loop(n, first):
        scaled = A[j * n + j] * x[j]
        for i in loop(n, j + 1):
            x[i] -= A[i * n + j] * scaled


def solve_upper(A, n, x):
    """x ← L⁻*D⁻¹x."""
    for j in down(n):
        total = loop_vars(x[j])
        for i in loop(n, j + 1):
            total.set(total.get() - A[i * n + j] * x[i])
        x[j] = A[j * n + j] * total.get()


def solve_lower_rows(A, n, X, width, columns=None):
    """X ← L⁻¹X of a matrix (n, width), row by row, so that its columns are worked on side by side.

    ``columns(j)``: only so many of row j are, where the others are 0 at first and nobody asks for them.
    """
    for j in loop(n):
        for i in loop(n, j + 1):
            _less(X, width, i, j, A[i * n + j] * A[j * n + j], width if columns is None else columns(j))


def solve_rows(A, n, X, width, columns=None):
    """X ← (L D L*)⁻¹X in the same way."""
    solve_lower_rows(A, n, X, width, columns)
    for j in down(n):
        count = width if columns is None else columns(j)
        for i in loop(n, j + 1):
            _less(X, width, j, i, A[i * n + j], count)
        for c in loop(count):
            X[j * width + c] = A[j * n + j] * X[j * width + c]


def _less(X, width, i, j, factor, count):
    """Row i less ``factor`` times row j, in the first columns."""
    for c in loop(count):
        X[i * width + c] -= factor * X[j * width + c]
