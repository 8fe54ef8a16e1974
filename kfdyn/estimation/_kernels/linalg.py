"""Small dense algebra: the arithmetic of one node.

A tag that gives the size chooses rows in registers (:mod:`rows`), None plain loops: one algorithm, two kernels.
"""

from math import sqrt

from numba import njit

from kfdyn.estimation._kernels import rows
from kfdyn.estimation._kernels.sizes import ORDERED, PART, matrix


@njit(**PART)
def combine(tag, y, x, A):
    """y = A* x: the rows of A combined, which for a symmetric A is A x."""
    if tag is None:
        r, n = A.shape
        for j in range(n):
            s = 0.0
            for i in range(r):
                s += x[i] * A[i, j]
            y[j] = s
    else:
        rows.combine(tag, y, x, A)


@njit(**PART)
def dot(tag, x, y):
    """x* y."""
    if tag is None:
        s = 0.0
        for i in range(y.size):
            s += x[i] * y[i]
        return s
    return rows.dot(tag, x, y)


@njit(**ORDERED)
def add_scaled(tag, y, base, c, x):
    """y = base + c x; ``base`` None stands for zero."""
    if tag is None:
        for i in range(y.size):
            y[i] = (0.0 if base is None else base[i]) + c * x[i]
    else:
        rows.add_scaled(tag, y, base, c, x)


@njit(**ORDERED)
def subtract_outer(tag, out, base, x, y, symmetric):
    """out = base − x y*; where ``symmetric`` is not None, its lower triangle is computed and mirrored."""
    if tag is None:
        for i in range(x.size):
            for j in range(y.size if symmetric is None else i + 1):
                out[i, j] = base[i, j] - x[i] * y[j]
                if symmetric is not None:
                    out[j, i] = out[i, j]
    else:
        rows.subtract_outer(tag, out, base, x, y, symmetric)


@njit(**ORDERED)
def subtract_pair(tag, S, x, y):
    """S −= x y* + y x*, exactly symmetric where S was."""
    if tag is None:
        for i in range(x.size):
            for j in range(i + 1):
                S[i, j] -= x[i] * y[j] + y[i] * x[j]
                S[j, i] = S[i, j]
    else:
        rows.subtract_pair(tag, S, S, x, y)


@njit(**PART)
def add_congruence(tag, out, A, S, half, turned):
    """out += A S A* for A (r, n), symmetric S (n, n), out kept exactly symmetric. About 3rn² flops.

    ``half`` and ``turned`` are room for one row, or for n² numbers each where the tag gives r = n.
    """
    if tag is None:
        r, n = A.shape
        for i in range(r):
            for j in range(n):
                s = 0.0
                for l in range(n):
                    s += A[i, l] * S[j, l]
                half[j] = s
            for j in range(i + 1):
                s = 0.0
                for l in range(n):
                    s += half[l] * A[j, l]
                out[i, j] += s
                out[j, i] = out[i, j]
    else:
        rows.turn(tag, turned, A)  # waits for nothing, so it costs no time while S is on its way
        rows.multiply(tag, half, A, S)
        rows.add_symmetric(tag, out, out, 1.0, half, None, turned)


@njit(**PART)
def transposed_congruence(tag, out, A, S, half):
    """out = A* S A for A (r, n), symmetric S (r, r), exactly symmetric; ``half`` is room for S A."""
    if tag is None:
        r, n = A.shape
        product = matrix(half, 0, r, n)
        for i in range(r):
            for j in range(n):
                s = 0.0
                for l in range(r):
                    s += S[i, l] * A[l, j]
                product[i, j] = s
        for i in range(n):
            for j in range(i + 1):
                s = 0.0
                for l in range(r):
                    s += A[l, i] * product[l, j]
                out[i, j] = s
                out[j, i] = s
    else:
        rows.multiply(tag, half, S, A)
        rows.add_symmetric(tag, out, None, 1.0, A, True, half)


@njit(**PART)
def subtract_congruence(tag, out, P, S, half):
    """out = P − P S P for symmetric P and S (n, n), exactly symmetric; ``half`` is room for S P."""
    if tag is None:
        n = P.shape[0]
        transposed_congruence(None, out, P, S, half)
        for i in range(n):
            for j in range(n):
                out[i, j] = P[i, j] - out[i, j]
    else:
        rows.multiply(tag, half, S, P)
        rows.add_symmetric(tag, out, P, -1.0, P, None, half)


@njit(**ORDERED)
def cholesky(D, L, seen, tol):
    """Lower L with L L* = D on the seen rows, the identity on the others; −1, or the first pivot that fails.

    A pivot that is a rounding error of its diagonal entry means two outputs of the node say the same.
    """
    for i in range(D.shape[0]):
        for j in range(i + 1):
            L[j, i] = 0.0
            if not (seen[i] and seen[j]):
                L[i, j] = 1.0 if i == j else 0.0
                continue
            s = D[i, j]
            for l in range(j):
                s -= L[i, l] * L[j, l]
            if i == j:
                if not s > tol * D[i, i]:
                    return i
                L[i, i] = sqrt(s)
            else:
                L[i, j] = s / L[j, j]
    return -1


@njit(**ORDERED)
def solve_lower(L, x):
    """x ← L⁻¹ x in place."""
    for i in range(L.shape[0]):
        s = x[i]
        for j in range(i):
            s -= L[i, j] * x[j]
        x[i] = s / L[i, i]


@njit(**ORDERED)
def solve_lower_transposed(L, x):
    """x ← L⁻* x in place."""
    m = L.shape[0]
    for back in range(m):
        i = m - 1 - back
        s = x[i]
        for j in range(i + 1, m):
            s -= L[j, i] * x[j]
        x[i] = s / L[i, i]


@njit(**PART)
def largest(starts):
    """Largest block size of the given offsets, at least 1."""
    most = 1
    for k in range(starts.size - 1):
        most = max(most, starts[k + 1] - starts[k])
    return most
