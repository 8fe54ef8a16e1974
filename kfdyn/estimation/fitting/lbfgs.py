"""L-BFGS with a line search, for a handful of parameters: scipy's takes longer for a step than a filter does."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from kfdyn.estimation.blocks import FloatArray

_MEMORY = 20  # pairs of steps and changes of the gradient
_ARMIJO, _WOLFE = 1e-4, 0.9  # what a step must gain of what its slope promises, and may leave of that slope
_FIRST = 0.5  # longest step before anything is known of the curvature
_LONGEST = 5.0  # of a step: parameters are logarithms, and a factor of 150 is enough at a time


class Minimum(NamedTuple):
    """Where a search ended: the point, value and gradient there, iterations, and why it ended."""

    x: FloatArray
    value: float
    gradient: FloatArray
    iterations: int
    message: str


def minimise(
    function: Callable[[FloatArray], tuple[float, FloatArray]],
    x: FloatArray,
    *,
    steepness: float,
    max_iterations: int,
    callback: Callable[[FloatArray], None] | None = None,
) -> Minimum:
    """Minimise ``function``, which returns value and gradient, until no slope exceeds ``steepness``.

    Infinite values are allowed: the line search comes back from there (Nocedal and Wright 2006, chapters 3 and 7).
    """
    value, gradient = function(x)
    steps: list[tuple[FloatArray, FloatArray, float]] = []
    for iteration in range(max_iterations):
        if np.abs(gradient).max(initial=0.0) <= steepness:
            return Minimum(x, value, gradient, iteration, "the gradient is zero")
        direction = _direction(steps, gradient)
        slope = float(direction @ gradient)
        if not slope < 0.0:
            steps, direction, slope = [], -gradient, -float(gradient @ gradient)
        longest = float(np.abs(direction).max())
        first = min(1.0, (_LONGEST if steps else _FIRST) / longest)
        found = _line(function, x, value, slope, direction, first)
        if found is None:
            if steps:  # once more down the gradient
                steps = []
                continue
            return Minimum(x, value, gradient, iteration, "no step along the gradient gains anything")
        there, new_value, new_gradient = found
        s, y = there - x, new_gradient - gradient
        curvature = float(s @ y)
        if curvature > 1e-14 * float(np.sqrt((s @ s) * (y @ y))):
            steps = [*steps[-_MEMORY + 1 :], (s, y, 1.0 / curvature)]
        x, value, gradient = there, new_value, new_gradient
        if callback is not None:
            callback(x)
    return Minimum(x, value, gradient, max_iterations, "the limit of iterations was reached")


def _direction(steps: list[tuple[FloatArray, FloatArray, float]], gradient: FloatArray) -> FloatArray:
    """−H g by the two loops over the kept pairs."""
    d = -gradient
    weights = []
    for s, y, rho in reversed(steps):
        weight = rho * float(s @ d)
        weights.append(weight)
        d = d - weight * y
    if steps:
        s, y, rho = steps[-1]
        d = d / (rho * float(y @ y))
    for (s, y, rho), weight in zip(steps, reversed(weights)):
        d = d + s * (weight - rho * float(y @ d))
    return d


def _line(
    function: Callable[[FloatArray], tuple[float, FloatArray]],
    x: FloatArray,
    value: float,
    slope: float,
    direction: FloatArray,
    t: float,
) -> tuple[FloatArray, float, FloatArray] | None:
    """A step with less value and less slope: doubled while the slope stays steep, else cubic steps between."""
    low, high = (0.0, value, slope), None
    best: tuple[FloatArray, float, FloatArray] | None = None
    for _ in range(30):
        there = x + t * direction
        new_value, gradient = function(there)
        new_slope = float(direction @ gradient)
        tiny = abs(new_value - value) <= 1e-15 * abs(value) and abs(new_slope) <= abs(slope)
        if not tiny and not new_value <= value + _ARMIJO * t * slope:
            high = (t, new_value, new_slope)
        elif new_slope < _WOLFE * slope:
            best = (there, new_value, gradient)
            low = (t, new_value, new_slope)
        elif new_slope > -_WOLFE * slope and not tiny:
            best = (there, new_value, gradient) if best is None or new_value < best[1] else best
            high = (t, new_value, new_slope)
        else:
            return there, new_value, gradient
        if high is None:
            t = 2.0 * t
            if t * float(np.abs(direction).max()) > _LONGEST:
                return best
        else:
            t = _between(low, high)
            if abs(high[0] - low[0]) < 1e-14 * max(abs(high[0]), 1e-300):
                break
    return best


def _between(low: tuple[float, float, float], high: tuple[float, float, float]) -> float:
    """Minimum of the cubic through two points, kept within the inner four fifths; the middle where one is infinite."""
    (a, fa, ga), (b, fb, gb) = low, high
    if np.isfinite(fb) and np.isfinite(gb):
        d = ga + gb - 3.0 * (fa - fb) / (a - b)
        root = d * d - ga * gb
        if root >= 0.0:
            w = np.copysign(np.sqrt(root), b - a)
            under = gb - ga + 2.0 * w
            if under != 0.0:
                t = b - (b - a) * (gb + w - d) / under
                edge = 0.1 * (b - a)
                return float(min(max(t, a + edge), b - edge))
    return 0.5 * (a + b)
