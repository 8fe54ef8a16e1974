"""BFGS with a line search, for a handful of parameters: scipy's takes longer for a step than a filter does."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from kfdyn.estimation.blocks import FloatArray

Function = Callable[[FloatArray], tuple[float, FloatArray]]

_ARMIJO, _WOLFE = 1e-4, 0.9  # what a step must gain of what its slope promises, and may leave of that slope
_ROUNDING = 1e-12  # of −ℓ by measurement: where values differ by less, the slopes decide (Hager and Zhang 2005)
_FIRST = 0.2  # of the longest step: before anything is known of the curvature
_FAILURES = 3  # of the line search, after each of which the curvature is forgotten

FOUND = "the gradient is zero"
PAUSED = "paused"
STUCK = "no step along the gradient gains anything"
TIRED = "the limit of iterations was reached"


class Point(NamedTuple):
    """A place with its value and gradient."""

    x: FloatArray
    value: float
    gradient: FloatArray


class Descent:
    """Where a search stands, and what it knows of the curvature; it can be moved, and parameters held and released.

    Held parameters have no gradient and no row in the inverse Hessian ``H``, so that they do not move.
    """

    def __init__(self, at: Point, longest: FloatArray, usual: FloatArray) -> None:
        self.at, self.longest, self.usual = at, longest, usual  # usual: inverse curvature, before any is known
        self.iterations = 0
        self.H = np.diag(usual)
        self.fresh = True

    def move(self, at: Point) -> None:
        """Go on from elsewhere, with the same curvature."""
        self.at = at

    def hold(self, i: int) -> None:
        """Leave parameter i out: H becomes the inverse of the Hessian of the others."""
        if self.H[i, i] > 0.0:
            self.H = self.H - np.outer(self.H[i], self.H[i]) / self.H[i, i]
        self.H[i] = self.H[:, i] = 0.0

    def release(self, i: int) -> None:
        """Take parameter i in again, of whose curvature nothing is known."""
        self.H[i] = self.H[:, i] = 0.0
        self.H[i, i] = self.usual[i]

    def run(self, function: Function, steepness: float, limit: int, pause: Callable[[Point], bool]) -> str:
        """Go down until no slope exceeds ``steepness``, or ``pause(point)``, and say why it ended.

        Infinite values are allowed: the line search comes back from there (Nocedal and Wright 2006, chapters 3 and 6).
        """
        failures = 0
        while self.iterations < limit:
            x, _, gradient = self.at
            if np.abs(gradient).max(initial=0.0) <= steepness:
                return FOUND
            direction = -(self.H @ gradient)
            slope = float(direction @ gradient)
            if not slope < 0.0:
                if self.fresh:
                    return STUCK
                self._again()
                continue
            longest = float((np.abs(direction) / self.longest).max())
            first = min(1.0, (_FIRST if self.fresh else 1.0) / max(longest, 1e-300))
            there = _line(function, self.at, slope, direction, first, longest)
            self.iterations += 1
            if there is None:
                failures += 1
                if self.fresh or failures > _FAILURES:
                    return STUCK
                self._again()
                continue
            self._learn(there.x - x, there.gradient - gradient)
            self.at = there
            if pause(there):
                return PAUSED
        return TIRED

    def _again(self) -> None:
        """Once more down the gradient, with the usual curvature of what is free."""
        free = np.diagonal(self.H) != 0.0
        self.H = np.diag(np.where(free, self.usual, 0.0))
        self.fresh = True

    def _learn(self, s: FloatArray, y: FloatArray) -> None:
        """The BFGS update of the inverse Hessian; at first it is scaled to the curvature that was met."""
        curvature = float(s @ y)
        if not curvature > 1e-14 * float(np.sqrt((s @ s) * (y @ y))):
            return
        if self.fresh:
            self.H = self.H * (curvature / float(y @ self.H @ y))
            self.fresh = False
        Hy = self.H @ y
        cross = np.outer(Hy / curvature, s)
        self.H = self.H - cross - cross.T + (1.0 + float(y @ Hy) / curvature) / curvature * np.outer(s, s)


def _line(function: Function, at: Point, slope: float, direction: FloatArray, t: float, longest: float) -> Point | None:
    """A step with less value and less slope: doubled while the slope stays steep, else cubic steps between."""
    x, value, _ = at
    low, high = (0.0, value, slope), None
    best: Point | None = None
    for _ in range(30):
        there = x + t * direction
        new_value, gradient = function(there)
        new_slope = float(direction @ gradient)
        tiny = abs(new_value - value) <= _ROUNDING * (1.0 + abs(value)) and abs(new_slope) <= abs(slope)
        if not tiny and not new_value <= value + _ARMIJO * t * slope:
            high = (t, new_value, new_slope)
        elif new_slope < _WOLFE * slope:
            best = Point(there, new_value, gradient)
            low = (t, new_value, new_slope)
        elif new_slope > -_WOLFE * slope and not tiny:
            best = Point(there, new_value, gradient) if best is None or new_value < best.value else best
            high = (t, new_value, new_slope)
        else:
            return Point(there, new_value, gradient)
        if high is None:
            t = 2.0 * t
            if t * longest > 1.0:
                return best
        else:
            t = _between(low, high)
            if abs(high[0] - low[0]) < 1e-14 * max(abs(high[0]), 1e-300):
                break
    return best if best is not None and best.value < value else None  # the value is rounding: that is no step


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
