"""Line search by values and slopes; it also estimates the rounding noise of the values.

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
    """Point where a line search ended, None if no step gains; and the noise of the values, 0 if none was met.

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
    """A step with less value and less slope: doubled while the slope stays steep, else cubic steps between.

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
    """Difference of a value from what the slopes predict; 0 where there is no value."""
    gap = abs(end.value - start.value - 0.5 * (end.t - start.t) * (start.slope + end.slope))
    return gap if np.isfinite(gap) else 0.0


def _contradict(one: _Doubt, other: _Doubt) -> bool:
    """Return True if the gap of the shorter step is not less, for its length, than that of the longer."""
    short, long = sorted((one, other), key=lambda d: d.trial.t)
    return short.gap * long.trial.t >= long.gap * short.trial.t


def _between(low: _Trial, high: _Trial) -> float:
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
