"""Result of a fit: parameters, standard errors, diagnostics."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from kfdyn.errors import ModelError
from kfdyn.estimation.inference.factor import apply_lower
from kfdyn.estimation.inference.filter import kalman_filter
from kfdyn.estimation.inference.missing_data import gathered, patterns
from kfdyn.estimation.inference.score import score
from kfdyn.estimation.model.blocks import FloatArray
from kfdyn.estimation.model.state_space import StateSpace

if TYPE_CHECKING:
    from kfdyn.estimation.fitting.transformed_objective import Problem
    from kfdyn.estimation.inference.scored import Score

_ROUNDING = 1e-9  # information, in units in which 1 is usual, that differences of the score find where there is none
_UNKNOWN = 1e-6  # eigenvalue of the information, scaled to unit diagonal, below which a direction is not identified


class Diagnostics(NamedTuple):
    """p-values of tests that the standardised innovations are white, standard and normal.

    Attributes
    ----------
    nis : float
        p-value of Σe², which is χ² if the variances are right; two-sided.
    whiteness : float
        p-value of the tree's portmanteau test of ``lags`` lags: Ljung and Box's on a chain.
    normality : float
        p-value of Jarque and Bera's test of skewness and kurtosis.
    lags : int
        Lags of the portmanteau test.

    Examples
    --------
    >>> Diagnostics(0.5, 0.4, 0.3, 10).fine
    True
    """

    nis: float
    whiteness: float
    normality: float
    lags: int

    @property
    def fine(self) -> bool:
        """Return True if none of the three is below 0.01."""
        return min(self.nis, self.whiteness, self.normality) >= 0.01


@dataclass(frozen=True, eq=False)
class Fit:
    """The maximum of a likelihood.

    Attributes
    ----------
    params : ndarray, shape (p,)
        The estimate.
    names : tuple of str
        Names of the parameters.
    llf : float
        Log-likelihood there, of all series.
    converged : bool
        Whether it is a maximum: no slope is left, and from no bound does the likelihood rise inward.
    message : str
        How the search ended, in words.
    at_bound : ndarray of bool, shape (p,)
        Parameters whose best value is a bound, or as near to it as there is a model; they have no standard error.

    Examples
    --------
    The mean and variance of four numbers:

    >>> import numpy as np, kfdyn as kf
    >>> none, one = np.zeros((1, 1)), np.ones((1, 1))
    >>> def build(theta):
    ...     return kf.StateSpace([-1] * 4, [None] * 4, [one] * 4, [theta[1] * one] * 4, xi=np.full(4, theta[0]))
    >>> result = kf.fit(build, [0.0, 1.0], [1.0, 2.0, 3.0, 6.0], bounds=[None, (0, None)], names=["mean", "variance"])
    >>> result.params.round(6), result.stderr.round(6), round(result.aic, 6)
    (array([3. , 3.5]), array([0.935414, 2.474874]), 20.36256)
    """

    params: FloatArray
    names: tuple[str, ...]
    llf: float
    converged: bool
    message: str
    at_bound: Any
    _problem: Problem = field(repr=False)
    _z: FloatArray = field(repr=False)

    @cached_property
    def model(self) -> Any:
        """The model at the estimate."""
        return self._problem.objective.model(self.params)

    @property
    def n_params(self) -> int:
        """Number of parameters."""
        return self.params.size

    @property
    def n_observed(self) -> int:
        """Number of measurements."""
        return self._problem.objective.n_observed

    @property
    def n_evaluations(self) -> int:
        """Number of likelihoods that were computed."""
        return self._problem.objective.evaluations

    @cached_property
    def _information(self) -> FloatArray:
        """Observed information of the free parameters."""
        self._problem.held[:] = np.where(self.at_bound, self.params, np.nan)
        return self._problem.information(self._z)

    @cached_property
    def _slope(self) -> FloatArray:
        return np.where(self.at_bound, 0.0, self._problem.transform.slope(self._z))

    @cached_property
    def _free(self) -> Any:
        """Parameters that are not at a bound and whose information is known: there was a model on both sides."""
        return np.flatnonzero(~np.asarray(self.at_bound) & np.isfinite(np.diagonal(self._information)))

    @cached_property
    def _directions(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Scale, eigenvalues and eigenvectors of the information of what is free."""
        free = self._free
        part, own = self._information[np.ix_(free, free)], self._problem.scale[free]
        least = max(_ROUNDING / _UNKNOWN, 1e-12 * np.abs(part * np.outer(own, own)).max(initial=0.0))
        scale = np.sqrt(np.maximum(np.abs(np.diagonal(part)), least / own**2))
        values, vectors = np.linalg.eigh(part / np.outer(scale, scale)) if free.size else (np.zeros(0), np.eye(0))
        return scale, values, vectors

    @cached_property
    def _spread(self) -> FloatArray:
        """Inverse of the observed information in the free numbers z, (p, p); NaN where it is not known."""
        out = np.full((self.n_params, self.n_params), np.nan)
        free = self._free
        scale, values, vectors = self._directions
        known = values > _UNKNOWN
        inverse = (vectors[:, known] / values[known]) @ vectors[:, known].T / np.outer(scale, scale)
        lost = (vectors[:, ~known] ** 2).sum(axis=1) > 1e-6
        inverse[lost] = np.nan
        inverse[:, lost] = np.nan
        out[np.ix_(free, free)] = inverse
        return out

    @cached_property
    def cov_params(self) -> FloatArray:
        """Covariance of the estimate, the inverse of the observed information, (p, p).

        NaN for parameters at a bound and for those that a direction which is not identified contains; infinite where it
        is beyond 1e308, as that of a variance of 1e200 is.
        """
        with np.errstate(over="ignore"):
            return self._spread * self._slope[:, None] * self._slope

    @property
    def stderr(self) -> FloatArray:
        """Standard errors of the parameters, (p,); NaN where there is none."""
        return np.abs(self._slope) * np.sqrt(np.diagonal(self._spread))

    @cached_property
    def unidentified(self) -> tuple[str, ...]:
        """Directions in which the likelihood is flat at the estimate, in words; empty if there is none."""
        free = self._free
        scale, values, vectors = self._directions
        told = []
        for value, vector in zip(values, vectors.T):
            if value <= _UNKNOWN:
                step = self._slope[free] * vector / scale
                step = step / np.abs(step).max()
                terms = [f"{x:+.3g} {self.names[i]}" for i, x in zip(free, step) if abs(x) > 1e-3]
                told.append(" ".join(terms))
        return tuple(told)

    def conf_int(self, alpha: float = 0.05) -> FloatArray:
        """Return confidence intervals of level 1 − alpha, (p, 2).

        Those of a parameter with a bound are taken where the search is free, on log θ or the like, and so lie within.
        """
        from scipy.stats import norm

        if not 0.0 < alpha < 1.0:
            raise ModelError(f"alpha must lie between 0 and 1, such as 0.05; got {alpha!r}")
        free = norm.isf(alpha / 2) * np.sqrt(np.diagonal(self._spread))
        with np.errstate(
            over="ignore", invalid="ignore"
        ):  # infinity says that nothing is known, NaN that there is none
            low, high = (
                np.where(self.at_bound, np.nan, self._problem.transform.theta(self._z + s * free)) for s in (-1, 1)
            )
        return np.stack([np.minimum(low, high), np.maximum(low, high)], axis=-1)

    @cached_property
    def n_flat(self) -> int:
        """Number of flat states of all series: the data estimate them too."""
        model = self.model
        if isinstance(model, StateSpace):
            own = 0 if model.flat is None else model.flat.size
        else:
            own = int(model.n[model.tree.roots].sum()) if model.root_cov is None else 0
        return int(own) * self._problem.objective.n_series

    @property
    def aic(self) -> float:
        """Akaike's information criterion, 2d − 2ℓ.

        d = p + ``n_flat`` here and below: a flat state is estimated as a parameter is, and counted as one, as
        ``UnobservedComponents`` of statsmodels does. n is the number of measurements that are there.
        """
        return 2.0 * (self.n_params + self.n_flat) - 2.0 * self.llf

    @property
    def bic(self) -> float:
        """Bayesian information criterion, d log n − 2ℓ."""
        return (self.n_params + self.n_flat) * float(np.log(max(self.n_observed, 1))) - 2.0 * self.llf

    @property
    def hqic(self) -> float:
        """Hannan and Quinn's criterion, 2d log log n − 2ℓ."""
        double = float(np.log(np.log(max(self.n_observed, 3))))
        return 2.0 * (self.n_params + self.n_flat) * double - 2.0 * self.llf

    @cached_property
    def score(self) -> Score:
        """Gradient in every block of the model, one for each series, and behind it filter and smoother.

        Where series lack different measurements, each group of them has its own filter: see :class:`ScoreBatch`.
        """
        return score(self._inward, self._problem.objective.T)

    @property
    def _inward(self) -> StateSpace:
        if not isinstance(self.model, StateSpace):
            raise ModelError("this model branches outward: fit.model.smooth(y) has its posterior and score")
        return self.model

    @cached_property
    def residuals(self) -> FloatArray:
        """Standardised innovations D^-½ε of all series, (..., Σm_k): independent and standard normal if the model
        is right; NaN where T is missing, and where a flat prior is still to be resolved.
        """
        model, T = self._inward, self._problem.objective.T
        if T.ndim == 1:
            return standardised(kalman_filter(model, T))
        rows, groups = T.reshape(-1, T.shape[-1]), patterns(T)
        parts = [rows[entries] for entries in groups]  # a series without a measurement has no innovation
        found = [part if np.isnan(part).all() else standardised(kalman_filter(model, part)) for part in parts]
        return gathered(T.shape[:-1], groups, found)

    def diagnostics(self, lags: int | None = None) -> Diagnostics:
        """Test the innovations of the first series.

        Parameters
        ----------
        lags : int, optional
            Of the portmanteau test; min(10, n/5) if not given.
        """
        from scipy.stats import chi2

        e = self.residuals[(0,) * (self.residuals.ndim - 1)]
        seen = e[~np.isnan(e)]
        n = seen.size
        if n < 8:
            raise ModelError(f"{n} innovations are too few to test; 8 or more are needed")
        if not seen.var() > 0.0:
            raise ModelError("the innovations do not vary, so there is nothing to test")
        lags = max(1, min(10, n // 5)) if lags is None else lags
        total = float(chi2.cdf((seen**2).sum(), n))
        centred = seen - seen.mean()
        spread = (centred**2).mean()
        skew, kurtosis = (centred**3).mean() / spread**1.5, (centred**4).mean() / spread**2
        return Diagnostics(
            2.0 * min(total, 1.0 - total),
            _portmanteau(self.model, e, lags),
            float(chi2.sf(n / 6.0 * (skew**2 + (kurtosis - 3.0) ** 2 / 4.0), 2)),
            lags,
        )

    def summary(self, alpha: float = 0.05) -> str:
        """Return the table of the estimate, in the style of statsmodels."""
        from kfdyn.estimation.fitting.table import summary

        return summary(self, alpha)

    def __str__(self) -> str:
        return self.summary()


def standardised(filt: Any) -> FloatArray:
    """Return D^-½ε of series that lack the same measurements, (..., Σm_k); NaN where there is none."""
    ss = filt.ss
    if ss.flat is None:
        e = apply_lower(filt.covariances, filt.eps_centered, inverse=True, transposed=False)
        return np.where(filt.observed, e, np.nan)
    e = np.full(filt.eps.shape, np.nan)
    for k in range(len(ss)):
        own = slice(ss.arrays.output[k], ss.arrays.output[k + 1])
        seen = np.flatnonzero(filt.observed[own]) + own.start
        if seen.size and not filt.D_inf[k].any():
            D = filt.D[k][np.ix_(seen - own.start, seen - own.start)]
            e[..., seen] = np.linalg.solve(np.linalg.cholesky(D), filt.eps[..., seen, None])[..., 0]
    return e


def _portmanteau(model: StateSpace, e: FloatArray, lags: int) -> float:
    """Return the p-value of Ljung and Box's n(n + 2) Σ r²/(n − lag), over pairs of a node and its ancestor."""
    from scipy.stats import chi2

    owner = np.repeat(np.arange(len(model)), model.m)
    first = model.arrays.output[:-1]
    seen = ~np.isnan(e)
    values = np.where(seen, e, 0.0)
    n, power = int(seen.sum()), float((values**2).sum())
    statistic, above = 0.0, owner.copy()
    within = np.arange(e.size) - first[owner]
    for lag in range(1, lags + 1):
        above = np.where(above >= 0, model.tree.parent[above], -1)
        fits = (above >= 0) & (within < model.m[above])
        mine = np.flatnonzero(fits)
        theirs = first[above[mine]] + within[mine]
        r = float((values[mine] * values[theirs]).sum()) / power
        statistic += r * r / max(n - lag, 1)
    return float(chi2.sf(n * (n + 2) * statistic, lags))
