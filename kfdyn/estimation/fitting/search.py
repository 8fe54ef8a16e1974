"""Search for a maximum: BFGS on free parameters, and bounds as hypotheses that are tested.

A parameter that falls far towards a bound is put there if the likelihood is not the worse for it and does not rise
from there into the interior. Where the search then ends, every such parameter is tested again: if the likelihood rises
from the bound, the parameter is released at a small distance and the search goes on. So what is found satisfies the
first-order conditions (Karush, Kuhn and Tucker), bounds included.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from kfdyn.estimation.fitting.bfgs import PAUSED, ROUNDED, STUCK, TIRED, Descent, Point
from kfdyn.estimation.fitting.transformed_objective import Evaluation, Problem
from kfdyn.estimation.model.blocks import FloatArray

STEEP = 1e-8  # slope of the log-likelihood of a measurement, by a parameter on its scale: below is a maximum
_GAIN = 1e-7  # of the log-likelihood: less is none
_LONGEST = 5.0  # step of a logarithm: a factor of 150 is enough at a time
_SHORT = 2.0  # step of a number between two bounds
_LEAP = 12.0  # of all logarithms at once
_USUAL = 8.0  # inverse curvature of −ℓ by measurement in the logarithm of a variance: 2 if all noise has that variance
_FAR = 4.0  # fall of a logarithm after which its bound is tried
_SOON = 1.5  # the same where the likelihood has become steeper on the way, as it is where the bound is best
_EDGE = 7.0  # of a number between two bounds: nearer than a thousandth of their distance
_BRINK = 18.0  # the same, 1e-8: where there is no model at the bound, it is held here, before digits are lost
_ENDLESS = 60.0  # by how much a logarithm may fall: a parameter of 1e-26 of its start is not found, but fled to
_FLED = 20.0  # the same where there is no model any more
_LEVEL = 0.01  # slope from a bound, for a typical value, below which a short step is tried too

ENDLESS = "endless"


class Found(NamedTuple):
    """End of a search; ``sound`` if no parameter at a bound gains by leaving it, ``noise`` is that of ℓ there."""

    z: FloatArray
    at: Evaluation
    message: str
    iterations: int
    held: FloatArray
    sound: bool
    fell: FloatArray
    scale: FloatArray
    noise: float


class Search:
    """One search, from one start."""

    def __init__(self, problem: Problem, z0: FloatArray, at: Evaluation, limit: int) -> None:
        self.problem, self.limit = problem, limit
        t = problem.transform
        self.one_sided, self.between = t.only_low | t.only_high, t.both
        self.n = max(problem.objective.n_observed, 1)
        size = problem.objective.mean_square
        self.log_size = float(np.log(size)) if size > 0.0 else -np.inf
        self.z0, self.z, self.at = z0, z0, at
        problem.held[:] = np.nan
        self._common_scale()
        if self.z is not z0:
            problem.find_scale(self.z, self.at)
        self.mark = self.z.copy()  # where each parameter was last let go, from which its fall is counted
        self.asked = np.zeros(z0.size, dtype=int)
        self.tried = np.zeros(z0.size, dtype=bool)  # from a bound, although the slope falls
        for i in map(int, np.flatnonzero(t.bounded)):
            problem.typical[i] = problem.distance(self.z, i)
        self.descent = self._descent()
        self.slope = self.descent.at.gradient.copy()

    def run(self) -> Found:
        """Search until the first-order conditions (KKT) hold, or nothing helps."""
        sound, why = False, TIRED
        for _ in range(20 + 20 * self.z0.size):
            if self._endless():
                why = ENDLESS
                break
            why = self.descent.run(self._function, STEEP, self.limit, self._pause)
            self.z, self.at = self._here()
            if why is PAUSED:
                self._try_bounds()
                continue
            if self._endless() or (why in (STUCK, ROUNDED) and self._fled()):
                why = ENDLESS
                break
            if why is not TIRED and self._rescaled():
                continue
            sound = not self._release()
            if sound or why is TIRED:
                break
        held = self.problem.held.copy()
        fell, scale = self._fallen(_FLED), self.problem.scale.copy()
        return Found(self.z, self.at, why, self.descent.iterations, held, sound, fell, scale, self._noise())

    def _descent(self) -> Descent:
        """Begin a descent here, on the present scale."""
        t, point = self.problem.transform, self._point(self.z, self.at)
        self._seen: list[tuple[FloatArray, Evaluation | None]] = [(point.x, self.at)]
        longest = np.where(t.both, _SHORT, np.where(t.bounded, _LONGEST, np.inf))
        made = Descent(point, longest, np.where(t.bounded, _USUAL, 2.0))
        for i in map(int, np.flatnonzero(~np.isnan(self.problem.held))):
            made.hold(i)
        return made

    def _rescaled(self) -> bool:
        """Find the scale of parameters without bounds again, and begin anew where it was far off."""
        before, done, noise = self.problem.scale.copy(), self.descent.iterations, self.descent.noise
        self.problem.find_scale(self.z, self.at, known=True)
        if np.abs(np.log(self.problem.scale / before)).max(initial=0.0) < 2.0:
            return False
        self.descent = self._descent()
        self.descent.iterations, self.descent.noise = done, noise
        return True

    def _point(self, z: FloatArray, at: Evaluation) -> Point:
        return Point(z / self.problem.scale, -at.llf / self.n, -at.gradient * self.problem.scale / self.n)

    def _function(self, x: FloatArray) -> tuple[float, FloatArray]:
        """Return −ℓ/N on the scale of each parameter; infinite where there is no model."""
        at = self.problem.attempt(x * self.problem.scale)
        self._seen = [*self._seen[-3:], (x, at)]
        if at is None:
            return np.inf, np.zeros(x.size)
        return -at.llf / self.n, -at.gradient * self.problem.scale / self.n

    def _here(self) -> tuple[FloatArray, Evaluation]:
        """Return the current point of the descent with slopes at bounds, evaluated again only if it is stale."""
        x = self.descent.at.x
        z = x * self.problem.scale
        known = [at for seen, at in self._seen if seen is x and at is not None]
        return z, known[-1] if known else self.problem(z)

    def _go(self, z: FloatArray, at: Evaluation) -> None:
        """Move to another point."""
        self.z, self.at = z, at
        point = self._point(z, at)
        self._seen = [(point.x, at)]
        self.descent.move(point)

    def _common_scale(self) -> None:
        """Scale all variances by their best common factor, which the slopes tell."""
        which = self.one_sided
        flat = np.size(getattr(self.problem.objective.build, "flat", ())) * self.problem.objective.n_series
        for _ in range(8):
            factor = 1.0 + 2.0 * float(self.at.gradient[which].sum()) / max(self.n - flat, 1)
            step = float(np.clip(np.log(max(factor, 1e-300)), -_LEAP, _LEAP))
            if not which.any() or abs(step) < 0.3:
                return
            z = self.z + np.where(which, step, 0.0)
            at = self.problem.attempt(z)
            if at is None or not at.llf > self.at.llf:
                return
            self.z, self.at = z, at
            if abs(step) < _LEAP:
                return

    def _fallen(self, far: float) -> Any:
        """Find log-parameters that have run away towards −∞, farther than a large start explains."""
        excess = np.maximum(self.z0 - self.log_size, 0.0) if np.isfinite(self.log_size) else 0.0
        return self.one_sided & np.isnan(self.problem.held) & (self.z - self.z0 < -far - excess)

    def _endless(self) -> bool:
        """Return True if a parameter fell beyond what can be found, or all fell to the rounding of the data."""
        free = self.one_sided & np.isnan(self.problem.held)
        rounded = (self.z < self.log_size - _ENDLESS) & self._fallen(_FLED)
        return bool(self._fallen(_ENDLESS).any() or (free.any() and rounded[free].all()))

    def _driven(self, at: Point) -> Any:
        """Find parameters that moved far towards a bound and have not been tested on it."""
        z = at.x * self.problem.scale
        fall = z - self.mark
        if fall.min() > -_SOON and not self.between.any():
            return np.zeros(z.size, dtype=bool)
        steeper = at.gradient * np.exp(np.minimum(-fall, 300.0)) > np.maximum(self.slope, 0.0)
        down = (fall < -_FAR) | ((fall < -_SOON) & steeper & (self.asked == 0))
        near = (np.abs(z) > np.where(self.asked == 0, _EDGE, _BRINK)) & (self.asked < 2)
        far = np.where(self.between, near, down)
        return far & np.isnan(self.problem.held) & self.problem.transform.bounded

    def _pause(self, at: Point) -> bool:
        return bool(self._driven(at).any())

    def _try_bounds(self) -> None:
        """Hold at its bound what was driven there, if the likelihood agrees; else ask again further on."""
        for i in map(int, np.flatnonzero(self._driven(self.descent.at))):
            self.asked[i] += 1
            self.problem.held[i] = self.problem.nearest(self.z, i)
            at = self.problem.attempt(self.z)
            brink = at is None and self.problem.transform.both[i] and abs(self.z[i]) > _BRINK
            if brink:
                self.problem.held[i] = self.problem.transform.theta(self.z)[i]
                at = self.problem.attempt(self.z)
            better = at is not None and at.llf >= self.at.llf - self._nothing()
            if at is not None and better and (brink or self._flat_or_falls(at, i)):
                self.descent.hold(i)
                self._go(self.z, at)
            else:
                self.problem.held[i] = np.nan
                self.mark[i] = self.z[i]

    def _flat_or_falls(self, at: Evaluation, i: int) -> bool:
        """Return True if the likelihood does not rise from the bound inward."""
        return bool(at.inward[i] * self.problem.distance(self.z, i) / self.problem.typical[i] < _GAIN)

    def _nothing(self) -> float:
        """Return a change of ℓ that may be rounding or is too small to matter."""
        return _GAIN + max(1e-12 * abs(self.at.llf), self._noise())

    def _noise(self) -> float:
        """Return the rounding of ℓ that the search has met."""
        return self.n * self.descent.noise

    def _fled(self) -> bool:
        """Return True if the search stopped at a failed model build while the likelihood was still improving."""
        down = self._fallen(_FLED)
        return bool(float(self.at.gradient[down].sum()) < -1e-3 * self.n)

    def _release(self) -> bool:
        """Free a stuck parameter if the likelihood rises; return True if one was freed."""
        problem, t = self.problem, self.problem.transform
        held = ~np.isnan(problem.held)
        deep = self.one_sided & (self.z - np.log(problem.typical) < -_FAR)
        edge = t.both & (np.abs(self.z) > _EDGE)
        for i in map(int, np.flatnonzero(held | deep | edge)):
            away = 0.0 if held[i] else problem.distance(self.z, i) / problem.typical[i]
            slope = self.at.inward[i]
            if not held[i]:
                toward = 1.0 if t.only_low[i] or t.only_high[i] or self.z[i] < 0 else -1.0
                slope = toward * self.at.gradient[i] / away
            most = (0.5 * (t.high[i] - t.low[i]) / problem.typical[i]) if t.both[i] else np.inf
            if self._leave(i, float(slope), away, most):
                return True
        return False

    def _leave(self, i: int, slope: float, away: float, most: float) -> bool:
        """Try to leave a bound.

        A slope that rises promises a gain of 1 after 1/slope, and a parabola corrects that. From one that falls the
        likelihood may still recover: it is looked at where 2 would be lost; and where the slope is 0, which says
        nothing of a square root of a variance, at a short step too.
        """
        if slope > 0.0:
            step = min(1.0 / slope, most)
            for _ in range(8):
                if slope * step < _GAIN:
                    break
                off, at = self._step_off(i, away + step)
                if off:
                    return True
                lost = np.inf if at is None else slope * step - (at.llf - self.at.llf)
                step *= float(np.clip(0.5 * slope * step / lost, 0.02, 0.5)) if lost > 0.0 else 0.1
            return False
        if away or self.tried[i]:
            return False
        self.tried[i] = True
        steps = [min(1.0, most, -2.0 / slope if slope else 1.0)]
        if slope > -_LEVEL:
            steps.append(min(np.exp(-_FAR), most))
        return any(self._step_off(i, step)[0] for step in steps)

    def _step_off(self, i: int, step: float) -> tuple[bool, Evaluation | None]:
        """Move a parameter off its bound if that is better; return whether it was, and what is there."""
        problem, was = self.problem, self.problem.held[i]
        bound = problem.nearest(self.z, i) if np.isnan(was) else was
        inside = -1.0 if bound - problem.transform.low[i] > problem.transform.high[i] - bound else 1.0
        z = self.z.copy()
        z[i] = problem.transform.free_one(i, bound + inside * problem.typical[i] * step)
        problem.held[i] = np.nan
        at = problem.attempt(z)
        if at is None or not at.llf > self.at.llf + self._nothing():
            problem.held[i] = was
            return False, at
        self.descent.release(i)
        self.mark[i], self.slope[i], self.asked[i] = z[i], np.inf, 0
        self._go(z, at)
        return True, at
