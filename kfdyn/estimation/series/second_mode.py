"""Look for the second maximum of a trend, where the slope explains what the level did."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kfdyn.errors import KfdynError
from kfdyn.estimation.fitting import Fit, fit
from kfdyn.estimation.model.blocks import FloatArray
from kfdyn.estimation.series.build import Builder

if TYPE_CHECKING:
    from kfdyn.estimation.series.series_model import SeriesModel

_SHARES = (0.2, 0.4, 0.8)  # of the level's variance, that its slope might have instead
_NEAR = 2.0  # what a look may be worse by than the first maximum, for a search to begin there
_SMALL = 1e-3  # of where the first search began: inside a bound, for what is at it


def better_mode(model: SeriesModel, build: Builder, found: Fit, begin: FloatArray, max_iterations: int) -> Fit:
    """The fit, or that of the other maximum if a few looks at the likelihood suggest one and it is higher.

    A local trend has two where its slope was put to rest: one with a level that wanders, one with a slope that does.
    Each is a maximum, with the other variance at its bound. A look costs a third of a step of the search, and a second
    search begins only where one of them comes near the first maximum.
    """
    at = int(model.has_noise)
    for part in model.parts:
        if part.names == ("level", "trend") and found.at_bound[at + 1] and not found.at_bound[at]:
            groups = found._problem.objective.groups
            best, start = found.llf - _NEAR, None
            for share in _SHARES:
                theta = found.params.copy()
                theta[at], theta[at + 1] = 0.0, share * found.params[at]
                try:
                    value = sum(build.value(theta, T) for T in groups)
                except KfdynError:  # no likelihood there, so no maximum either
                    continue
                if value > best:
                    best, start = value, np.where(theta > 0.0, theta, np.where(found.at_bound, _SMALL * begin, theta))
            if start is not None:
                start[at] = _SMALL * begin[at]
                other = fit(
                    build, start, found._problem.objective.T, bounds=model.bounds, names=found.names,
                    max_iterations=max_iterations,
                )  # fmt: skip
                other._problem.objective.evaluations += found.n_evaluations
                if other.converged and other.llf > found.llf:
                    found = other
        at += len(part.names)
    return found
