"""Small dense algebra: the arithmetic of one node."""

from math import sqrt

from numba import njit

from kfdyn.estimation._kernels.sizes import ORDERED, PART, vector
from kfdyn.estimation._kernels.vectors import get, put, zero


@njit(**PART)
def symmetric_product(y, S, x):
    """y = S x for symmetric S: dot products of its rows, which lie together."""
    n = S.shape[0]
    for i in range(n):
        s = 0.0
        for j in range(n):
            s += S[i, j] * x[j]
        y[i] = s


@njit(**PART)
def add_congruence(out, sign, A, S, row):
    """out += sign · A S A* for A (r, n), symmetric S (n, n), out kept exactly symmetric. About 3rn² flops."""
    r, n = A.shape
    for i in range(r):
        for j in range(n):
            s = 0.0
            for l in range(n):
                s += A[i, l] * S[j, l]
            row[j] = s
        for j in range(i + 1):
            s = 0.0
            for l in range(n):
                s += row[l] * A[j, l]
            out[i, j] += sign * s
            out[j, i] = out[i, j]


@njit(**PART)
def transposed_congruence(tag, out, A, S, half, row):
    """out = A* S A for A (r, n), symmetric S (r, r), exactly symmetric; ``half`` is room for S A.

    Combines rows of A, so that a row is one machine vector where the tag gives n.
    """
    r, n = A.shape
    for i in range(r):
        combine_rows(tag, half, i, S, i, False, A)
    for i in range(n):
        combine_rows(tag, row, 0, A, i, True, half)
        for j in range(i + 1):
            out[i, j] = row[j]
            out[j, i] = row[j]


@njit(**PART)
def combine_rows(tag, y, at, C, i, transposed, A):
    """Row ``at`` of y becomes Σ_l c_l A(l), with c row i of C, or its column i if transposed."""
    r, n = A.shape
    if tag is None:
        flat = vector(y, at * n, n)
        for j in range(n):
            s = 0.0
            for l in range(r):
                s += (C[l, i] if transposed else C[i, l]) * A[l, j]
            flat[j] = s
    else:
        s = zero(tag)
        for l in range(r):
            s += (C[l, i] if transposed else C[i, l]) * get(tag, A, l)
        put(tag, y, at, s)


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
