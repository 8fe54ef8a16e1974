"""L D L* of a symmetric matrix in memory, and solutions by it: for what gears and loops leave, which is small."""

from kfdyn.sweeps.control import carried, down, loop


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
        total = carried(x[j])
        for i in loop(n, j + 1):
            total.set(total.get() - A[i * n + j] * x[i])
        x[j] = A[j * n + j] * total.get()
