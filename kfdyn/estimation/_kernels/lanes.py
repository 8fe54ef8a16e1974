"""Products of one node's matrix with several vectors side by side; x is a flat buffer of numbers (see vectors)."""

from numba import njit

from kfdyn.estimation._kernels.sizes import PART, size
from kfdyn.estimation._kernels.vectors import get, put, zero


@njit(**PART)
def product(tag, y, sign, A, x):
    """y += sign · A x."""
    for i in range(A.shape[0]):
        s = zero(tag)
        for j in range(A.shape[1]):
            s += A[i, j] * get(tag, x, j)
        put(tag, y, i, get(tag, y, i) + sign * s)


@njit(**PART)
def transposed_product(tag, y, sign, A, x):
    """y += sign · A* x."""
    for j in range(A.shape[1]):
        s = zero(tag)
        for i in range(A.shape[0]):
            s += A[i, j] * get(tag, x, i)
        put(tag, y, j, get(tag, y, j) + sign * s)


@njit(**PART)
def solve(tag, L, x):
    """x ← (L L*)⁻¹ x in place, L lower triangular."""
    m = L.shape[0]
    for i in range(m):
        s = get(tag, x, i)
        for j in range(i):
            s -= L[i, j] * get(tag, x, j)
        put(tag, x, i, (1.0 / L[i, i]) * s)
    for back in range(m):
        i = m - 1 - back
        s = get(tag, x, i)
        for j in range(i + 1, m):
            s -= L[j, i] * get(tag, x, j)
        put(tag, x, i, (1.0 / L[i, i]) * s)


@njit(**PART)
def clear(tag, y, n):
    """y = 0 for n numbers."""
    for i in range(n):
        put(tag, y, i, zero(tag))


@njit(**PART)
def add(tag, y, x, n):
    """y += x for n numbers."""
    for i in range(n):
        put(tag, y, i, get(tag, y, i) + get(tag, x, i))


@njit(**PART)
def load(tag, buffer, rows, width, first, count, start, n):
    """Copy columns start … start+n of the rows first … first+count into the lanes; spare lanes get zero.

    ``rows`` is flat with rows of the given width; a single row serves every lane.
    """
    lanes = size(tag, 1)
    shared = rows.size == width
    for l in range(lanes):
        at = start if shared else (first + l) * width + start
        if l < count:
            for i in range(n):
                buffer[i * lanes + l] = rows[at + i]
        else:
            for i in range(n):
                buffer[i * lanes + l] = 0.0


@njit(**PART)
def store(tag, rows, width, buffer, first, count, start, n):
    """Copy the lanes back to columns start … start+n of the rows."""
    lanes = size(tag, 1)
    for l in range(count):
        at = (first + l) * width + start
        for i in range(n):
            rows[at + i] = buffer[i * lanes + l]
