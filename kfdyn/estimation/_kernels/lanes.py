"""Products of one node's matrix with several vectors side by side; x is a flat buffer of numbers, each with its lanes.

The first tag is the number of lanes; the others give sizes, or are None where these are not known in advance.
"""

import kfdyn._kernels.compiler  # isort: skip  # noqa: F401

from llvmlite import ir
from numba import types

from kfdyn.estimation._kernels import rows
from kfdyn.estimation._kernels.emit import down, either, emitted, loop
from kfdyn.estimation._kernels.values import FAST, Value, Vector, arithmetic, builder, choice, local, number, vector


def get(lanes, x, i):
    """Number i of a buffer."""
    if lanes == 1:
        return x[i]
    return Value(builder().load(_place(lanes, x, i), align=8))


def put(lanes, x, i, value):
    """Set number i of a buffer."""
    if lanes == 1:
        x[i] = value
    else:
        builder().store(number(value, lanes), _place(lanes, x, i), align=8)


def _place(lanes, x, i):
    return builder().bitcast(vector(x, i * lanes).data, ir.VectorType(ir.DoubleType(), lanes).as_pointer())


def zero(lanes):
    """The number 0."""
    return Value(number(0.0, lanes))


def _arithmetic(lanes):
    """A short sum of one vector uses registers if it is reassociated; lanes fill them as they are."""
    return arithmetic(FAST if lanes == 1 else ("contract", "nsz"))


def _single(lanes, r, n):
    """Whether there is one vector and the sizes are known: then rows of A go into registers, not lanes of x."""
    return lanes == 1 and r is not None and n is not None


#: Numbers to ask for in addition where room is to begin at a cache line.
LINE = 8


def aligned(room):
    """Room from its first cache line on: a machine vector that lies in two lines takes twice as long to load."""
    word = ir.IntType(64)
    place = builder().add(builder().ptrtoint(room.data, word), ir.Constant(word, 8 * LINE - 1))
    return Vector(builder().inttoptr(builder().and_(place, ir.Constant(word, -8 * LINE)), room.data.type))


def passes(lanes, first, last):
    """Write a loop over the rows first … last, a lane for each: (first row, number of rows) of each pass."""
    for at in loop(last, first, step=lanes):
        yield at, 1 if lanes == 1 else choice(last - at < lanes, last - at, lanes)


@emitted(types.none)
def product(lanes, r, n, y, sign, A, x):
    """y += sign · A x for A (r, n)."""
    if _single(lanes, r, n):
        rows.apply(r, n, y, sign, A, x)
        return
    with _arithmetic(lanes):
        for i in loop(A.shape[0]):
            s = local(zero(lanes))
            for j in loop(A.shape[1]):
                s += A[i, j] * get(lanes, x, j)
            put(lanes, y, i, get(lanes, y, i) + sign * s)


@emitted(types.none)
def transposed_product(lanes, r, n, y, sign, A, x):
    """y += sign · A* x for A (r, n)."""
    if _single(lanes, r, n):
        rows.apply_transposed(r, n, y, sign, A, x)
        return
    with _arithmetic(lanes):
        for j in loop(A.shape[1]):
            s = local(zero(lanes))
            for i in loop(A.shape[0]):
                s += A[i, j] * get(lanes, x, i)
            put(lanes, y, j, get(lanes, y, j) + sign * s)


@emitted(types.none)
def solve(lanes, L, x):
    """x ← (L L*)⁻¹ x in place, L lower triangular."""
    m = L.shape[0]
    with _arithmetic(lanes):
        for i in loop(m):
            s = local(get(lanes, x, i))
            for j in loop(i):
                s -= L[i, j] * get(lanes, x, j)
            put(lanes, x, i, (1.0 / L[i, i]) * s)
        for i in down(m):
            s = local(get(lanes, x, i))
            for j in loop(m, i + 1):
                s -= L[j, i] * get(lanes, x, j)
            put(lanes, x, i, (1.0 / L[i, i]) * s)


@emitted(types.none)
def clear(lanes, y, n):
    """y = 0 for n numbers."""
    for i in loop(n):
        put(lanes, y, i, zero(lanes))


@emitted(types.none)
def add(lanes, y, x, n):
    """y += x for n numbers."""
    for i in loop(n):
        put(lanes, y, i, get(lanes, y, i) + get(lanes, x, i))


@emitted(types.none)
def copy(lanes, n, y, x, count):
    """y = x for the given number of numbers, which the tag n knows where it is not None."""
    if _single(lanes, n, n):
        rows.copy(n, y, x)
        return
    for i in loop(count):
        put(lanes, y, i, get(lanes, x, i))


@emitted(types.none)
def load(lanes, n, buffer, given, width, first, count, start, size):
    """Copy columns start … start+size of the rows first … first+count into the lanes; spare lanes get zero.

    ``given`` is flat with rows of the given width; a single row serves every lane. n is the tag of the size, or None.
    """
    alone = given.size == width
    if lanes == 1:
        copy(lanes, n, buffer, vector(given, choice(alone, start, first * width + start)), size)
        return
    with either(alone) as (yes, no):
        with yes:
            for i in loop(size):
                put(lanes, buffer, i, given[start + i])
        with no:
            for l in loop(lanes):
                at = (first + l) * width + start
                with either(l < count) as (used, spare):
                    with used:
                        for i in loop(size):
                            buffer[i * lanes + l] = given[at + i]
                    with spare:
                        for i in loop(size):
                            buffer[i * lanes + l] = 0.0


@emitted(types.none)
def store(lanes, n, given, width, buffer, first, count, start, size):
    """Copy the lanes back to columns start … start+size of the rows."""
    if lanes == 1:
        copy(lanes, n, vector(given, first * width + start), buffer, size)
        return
    for l in loop(count):
        at = (first + l) * width + start
        for i in loop(size):
            given[at + i] = buffer[i * lanes + l]
