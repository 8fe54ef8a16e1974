"""Series from and to pandas: values, the steps that an index names, and what follows it.

pandas is imported only if the caller uses it. Rows that are absent from a regular index are missing measurements; an
index that is not regular is refused, for what follows it would have a wrong date. An index of names that are no times,
such as letters, counts as consecutive steps.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kfdyn.errors import ModelError, ShapeError
from kfdyn.estimation.fitting.objective import expect_one_length
from kfdyn.estimation.model.blocks import FloatArray, real_array


def is_pandas(y: Any) -> bool:
    """Return True if it is a Series or a DataFrame; pandas is not imported for that."""
    return type(y).__module__.split(".")[0] == "pandas" and hasattr(y, "index")


def values_of(y: Any) -> FloatArray:
    """Return the numbers of a series."""
    if isinstance(y, np.ma.MaskedArray):  # whose numbers under the mask would be taken as measured
        y = np.ma.filled(y.astype(float), np.nan)
    if not is_pandas(y):
        expect_one_length(y, "y")
        return real_array(y, "y")
    try:
        return real_array(y.to_numpy(dtype=float, na_value=np.nan), "y")
    except (TypeError, ValueError) as error:
        columns = [repr(name) for name, kind in y.dtypes.items() if kind.kind not in "iufb"] if y.ndim == 2 else []
        where = f"column {', '.join(columns)} of " if columns else ""
        raise ShapeError(f"{where}the series must hold real numbers: {error}; drop or convert what does not") from error


def wrapped(y: Any, values: FloatArray, name: str, index: Any = None) -> Any:
    """Give values the index of the series, or another; return them as they are if the series is an array."""
    if not is_pandas(y):
        return values
    import pandas as pd  # type: ignore[import-untyped]

    index = y.index if index is None else index
    if values.ndim == 1:
        return pd.Series(values, index=index, name=name)
    return pd.DataFrame(values, index=index, columns=getattr(y, "columns", None))


_CURE = (
    "give it a frequency, such as y.asfreq('D'), which marks absent rows by NaN; call y.reset_index(drop=True) if its "
    "rows are steps all the same; or take kf.series.matern for times that are not regular"
)
_ROUNDING = 1e-6  # of a step, by which times given in decimals may differ from their place


class Steps(NamedTuple):
    """Step of each row, None where rows follow one another; ``following(s)`` is the index of s steps after them."""

    at: NDArray[np.int64] | None
    following: Callable[[int], Any]


def steps_of(index: Any) -> Steps:
    """Find the steps of a pandas index, or say why there are none."""
    import pandas as pd

    if isinstance(index, pd.RangeIndex):
        return Steps(None, lambda s: pd.RangeIndex(index.stop, index.stop + s * index.step, index.step))
    if isinstance(index, pd.PeriodIndex):
        _expect_forward(index)
        at = _places(index.asi8, float(index.freq.n), index)
        return Steps(at, lambda s: pd.period_range(index[-1] + index.freq, periods=s, freq=index.freq))
    if isinstance(index, pd.DatetimeIndex):
        return _dated(index)
    if isinstance(index, pd.TimedeltaIndex) or (index.dtype.kind in "iuf" and index.nlevels == 1):
        return _counted(index)
    return Steps(None, lambda s: pd.RangeIndex(len(index), len(index) + s))


def _counted(index: Any) -> Steps:
    """Find the steps of numbers and durations: the smallest difference is the step."""
    import pandas as pd

    timed = isinstance(index, pd.TimedeltaIndex)
    values = index.as_unit("ns").asi8 if timed else index.to_numpy(dtype=float, na_value=np.nan)
    if len(index) < 2:
        return Steps(None, _unknown(index))
    change = np.diff(values)
    k = int(np.argmin(np.abs(change)))
    at, step = _places(values, float(change[k]), index), index[k + 1] - index[k]
    return Steps(at, lambda s: pd.Index([index[-1] + i * step for i in range(1, s + 1)]))


def _dated(index: Any) -> Steps:
    import pandas as pd

    _expect_forward(index)
    if index.freq is None and len(index) < 3:
        return Steps(None, _unknown(index))
    with warnings.catch_warnings():  # that it will be an offset instead of its name, which is as good
        warnings.simplefilter("ignore")
        freq, at = index.freq or index.inferred_freq, None
    if freq is None:
        freq, ordinals, step = _frequency(index)
        at = _places(ordinals, step, index)
    if type(freq) is pd.DateOffset:  # in one leap: after a short month the day would stay what it was there
        return Steps(at, lambda s: pd.DatetimeIndex([index[-1] + i * freq for i in range(1, s + 1)]))
    return Steps(at, lambda s: pd.date_range(index[-1], periods=s + 1, freq=freq)[1:])


def _expect_forward(index: Any) -> None:
    if index.hasnans:
        raise ModelError("the index of the series has rows without a date; drop them")
    back = np.flatnonzero(np.diff(index.asi8) <= 0)
    if back.size:
        k = int(back[0])
        raise ModelError(
            f"the index of the series goes from {index[k]} to {index[k + 1]}: its rows must follow one another in "
            "time, each at its own; call y.sort_index(), and y[~y.index.duplicated()] if two rows have the same"
        )


def _frequency(index: Any) -> tuple[Any, NDArray[np.int64], float]:
    """Find a frequency that the dates may have, where some are absent, and their places and step in its own unit."""
    import pandas as pd

    wall = index.tz_localize(None)  # a day has 23 hours once a year
    days = wall.normalize()
    if ((wall - days) == wall[0] - days[0]).all():
        months = (wall.year * 12 + wall.month).to_numpy(dtype=np.int64)
        same = wall.day == wall.day[0]
        if (np.diff(months) > 0).all() and (same.all() or wall.is_month_end.all()):
            step = int(np.diff(months).min())
            named = "MS" if wall.is_month_start.all() else "ME" if wall.is_month_end.all() else None
            return (f"{step}{named}" if named else pd.DateOffset(months=step)), months, step
        dates = days.to_numpy().astype("datetime64[D]")
        counts = dates.astype(np.int64) + 3  # since a Monday
        step = int(np.diff(counts).min())
        if step == 1 and (counts % 7 < 5).all() and counts[0] // 7 < counts[-1] // 7:  # no weekend of those between
            return "B", np.busday_count(dates[0], dates), 1.0
        return f"{step}D", counts, step
    values = index.as_unit("ns").asi8
    step = int(np.diff(values).min())
    return pd.Timedelta(step, "ns"), values, step


def _places(values: Any, step: float, index: Any) -> NDArray[np.int64] | None:
    """Return the multiples of the step at which rows lie, None if these are 0, 1, 2, …; refuse irregular ones."""
    if len(values) < 2:
        return None
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        apart = np.diff(values) / step
        whole = np.round(apart)
    wrong = np.flatnonzero(~((whole >= 1) & (np.abs(apart - whole) <= _ROUNDING)))
    if wrong.size:
        k = int(wrong[0])
        raise ModelError(f"the index of the series is not regular: {index[k + 1]} follows {index[k]}; {_CURE}")
    if (whole == 1).all():
        return None
    total = whole.sum() + 1
    if 2 * int((whole == 1).sum()) < whole.size or total > 100 * len(values) + 10_000:
        raise ModelError(
            f"the index of the series has {len(values)} rows, and {total - len(values):g} are absent between them if "
            f"the smallest difference is its step; {_CURE}"
        )
    return np.concatenate([[0], np.cumsum(whole).astype(np.int64)])


def _unknown(index: Any) -> Callable[[int], Any]:
    def refuse(steps: int) -> Any:
        raise ModelError(
            f"the {len(index)} rows of the series do not tell at what times the next ones are; give its index a "
            "frequency, such as pandas.DatetimeIndex(dates, freq='MS')"
        )

    return refuse
