"""Ready-made models of time series, which add up: ``local_level() + seasonal(12)``.

Each function makes a :class:`SeriesModel`; the sum of two has the states of both and one measurement noise. ``fit``
estimates the variances, ``forecast`` continues the series with intervals, ``components`` takes it apart.
"""

from kfdyn.estimation.series.arma import ar, arma, coefficients_of
from kfdyn.estimation.series.matern import matern
from kfdyn.estimation.series.series_fit import Component, Forecast, SeriesFit
from kfdyn.estimation.series.series_model import SeriesModel
from kfdyn.estimation.series.structural import cycle, local_level, local_trend, noise, regression, seasonal
from kfdyn.estimation.series.tracking import constant_acceleration, constant_velocity

__all__ = [
    "Component",
    "Forecast",
    "SeriesFit",
    "SeriesModel",
    "ar",
    "arma",
    "coefficients_of",
    "constant_acceleration",
    "constant_velocity",
    "cycle",
    "local_level",
    "local_trend",
    "matern",
    "noise",
    "regression",
    "seasonal",
]
