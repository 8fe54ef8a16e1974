"""Constant velocity and constant acceleration, in any number of dimensions, with the noise in continuous time."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from kfdyn.errors import ModelError
from kfdyn.estimation.model.blocks import FloatArray
from kfdyn.estimation.series.component import Matrices, Part, flat_prior, spread_over
from kfdyn.estimation.series.series_model import SeriesModel


def constant_velocity(dt: float = 1.0, dimensions: int = 1) -> SeriesModel:
    """Make a position whose velocity is a Wiener process, measured with noise.

    Parameters
    ----------
    dt : float
        Time between steps.
    dimensions : int
        Of space; the outputs are the positions, the states position and velocity of each.

    Returns
    -------
    SeriesModel
        With the variance ``noise`` and ``acceleration``, the spectral density of the white acceleration, the same in
        all dimensions.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> model = kf.series.constant_velocity(0.5, 2)
    >>> track = np.stack([np.arange(6.0), 2 * np.arange(6.0)], axis=-1)
    >>> model.forecast([0.1, 0.1], track, 1).mean.round(6)
    array([[ 6., 12.]])
    """
    return _integrated("velocity", ("acceleration",), 2, dt, dimensions)


def constant_acceleration(dt: float = 1.0, dimensions: int = 1) -> SeriesModel:
    """Make a position whose acceleration is a Wiener process, measured with noise.

    Parameters
    ----------
    dt : float
        Time between steps.
    dimensions : int
        Of space.

    Returns
    -------
    SeriesModel
        With the variance ``noise`` and ``jerk``, the spectral density of the white jerk.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> kf.series.constant_acceleration().forecast([0.1, 0.01], np.arange(8.0) ** 2, 1).mean.round(6)
    array([64.])
    """
    return _integrated("acceleration", ("jerk",), 3, dt, dimensions)


def _integrated(kind: str, names: tuple[str, ...], order: int, dt: float, dimensions: int) -> SeriesModel:
    if not (np.isfinite(dt) and dt > 0):
        raise ModelError(f"dt must be a positive number, got {dt}")
    if not isinstance(dimensions, int | np.integer) or dimensions < 1:
        raise ModelError(f"dimensions must be a whole number, 1 or more, got {dimensions!r}")
    powers = np.arange(order)
    step = np.array([[dt ** (j - i) / math.factorial(j - i) if j >= i else 0.0 for j in powers] for i in powers])
    # white noise integrated order − 1 − i times by the time it reaches state i, over one step
    left = order - 1 - powers
    factor = np.array([math.factorial(k) for k in left])
    unit = dt ** (left[:, None] + left + 1) / ((left[:, None] + left + 1) * factor[:, None] * factor)
    eye = np.eye(int(dimensions))
    F, H, each = (np.asarray(np.kron(eye, x), dtype=np.float64) for x in (step, np.eye(1, order), unit))
    start, matrices = partial(spread_over, [0.1 / unit[0, 0]]), partial(_driven, F, H, each)
    return SeriesModel((Part(kind, names, ((0.0, None),), start, matrices, outputs=int(dimensions)),), True)


def _driven(F: FloatArray, H: FloatArray, each: FloatArray, theta: FloatArray, steps: int) -> Matrices:
    return Matrices(F, H, theta[0] * each, *flat_prior(len(F)))
