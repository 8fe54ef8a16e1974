"""Log-likelihood as a function of unbounded parameters, some of which may be held at a bound."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kfdyn.errors import KfdynError, ModelError, ShapeError
from kfdyn.estimation.fitting.objective import Objective
from kfdyn.estimation.model.blocks import FloatArray

Bounds = Sequence[tuple[float | None, float | None] | None]


def pairs_of(bounds: Bounds, size: int) -> list[tuple[float | None, float | None]]:
    """Return the limits (low, high) of each parameter, None where there is none."""
    try:
        given = list(bounds)
    except TypeError:
        raise ShapeError(f"bounds must hold (low, high) or None for each parameter, not {bounds!r}") from None
    if len(given) != size:
        raise ShapeError(f"{len(given)} bounds were given for {size} parameters; give (low, high) or None for each")
    found: list[tuple[float | None, float | None]] = []
    for i, pair in enumerate(given):
        try:
            low, high = (None, None) if pair is None else pair
            found.append((None if low is None else float(low), None if high is None else float(high)))
        except (TypeError, ValueError):
            raise ShapeError(
                f"the bounds of parameter {i} must be None or two numbers (low, high), either may be None; got {pair!r}"
            ) from None
    return found


class Transform:
    """Transform θ(z), one number at a time: z itself, low + eᶻ, high − eᶻ, or low + (high − low)/(1 + e⁻ᶻ).

    Examples
    --------
    >>> import numpy as np
    >>> t = Transform([(0, None), None, (-1, 1)], 3)
    >>> t.theta(np.array([0.0, 5.0, 0.0]))
    array([1., 5., 0.])
    >>> t.free(np.array([1.0, 5.0, 0.0]))
    array([0., 5., 0.])
    """

    def __init__(self, bounds: Bounds | None, size: int) -> None:
        pairs = pairs_of([None] * size if bounds is None else bounds, size)
        self.low = np.array([-np.inf if low is None else low for low, _ in pairs])
        self.high = np.array([np.inf if high is None else high for _, high in pairs])
        wrong = np.flatnonzero(~(self.low < self.high))
        if wrong.size:
            i = int(wrong[0])
            raise ModelError(f"the bounds of parameter {i} are {self.low[i]:g} and {self.high[i]:g}; low must be less")
        below, above = np.isfinite(self.low), np.isfinite(self.high)
        self.only_low, self.only_high, self.both = below & ~above, above & ~below, below & above
        self.bounded = below | above
        self._plain = not (below.any() or above.any())
        self._all_low = bool(self.only_low.all())

    def expect_inside(self, theta: FloatArray, names: Sequence[str]) -> None:
        """Refuse a start that is not strictly within its bounds."""
        wrong = np.flatnonzero(~((theta > self.low) & (theta < self.high)))
        if wrong.size:
            i = int(wrong[0])
            raise ModelError(
                f"{names[i]} starts at {theta[i]:g}, which is not strictly between its bounds {self.low[i]:g} and "
                f"{self.high[i]:g}; start inside"
            )

    def theta(self, z: FloatArray) -> FloatArray:
        """Return the parameters of free numbers."""
        if self._plain:
            return z.copy()
        if self._all_low:
            return self.low + np.exp(z)
        out = z.copy()
        out[self.only_low] = self.low[self.only_low] + np.exp(z[self.only_low])
        out[self.only_high] = self.high[self.only_high] - np.exp(z[self.only_high])
        b = self.both
        out[b] = self.low[b] + (self.high[b] - self.low[b]) * _share(z[b])
        return out

    def free(self, theta: FloatArray) -> FloatArray:
        """Return the free numbers of parameters within their bounds."""
        out = np.array(theta, dtype=float)
        out[self.only_low] = np.log(theta[self.only_low] - self.low[self.only_low])
        out[self.only_high] = np.log(self.high[self.only_high] - theta[self.only_high])
        b = self.both
        out[b] = np.log(theta[b] - self.low[b]) - np.log(self.high[b] - theta[b])
        return out

    def free_one(self, i: int, theta: float) -> float:
        """Return the free number of parameter i alone."""
        if self.both[i]:
            return float(np.log(theta - self.low[i]) - np.log(self.high[i] - theta))
        if self.only_low[i]:
            return float(np.log(theta - self.low[i]))
        return float(np.log(self.high[i] - theta)) if self.only_high[i] else float(theta)

    def slope(self, z: FloatArray) -> FloatArray:
        """Return dθ/dz."""
        if self._all_low:
            return np.exp(z)
        out = np.ones_like(z)
        out[self.only_low] = np.exp(z[self.only_low])
        out[self.only_high] = -np.exp(z[self.only_high])
        b = self.both
        out[b] = (self.high[b] - self.low[b]) * _share(z[b]) * _share(-z[b])
        return out


def _share(z: FloatArray) -> FloatArray:
    """Return 1/(1 + e⁻ᶻ) without overflow."""
    return np.exp(-np.logaddexp(0.0, -z))


_CURVATURE = 1e-4  # of a parameter's scale: step of the differences of the gradient
_NOISE = 1e-6  # of a gradient: a smaller change of it may be rounding
_TRIES = 12  # at the scale of a parameter of which nothing is known


class Evaluation(NamedTuple):
    """ℓ, ∂ℓ/∂z (0 for what is held), and of what is held the slope into the interior, for its typical size."""

    llf: float
    gradient: FloatArray
    inward: FloatArray


class Problem:
    """ℓ as a function of free parameters z; parameters held at a bound stay there.

    Attributes
    ----------
    held : ndarray
        Where parameters are held, at a bound or as near to it as matters; NaN for those that are free.
    scale : ndarray
        Step of z that matters: 1 where z is a logarithm; for a parameter without bounds that by which the slope of ℓ
        changes as much as half the number of measurements, divided by it, which is what a logarithm of a variance does.
    typical : ndarray
        Distance from its bound at which a parameter is expected.
    """

    def __init__(self, objective: Objective, transform: Transform) -> None:
        self.objective, self.transform = objective, transform
        p = transform.low.size
        self.held = np.full(p, np.nan)
        self.scale = np.ones(p)
        self.typical = np.ones(p)

    def theta(self, z: FloatArray) -> FloatArray:
        """Return the parameters, held ones at their bounds."""
        return np.where(np.isnan(self.held), self.transform.theta(z), self.held)

    def __call__(self, z: FloatArray) -> Evaluation:
        """Return ℓ and its slopes; errors of the model are raised."""
        t = self.transform
        theta, slope = t.theta(z), t.slope(z)
        free = np.isnan(self.held)
        if free.all():
            llf, gradient = self.objective(theta, t.theta, z, slope, lambda: self._reach(z, theta, slope), ~free)
            return Evaluation(llf, gradient, np.zeros(z.size))
        inside = self.inward() * self.typical

        def path(w: FloatArray) -> FloatArray:
            return np.where(free, t.theta(w), self.held + inside * w)

        w, along = np.where(free, z, 0.0), np.where(free, slope, inside)
        llf, gradient = self.objective(
            path(w), path, w, along, lambda: np.where(free, self._reach(z, theta, slope), 1.0), ~free
        )
        return Evaluation(llf, np.where(free, gradient, 0.0), np.where(free, 0.0, gradient))

    def _reach(self, z: FloatArray, theta: FloatArray, slope: FloatArray) -> FloatArray:
        """Return the distance in z over which the model changes noticeably; 1 for a logarithm."""
        with np.errstate(divide="ignore", invalid="ignore"):
            near = np.where(slope == 0.0, 0.0, np.minimum(np.abs(z), np.abs(theta / slope)))
        return np.maximum(near, self.scale)

    def attempt(self, z: FloatArray) -> Evaluation | None:
        """Return the evaluation, or None where there is no model or no finite likelihood."""
        try:
            with np.errstate(all="ignore"):
                found = self(z)
        except (ValueError, ArithmeticError, RuntimeWarning):  # LinAlgError is a ValueError, as are all of kfdyn's
            return None
        return found if _finite(found) else None

    def begin(self, z: FloatArray) -> Evaluation:
        """Return the evaluation at the start of a fit; a model that fails is an error that says so."""
        theta = self.theta(z)
        try:
            found = self(z)
        except KfdynError:
            raise
        except (ValueError, ArithmeticError) as error:
            raise ModelError(
                f"build(theta) has no likelihood at theta0 = {theta}: {type(error).__name__}: {error}; start elsewhere"
            ) from error
        if not _finite(found):
            raise ModelError(
                f"the log-likelihood at theta0 = {theta} is {found.llf:g}, and its gradient {found.gradient}; these "
                "must be finite: start elsewhere"
            )
        return found

    def distance(self, z: FloatArray, i: int) -> float:
        """Return the distance of parameter i from its nearer bound."""
        t = self.transform
        if t.both[i]:
            return float((t.high[i] - t.low[i]) * np.exp(-np.logaddexp(0.0, abs(z[i]))))
        return float(np.exp(z[i]))

    def nearest(self, z: FloatArray, i: int) -> float:
        """Return the nearer bound of parameter i."""
        t = self.transform
        return float(t.high[i] if t.only_high[i] or (t.both[i] and z[i] > 0) else t.low[i])

    def inward(self) -> FloatArray:
        """Return the direction of the interior for held parameters, 1 or −1."""
        t = self.transform
        return np.where(self.held - t.low > t.high - self.held, -1.0, 1.0)

    def find_scale(self, z: FloatArray, here: Evaluation, known: bool = False) -> None:
        """Find the scale of each parameter without bounds from the curvature of ℓ.

        A step is tried and changed until it is long enough for the gradient to change by more than rounding, and
        short beside the scale it implies; ``known`` says that the scale was found nearby.
        """
        half = 0.5 * max(self.objective.n_observed, 1)
        for i in np.flatnonzero(~self.transform.bounded & np.isnan(self.held)):
            slope = float(here.gradient[i])
            step = 1e-2 * float(self.scale[i])
            if not known:
                step = 1e-4 * abs(float(z[i])) or (1.0 / abs(slope) if slope else step)
            for _ in range(_TRIES):
                there = z.copy()
                there[i] += step
                found = self.attempt(there)
                if found is None:
                    step *= 1e-2
                    continue
                change = abs(float(found.gradient[i]) - slope)
                if not change > _NOISE * abs(slope):
                    step *= 1e3
                    continue
                self.scale[i] = float(np.sqrt(half * abs(there[i] - z[i]) / change))
                if step < 0.1 * self.scale[i]:
                    break
                step = 1e-2 * self.scale[i]

    def information(self, z: FloatArray) -> FloatArray:
        """Return −∂²ℓ/∂z∂z by central differences of the gradient: relative error about 1e-8."""
        matrix = np.array([self._curvature(z, i, _CURVATURE * float(self.scale[i])) for i in range(z.size)])
        matrix = matrix.reshape(z.size, z.size)
        return 0.5 * (matrix + matrix.T)

    def _curvature(self, z: FloatArray, i: int, step: float) -> FloatArray:
        """Return one row of the information; shorten a step that leaves the model."""
        if not np.isnan(self.held[i]):
            return np.zeros(z.size)
        axis = np.zeros(z.size)
        axis[i] = 1.0
        for _ in range(4):
            up, down = z + step * axis, z - step * axis
            there, back = self.attempt(up), self.attempt(down)
            if there is not None and back is not None:
                return (back.gradient - there.gradient) / (up[i] - down[i])
            step *= 1e-2
        return np.full(z.size, np.nan)


def _finite(found: Evaluation) -> bool:
    return bool(np.isfinite(found.llf) and np.isfinite(found.gradient).all())
