"""Results for a series: components, forecasts and fits; the second maximum of a trend."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from kfdyn.errors import KfdynError
from kfdyn.estimation.fitting import Fit, fit
from kfdyn.estimation.model.blocks import FloatArray
from kfdyn.estimation.series.build import Builder

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


_SHARES = (0.2, 0.4, 0.8)  # of the level's variance, that its slope might have instead
_NEAR = 2.0  # what a look may be worse by than the first maximum, for a search to begin there
_SMALL = 1e-3  # of where the first search began: inside a bound, for what is at it


def better_mode(model: SeriesModel, build: Builder, found: Fit, begin: FloatArray, max_iterations: int) -> Fit:
    """Return the fit, or that of the other maximum if a few likelihoods suggest one and it is higher.

    A local trend has two where its slope was put to rest: one with a level that wanders, one with a slope that does.
    Each is a maximum, with the other variance at its bound. A look costs a third of a step of the search, and a second
    search begins only where one of them comes near the first maximum.
    """
    at = int(model.has_noise)
    for part in model.parts:
        if part.names == ("level", "trend") and found.at_bound[at + 1] and not found.at_bound[at]:
            groups = found._problem.objective.groups
            best, start = found.llf - _NEAR, None
            for share in _SHARES:
                theta = found.params.copy()
                theta[at], theta[at + 1] = 0.0, share * found.params[at]
                try:
                    value = sum(build.value(theta, T) for T in groups)
                except KfdynError:  # no likelihood there, so no maximum either
                    continue
                if value > best:
                    best, start = value, np.where(theta > 0.0, theta, np.where(found.at_bound, _SMALL * begin, theta))
            if start is not None:
                start[at] = _SMALL * begin[at]
                other = fit(
                    build, start, found._problem.objective.T, bounds=model.bounds, names=found.names,
                    max_iterations=max_iterations,
                )  # fmt: skip
                other._problem.objective.evaluations += found.n_evaluations
                if other.converged and other.llf > found.llf:
                    found = other
        at += len(part.names)
    return found
