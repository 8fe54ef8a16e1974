"""Check the data of a series, convert them to arrays, and measure their spread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kfdyn.errors import ModelError, ShapeError
from kfdyn.estimation.model.blocks import FloatArray
from kfdyn.estimation.series.component import Bound, Part
from kfdyn.estimation.series.pandas_io import Steps, is_pandas, steps_of, values_of


def given_series(y: Any, m: int, parts: Sequence[Part]) -> tuple[FloatArray, Steps | None]:
    """Return a series as (..., N·m), NaN where pandas lacks a row; and the steps of the rows, if it is pandas.

    A part with times of its own says what the rows are, whatever their index.
    """
    array = measured(y, m)
    if not is_pandas(y):
        return array, None
    steps = None if any(part.times is not None for part in parts) else steps_of(y.index)
    if steps is None or steps.at is None:
        expect_rows(parts, y.index)
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


def expect_rows(parts: Sequence[Part], index: Any, first: int = 0) -> None:
    """Refuse regressors whose index differs from that of the series, from row ``first`` on."""
    for part in parts:
        given = part.index
        if given is None or (_counts(given) != _counts(index) and not (_ranges(given) and _ranges(index))):
            continue  # a bare count of rows fits any names
        own = given[first : first + len(index)]
        if len(own) < len(index) or own.equals(index):  # whoever needs the rows reports that they are too few
            continue
        k = int(np.argmax(np.asarray(own != index)))
        raise ModelError(
            f"row {first + k} of the regressors is that of {own[k]}, but that of the series is {index[k]}: their rows "
            "must follow one another as the series' do; call X.reindex(...) with the index of the series and of what "
            "is forecast, or give X.to_numpy() if rows belong together by their place"
        )


def _counts(index: Any) -> bool:
    """Return True if an index is the one that pandas gives where none is given: 0, 1, 2, …"""
    return _ranges(index) and index.start == 0 and index.step == 1


def _ranges(index: Any) -> bool:
    return type(index).__name__ == "RangeIndex"


def measured(y: Any, m: int) -> FloatArray:
    """Return the rows of a series with m outputs as (..., N·m)."""
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


def expect_rows_to_be_series(y: Any) -> None:
    """Refuse an array with more rows than columns: its rows are series, but may be meant as steps.

    In a DataFrame they are. With an axis of outputs, (S, N, 1), it is said that rows are series.
    """
    shape = np.shape(y)
    if is_pandas(y) or len(shape) != 2 or not shape[0] > shape[1] > 1:
        return
    raise ShapeError(
        f"y, of shape {shape}, is {shape[0]} series of {shape[1]} steps by the rule that time is the last axis; say "
        f"which: give y.T if it holds {shape[1]} series of {shape[0]} steps, and y[..., None] if its rows are "
        "the series"
    )


def spread(y: FloatArray) -> float:
    """Return the mean square of the series about its mean, or of its changes if smaller; 1 if it does not vary."""
    rows = y.reshape(-1, y.shape[-1])
    change = rows[:, 1:] - rows[:, :-1]
    seen, change = rows[~np.isnan(rows)], change[~np.isnan(change)]
    found = [float(np.var(seen))] if seen.size else [1.0]
    if change.size:
        found.append(float(np.vdot(change, change)) / change.size)
    value = float(min(found))
    return value if value > 0.0 else float(max(found)) or 1.0


def moved_inside(start: FloatArray, bounds: Sequence[Bound], own: Sequence[Bound]) -> FloatArray:
    """Move a start strictly within the caller's bounds: to the middle, or to twice the lower end.

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
    """Refuse a number of steps that is not a whole number, 1 or more."""
    if not isinstance(steps, int | np.integer) or steps < 1:
        raise ModelError(f"steps must be a whole number, 1 or more, got {steps!r}")
