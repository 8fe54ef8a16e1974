"""Transitions of the Ornstein–Uhlenbeck process over a time t: exp(−pull t) and the variance it adds."""

from __future__ import annotations

import numpy as np

from kfdyn.errors import ModelError, ShapeError
from kfdyn.estimation.model.blocks import FloatArray


def pulled(t: FloatArray, rate: FloatArray, pull: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return A = exp(−pull t) and W = ∫₀ᵗ exp(−pull s) rate exp(−pull* s) ds, both (N, d, d), for times t (N,).

    Exact also where pull is 0. One pull for each state needs exponentials of numbers only; a matrix goes through the
    exponential of [[pull, rate], [0, −pull*]] (Van Loan), in units of time that keep it small.
    """
    d = len(rate)
    if not np.isfinite(pull).all():
        raise ModelError("pull must be finite")
    if pull.ndim < 2:
        if pull.shape not in ((), (1,), (d,)):
            raise ShapeError(f"pull must be a number, {d} numbers or a ({d}, {d}) matrix; got shape {pull.shape}")
        each = np.broadcast_to(pull, (d,))
        A = np.zeros((t.size, d, d))
        A[:, range(d), range(d)] = np.exp(-t[:, None] * each)
        both = each[:, None] + each[None, :]
        time = t[:, None, None] * np.ones((d, d))
        moving = both != 0.0
        time[:, moving] = -np.expm1(-t[:, None] * both[moving]) / both[moving]
        return A, time * rate
    if pull.shape != (d, d):
        raise ShapeError(f"pull must be a number, {d} numbers or a ({d}, {d}) matrix; got shape {pull.shape}")
    return _by_matrix(t, rate, pull)


def stationary(rate: FloatArray, pull: FloatArray) -> FloatArray:
    """Return the stationary covariance Σ (d, d), pull Σ + Σ pull* = rate (Lyapunov); refuse where there is none."""
    from scipy.linalg import solve_continuous_lyapunov

    d = len(rate)
    A = np.diag(np.broadcast_to(pull, (d,))) if pull.ndim < 2 else pull
    if not (np.linalg.eigvals(A).real > 0.0).all():
        raise ModelError(
            f"a pull of {pull.tolist()} leads to no stationary state, of which the root could be drawn: every "
            "eigenvalue must have a positive real part; give root_cov, or root_cov=None for a flat root"
        )
    if pull.ndim < 2:
        each = np.diagonal(A)
        return np.asarray(rate / (each[:, None] + each), np.float64)
    found = np.asarray(solve_continuous_lyapunov(A, rate), np.float64)
    return 0.5 * (found + found.T)


def _by_matrix(t: FloatArray, rate: FloatArray, pull: FloatArray) -> tuple[FloatArray, FloatArray]:
    from scipy.linalg import expm

    d = len(rate)
    halvings = np.ceil(np.log2(np.maximum(np.abs(pull).sum(axis=1).max() * t, 1.0))).astype(int)
    step = t / 2.0**halvings
    block = np.zeros((t.size, 2 * d, 2 * d))
    block[:, :d, :d], block[:, d:, d:] = -pull * step[:, None, None], pull.T * step[:, None, None]
    block[:, :d, d:] = rate * step[:, None, None]
    both = expm(block)
    A = both[:, :d, :d]
    W = both[:, :d, d:] @ A.transpose(0, 2, 1)
    for i in range(int(halvings.max(initial=0))):  # W(2t) = W + A W A*: sums of covariances, nothing cancels
        more = np.flatnonzero(halvings > i)
        W[more] += A[more] @ W[more] @ A[more].transpose(0, 2, 1)
        A[more] = A[more] @ A[more]
    return A, 0.5 * (W + W.transpose(0, 2, 1))
