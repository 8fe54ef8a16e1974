"""Products of one node's matrix with several vectors side by side: x is (n, lanes), row after row."""

from numba import njit

from kfdyn.estimation._kernels.sizes import OPTIONS


@njit(**OPTIONS)
def add_product(y, A, x, r, n, lanes):
    """Y += A x for A (r, n)."""
    for i in range(r):
        for j in range(n):
            f = A[i * n + j]
            for l in range(lanes):
                y[i, l] += f * x[j, l]


@njit(**OPTIONS)
def subtract_product(y, A, x, r, n, lanes):
    """Y −= A x for A (r, n)."""
    for i in range(r):
        for j in range(n):
            f = A[i * n + j]
            for l in range(lanes):
                y[i, l] -= f * x[j, l]


@njit(**OPTIONS)
def add_transposed(y, A, x, r, n, lanes):
    """Y += A* x for A (r, n)."""
    for i in range(r):
        for j in range(n):
            f = A[i * n + j]
            for l in range(lanes):
                y[j, l] += f * x[i, l]


@njit(**OPTIONS)
def subtract_transposed(y, A, x, r, n, lanes):
    """Y −= A* x for A (r, n)."""
    for i in range(r):
        for j in range(n):
            f = A[i * n + j]
            for l in range(lanes):
                y[j, l] -= f * x[i, l]


@njit(**OPTIONS)
def load(buffer, array, first, count, start, n, lanes):
    """Copy columns start … start+n of the rows first … first+count into the lanes; spare lanes get zero.

    An array of one row serves every row.
    """
    for i in range(n):
        for l in range(lanes):
            row = 0 if array.shape[0] == 1 else first + l
            buffer[i, l] = array[row, start + i] if l < count else 0.0


@njit(**OPTIONS)
def store(array, buffer, first, count, start, n):
    """Copy the lanes back to the rows of an array."""
    for i in range(n):
        for l in range(count):
            array[first + l, start + i] = buffer[i, l]
