"""Small dense algebra: the arithmetic of one node.

A tag that gives the size chooses rows in registers (:mod:`rows`), None plain loops: one algorithm, two kernels.
"""

import kfdyn._kernels.compiler  # isort: skip  # noqa: F401

from numba import types

from kfdyn.estimation._kernels import rows
from kfdyn.estimation._kernels.emit import down, emitted, loop, when
from kfdyn.estimation._kernels.values import IN_ORDER, choice, local, matrix, root, vector


@emitted(types.none)
def combine(tag, y, x, A):
    """y = A* x: the rows of A combined, which for a symmetric A is A x."""
    if tag is not None:
        rows.combine(tag, y, x, A)
        return
    r, n = A.shape
    for j in loop(n):
        s = local(0.0)
        for i in loop(r):
            s += x[i] * A[i, j]
        y[j] = s


@emitted(types.float64)
def dot(tag, x, y):
    """x* y."""
    if tag is not None:
        return rows.dot(tag, x, y)
    s = local(0.0)
    for i in loop(y.size):
        s += x[i] * y[i]
    return s


@emitted(types.none, IN_ORDER)
def add_scaled(tag, y, base, c, x):
    """y = base + c x; ``base`` None stands for zero."""
    if tag is not None:
        rows.add_scaled(tag, y, base, c, x)
        return
    for i in loop(y.size):
        y[i] = c * x[i] if base is None else base[i] + c * x[i]


@emitted(types.none, IN_ORDER)
def subtract_outer(tag, out, base, x, y, symmetric):
    """out = base − x y*; where ``symmetric`` is not None, its lower triangle is computed and mirrored."""
    if tag is not None:
        rows.subtract_outer(tag, out, base, x, y, symmetric)
        return
    for i in loop(x.size):
        for j in loop(y.size if symmetric is None else i + 1):
            s = base[i, j] - x[i] * y[j]
            out[i, j] = s
            if symmetric is not None:
                out[j, i] = s


@emitted(types.none, IN_ORDER)
def subtract_pair(tag, S, x, y):
    """S −= x y* + y x*, exactly symmetric where S was."""
    if tag is not None:
        rows.subtract_pair(tag, S, S, x, y)
        return
    for i in loop(x.size):
        for j in loop(i + 1):
            s = S[i, j] - (x[i] * y[j] + y[i] * x[j])
            S[i, j] = s
            S[j, i] = s


@emitted(types.none)
def add_congruence(tag, out, A, S, half, turned):
    """out += A S A* for A (r, n), symmetric S (n, n), out kept exactly symmetric. About 3rn² flops.

    ``half`` and ``turned`` are room for one row, or for n² numbers each where the tag gives r = n.
    """
    if tag is not None:
        rows.turn(tag, turned, A)  # waits for nothing, so it costs no time while S is on its way
        rows.multiply(tag, half, A, S)
        rows.add_symmetric(tag, out, out, 1.0, half, None, turned)
        return
    r, n = A.shape
    for i in loop(r):
        for j in loop(n):
            s = local(0.0)
            for l in loop(n):
                s += A[i, l] * S[j, l]
            half[j] = s
        for j in loop(i + 1):
            s = local(out[i, j])
            for l in loop(n):
                s += half[l] * A[j, l]
            out[i, j] = s
            out[j, i] = s


@emitted(types.none)
def transposed_congruence(tag, out, A, S, half):
    """out = A* S A for A (r, n), symmetric S (r, r), exactly symmetric; ``half`` is room for rn + r numbers.

    A is turned first, so that every sum runs along two rows: that is five times as fast where n is 13.
    """
    if tag is not None:
        rows.multiply(tag, half, S, A)
        rows.add_symmetric(tag, out, None, 1.0, A, True, half)
        return
    r, n = A.shape
    turned, row = matrix(half, 0, n, r), vector(half, r * n, r)
    for i in loop(n):
        for l in loop(r):
            turned[i, l] = A[l, i]
    for i in loop(n):
        for j in loop(r):
            s = local(0.0)
            for l in loop(r):
                s += turned[i, l] * S[j, l]
            row[j] = s
        for j in loop(i + 1):
            s = local(0.0)
            for l in loop(r):
                s += row[l] * turned[j, l]
            out[i, j] = s
            out[j, i] = s


@emitted(types.none)
def subtract_congruence(tag, out, P, S, half):
    """out = P − P S P for symmetric P and S (n, n), exactly symmetric; ``half`` is room for S P."""
    if tag is not None:
        rows.multiply(tag, half, S, P)
        rows.add_symmetric(tag, out, P, -1.0, P, None, half)
        return
    n = P.shape[0]
    transposed_congruence(None, out, P, S, half)
    for i in loop(n):
        for j in loop(n):
            out[i, j] = P[i, j] - out[i, j]


@emitted(types.intp, IN_ORDER)
def cholesky(D, L, seen, tol):
    """Lower L with L L* = D on the seen rows, the identity on the others; −1, or the first pivot that fails.

    A pivot that is a rounding error of its diagonal entry means two outputs of the node say the same. ``seen`` None
    stands for all.
    """
    failed = local(-1)
    for i in loop(D.shape[0], until=failed):
        for j in loop(i):
            s = local(D[i, j])
            for l in loop(j):
                s -= L[i, l] * L[j, l]
            L[j, i] = 0.0
            L[i, j] = s / L[j, j] if seen is None else choice(seen[i] & seen[j], s / L[j, j], 0.0)
        s = local(D[i, i])
        for l in loop(i):
            s -= L[i, l] * L[i, l]
        L[i, i] = root(s) if seen is None else choice(seen[i], root(s), 1.0)
        low = ~(s > tol * D[i, i])
        with when(low if seen is None else low & seen[i]):
            failed.set(i)
    return failed


@emitted(types.none, IN_ORDER)
def solve_lower(L, x):
    """x ← L⁻¹ x in place."""
    for i in loop(L.shape[0]):
        s = local(x[i])
        for j in loop(i):
            s -= L[i, j] * x[j]
        x[i] = s / L[i, i]


@emitted(types.none, IN_ORDER)
def solve_lower_transposed(L, x):
    """x ← L⁻* x in place."""
    m = L.shape[0]
    for i in down(m):
        s = local(x[i])
        for j in loop(m, i + 1):
            s -= L[j, i] * x[j]
        x[i] = s / L[i, i]


@emitted(types.intp)
def largest(starts):
    """Largest block size of the given offsets, at least 1."""
    most = local(1)
    for k in loop(starts.size - 1):
        n = starts[k + 1] - starts[k]
        most.set(choice(n > most, n, most))
    return most
