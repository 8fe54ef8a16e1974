"""Results for a series: components, forecasts and fits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from kfdyn.estimation.fitting import Fit
from kfdyn.estimation.model.blocks import FloatArray

if TYPE_CHECKING:
    from kfdyn.estimation.series.series_model import SeriesModel


class Component(NamedTuple):
    """Contribution of one part to the series, given all data.

    Attributes
    ----------
    kind : str
        Which part.
    mean, std : ndarray, shape (N,) or (N, m)
        Its mean and standard deviation at each step; pandas where the series was.

    Examples
    --------
    >>> Component("level", np.zeros(3), np.ones(3)).kind
    'level'
    """

    kind: str
    mean: Any
    std: Any


class Forecast(NamedTuple):
    """The future of a series.

    Attributes
    ----------
    mean : ndarray, shape (s,) or (s, m)
        Expected measurements.
    std : ndarray
        Standard deviations of the measurements, noise included.
    lower, upper : ndarray
        Interval of the asked confidence.

    Examples
    --------
    >>> import kfdyn as kf
    >>> ahead = kf.series.local_level().forecast([1.0, 0.0], [2.0, 4.0], 1)
    >>> ahead.mean, ahead.std.round(6)
    (array([3.]), array([1.224745]))
    """

    mean: Any
    std: Any
    lower: Any
    upper: Any


@dataclass(frozen=True, eq=False)
class SeriesFit:
    """A fitted model of a time series: all that a :class:`Fit` has, and its past and future.

    Attributes
    ----------
    model : SeriesModel
        What was fitted.
    y : array or pandas
        The series.
    result : Fit
        Parameters, standard errors, criteria; its attributes are this one's too.

    Examples
    --------
    >>> import kfdyn as kf
    >>> from kfdyn.estimation.datasets import nile
    >>> fit = kf.series.local_level().fit(nile().flow)
    >>> fit.converged, fit.forecast(2).mean.round(1)
    (True, array([798.4, 798.4]))
    """

    model: SeriesModel
    y: Any
    result: Fit

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.result, name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *(name for name in dir(self.result) if not name.startswith("_"))})

    def __str__(self) -> str:
        return self.result.summary()

    def forecast(self, steps: int, *, confidence: float = 0.95) -> Forecast:
        """Continue the series; see :meth:`SeriesModel.forecast`."""
        return self.model.forecast(self.result.params, self.y, steps, confidence=confidence)

    def components(self) -> list[Component]:
        """Take the series apart; see :meth:`SeriesModel.components`."""
        return self.model.components(self.result.params, self.y)

    def simulate(self, steps: int, rng: np.random.Generator, n: int | None = None) -> FloatArray:
        """Draw series with the estimated parameters; see :meth:`SeriesModel.simulate`."""
        return self.model.simulate(self.result.params, steps, rng, n)
