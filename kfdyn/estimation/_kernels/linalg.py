"""Small dense algebra on flat, row-by-row blocks: the arithmetic of one node."""

from math import sqrt

from numba import njit

from kfdyn.estimation._kernels.sizes import OPTIONS, ORDERED


@njit(**OPTIONS)
def add_congruence(out, A, S, row, r, n):
    """Out += A S A* for A (r, n), symmetric S (n, n); out is kept exactly symmetric. 2rn² flops, then half."""
    for i in range(r):
        for j in range(n):
            s = 0.0
            for l in range(n):
                s += A[i * n + l] * S[j * n + l]
            row[j] = s
        for j in range(i + 1):
            s = out[i * r + j]
            for l in range(n):
                s += row[l] * A[j * n + l]
            out[i * r + j] = s
            out[j * r + i] = s


@njit(**OPTIONS)
def transposed_congruence(out, A, S, column, r, n):
    """Out = A* S A for A (r, n), symmetric S (r, r); exactly symmetric."""
    for j in range(n):
        for i in range(r):
            s = 0.0
            for l in range(r):
                s += S[i * r + l] * A[l * n + j]
            column[i] = s
        for i in range(j + 1):
            s = 0.0
            for l in range(r):
                s += A[l * n + i] * column[l]
            out[i * n + j] = s
            out[j * n + i] = s


@njit(**ORDERED)
def cholesky(D, L, seen, m, tol):
    """Lower L with L L* = D on the seen rows, the identity on the others; −1, or the first pivot that fails.

    A pivot that is a rounding error of its diagonal entry means two outputs of the node say the same.
    """
    for i in range(m):
        for j in range(i + 1):
            L[j * m + i] = 0.0
            if not (seen[i] and seen[j]):
                L[i * m + j] = 1.0 if i == j else 0.0
                continue
            s = D[i * m + j]
            for l in range(j):
                s -= L[i * m + l] * L[j * m + l]
            if i == j:
                if not s > tol * D[i * m + i]:
                    return i
                L[i * m + i] = sqrt(s)
            else:
                L[i * m + j] = s / L[j * m + j]
    return -1


@njit(**ORDERED)
def solve_lower(L, x, m):
    """X ← L⁻¹ x in place."""
    for i in range(m):
        s = x[i]
        for j in range(i):
            s -= L[i * m + j] * x[j]
        x[i] = s / L[i * m + i]


@njit(**ORDERED)
def solve_lower_transposed(L, x, m):
    """X ← L⁻* x in place."""
    for i in range(m - 1, -1, -1):
        s = x[i]
        for j in range(i + 1, m):
            s -= L[j * m + i] * x[j]
        x[i] = s / L[i * m + i]
