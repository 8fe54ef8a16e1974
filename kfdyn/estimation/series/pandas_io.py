"""Convert from and to pandas, which is imported only if the caller uses it."""

from __future__ import annotations

from typing import Any

import numpy as np

from kfdyn.errors import ShapeError
from kfdyn.estimation.fitting.objective import expect_one_length
from kfdyn.estimation.model.blocks import FloatArray, real_array


def is_pandas(y: Any) -> bool:
    """Return True if it is a Series or a DataFrame; pandas is not imported for that."""
    return type(y).__module__.split(".")[0] == "pandas" and hasattr(y, "index")


def values_of(y: Any) -> FloatArray:
    """The numbers of a series."""
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
    """Values with the index of the series, or with another; as they are where the series is an array."""
    if not is_pandas(y):
        return values
    import pandas as pd  # type: ignore[import-untyped]

    index = y.index if index is None else index
    if values.ndim == 1:
        return pd.Series(values, index=index, name=name)
    return pd.DataFrame(values, index=index, columns=getattr(y, "columns", None))
