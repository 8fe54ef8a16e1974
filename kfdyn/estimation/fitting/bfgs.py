"""BFGS with a line search, for a handful of parameters: scipy's takes longer for a step than a filter does."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kfdyn.estimation.fitting.line_search import Function, Point, line_search
from kfdyn.estimation.model.blocks import FloatArray

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
        """Go on from elsewhere, with the same curvature."""
        self.at = at
        self.noise = 0.0

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
