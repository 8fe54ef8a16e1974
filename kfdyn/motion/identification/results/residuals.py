"""Tests of what sensors read beyond the prediction: if it is no noise, the model is wrong."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kfdyn.arrays import Array
from kfdyn.errors import ModelError
from kfdyn.motion.identification.linear import Linear

_WIDE = 1e8  # variance of a state in place of an infinite one, in units of what the filter knows in the end


class ResidualTest(NamedTuple):
    """p-values of a sensor's standardised innovations, small where the model is wrong.

    Attributes
    ----------
    whiteness : float
        Of their products with earlier ones: Box and Pierce's χ².
    size : float
        Of Σe², which is χ² if variances are right; two-sided.
    mean : float
        Of their mean: a constant error, such as a bias.
    correlation : float
        The largest of these products in the mean; 0 for white noise.
    readings : int
        Numbers tested.

    Examples
    --------
    >>> ResidualTest(0.5, 0.4, 0.3, 0.02, 100).fine
    True
    """

    whiteness: float
    size: float
    mean: float
    correlation: float
    readings: int

    @property
    def fine(self) -> bool:
        """True if none of the three is below 0.01."""
        return min(self.whiteness, self.size, self.mean) >= 0.01


def residual_tests(lines: list[Linear], lags: int) -> dict[str, ResidualTest]:
    """Tests of each sensor over all logs, of lags to half of the longest; a sensor that read nothing has none."""
    if not isinstance(lags, int | np.integer) or lags < 1:
        raise ModelError(f"lags must be a whole number, 1 or more, got {lags!r}")
    lags = min(int(lags), max(line.problem.N for line in lines) // 2)
    runs: dict[str, list[Array]] = {}
    for line in lines:
        for name, e in _innovations(line).items():
            runs.setdefault(name, []).extend(e)
    return {name: _tested(e, lags) for name, e in runs.items() if any(np.isfinite(one).any() for one in e)}


def _innovations(line: Linear) -> dict[str, list[Array]]:
    """Innovations of each sensor of one log, whitened among themselves, (N, m) a run; NaN where it was silent."""
    if line.problem.prior.flat.any():  # its first innovations have no covariance, and so are next to 0
        motion = line.motion._replace(variances=np.median(line.step.after, axis=1))
        line = Linear(line.model, line.log.near(line.model, motion, _WIDE), motion)
    problem, filt = line.problem, line.smooth.filt
    m = line.point.at.T.shape[2]
    lead = (problem.batch, problem.N)
    seen = np.asarray(filt.observed).reshape(*lead, m)
    D = filt.D.flat.reshape(*lead, m, m)
    eps = np.asarray(filt.eps).reshape(*lead, m)
    out: dict[str, list[Array]] = {}
    for sensor, own in zip(line.model.seen.sensors, line.model.seen.tangents_of):
        there, size = seen[..., own], own.stop - own.start
        both = there[..., :, None] & there[..., None, :]
        L = np.linalg.cholesky(np.where(both, D[..., own, own], np.eye(size)))
        e = np.linalg.solve(L, np.where(there, eps[..., own], 0.0)[..., None])[..., 0]
        e = np.where(there, e, np.nan)
        out[sensor.name] = list(e)
    return out


def _tested(runs: list[Array], lags: int) -> ResidualTest:
    from scipy.stats import chi2

    every = np.concatenate(runs)
    known = np.isfinite(every)
    count, square = int(known.sum()), float(np.nansum(every**2))
    tail = chi2.cdf(square, count)
    means, each = np.nansum(every, axis=0), known.sum(axis=0)
    mean = float(chi2.sf((means**2 / np.maximum(each, 1)).sum(), int((each > 0).sum())))
    every = np.where(known, every, 0.0) / np.sqrt(square / count)  # the size is tested apart
    statistic, dof, worst = 0.0, 0, 0.0
    for lag in range(1, lags + 1):
        products = np.zeros((every.shape[1],) * 2)
        pairs = np.zeros_like(products)
        for run in runs:
            there = np.isfinite(run)
            e = np.where(there, run, 0.0) / np.sqrt(square / count)
            products += e[lag:].T @ e[:-lag]
            pairs += there[lag:].T.astype(float) @ there[:-lag]
        enough = pairs > 0
        statistic += float((products[enough] ** 2 / pairs[enough]).sum())
        dof += int(enough.sum())
        worst = max(worst, float(np.abs(products[enough] / pairs[enough]).max(initial=0.0)))
    whiteness = float(chi2.sf(statistic, dof)) if dof else 1.0
    return ResidualTest(whiteness, float(2.0 * min(tail, 1.0 - tail)), mean, worst, count)
