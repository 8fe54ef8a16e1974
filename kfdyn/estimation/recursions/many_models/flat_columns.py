"""Flat states in lanes: least squares by orthogonal columns (THEORY section 13)."""

import math

from kfdyn.estimation.recursions.linalg.matrices import nothing
from kfdyn.sweeps import if_, loop, sqrt, to_float, where

RESOLVED = 1e-12  # of a flat state's column, by which it must differ from those before it: below is rounding


def fit_columns(e, seen, flat, diagonal, along):
    """Make the last ``flat`` columns of e orthonormal in its first ``seen`` rows; others become what is left of them.

    Rows below go along. Each column is freed of those before it twice, after which no more than rounding is left.
    ``diagonal`` is that of the triangle, not a number where a column does not differ from those before it.
    """
    own = e.shape[1] - flat
    for j in loop(flat):
        before = sqrt(_norm(e, seen, own + j))
        for _ in range(2):
            _free(e, seen, own, own + j, own + j, along)
        size = sqrt(_norm(e, seen, own + j))
        resolved = size > RESOLVED * before
        diagonal[j] = where(resolved, size, math.nan)
        over = 1.0 / where(resolved, size, 1.0)
        for k in loop(e.shape[0]):
            e[k, own + j] = over * e[k, own + j]
    for s in loop(own):
        for _ in range(2):
            _free(e, seen, own, own + flat, s, along)


def weigh_columns(e, flat):
    """Let sums over all columns be those over series of the mean over what is known of flat states."""
    series = e.shape[1] - flat
    weight = sqrt(to_float(series))
    for _ in if_(series > 1):
        for k in loop(e.shape[0]):
            for j in loop(e.shape[1], series):
                e[k, j] = weight * e[k, j]


def sum_of_squares(e, rows, columns):
    """Σ |e|² of the first rows and columns."""
    total = nothing(e)
    for k in loop(rows):
        for s in loop(columns):
            total += e[k, s] * e[k, s]
    return total


def _norm(e, seen, j):
    """|e_j|²."""
    total = nothing(e)
    for k in loop(seen):
        total += e[k, j] * e[k, j]
    return total


def _free(e, seen, first, last, j, along):
    """Column j less what lies along the orthonormal columns first … last."""
    for _ in if_(first < last):
        for i in loop(last, first):
            along[i] = 0.0
        for k in loop(seen):
            x = e[k, j]
            for i in loop(last, first):
                along[i] = along[i] + e[k, i] * x
        for k in loop(e.shape[0]):
            total = nothing(e)
            for i in loop(last, first):
                total += along[i] * e[k, i]
            e[k, j] = e[k, j] - total
