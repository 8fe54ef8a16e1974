"""A fit at a glance: the series and its future, and whether the innovations are what they should be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from kfdyn.errors import ModelError
from kfdyn.viz.style import COLORS, STYLE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from kfdyn.estimation.fitting import Fit
    from kfdyn.estimation.series import SeriesFit


def plot_fit(fit: Fit | SeriesFit, *, steps: int | None = None, lags: int = 20) -> Figure:
    """Draw a fit: the series with its smoothed signal and forecast, standardised innovations, their histogram and
    autocorrelation.

    Parameters
    ----------
    fit : Fit or SeriesFit
        Result of :func:`kfdyn.fit` on a StateSpace, or of a model of ``kf.series``, which alone knows its future.
    steps : int, optional
        Length of the forecast; a tenth of the series if not given, 0 for none.
    lags : int
        Of the autocorrelation.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> import kfdyn as kf
    >>> from kfdyn.estimation.datasets import nile
    >>> figure = kf.viz.plot_fit(kf.series.local_level().fit(nile().flow))
    >>> len(figure.axes)
    4
    """
    import matplotlib.pyplot as plt

    residuals = fit.residuals[(0,) * (fit.residuals.ndim - 1)]
    with plt.style.context(STYLE):
        figure, axes = plt.subplot_mosaic("ssss;eehc", figsize=(9.5, 5.6))
        _series(axes["s"], fit, steps)
        seen = np.flatnonzero(~np.isnan(residuals))
        e = residuals[seen]
        if e.size < 3:
            raise ModelError(f"{e.size} innovations are too few to draw")
        axes["e"].axhspan(-1.96, 1.96, color=COLORS["pale"], alpha=0.3, linewidth=0)
        axes["e"].vlines(seen, 0, e, color=COLORS["grey"], linewidth=0.7)
        axes["e"].plot(seen, e, ".", color=COLORS["grey"], markersize=3)
        axes["e"].set(title="Standardised innovations", xlabel="output")
        _histogram(axes["h"], e)
        _correlogram(axes["c"], residuals, min(lags, max(1, e.size // 2)))
    return figure


def _series(axes: Any, fit: Any, steps: int | None) -> None:
    from kfdyn.estimation.series import SeriesFit

    if not isinstance(fit, SeriesFit) or fit.model.outputs > 1 or np.ndim(fit.y) > 1:
        smooth, T = fit.score.smooth, fit.score.filt.T
        T = T.reshape(-1, T.shape[-1])[0]
        signal = np.concatenate(
            [H @ x.reshape(-1, x.shape[-1])[0] for H, x in zip(fit.model.H, smooth.x)] or [np.zeros(0)]
        )
        axes.plot(T, ".", color=COLORS["grey"], markersize=4, label="measured")
        axes.plot(signal, color=COLORS["blue"], label="smoothed")
        axes.set(title="Measurements and the smoothed signal", xlabel="output")
        axes.legend(ncols=2)
        return
    y = np.asarray(fit.y, dtype=float)
    when = np.arange(y.size)
    x, S, H, _ = fit.model._smoothed(fit.params, y)
    signal = np.einsum("kmi,ki->k", H, x)
    half = 1.96 * np.sqrt(np.maximum(np.einsum("kmi,kij,kmj->k", H, S, H), 0.0))
    axes.plot(when, y, ".", color=COLORS["grey"], markersize=4, label="measured")
    axes.fill_between(when, signal - half, signal + half, color=COLORS["blue"], alpha=0.2, linewidth=0)
    axes.plot(when, signal, color=COLORS["blue"], label="smoothed, 95 %")
    steps = y.size // 10 if steps is None else steps
    if steps and all(part.steps is None for part in fit.model.parts):
        ahead = fit.model.forecast(fit.params, y, steps)
        later = y.size + np.arange(steps)
        axes.fill_between(later, ahead.lower, ahead.upper, color=COLORS["orange"], alpha=0.2, linewidth=0)
        axes.plot(later, ahead.mean, color=COLORS["orange"], label="forecast, 95 %")
    axes.set(title=" + ".join(part.kind for part in fit.model.parts), xlabel="step")
    axes.legend(ncols=3)


def _histogram(axes: Any, e: Any) -> None:
    low, high = min(-3.5, e.min()), max(3.5, e.max())
    axes.hist(e, bins=max(8, int(np.sqrt(e.size))), density=True, color=COLORS["sky"], alpha=0.6)
    x = np.linspace(low, high, 200)
    axes.plot(x, np.exp(-0.5 * x**2) / np.sqrt(2 * np.pi), color=COLORS["grey"], linewidth=1.2)
    axes.set(title="Against N(0, 1)", yticks=[])


def _correlogram(axes: Any, residuals: Any, lags: int) -> None:
    e = np.where(np.isnan(residuals), 0.0, residuals)
    power, n = (e**2).sum(), int((~np.isnan(residuals)).sum())
    values = [(e[lag:] * e[:-lag]).sum() / power for lag in range(1, lags + 1)]
    bound = 1.96 / np.sqrt(n)
    axes.axhspan(-bound, bound, color=COLORS["pale"], alpha=0.3, linewidth=0)
    axes.axhline(0, color=COLORS["grey"], linewidth=0.8)
    axes.vlines(range(1, lags + 1), 0, values, color=COLORS["blue"], linewidth=2.0)
    axes.set(title="Autocorrelation", xlabel="lag", ylim=(-0.6, 0.6))
