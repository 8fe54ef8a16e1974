"""Map bounded parameters to unbounded ones for the optimiser."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kfdyn.errors import ModelError, ShapeError
from kfdyn.estimation.model.blocks import FloatArray

Bounds = Sequence[tuple[float | None, float | None] | None]


def pairs_of(bounds: Bounds, size: int) -> list[tuple[float | None, float | None]]:
    """Limits (low, high) of each of so many parameters, None where there is none."""
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
    """θ(z), one number at a time: z itself, low + eᶻ, high − eᶻ, or low + (high − low)/(1 + e⁻ᶻ).

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
        """Parameters of free numbers."""
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
        """Free numbers of parameters within their bounds."""
        out = np.array(theta, dtype=float)
        out[self.only_low] = np.log(theta[self.only_low] - self.low[self.only_low])
        out[self.only_high] = np.log(self.high[self.only_high] - theta[self.only_high])
        b = self.both
        out[b] = np.log(theta[b] - self.low[b]) - np.log(self.high[b] - theta[b])
        return out

    def free_one(self, i: int, theta: float) -> float:
        """The free number of parameter i alone."""
        if self.both[i]:
            return float(np.log(theta - self.low[i]) - np.log(self.high[i] - theta))
        if self.only_low[i]:
            return float(np.log(theta - self.low[i]))
        return float(np.log(self.high[i] - theta)) if self.only_high[i] else float(theta)

    def slope(self, z: FloatArray) -> FloatArray:
        """dθ/dz."""
        if self._all_low:
            return np.exp(z)
        out = np.ones_like(z)
        out[self.only_low] = np.exp(z[self.only_low])
        out[self.only_high] = -np.exp(z[self.only_high])
        b = self.both
        out[b] = (self.high[b] - self.low[b]) * _share(z[b]) * _share(-z[b])
        return out


def _share(z: FloatArray) -> FloatArray:
    """1/(1 + e⁻ᶻ), which does not overflow, however far z is."""
    return np.exp(-np.logaddexp(0.0, -z))
