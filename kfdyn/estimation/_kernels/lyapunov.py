"""Lyapunov gathers and scatters for two operators A, B with ragged blocks."""

import kfdyn._kernels.compiler  # isort: skip  # noqa: F401

import numpy as np
from numba import njit

from kfdyn._kernels.sizes import SWEEP, matrix


@njit(**SWEEP)
def forward(order, parent, A, A_at, B, B_at, rows, cols, Y, Y_at):
    """Y(p) += A(p,k) Y(k) B*(p,k), leaves to roots; Y arrives as X."""
    half = np.empty(_square(rows, cols))
    for k in order:
        p = parent[k]
        if p < 0:
            continue
        a, b = matrix(A, A_at[k], rows[p], rows[k]), matrix(B, B_at[k], cols[p], cols[k])
        y, above = matrix(Y, Y_at[k], rows[k], cols[k]), matrix(Y, Y_at[p], rows[p], cols[p])
        w = matrix(half, 0, rows[p], cols[k])
        for i in range(w.shape[0]):
            for j in range(w.shape[1]):
                s = 0.0
                for l in range(a.shape[1]):
                    s += a[i, l] * y[l, j]
                w[i, j] = s
        for i in range(above.shape[0]):
            for j in range(above.shape[1]):
                s = 0.0
                for l in range(b.shape[1]):
                    s += w[i, l] * b[j, l]
                above[i, j] += s


@njit(**SWEEP)
def backward(order, parent, A, A_at, B, B_at, rows, cols, Y, Y_at):
    """Y(k) += A*(p,k) Y(p) B(p,k), roots to leaves; Y arrives as X."""
    half = np.empty(_square(rows, cols))
    for step in range(order.size):
        k = order[order.size - 1 - step]
        p = parent[k]
        if p < 0:
            continue
        a, b = matrix(A, A_at[k], rows[p], rows[k]), matrix(B, B_at[k], cols[p], cols[k])
        y, above = matrix(Y, Y_at[k], rows[k], cols[k]), matrix(Y, Y_at[p], rows[p], cols[p])
        w = matrix(half, 0, rows[p], cols[k])
        for i in range(w.shape[0]):
            for j in range(w.shape[1]):
                s = 0.0
                for l in range(b.shape[0]):
                    s += above[i, l] * b[l, j]
                w[i, j] = s
        for i in range(y.shape[0]):
            for j in range(y.shape[1]):
                s = 0.0
                for l in range(a.shape[0]):
                    s += a[l, i] * w[l, j]
                y[i, j] += s


@njit(nogil=True)
def _square(rows, cols):
    most = 1
    for k in range(rows.size):
        most = max(most, rows[k], cols[k])
    return most * most
