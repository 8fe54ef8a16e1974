"""The series that a caller gives: as numbers, checked, and how far they are spread."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from kfdyn.errors import ModelError, ShapeError
from kfdyn.estimation.blocks import FloatArray
from kfdyn.estimation.series.dates import Steps, steps_of
from kfdyn.estimation.series.frames import is_pandas, values_of
from kfdyn.estimation.series.part import Bound, Part


def given_series(y: Any, m: int, parts: Sequence[Part]) -> tuple[FloatArray, Steps | None]:
    """A series as (..., N·m), NaN where pandas lacks a row; and the steps of the rows, if it is pandas.

    A part with times of its own says what the rows are, whatever their index.
    """
    array = measured(y, m)
    if not is_pandas(y) or any(part.times is not None for part in parts):
        return array, None
    steps = steps_of(y.index)
    if steps.at is None:
        return array, steps
    total = int(steps.at[-1]) + 1
    if any(part.steps is not None for part in parts):
        raise ModelError(
            f"the index of the series lacks {total - len(steps.at)} rows, and regressors are given row by row; put "
            "these rows into both, NaN into the series: y.asfreq(...) or y.reindex(...)"
        )
    full = np.full((*array.shape[:-1], total, m), np.nan)
    full[..., steps.at, :] = array.reshape(*array.shape[:-1], -1, m)
    return full.reshape(*array.shape[:-1], total * m), steps


def measured(y: Any, m: int) -> FloatArray:
    """The rows of a series with m outputs as (..., N·m)."""
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


def warn_of_short_series(y: Any, unknown: int) -> None:
    """Warn of an array with many rows that are each shorter than ``unknown``, the states and parameters of a model.

    Its rows are series; but where columns were meant, as in a DataFrame, all would come out without an error. With an
    axis of outputs, (S, N, 1), it is said that rows are meant.
    """
    shape = np.shape(y)
    if is_pandas(y) or len(shape) != 2 or not shape[0] > shape[1] > 1 or shape[1] > unknown:
        return
    warnings.warn(
        f"y, of shape {shape}, is taken as {shape[0]} series of {shape[1]} steps, fewer than the {unknown} states and "
        f"parameters of the model; if it holds {shape[1]} series of {shape[0]} steps, give y.T, and if its rows are "
        "the series, y[..., None]",
        UserWarning,
        stacklevel=3,
    )


def spread(y: FloatArray) -> float:
    """Mean square of the series about its mean, or of its changes if they are smaller; 1 where it does not vary."""
    rows = y.reshape(-1, y.shape[-1])
    change = rows[:, 1:] - rows[:, :-1]
    seen, change = rows[~np.isnan(rows)], change[~np.isnan(change)]
    found = [float(np.var(seen))] if seen.size else [1.0]
    if change.size:
        found.append(float(np.vdot(change, change)) / change.size)
    value = float(min(found))
    return value if value > 0.0 else float(max(found)) or 1.0


def moved_inside(start: FloatArray, bounds: Sequence[Bound], own: Sequence[Bound]) -> FloatArray:
    """A start that lies strictly within the caller's bounds: where it does not, the middle or twice the lower end.

    ``own`` are the model's, which hold as well.
    """
    if len(bounds) != start.size:
        return start  # refused by the fit
    out = start.copy()
    for i, pairs in enumerate(zip(bounds, own)):
        ends = [(None, None) if pair is None else pair for pair in pairs]
        low = max((float(end) for end, _ in ends if end is not None), default=-np.inf)
        high = min((float(end) for _, end in ends if end is not None), default=np.inf)
        if low < start[i] < high:
            continue
        if np.isfinite(low) and np.isfinite(high):
            out[i] = 0.5 * (low + high)
        elif np.isfinite(low):
            out[i] = low + (abs(low) or abs(start[i]) or 1.0)
        else:
            out[i] = high - (abs(high) or abs(start[i]) or 1.0)
    return out


def expect_steps(steps: int) -> None:
    """Refuse what is no number of steps."""
    if not isinstance(steps, int | np.integer) or steps < 1:
        raise ModelError(f"steps must be a whole number, 1 or more, got {steps!r}")
