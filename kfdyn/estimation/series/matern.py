"""Matérn processes at any times: Gaussian-process regression in O(N)."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.errors import ModelError, ShapeError
from kfdyn.estimation.blocks import FloatArray, real_array
from kfdyn.estimation.series.model import SeriesModel
from kfdyn.estimation.series.part import Matrices, Part, spread_over

_ORDERS = {0.5: 1, 1.5: 2, 2.5: 3}


def matern(smoothness: float, times: ArrayLike) -> SeriesModel:
    """Stationary Gaussian process with Matérn covariance of smoothness ½, 3/2 or 5/2, measured with noise.

    Parameters
    ----------
    smoothness : {0.5, 1.5, 2.5}
        ν; the process has ν − ½ derivatives.
    times : array, shape (N,)
        Increasing; for a forecast of s steps there must be N + s.

    Returns
    -------
    SeriesModel
        With ``noise``, ``matern.variance`` and ``matern.length``, the variance and the length of the covariance.

    Examples
    --------
    ν = ½ is exp(−|t|/l); between two exact measurements the process is their weighted mean:

    >>> import numpy as np, kfdyn as kf
    >>> model = kf.series.matern(0.5, [0.0, 1.0, 3.0])
    >>> model.components([1e-12, 1.0, 2.0], [1.0, np.nan, 1.0])[0].mean.round(4)
    array([1.    , 0.7967, 1.    ])
    """
    if smoothness not in _ORDERS:
        raise ModelError(f"smoothness must be 0.5, 1.5 or 2.5, got {smoothness!r}")
    when = real_array(times, "times")
    if when.ndim != 1 or not np.isfinite(when).all() or (np.diff(when) <= 0).any():
        raise ShapeError("times must be a vector of increasing numbers")
    span = float(when[-1] - when[0]) if when.size > 1 else 1.0
    part = Part(
        "matern", ("matern.variance", "matern.length"), ((0.0, None), (0.0, None)),
        partial(spread_over, [1.0], then=[0.1 * span]), partial(_matrices, smoothness, when), linear=False,
        steps=when.size,
    )  # fmt: skip
    return SeriesModel((part,), True)


def _matrices(smoothness: float, when: FloatArray, theta: FloatArray, steps: int) -> Matrices:
    if steps > when.size:
        raise ShapeError(f"{when.size} times were given, but {steps} steps are asked for; give those of the future")
    n, (variance, length) = _ORDERS[smoothness], theta
    rate = np.sqrt(2.0 * smoothness) / length
    P0 = _stationary(n, rate, variance)
    F = _steps(n, rate, np.diff(when[:steps]))
    Q = P0 - F @ P0 @ F.swapaxes(-1, -2)
    return Matrices(F, np.eye(1, n), 0.5 * (Q + Q.swapaxes(-1, -2)), P0, np.zeros(n, dtype=bool))


def _stationary(n: int, rate: float, variance: float) -> FloatArray:
    """Covariance of the process and its derivatives."""
    if n == 1:
        return np.array([[variance]])
    if n == 2:
        return variance * np.diag([1.0, rate**2])
    k = rate**2 / 3.0
    return variance * np.array([[1.0, 0.0, -k], [0.0, k, 0.0], [-k, 0.0, rate**4]])


def _steps(n: int, rate: float, gaps: FloatArray) -> FloatArray:
    """exp(A t) for every gap: e^{−λt} Σ (A + λ)^j t^j/j!, which ends, since A + λ is nilpotent."""
    A = np.diag(np.ones(n - 1), 1)
    A[-1] = [-rate] if n == 1 else [-(rate**2), -2 * rate] if n == 2 else [-(rate**3), -3 * rate**2, -3 * rate]
    N = A + rate * np.eye(n)
    t = gaps[:, None, None]
    total = np.eye(n) + N * t
    if n == 3:
        total = total + N @ N * t**2 / 2.0
    return np.exp(-rate * t) * (np.eye(1) if n == 1 else total)
