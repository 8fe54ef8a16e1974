"""Autoregressive and moving-average parts, stationary and invertible by construction."""

from __future__ import annotations

from functools import partial

import numpy as np

from kfdyn.errors import ModelError
from kfdyn.estimation.blocks import FloatArray
from kfdyn.estimation.series.model import SeriesModel
from kfdyn.estimation.series.part import Matrices, Part, spread_over, stationary


def ar(p: int) -> SeriesModel:
    """Stationary autoregression of order p: y(k) = Σ a_j y(k−j) + e.

    Parameters
    ----------
    p : int
        Order, 1 or more.

    Returns
    -------
    SeriesModel
        With ``ar.variance`` and the partial autocorrelations ``ar.partial[j]``, each between −1 and 1; the coefficients
        are ``coefficients_of(partial)``. There is no measurement noise unless it is added.

    Examples
    --------
    >>> import kfdyn as kf
    >>> kf.series.ar(2).names
    ('ar.variance', 'ar.partial[1]', 'ar.partial[2]')
    """
    return _arma(p, 0, "ar")


def arma(p: int, q: int) -> SeriesModel:
    """Stationary, invertible ARMA(p, q): y(k) = Σ a_j y(k−j) + e(k) + Σ b_j e(k−j).

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
    """Coefficients of a stationary autoregression with the given partial autocorrelations (Durbin and Levinson).

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
    a = np.zeros(0)
    for r in np.asarray(partial, dtype=float):
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
    return SeriesModel((Part(kind, names, bounds, start, partial(_matrices, p, q), linear=False),), False)


def _matrices(p: int, q: int, theta: FloatArray, steps: int) -> Matrices:
    n = max(p, q + 1)
    F = np.zeros((n, n))
    F[:p, 0] = coefficients_of(theta[1 : 1 + p])
    F[:-1, 1:] += np.eye(n - 1)
    r = np.zeros(n)
    r[0], r[1 : 1 + q] = 1.0, -coefficients_of(theta[1 + p :])
    Q = theta[0] * np.outer(r, r)
    return Matrices(F, np.eye(1, n), Q, stationary(F, Q), np.zeros(n, dtype=bool))
