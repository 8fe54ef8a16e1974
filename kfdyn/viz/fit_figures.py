"""Draw a fit: the series, its forecast, and diagnostics of the innovations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from kfdyn.errors import ModelError
from kfdyn.estimation.fitting.fit_result import standardised
from kfdyn.estimation.inference.missing_data import gathered, smooth_batch
from kfdyn.estimation.series import SeriesFit
from kfdyn.estimation.series.input_data import given_series
from kfdyn.viz.style import COLORS, STYLE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from kfdyn.estimation.fitting import Fit
    from kfdyn.estimation.model.state_space import StateSpace
    from kfdyn.estimation.series import SeriesFit

_MOST = 6  # panels that a figure draws if it is not told which


def plot_fit(
    fit: Fit | SeriesFit, *, steps: int | None = None, lags: int = 20, entries: Sequence[int] | None = None
) -> Figure:
    """Draw a fit: the series with its smoothed signal and forecast, standardised innovations, their histogram and
    autocorrelation.

    Several series, and the outputs of one that has several, get a row each.

    Parameters
    ----------
    fit : Fit or SeriesFit
        Result of :func:`kfdyn.fit` on a StateSpace, or of a model of ``kf.series``, which alone knows its future.
    steps : int, optional
        Length of the forecast; a tenth of the series if not given, 0 for none.
    lags : int
        Of the autocorrelation.
    entries : sequence of int, optional
        Which series of a batch are drawn, counted in the flattened batch; if not given, the first ones with a
        measurement that fill six rows.

    Returns
    -------
    matplotlib.figure.Figure
        The figure; four axes for each series and output.

    Examples
    --------
    >>> import kfdyn as kf
    >>> from kfdyn.estimation.datasets import nile
    >>> figure = kf.viz.plot_fit(kf.series.local_level().fit(nile().flow))
    >>> len(figure.axes)
    4
    """
    import matplotlib.pyplot as plt

    drawn = _drawn(fit, entries, steps)
    for part in drawn:
        count = int((~np.isnan(part.residuals)).sum())
        if count < 3:
            raise ModelError(f"{count} innovations are too few to draw{f' ({part.name})' if part.name else ''}")
    with plt.style.context(STYLE):
        if len(drawn) == 1:
            figure, axes = plt.subplot_mosaic("ssss;eehc", figsize=(9.5, 5.6))
            _draw([axes[name] for name in "sehc"], drawn[0], lags, titles=True)
            axes["s"].legend(ncols=3)
            return figure
        ratios = {"width_ratios": [4, 2.4, 1.3, 1.3]}
        figure, grid = plt.subplots(len(drawn), 4, figsize=(12.0, 0.7 + 2.0 * len(drawn)), gridspec_kw=ratios)
        for i, (row, part) in enumerate(zip(grid, drawn)):
            _draw(row, part, lags, titles=i == 0)
            row[0].set_ylabel(part.name)
            if i < len(drawn) - 1:
                for axes in row:
                    axes.set_xlabel("")
        grid[0, 0].legend(ncols=3)
    return figure


class _Along(NamedTuple):
    """Horizontal axis of a series: name, places of its steps and of the forecast's, and whether they are dates."""

    name: str
    places: Callable[[int], Any]
    dated: bool = False


class _Drawn(NamedTuple):
    """One output of one series: what was measured, its smoothed signal, half the width of its interval, and so on."""

    name: str
    title: str
    along: _Along
    measured: Any
    signal: Any
    half: Any
    residuals: Any
    ahead: tuple[Any, Any, Any] | None


