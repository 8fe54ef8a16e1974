"""Autoregressive and moving-average parts, stationary and invertible by construction."""

from __future__ import annotations

from functools import partial

import numpy as np

from kfdyn.errors import ModelError, ShapeError
from kfdyn.estimation.model.blocks import FloatArray
from kfdyn.estimation.series.component import Matrices, Part, spread_over
from kfdyn.estimation.series.series_model import SeriesModel


def ar(p: int) -> SeriesModel:
    """Make a stationary autoregression of order p: y(k) = Σ a_j y(k−j) + e.

    Parameters
    ----------
    p : int
        Order, 1 or more.

    Returns
    -------
    SeriesModel
        With ``ar.variance`` and the partial autocorrelations ``ar.partial[j]``, each between −1 and 1; the coefficients
        are ``kf.series.coefficients_of(partial)``. There is no measurement noise unless it is added.

    Examples
    --------
    >>> import kfdyn as kf
    >>> kf.series.ar(2).names
    ('ar.variance', 'ar.partial[1]', 'ar.partial[2]')
    """
    return _arma(p, 0, "ar")


def arma(p: int, q: int) -> SeriesModel:
    """Make a stationary, invertible ARMA(p, q): y(k) = Σ a_j y(k−j) + e(k) + Σ b_j e(k−j).

    Parameters
    ----------
    p, q : int
        Orders, 0 or more, not both 0.

    Returns
    -------
    SeriesModel
        With ``arma.variance``, and partial autocorrelations ``arma.partial[j]`` and ``arma.moving[j]`` between −1 and
        1, from which :func:`coefficients_of` makes a and −b.

    Examples
    --------
    >>> import kfdyn as kf
    >>> kf.series.arma(1, 1).names
    ('arma.variance', 'arma.partial[1]', 'arma.moving[1]')
    """
    return _arma(p, q, "arma")


def coefficients_of(partial: FloatArray) -> FloatArray:
    """Return the coefficients of an autoregression with given partial autocorrelations (Durbin and Levinson).

    Parameters
    ----------
    partial : array, shape (p,)
        Each between −1 and 1.

    Returns
    -------
    array, shape (p,)
        a with y(k) = Σ a_j y(k−j) + e.

    Examples
    --------
    >>> coefficients_of(np.array([0.5, -0.2])).round(6)
    array([ 0.6, -0.2])
    """
    given = np.asarray(partial)
    if given.dtype.kind not in "iufc" or given.ndim != 1:
        raise ShapeError(
            f"partial must be an array (p,) of partial autocorrelations, such as those in fit.params, got "
            f"{type(partial).__name__} of shape {given.shape}"
        )
    given = given + 0.0
    a = given[:0]
    for r in given:
        a = np.append(a - r * a[::-1], r)
    return a


def _arma(p: int, q: int, kind: str) -> SeriesModel:
    if not all(isinstance(x, int | np.integer) and x >= 0 for x in (p, q)) or p + q == 0:
        raise ModelError(f"orders are whole numbers, 0 or more and not both 0; got {p!r} and {q!r}")
    p, q = int(p), int(q)
    names = (
        f"{kind}.variance",
        *(f"{kind}.partial[{j + 1}]" for j in range(p)),
        *(f"{kind}.moving[{j + 1}]" for j in range(q)),
    )
    bounds = ((0.0, None), *(((-1.0, 1.0),) * (p + q)))
    start = partial(spread_over, [1.0], then=[0.1] * (p + q))
    return SeriesModel(
        (Part(kind, names, bounds, start, partial(_matrices, p, q, kind), linear=False, analytic=True),), False
    )


def _matrices(p: int, q: int, kind: str, theta: FloatArray, steps: int) -> Matrices:
    variance, partial, moving = theta[0], theta[1 : 1 + p], theta[1 + p :]
    _expect_stationary(partial, kind)
    n = max(p, q + 1)
    a, b = np.zeros(n, theta.dtype), np.zeros(n, theta.dtype)
    a[:p] = coefficients_of(partial)
    b[0], b[1 : 1 + q] = 1.0, -coefficients_of(moving)
    F = np.zeros((n, n), theta.dtype)
    F[:, 0] = a
    F[:-1, 1:] += np.eye(n - 1)
    P0 = variance * _stationary(partial, a, b)
    return Matrices(F, np.eye(1, n), variance * np.outer(b, b), P0, np.zeros(n, dtype=bool))


def _expect_stationary(partial: FloatArray, kind: str) -> None:
    wrong = np.flatnonzero(~(np.abs(partial.real) < 1.0))
    if wrong.size:
        j = int(wrong[0])
        raise ModelError(
            f"{kind}.partial[{j + 1}] is {partial[j].real:g}; a process is stationary only where its partial "
            "autocorrelations lie strictly between -1 and 1; for one that is not, subtract its mean or add "
            "kf.series.local_level()"
        )


def _stationary(partial: FloatArray, a: FloatArray, b: FloatArray) -> FloatArray:
    """Return the covariance of the states for noise of variance 1, from products of 1 − r² instead of a linear system.

    State i is Σ_j a_j y(k − 1 − j + i) + b_j e(k − j + i) over j ≥ i, counted from 0. Near a unit root 1 − r² is small
    and exact, where a Lyapunov equation is singular to rounding.
    """
    n = a.size
    lag = np.arange(n)
    gamma = _autocovariances(partial, 2 * n - 1)[np.abs(lag[:, None] - lag + lag[:, None, None])]
    y = np.einsum("i,j,lij->l", b, b, gamma)  # of y at lags 0 … n − 1, a moving average of the autoregression
    psi = np.zeros(n, a.dtype)  # of y with e, so many steps before it
    for k in range(n):
        psi[k] = b[k] + a[:k] @ psi[:k][::-1]
    # covariances of y(k − 1), …, y(k − n) and e(k), …, e(k − n + 1)
    yy = y[np.abs(lag[:, None] - lag)]
    ahead = lag - 1 - lag[:, None]  # e(k − j) is this much older than y(k − 1 − i)
    ye = np.where(ahead >= 0, psi[np.maximum(ahead, 0)], 0.0)
    A, B = np.zeros((n, n), a.dtype), np.zeros((n, n), a.dtype)
    for i in range(n):
        A[i, : n - i], B[i, : n - i] = a[i:], b[i:]
    cross = A @ ye @ B.T
    P = A @ yy @ A.T + cross + cross.T + B @ B.T
    return 0.5 * (P + P.T)


def _autocovariances(partial: FloatArray, count: int) -> FloatArray:
    """Return γ(0), … of the autoregression with noise of variance 1 (Levinson, backwards)."""
    gamma, a = np.zeros(count, partial.dtype), partial[:0]
    left = 1.0 / np.prod((1.0 - partial) * (1.0 + partial))
    gamma[0] = left
    for k in range(1, count):
        gamma[k] = a @ gamma[k - a.size : k][::-1]
        if k <= partial.size:
            r = partial[k - 1]
            gamma[k] += r * left
            left *= (1.0 - r) * (1.0 + r)
            a = np.append(a - r * a[::-1], r)
    return gamma
