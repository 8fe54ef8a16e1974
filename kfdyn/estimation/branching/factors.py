"""Factors of covariances that may be singular, or all but singular, in as many digits as there are.

A covariance with an eigenvalue of 1e-14 of the others is taken to be singular, for its entries are rounded. From some
units in their last digit on, it need not be: a second opinion (:mod:`.rounding_estimate`) then takes it ``as_given``,
which tells whether that matters.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kfdyn.estimation.inference.filter_covariances import BoolArray
from kfdyn.estimation.model.blocks import Blocks, FloatArray

_RANK = 1e-14  # of a correlation matrix, for each row: a smaller eigenvalue is rounding
_ROUNDED = 4.0 * float(np.finfo(float).eps)  # the same, of one that was singular before its entries were rounded
_FINE = 1e-5  # one below that would keep fewer than eleven digits


def branch_factors(W: Blocks, flat_roots: list[int], as_given: bool = False) -> Blocks:
    """B with B B* = W, (n, n), of columns that are zero where W is singular; the identity at a flat root."""
    out = np.empty_like(W.flat)
    for nodes, w in W.grouped():
        out[W.places(nodes, w[0].size)] = factor_of(w, as_given).reshape(nodes.size, -1)
    factors = W.like(out)
    for k in flat_roots:
        factors[k][...] = np.eye(int(W.rows[k]))
    return factors


def factor_of(cov: FloatArray, as_given: bool = False) -> FloatArray:
    """B with B B* = cov (g, n, n), of columns that are orthogonal, and zero where cov is singular.

    By eigenvalues in units of its own deviations: a Cholesky factor may mistake rounding for variance.
    """
    deviation = np.sqrt(np.maximum(np.diagonal(cov, axis1=1, axis2=2), 0.0))
    if cov.shape[1] == 1:
        return deviation[:, :, None]
    unit = np.where(deviation > 0.0, deviation, 1.0)
    correlation = cov / (unit[:, :, None] * unit[:, None, :])
    value, vector, sure = variances(correlation, as_given)
    out = unit[:, :, None] * vector * np.sqrt(value)[:, None, :]
    fine = np.flatnonzero((value[:, 0] > 0.0) & (value[:, 0] < _FINE) & sure)
    if fine.size:
        own = unit[fine][:, :, None]
        turn, size, _ = np.linalg.svd(_cholesky(cov[fine]) / own)
        out[fine] = own * turn * size[:, None, :]
    return np.asarray(out)


class Variances(NamedTuple):
    """Eigenvalues (g, n), 0 where a matrix is singular, eigenvectors (g, n, n), and whether none is in doubt (g,)."""

    value: FloatArray
    vector: FloatArray
    sure: BoolArray


def variances(correlation: FloatArray, as_given: bool) -> Variances:
    """Those of correlation matrices (g, n, n)."""
    value, vector = np.linalg.eigh(correlation)
    n = value.shape[1]
    there = value > _RANK * n
    found = np.where(there, value, 0.0)
    if not as_given or there.all():
        return Variances(found, vector, np.ones(len(value), dtype=bool))
    wide = vector.astype(np.longdouble)  # Rayleigh's quotients are right to the square of the vectors' error
    left = (wide * (correlation @ wide)).sum(axis=1).astype(float)
    doubtful = ~there & (left > _ROUNDED * n)
    return Variances(np.where(doubtful, left, found), vector, ~doubtful.any(axis=1))


def triangle_of(cov: FloatArray, unit: FloatArray, least: FloatArray) -> FloatArray:
    """L with L L* = cov (g, n, n) / units (g, n), regular, of which the least eigenvalue (g,) is known."""
    out = np.linalg.cholesky(cov / (unit[:, :, None] * unit[:, None, :]))
    fine = least < _FINE
    out[fine] = _cholesky(cov[fine]) / unit[fine][:, :, None]
    return np.asarray(out, dtype=float)


def _cholesky(cov: FloatArray) -> FloatArray:
    """L with L L* = cov (g, n, n), in as many digits as there are: a small pivot is a difference of larger numbers."""
    left = cov.astype(np.longdouble)
    out = np.zeros_like(left)
    for j in range(cov.shape[1]):
        out[:, j:, j] = left[:, j:, j] / np.sqrt(np.maximum(left[:, j, j], np.finfo(float).tiny))[:, None]
        left = left - out[:, :, None, j] * out[:, None, :, j]
    return out.astype(float)