def _drawn(fit: Any, entries: Sequence[int] | None, steps: int | None) -> list[_Drawn]:
    """Return all rows of the figure."""
    if isinstance(fit, SeriesFit):
        ss, rows, title, along = _of_series(fit)
        m = fit.model.outputs
    else:
        T = fit._problem.objective.T
        # which refuses a model that branches outward, and says what to do
        ss, rows, title = fit._inward, T.reshape(-1, T.shape[-1]), "Measurements and the smoothed signal"
        m = _outputs_of_a_chain(ss)
        along = _Along("step" if m > 1 else "output", np.arange)
    measured = np.flatnonzero(~np.isnan(rows).all(axis=1)).tolist()
    chosen = measured[: max(1, _MOST // m)] if entries is None else [int(i) for i in entries]
    wrong = [i for i in chosen if not 0 <= i < len(rows)]
    if wrong or not chosen:
        raise ModelError(f"entries must name some of the series 0 to {len(rows) - 1}; got {chosen}")
    empty = [i for i in chosen if i not in measured]
    if empty:
        raise ModelError(f"series {empty[0]} has no measurement, so there is nothing to draw; leave it out of entries")
    found = smooth_batch(ss, rows[chosen])
    if len(chosen) < len(rows):
        title += f" ({len(chosen)} of {len(rows)} series)"
    signal, variance = _signals(ss, found)
    residuals = gathered(
        found.a.shape[:-1], [e for e, _ in found.groups], [standardised(x.filt) for _, x in found.groups]
    )
    out = []
    for at, i in enumerate(chosen):
        ahead = _ahead(fit, rows[i], steps) if isinstance(fit, SeriesFit) else None
        for j in range(m):
            own = slice(j, None, m)
            words = ([f"series {i}"] if len(rows) > 1 else []) + ([f"output {j}"] if m > 1 else [])
            out.append(
                _Drawn(
                    ", ".join(words),
                    title,
                    along,
                    rows[i][own],
                    signal[at][own],
                    1.96 * np.sqrt(np.maximum(variance[at][own], 0.0)),
                    residuals[at][own],
                    None if ahead is None else tuple(part[own] for part in ahead),
                )
            )
    return out


def _of_series(fit: Any) -> tuple[StateSpace, Any, str, _Along]:
    T, steps = given_series(fit.y, fit.model.outputs, fit.model.parts)
    rows = T.reshape(-1, T.shape[-1])
    ss = fit.model.state_space(fit.params, T.shape[-1] // fit.model.outputs)
    return ss, rows, " + ".join(part.kind for part in fit.model.parts), _along(fit.y, steps)


def _along(y: Any, steps: Any) -> _Along:
    """Return the dates of a pandas series, or steps; absent rows lie evenly between their neighbours."""
    if steps is None:
        return _Along("step", np.arange)
    import pandas as pd  # type: ignore[import-untyped]

    if not isinstance(y.index, pd.DatetimeIndex | pd.PeriodIndex):
        return _Along("step", np.arange)
    total = len(y) if steps.at is None else int(steps.at[-1]) + 1
    known = np.arange(len(y)) if steps.at is None else steps.at

    def places(count: int) -> Any:
        within = np.interp(np.arange(min(count, total)), known, _days(y.index))
        return within if count <= total else np.concatenate([within, _days(steps.following(count - total))])

    return _Along(str(y.index.name or "date"), places, dated=True)


def _days(index: Any) -> Any:
    """Return dates, or the beginnings of periods, as matplotlib counts them, by the clock they were given in."""
    import pandas as pd
    from matplotlib.dates import date2num

    stamps = index.to_timestamp() if isinstance(index, pd.PeriodIndex) else index
    return date2num(stamps.tz_localize(None).to_numpy())


def _outputs_of_a_chain(ss: StateSpace) -> int:
    """Return the outputs of each step of a uniform chain; 1 for any other model: all in one row."""
    chain = (ss.tree.parent == np.append(np.arange(1, len(ss)), -1)).all()
    return int(ss.m[0]) if chain and len(ss) > 1 and (ss.m == ss.m[0]).all() else 1


def _signals(ss: StateSpace, found: Any) -> tuple[Any, Any]:
    """Return Hx̂ and the diagonal of HSH*, (batch, Σm)."""
    shape = found.a.shape
    signal, variance = np.zeros(shape), np.zeros(shape)
    for entries, smooth in found.groups:
        for k, H in enumerate(ss.H):
            own = slice(ss.arrays.output[k], ss.arrays.output[k + 1])
            signal[entries, own] = smooth.x[k] @ H.T
            variance[entries, own] = ((H @ smooth.S[k]) * H).sum(axis=1)
    return signal, variance


def _ahead(fit: Any, T: Any, steps: int | None) -> tuple[Any, Any, Any] | None:
    """Return mean and interval of the forecast of one series, outputs of a step after each other."""
    m = fit.model.outputs
    steps = T.size // (10 * m) if steps is None else steps
    if not steps or any(part.steps is not None for part in fit.model.parts):
        return None
    ahead = fit.model.forecast(fit.params, T if m == 1 else T.reshape(-1, m), steps)
    return np.ravel(ahead.mean), np.ravel(ahead.lower), np.ravel(ahead.upper)


def _draw(row: Sequence[Any], part: _Drawn, lags: int, titles: bool) -> None:
    """Draw the four axes of one output."""
    series, innovations, histogram, correlogram = row
    seen = np.flatnonzero(~np.isnan(part.residuals))
    e = part.residuals[seen]
    length = part.measured.size
    places = part.along.places(length + (0 if part.ahead is None else part.ahead[0].size))
    when, later = places[:length], places[length:]
    series.plot(when, part.measured, ".", color=COLORS["grey"], markersize=4, label="measured")
    low, high = part.signal - part.half, part.signal + part.half
    series.fill_between(when, low, high, color=COLORS["blue"], alpha=0.2, linewidth=0)
    series.plot(when, part.signal, color=COLORS["blue"], label="smoothed, 95 %")
    if part.ahead is not None:
        mean, lower, upper = part.ahead
        series.fill_between(later, lower, upper, color=COLORS["orange"], alpha=0.2, linewidth=0)
        series.plot(later, mean, color=COLORS["orange"], label="forecast, 95 %")
    series.set(title=part.title if titles else "", xlabel=part.along.name)
    innovations.axhspan(-1.96, 1.96, color=COLORS["pale"], alpha=0.3, linewidth=0)
    innovations.vlines(when[seen], 0, e, color=COLORS["grey"], linewidth=0.7)
    innovations.plot(when[seen], e, ".", color=COLORS["grey"], markersize=3)
    innovations.set(title="Standardised innovations" if titles else "", xlabel=part.along.name)
    if part.along.dated:
        _as_dates(series, innovations)
    _histogram(histogram, e)
    _correlogram(correlogram, part.residuals, min(lags, max(1, e.size // 2)))
    if not titles:
        histogram.set_title("")
        correlogram.set_title("")


def _as_dates(*row: Any) -> None:
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    for axes in row:
        locator = AutoDateLocator(minticks=3, maxticks=7)
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))


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
