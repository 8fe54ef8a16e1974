"""BFGS with a line search by values and slopes: scipy's takes longer for a step than a filter does.

Along a smooth line the values are those that the slopes predict, v(t) − v(0) = ½t(v'(0) + v'(t)), but for an error in
t³. Where two steps contradict that by more than all they promise, and the shorter one no less for its length, the
values are rounding. That is their noise (the idea of Moré and Wild 2011, at no evaluation of its own), and then the
slopes decide (Hager and Zhang 2005): where values are all but equal, slopes still tell the sides of a minimum apart.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from kfdyn.estimation.model.blocks import FloatArray

Function = Callable[[FloatArray], tuple[float, FloatArray]]

_ARMIJO, _WOLFE = 1e-4, 0.9  # what a step must gain of what its slope promises, and may leave of that slope
_ROUNDING = 1e-12  # of −ℓ by measurement: where values differ by less, the slopes decide
_NOISIEST = 1e-6  # the same where that is what they were seen to differ by: beyond, a line may have a jump
_LOOKS = 30
_LAST = 5  # of those, which are so near to one another that values differ by rounding alone


class Point(NamedTuple):
    """A place with its value and gradient."""

    x: FloatArray
    value: float
    gradient: FloatArray


class Step(NamedTuple):
    """End of a line search: the point, None if no step gains, and the noise of the values, 0 if none was met.

    ``sure`` if not just the value there is as it should be, but the slope.
    """

    there: Point | None
    noise: float
    sure: bool = True


class _Trial(NamedTuple):
    t: float
    value: float
    slope: float


class _Doubt(NamedTuple):
    """A trial whose value is not what the slopes predict, and by how much."""

    trial: _Trial
    point: Point
    gap: float


def line_search(
    function: Function, at: Point, slope: float, direction: FloatArray, t: float, longest: float, noise: float = 0.0
) -> Step:
    """Find a step with less value and less slope: doubled while the slope stays steep, else cubic interpolation.

    ``noise`` is what values are known to differ by for rounding alone.
    """
    x, value, _ = at
    size = 1.0 + abs(value)
    rounding = max(_ROUNDING * size, min(noise, _NOISIEST * size))
    start = _Trial(0.0, value, slope)
    low, high = start, None
    best: Point | None = None
    before: _Doubt | None = None
    near = [0.0]  # gaps to the lower end of where a minimum is looked for, in the end next to nothing apart
    for _ in range(_LOOKS):
        there = x + t * direction
        new_value, gradient = function(there)
        point, trial = Point(there, new_value, gradient), _Trial(t, new_value, float(direction @ gradient))
        flatter = abs(trial.slope) <= abs(slope)
        tiny = abs(new_value - value) <= rounding and flatter
        gained = new_value <= value + _ARMIJO * t * slope
        gap = _gap(low, trial)
        near.append(gap if gained or gap < _NOISIEST * size else 0.0)  # beyond a cliff nothing is gained
        if not tiny and not gained:
            high = trial
        elif trial.slope < _WOLFE * slope:
            best = point
            low = trial
        elif trial.slope > -_WOLFE * slope and not tiny:
            best = point if best is None or new_value < best.value else best
            high = trial
        else:
            return Step(point, noise)
        gap = _gap(start, trial)
        doubt = _Doubt(trial, point, gap) if flatter and max(rounding, t * -slope) < gap < _NOISIEST * size else None
        if before is not None and doubt is not None and _contradict(before, doubt):
            flattest = min(before, doubt, key=lambda d: abs(d.trial.slope))
            return Step(flattest.point, max(noise, 2.0 * before.gap, 2.0 * gap))
        before = doubt
        if high is None:
            t = 2.0 * t
            if t * longest > 1.0:
                return Step(best, noise)
        else:
            t = _between(low, high)
            if abs(high.t - low.t) < 1e-14 * max(abs(high.t), 1e-300):
                break
    met = max(near[-_LAST:])
    noise = max(noise, met if met > rounding else 0.0)
    return Step(best if best is not None and best.value < value - noise else None, noise, False)


def _gap(start: _Trial, end: _Trial) -> float:
    """Return how far a value is from what the slopes predict; 0 where there is no value."""
    gap = abs(end.value - start.value - 0.5 * (end.t - start.t) * (start.slope + end.slope))
    return gap if np.isfinite(gap) else 0.0


def _contradict(one: _Doubt, other: _Doubt) -> bool:
    """Return True if the gap of the shorter step is not less, for its length, than that of the longer."""
    short, long = sorted((one, other), key=lambda d: d.trial.t)
    return short.gap * long.trial.t >= long.gap * short.trial.t


def _between(low: _Trial, high: _Trial) -> float:
    """Return the minimum of the cubic through two points, within the inner four fifths; else the middle."""
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


_FIRST = 0.2  # of the longest step: before anything is known of the curvature
_FALLING = 0.25  # of what a step promises: to so much it must fall in some steps, one for each parameter and one more
_FAILURES = 3  # of the line search, after each of which the curvature is forgotten if nothing was gained

FOUND = "the gradient is zero"
PAUSED = "paused"
ROUNDED = "a step would gain less than the log-likelihood is rounded by"
STUCK = "no step along the gradient gains anything"
TIRED = "the limit of iterations was reached"


class Descent:
    """State of a BFGS search: point, inverse Hessian, and which parameters are held.

    Held parameters have no gradient and no row in the inverse Hessian ``H``, so that they do not move.
    """

    def __init__(self, at: Point, longest: FloatArray, usual: FloatArray) -> None:
        self.at, self.longest, self.usual = at, longest, usual  # usual: inverse curvature, before any is known
        self.iterations = 0
        self.H = np.diag(usual)
        self.fresh = True
        self.noise = 0.0  # of the values here, as far as line searches have met it

    def move(self, at: Point) -> None:
        """Continue from another point, with the same curvature."""
        self.at = at
        self.noise = 0.0

    def hold(self, i: int) -> None:
        """Leave parameter i out: H becomes the inverse of the Hessian of the others."""
        if self.H[i, i] > 0.0:
            self.H = self.H - np.outer(self.H[i], self.H[i]) / self.H[i, i]
        self.H[i] = self.H[:, i] = 0.0

    def release(self, i: int) -> None:
        """Free parameter i again, with the usual curvature."""
        self.H[i] = self.H[:, i] = 0.0
        self.H[i, i] = self.usual[i]

    def run(self, function: Function, steepness: float, limit: int, pause: Callable[[Point], bool]) -> str:
        """Descend until no slope exceeds ``steepness``, or ``pause(point)`` holds; return why it ended.

        Infinite values are allowed: the line search comes back from there (Nocedal and Wright 2006, chapters 3 and 6).
        Where a step promises less than the values are rounded by, slopes alone lead on, as long as they fall.
        """
        failures, promised, vain = 0, np.inf, 0
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
            promised, vain = (-slope, 0) if -slope <= _FALLING * promised else (promised, vain + 1)
            if -0.5 * slope < self.noise and vain > x.size:
                return ROUNDED
            longest = float((np.abs(direction) / self.longest).max())
            first = min(1.0, (_FIRST if self.fresh else 1.0) / max(longest, 1e-300))
            there, self.noise, sure = line_search(function, self.at, slope, direction, first, longest, self.noise)
            self.iterations += 1
            failures += not sure
            if there is None:
                if -0.5 * slope < self.noise:
                    return ROUNDED
                if self.fresh or failures > _FAILURES:
                    return STUCK
                self._again()
                continue
            self._learn(there.x - x, there.gradient - gradient)
            self.at = there
            if pause(there):
                return PAUSED
            if failures > _FAILURES:
                return STUCK
        return TIRED

    def _again(self) -> None:
        """Restart along the gradient, with the mean curvature of the free parameters."""
        free = np.diagonal(self.H) != 0.0
        self.H = np.diag(np.where(free, self.usual, 0.0))
        self.fresh = True

    def _learn(self, s: FloatArray, y: FloatArray) -> None:
        """Update the inverse Hessian (BFGS); the first update scales it to the curvature met."""
        curvature = float(s @ y)
        if not curvature > 1e-14 * float(np.sqrt((s @ s) * (y @ y))):
            return
        if self.fresh:
            self.H = self.H * (curvature / float(y @ self.H @ y))
            self.fresh = False
        Hy = self.H @ y
        cross = np.outer(Hy / curvature, s)
        self.H = self.H - cross - cross.T + (1.0 + float(y @ Hy) / curvature) / curvature * np.outer(s, s)
