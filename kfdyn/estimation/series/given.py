"""The series that a caller gives: as numbers, checked, and how far they are spread."""

from __future__ import annotations

from typing import Any

import numpy as np

from kfdyn.errors import ModelError, ShapeError
from kfdyn.estimation.blocks import FloatArray
from kfdyn.estimation.series.frames import is_pandas, values_of


def measured(y: Any, m: int) -> FloatArray:
    """A series with m outputs as (..., N·m)."""
    array = values_of(y)
    if m > 1:
        if array.ndim < 2 or array.shape[-1] != m:
            raise ShapeError(f"the series must have shape (..., N, {m}), one column for each output; got {array.shape}")
        array = array.reshape(*array.shape[:-2], -1)
    elif is_pandas(y) and array.ndim == 2:  # rows are steps, and columns are series
        array = array.T if array.shape[1] != 1 else array[:, 0]
    elif array.ndim > 1 and array.shape[-1] == 1:  # (..., N, m) with m = 1, not a batch of series of one step
        array = array[..., 0]
    if array.ndim == 0 or not array.shape[-1]:
        raise ShapeError("the series has no steps")
    if np.isinf(array).any():
        raise ModelError("the series has infinite entries; mark a missing measurement by NaN")
    return array


def spread(y: FloatArray) -> float:
    """Mean square of the series about its mean, or of its changes if they are smaller; 1 where it does not vary."""
    rows = y.reshape(-1, y.shape[-1])
    change = np.diff(rows, axis=1)
    found = [float(np.nanvar(rows))] if np.isfinite(rows).any() else [1.0]
    if np.isfinite(change).any():
        found.append(float(np.nanmean(change**2)))
    value = float(min(found))
    return value if value > 0.0 else float(max(found)) or 1.0


def expect_steps(steps: int) -> None:
    """Refuse what is no number of steps."""
    if not isinstance(steps, int | np.integer) or steps < 1:
        raise ModelError(f"steps must be a whole number, 1 or more, got {steps!r}")
