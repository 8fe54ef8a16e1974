"""L D L* of a symmetric matrix in memory, and solutions by it: for what gears and loops leave, which is small."""

from kfdyn.sweeps.control import carried, down, loop


def factor(A, n, inverted):
    """L below the diagonal of A (n, n), D⁻¹ on it; ``inverted(j, d)`` tells 1/d, or 0 to leave row j out."""
    for j in loop(n):
        inverse = inverted(j, A[j * n + j])
        A[j * n + j] = inverse
        for i in loop(n, j + 1):
            scaled = A[i * n + j] * inverse
            for k in loop(i + 1, j + 1):
                A[i * n + k] -= scaled * A[k * n + j]
    for j in loop(n):
        for i in loop(n, j + 1):
            A[i * n + j] = A[i * n + j] * A[j * n + j]


def solve_lower(A, n, x, first=0):
    """x ← L⁻¹x, x being 0 before ``first``."""
    for j in loop(n, first):
        for i in loop(n, j + 1):
            x[i] -= A[i * n + j] * x[j]


def solve_upper(A, n, x, first=0):
    """x ← L⁻*D⁻¹x, x being 0 before ``first``."""
    for j in loop(n, first):
        x[j] = x[j] * A[j * n + j]
    for j in down(n):
        total = carried(x[j])
        for i in loop(n, j + 1):
            total.set(total.get() - A[i * n + j] * x[i])
        x[j] = total.get()
