"""pandas in, pandas out: looked at only where the caller has given it."""

from __future__ import annotations

from typing import Any

import numpy as np

from kfdyn.estimation.blocks import FloatArray, real_array


def is_pandas(y: Any) -> bool:
    """Whether it is a Series or a DataFrame; pandas is not imported for that."""
    return type(y).__module__.split(".")[0] == "pandas"


def values_of(y: Any) -> FloatArray:
    """The numbers of a series."""
    return real_array(y.to_numpy(dtype=float, na_value=np.nan) if is_pandas(y) else y, "y")


def wrapped(y: Any, values: FloatArray, name: str, index: Any = None) -> Any:
    """Values with the index of the series, or with another; as they are where the series is an array."""
    if not is_pandas(y):
        return values
    import pandas as pd  # type: ignore[import-untyped]

    index = y.index if index is None else index
    if values.ndim == 1:
        return pd.Series(values, index=index, name=name)
    return pd.DataFrame(values, index=index, columns=getattr(y, "columns", None))


def future_index(y: Any, steps: int) -> Any:
    """The index that follows the one of a series."""
    import pandas as pd

    index = y.index
    if isinstance(index, pd.PeriodIndex):
        return pd.period_range(index[-1] + 1, periods=steps, freq=index.freq)
    if isinstance(index, pd.DatetimeIndex):
        freq = index.freq or pd.infer_freq(index) if len(index) > 2 else index.freq
        if freq is not None:
            return pd.date_range(index[-1], periods=steps + 1, freq=freq)[1:]
    if len(index) > 1 and pd.api.types.is_numeric_dtype(index.dtype):
        step = index[-1] - index[-2]
        return pd.Index(index[-1] + step * np.arange(1, steps + 1))
    return pd.RangeIndex(len(index), len(index) + steps)
