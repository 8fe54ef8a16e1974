"""Products of one node's matrix with several vectors side by side; x is a flat buffer of numbers (see vectors)."""

from numba import njit, types
from numba.extending import overload

from kfdyn.estimation._kernels import rows
from kfdyn.estimation._kernels.sizes import PART, vector
from kfdyn.estimation._kernels.vectors import get, put, zero


def product(tag, r, n, y, sign, A, x):
    """y += sign · A x for A (r, n); r and n are tags, or None where the sizes are not known in advance."""


def transposed_product(tag, r, n, y, sign, A, x):
    """y += sign · A* x for A (r, n)."""


def _single(tag, r, n):
    """Whether there is one vector and the sizes are known: then rows of A go into registers, not lanes of x."""
    return tag.count == 1 and isinstance(r, types.UniTuple) and isinstance(n, types.UniTuple)


@overload(product, jit_options={"fastmath": PART["fastmath"]})
def _product(tag, r, n, y, sign, A, x):
    if _single(tag, r, n):
        return lambda tag, r, n, y, sign, A, x: rows.apply(r, n, y, sign, A, x)

    def loops(tag, r, n, y, sign, A, x):
        for i in range(A.shape[0]):
            s = zero(tag)
            for j in range(A.shape[1]):
                s += A[i, j] * get(tag, x, j)
            put(tag, y, i, get(tag, y, i) + sign * s)

    return loops


@overload(transposed_product, jit_options={"fastmath": PART["fastmath"]})
def _transposed_product(tag, r, n, y, sign, A, x):
    if _single(tag, r, n):
        return lambda tag, r, n, y, sign, A, x: rows.apply_transposed(r, n, y, sign, A, x)

    def loops(tag, r, n, y, sign, A, x):
        for j in range(A.shape[1]):
            s = zero(tag)
            for i in range(A.shape[0]):
                s += A[i, j] * get(tag, x, i)
            put(tag, y, j, get(tag, y, j) + sign * s)

    return loops


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


def copy(tag, n, y, x, count):
    """y = x for the given number of numbers, which the tag n knows where it is not None."""


@overload(copy)
def _copy(tag, n, y, x, count):
    if _single(tag, n, n):
        return lambda tag, n, y, x, count: rows.copy(n, y, x)

    def loop(tag, n, y, x, count):
        for i in range(count):
            put(tag, y, i, get(tag, x, i))

    return loop


def load(tag, n, buffer, given, width, first, count, start, size):
    """Copy columns start … start+size of the rows first … first+count into the lanes; spare lanes get zero.

    ``given`` is flat with rows of the given width; a single row serves every lane. n is the tag of the size, or None.
    """


@overload(load)
def _load(tag, n, buffer, given, width, first, count, start, size):
    lanes = tag.count
    if lanes == 1:

        def one(tag, n, buffer, given, width, first, count, start, size):
            at = start if given.size == width else first * width + start
            copy(tag, n, buffer, vector(given, at, size), size)

        return one

    def loops(tag, n, buffer, given, width, first, count, start, size):
        if given.size == width:
            for i in range(size):
                put(tag, buffer, i, zero(tag) + given[start + i])
            return
        for l in range(lanes):
            at = (first + l) * width + start
            if l < count:
                for i in range(size):
                    buffer[i * lanes + l] = given[at + i]
            else:
                for i in range(size):
                    buffer[i * lanes + l] = 0.0

    return loops


def store(tag, n, given, width, buffer, first, count, start, size):
    """Copy the lanes back to columns start … start+size of the rows."""


@overload(store)
def _store(tag, n, given, width, buffer, first, count, start, size):
    lanes = tag.count
    if lanes == 1:
        return lambda tag, n, given, width, buffer, first, count, start, size: copy(
            tag, n, vector(given, first * width + start, size), buffer, size
        )

    def loops(tag, n, given, width, buffer, first, count, start, size):
        for l in range(count):
            at = (first + l) * width + start
            for i in range(size):
                given[at + i] = buffer[i * lanes + l]

    return loops
