"""Level, trend, seasons, cycles, regressors: the parts of structural time series (Harvey 1989)."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.errors import ModelError, ShapeError
from kfdyn.estimation.model.blocks import FloatArray, real_array
from kfdyn.estimation.series.component import Matrices, Part, flat_prior, spread_over
from kfdyn.estimation.series.pandas_io import is_pandas
from kfdyn.estimation.series.series_model import SeriesModel

_POSITIVE = (0.0, None)


def _variances(
    kind: str, names: tuple[str, ...], F: FloatArray, h: FloatArray, at: list[int], shares: list[float]
) -> Part:
    """Make a part with constant F and h; states at the given places have variances to be estimated."""
    bounds = (_POSITIVE,) * len(names)
    return Part(kind, names, bounds, partial(spread_over, shares), partial(_wandering, F, h, at))


def _wandering(F: FloatArray, h: FloatArray, at: list[int], theta: FloatArray, steps: int) -> Matrices:
    Q = np.zeros_like(F)
    Q[at, at] = theta
    return Matrices(F, h, Q, *flat_prior(len(F)))


def noise() -> SeriesModel:
    """Make white measurement noise alone; a sum has it once.

    Returns
    -------
    SeriesModel
        With the parameter ``noise``, its variance.

    Examples
    --------
    >>> import kfdyn as kf
    >>> (kf.series.cycle() + kf.series.noise()).names
    ('noise', 'cycle', 'cycle.period', 'cycle.damping')
    """
    return SeriesModel((), True)


def local_level() -> SeriesModel:
    """Make a random walk seen with noise: x(k+1) = x(k) + w, T = x + r.

    Returns
    -------
    SeriesModel
        With the variances ``noise`` and ``level``.

    Examples
    --------
    >>> import kfdyn as kf
    >>> from kfdyn.estimation.datasets import nile
    >>> fit = kf.series.local_level().fit(nile().flow)
    >>> fit.params.round(-1), round(fit.llf, 2)
    (array([15100.,  1470.]), -633.46)
    """
    one = np.ones((1, 1))
    return SeriesModel((_variances("level", ("level",), one, one, [0], [0.3]),), True)


def local_trend(*, smooth: bool = False) -> SeriesModel:
    """Make a level with a slope, both of which wander: x(k+1) = x + b + w, b(k+1) = b + v, T = x + r.

    Parameters
    ----------
    smooth : bool
        Whether the slope alone wanders, w = 0: an integrated random walk.

    Returns
    -------
    SeriesModel
        With the variances ``noise``, ``level`` (unless smooth) and ``trend``.

    Examples
    --------
    A straight line goes on:

    >>> import numpy as np, kfdyn as kf
    >>> model = kf.series.local_trend()
    >>> model.forecast([0.1, 0.0, 0.0], 2.0 * np.arange(8), 2).mean.round(6)
    array([16., 18.])
    """
    F, h = np.array([[1.0, 1.0], [0.0, 1.0]]), np.array([[1.0, 0.0]])
    if smooth:
        return SeriesModel((_variances("trend", ("trend",), F, h, [1], [0.01]),), True)
    return SeriesModel((_variances("trend", ("level", "trend"), F, h, [0, 1], [0.3, 0.01]),), True)


def seasonal(period: int) -> SeriesModel:
    """Make a pattern that repeats and slowly changes: the last ``period`` seasons sum to white noise.

    Parameters
    ----------
    period : int
        Steps after which it repeats, 2 or more.

    Returns
    -------
    SeriesModel
        With the variance ``seasonal``; add it to a level or trend.

    Examples
    --------
    >>> import kfdyn as kf
    >>> (kf.series.local_level() + kf.series.seasonal(4)).names
    ('noise', 'level', 'seasonal')
    """
    if not isinstance(period, int | np.integer) or period < 2:
        raise ModelError(f"period must be a whole number of steps, 2 or more, got {period!r}")
    n = int(period) - 1
    F = np.zeros((n, n))
    F[0] = -1.0
    F[1:, :-1] = np.eye(n - 1)
    h = np.zeros((1, n))
    h[0, 0] = 1.0
    return SeriesModel((_variances("seasonal", ("seasonal",), F, h, [0], [0.05]),), False)


def cycle(period: tuple[float, float] = (2.0, 1000.0)) -> SeriesModel:
    """Make a damped oscillation kicked at random: a rotation by 2π/period shrunk by a factor, stationary.

    Parameters
    ----------
    period : (shortest, longest)
        Limits of the period, in steps.

    Returns
    -------
    SeriesModel
        With ``cycle`` (the variance of the kicks), ``cycle.period`` and ``cycle.damping`` (the factor, below 1).

    Examples
    --------
    >>> import kfdyn as kf
    >>> kf.series.cycle((5, 20)).bounds[1]
    (5.0, 20.0)
    """
    low, high = float(period[0]), float(period[1])
    if not 2.0 <= low < high:
        raise ModelError(f"the period lies between two numbers, 2 or more and increasing; got {period}")
    middle = float(np.sqrt(low * min(high, 10 * low)))
    part = Part(
        "cycle", ("cycle", "cycle.period", "cycle.damping"), (_POSITIVE, (low, high), (0.0, 1.0)),
        partial(spread_over, [0.1], then=[middle, 0.9]), _turning, linear=False, analytic=True,
    )  # fmt: skip
    return SeriesModel((part,), False)


def _turning(theta: FloatArray, steps: int) -> Matrices:
    variance, length, factor = theta
    if not factor.real < 1.0:
        raise ModelError(f"cycle.damping is {factor.real:g}; a cycle is stationary only where it is less than 1")
    c, s = np.cos(2 * np.pi / length), np.sin(2 * np.pi / length)
    eye = np.eye(2)
    F = factor * np.array([[c, s], [-s, c]])
    P0 = variance / ((1.0 - factor) * (1.0 + factor)) * eye  # exact, however near to 1
    return Matrices(F, np.array([[1.0, 0.0]]), variance * eye, P0, np.zeros(2, dtype=bool))


def regression(X: ArrayLike, *, drifting: bool = False) -> SeriesModel:
    """Add known series with unknown coefficients, constant or random walks: T = Σ β_j X_j.

    Parameters
    ----------
    X : array, shape (N,) or (N, c)
        The regressors; for a forecast of ``s`` steps there must be N + s rows. If they are pandas and the series is
        too, their rows must be those of the series, with the same index; one that only counts rows fits any names.
    drifting : bool
        Whether the coefficients wander.

    Returns
    -------
    SeriesModel
        With a variance ``coefficient[j]`` for each column if drifting, else without parameters.

    Examples
    --------
    A step of 3 in noise; the coefficient has a flat prior and is estimated with the states:

    >>> import numpy as np, kfdyn as kf
    >>> step = (np.arange(20) >= 10).astype(float)
    >>> model = kf.series.regression(step) + kf.series.noise()
    >>> part = model.components([1.0], 3 * step)[0]
    >>> part.mean[[0, 19]].round(6)
    array([0., 3.])

    The coefficient itself is a state:

    >>> ss = model.state_space([1.0], 20)
    >>> smooth = kf.bryson_frazier(ss, kf.kalman_filter(ss, 3 * step))
    >>> smooth.smoothed_state[-1].round(6), smooth.smoothed_state_cov[-1].round(6)
    (array([3.]), array([[0.1]]))
    """
    rows = real_array(X, "X")
    rows = rows[:, None] if rows.ndim == 1 else rows
    if rows.ndim != 2 or not np.isfinite(rows).all():
        raise ShapeError(f"X must be (N,) or (N, c) and finite; got shape {np.shape(X)}")
    names = tuple(f"coefficient[{j}]" for j in range(rows.shape[1])) if drifting else ()
    size = np.maximum((rows**2).mean(axis=0), 1e-300)
    part = Part(
        "regression", names, (_POSITIVE,) * len(names), partial(spread_over, 0.1 / size[: len(names)]),
        partial(_regressors, rows), steps=len(rows), index=getattr(X, "index", None) if is_pandas(X) else None,
    )  # fmt: skip
    return SeriesModel((part,), False)


def _regressors(rows: FloatArray, theta: FloatArray, steps: int) -> Matrices:
    have, n = rows.shape
    if steps > have:
        raise ShapeError(f"X has {have} rows, but {steps} steps are asked for; give regressors for the future too")
    Q = np.diag(theta) if theta.size else np.zeros((n, n))
    return Matrices(np.eye(n), rows[:steps, None, :], Q, *flat_prior(n))
