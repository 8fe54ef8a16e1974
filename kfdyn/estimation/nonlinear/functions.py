"""A user's step or observe: which arguments it takes, and the shape of what it returns."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from math import isfinite
from typing import Any

import numpy as np

from kfdyn.errors import ModelError, ShapeError
from kfdyn.estimation.model.blocks import FloatArray, IntArray

_ORDER = "x, w, u, k"
_FEW = 40


class RowFunction:
    """A function of independent rows, called as (x, k), (x, w, k), (x, u, k) or (x, w, u, k).

    The names of its arguments say what it takes: ``w`` is the process noise, ``u`` the known input.

    Parameters
    ----------
    function : callable
        The user's function.
    name : str
        What error messages call it.

    Attributes
    ----------
    takes_w, takes_u : bool
        Whether it takes the process noise and the known input.

    Examples
    --------
    >>> RowFunction(lambda x, w, k: x + w, "step").takes_w
    True
    """

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        if not callable(function):
            raise ModelError(f"{name} must be a function {name}(x, k), got {type(function).__name__}")
        self.function, self.name = function, name
        middle = _middle_arguments(function, name)
        self.takes_w, self.takes_u = "w" in middle, "u" in middle

    def raw(self, x: Any, w: Any, u: Any, k: IntArray) -> Any:
        """Call the function with the arguments that it takes."""
        if self.takes_w:
            return self.function(x, w, u, k) if self.takes_u else self.function(x, w, k)
        return self.function(x, u, k) if self.takes_u else self.function(x, k)

    def __call__(self, x: Any, w: Any, u: Any, k: IntArray, size: int) -> Any:
        """Return the function's rows (rows, size), checked for their shape."""
        value = np.asarray(self.raw(x, w, u, k))
        if value.shape != (len(x), size):
            raise ShapeError(
                f"{self.name} was given {len(x)} rows x {x.shape} and returned shape {value.shape}; it must return "
                f"{(len(x), size)}, one row for each row of x: write x[:, 0], not x[0], and stack with axis=1"
            )
        return value if value.dtype.kind == "c" else value.astype(np.float64, copy=False)


def _middle_arguments(function: Callable[..., Any], name: str) -> tuple[str, ...]:
    """Names between x and k among the positional arguments without a default."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # compiled functions may not tell
        return ()
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    names = tuple(p.name for p in parameters if p.kind in kinds and p.default is inspect.Parameter.empty)
    middle = names[1:-1]
    if len(names) < 2 or middle not in ((), ("w",), ("u",), ("w", "u")):
        raise ModelError(
            f"{name} takes ({', '.join(names)}); its arguments must be {_ORDER} in this order, where w (process "
            "noise) and u (known input) may be left out"
        )
    return middle


def finite(value: FloatArray) -> bool:
    """Tell whether all entries are finite; for a few, Python's sum is faster and gives no warning."""
    return (value.size <= _FEW and isfinite(sum(value.ravel().tolist()))) or bool(np.isfinite(value).all())


def expect_finite_rows(value: FloatArray, name: str, x: FloatArray, k: IntArray) -> None:
    """Say at which step, and from which state, a function returned something that is not finite."""
    if finite(value):
        return
    row = int(np.flatnonzero(~np.isfinite(value).reshape(len(x), -1).all(axis=1))[0])
    with np.printoptions(precision=4, threshold=12):
        raise ModelError(
            f"{name} returned {value[row]} at step {int(k[row])} from x = {x[row]}: the estimate has diverged, or "
            f"{name} is not defined there; check x0, P0 and the noise, or start the smoother elsewhere (start=)"
        )
