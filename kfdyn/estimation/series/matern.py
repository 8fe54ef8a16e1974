"""Matérn processes at any times: Gaussian-process regression in O(N)."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.errors import ModelError, ShapeError
from kfdyn.estimation.model.blocks import FloatArray, real_array
from kfdyn.estimation.series.component import Matrices, Part, spread_over
from kfdyn.estimation.series.series_model import SeriesModel

_ORDERS = {0.5: 1, 1.5: 2, 2.5: 3}
# uⁿ⁻¹/(n−1)! and what its derivatives are after e⁻ᵘ is split off, by powers of u
_PULSES = {1: [[1.0]], 2: [[0.0, 1.0], [1.0, -1.0]], 3: [[0.0, 0.0, 0.5], [0.0, 1.0, -0.5], [1.0, -2.0, 0.5]]}
_INTENSITY = {1: 2.0, 2: 4.0, 3: 16.0 / 3.0}  # of the white noise that keeps the variance at 1


def matern(smoothness: float, times: ArrayLike) -> SeriesModel:
    """Make a stationary Gaussian process with Matérn covariance of smoothness ½, 3/2 or 5/2, measured with noise.

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
    if when.ndim != 1 or not np.isfinite(when).all():
        raise ShapeError(f"times must be a vector of finite, increasing numbers; got shape {when.shape}")
    back = np.flatnonzero(np.diff(when) <= 0)
    if back.size:
        i = int(back[0])
        raise ShapeError(
            f"times must be increasing, but {when[i + 1]:.12g} follows {when[i]:.12g} at place {i + 1}: sort times and "
            "series together, and take the mean of measurements at one time"
        )
    span = float(when[-1] - when[0]) if when.size > 1 else 1.0
    part = Part(
        "matern", ("matern.variance", "matern.length"), ((0.0, None), (0.0, None)),
        partial(spread_over, [1.0], then=[0.1 * span]), partial(_matrices, smoothness, when), linear=False,
        steps=when.size, times=when,
    )  # fmt: skip
    return SeriesModel((part,), True)


def _matrices(smoothness: float, when: FloatArray, theta: FloatArray, steps: int) -> Matrices:
    if steps > when.size:
        raise ShapeError(f"{when.size} times were given, but {steps} steps are asked for; give those of the future")
    n, (variance, length) = _ORDERS[smoothness], theta
    if not length > 0.0:
        raise ModelError(f"matern.length is {length:g}; it must be positive, or the process is white noise")
    rate, gaps = np.sqrt(2.0 * smoothness) / length, np.diff(when[:steps])
    Q = _noise(n, rate, variance, gaps)
    return Matrices(_steps(n, rate, gaps), np.eye(1, n), Q, _stationary(n, rate, variance), np.zeros(n, dtype=bool))


def _stationary(n: int, rate: float, variance: float) -> FloatArray:
    """Return the covariance of the process and its derivatives."""
    if n == 1:
        return np.array([[variance]])
    if n == 2:
        return variance * np.diag([1.0, rate**2])
    k = rate**2 / 3.0
    return variance * np.array([[1.0, 0.0, -k], [0.0, k, 0.0], [-k, 0.0, rate**4]])


def _steps(n: int, rate: float, gaps: FloatArray) -> FloatArray:
    """Return exp(A t) for every gap: e^{−λt} Σ (A + λ)^j t^j/j!, which ends, since A + λ is nilpotent."""
    A = np.diag(np.ones(n - 1), 1)
    A[-1] = [-rate] if n == 1 else [-(rate**2), -2 * rate] if n == 2 else [-(rate**3), -3 * rate**2, -3 * rate]
    N = A + rate * np.eye(n)
    t = gaps[:, None, None]
    total = np.eye(n) + N * t
    if n == 3:
        total = total + N @ N * t**2 / 2.0
    return np.exp(-rate * t) * (np.eye(1) if n == 1 else total)


def _noise(n: int, rate: float, variance: float, gaps: FloatArray) -> FloatArray:
    """Return ∫ F q F* over every gap, without the cancellation of P0 − F P0 F* where gaps are short.

    White noise moves the process by f(t) = tⁿ⁻¹e^{−λt}/(n−1)! and its derivatives by those of f, so that the entries
    are c ∫ f⁽ⁱ⁾f⁽ʲ⁾: sums of ∫ uᵏe^{−2u} du, incomplete gamma functions, in the time u = λt.
    """
    from scipy.special import factorial, gammainc

    polynomials = np.array(_PULSES[n])  # (derivative, power of u)
    powers = np.arange(2 * n - 1)
    moments = factorial(powers) / 2.0 ** (powers + 1) * gammainc(powers + 1, 2.0 * rate * gaps[:, None])
    out = np.zeros((gaps.size, n, n))
    for i in range(n):
        for j in range(i + 1):
            out[:, i, j] = out[:, j, i] = moments @ np.convolve(polynomials[i], polynomials[j])
    scale = rate ** np.arange(n)
    return variance * _INTENSITY[n] * out * np.outer(scale, scale)
