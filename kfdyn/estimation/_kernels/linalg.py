"""Small dense algebra: the arithmetic of one node."""

from math import sqrt

from numba import njit

from kfdyn.estimation._kernels.sizes import ORDERED, PART
from kfdyn.estimation._kernels.vectors import get, put, zero


@njit(**PART)
def combine_rows(tag, y, c, A):
    """y = Σ_l c_l A(l), a combination of the rows of A: y = A* c.

    The tag, where given, is the length of the rows, and a row is one machine vector.
    """
    if tag is None:
        for j in range(A.shape[1]):
            s = 0.0
            for l in range(A.shape[0]):
                s += c[l] * A[l, j]
            y[j] = s
    else:
        s = zero(tag)
        for l in range(A.shape[0]):
            s += c[l] * get(tag, A, l)
        put(tag, y, 0, s)


@njit(**PART)
def add_congruence(tag, out, A, S, flipped, row, sum_):
    """out += A S A* for A (r, n), symmetric S (n, n), out kept exactly symmetric. 4rn² flops.

    ``flipped`` is room for A*, ``row`` and ``sum_`` for a row.
    """
    r, n = A.shape
    for i in range(r):
        for j in range(n):
            flipped[j, i] = A[i, j]
    for i in range(r):
        combine_rows(tag, row, A[i], S)
        combine_rows(tag, sum_, row, flipped)
        for j in range(i + 1):
            out[i, j] += sum_[j]
            out[j, i] = out[i, j]


@njit(**PART)
def transposed_congruence(tag, out, A, S, half, flipped, row):
    """out = A* S A for A (r, n), symmetric S (r, r), exactly symmetric.

    ``half`` is room for S A, ``flipped`` for A*, ``row`` for a row.
    """
    r, n = A.shape
    for i in range(r):
        combine_rows(tag, half[i], S[i], A)
        for j in range(n):
            flipped[j, i] = A[i, j]
    for i in range(n):
        combine_rows(tag, row, flipped[i], half)
        for j in range(i + 1):
            out[i, j] = row[j]
            out[j, i] = row[j]


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
