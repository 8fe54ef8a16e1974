"""Define sums of parts: build, fit, decompose, forecast and simulate them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.errors import ModelError, ShapeError
from kfdyn.estimation.fitting import fit
from kfdyn.estimation.fitting.objective import by_pattern
from kfdyn.estimation.fitting.transformed_objective import pairs_of
from kfdyn.estimation.inference.filter import kalman_filter
from kfdyn.estimation.inference.sampling import draw
from kfdyn.estimation.inference.smoother import bryson_frazier
from kfdyn.estimation.model.blocks import FloatArray, real_array
from kfdyn.estimation.model.overflow import finite_likelihood
from kfdyn.estimation.model.state_space import StateSpace
from kfdyn.estimation.series.build import Builder
from kfdyn.estimation.series.component import Bound, Matrices, Part, added
from kfdyn.estimation.series.input_data import (
    expect_rows,
    expect_rows_to_be_series,
    expect_steps,
    given_series,
    moved_inside,
    spread,
)
from kfdyn.estimation.series.pandas_io import wrapped
from kfdyn.estimation.series.series_fit import Component, Forecast, SeriesFit, better_mode


@dataclass(frozen=True, eq=False)
class SeriesModel:
    """A sum of parts with measurement noise or without; made by the functions of ``kf.series`` and by ``+``.

    Attributes
    ----------
    parts : tuple of Part
        The terms.
    has_noise : bool
        Whether measurements have noise of their own, with the variance ``noise``.

    Examples
    --------
    >>> import kfdyn as kf
    >>> model = kf.series.local_trend() + kf.series.seasonal(12)
    >>> model.names, model.n_states
    (('noise', 'level', 'trend', 'seasonal'), 13)
    """

    parts: tuple[Part, ...]
    has_noise: bool

    def __add__(self, other: SeriesModel) -> SeriesModel:
        if not isinstance(other, SeriesModel):
            return NotImplemented
        total = SeriesModel((*self.parts, *other.parts), self.has_noise or other.has_noise)
        sizes = {part.outputs for part in total.parts}
        if len(sizes) > 1:
            raise ShapeError(f"parts with {' and '.join(map(str, sorted(sizes)))} outputs do not add up")
        return total

    def __repr__(self) -> str:
        terms = [part.kind for part in self.parts] + (["noise"] if self.has_noise else [])
        return f"SeriesModel({' + '.join(terms)})"

    @property
    def outputs(self) -> int:
        """Number of outputs at each step."""
        return self.parts[0].outputs if self.parts else 1

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parameters; those of equal parts are numbered."""
        found = [*(("noise",) if self.has_noise else ()), *(name for part in self.parts for name in part.names)]
        return tuple(
            f"{name} ({found[:i].count(name) + 1})" if found.count(name) > 1 else name for i, name in enumerate(found)
        )

    @property
    def bounds(self) -> tuple[Bound, ...]:
        """Limits of the parameters."""
        return (*(((0.0, None),) if self.has_noise else ()), *(b for part in self.parts for b in part.bounds))

    @property
    def n_states(self) -> int:
        """Number of states."""
        at = np.array([_middle(bound) for bound in self.bounds])
        return len(self.matrices(at, min((p.steps for p in self.parts if p.steps), default=2)).flat)

    @property
    def varies(self) -> bool:
        """Return True if F and Q differ from step to step."""
        return any(part.kind == "matern" for part in self.parts)

    def _shares(self, theta: FloatArray) -> list[FloatArray]:
        at, out = int(self.has_noise), []
        for part in self.parts:
            out.append(theta[at : at + len(part.names)])
            at += len(part.names)
        return out

    def noise_of(self, theta: FloatArray) -> FloatArray:
        """Return the covariance R of the measurement noise, (m, m)."""
        return (theta[0] if self.has_noise else 0.0) * np.eye(self.outputs)

    def matrices(self, theta: FloatArray, steps: int) -> Matrices:
        """Return F, H, Q and the prior of the sum; with an axis of steps where a part has one."""
        pieces = [part.matrices(share, steps) for part, share in zip(self.parts, self._shares(theta))]
        return added(pieces, steps)

    def start(self, y: FloatArray) -> FloatArray:
        """Choose start values from the size of the series and of its changes."""
        size = spread(y)
        found = [x for part in self.parts for x in part.start(size)]
        return np.array([*([0.3 * size] if self.has_noise else []), *found])

    def state_space(self, theta: ArrayLike, steps: int) -> StateSpace:
        """Build the model over so many steps.

        Parameters
        ----------
        theta : array, shape (p,)
            Parameters in the order of ``names``.
        steps : int
            Number of steps.

        Returns
        -------
        StateSpace
            A chain with flat priors where nothing is known of the start.
        """
        expect_steps(steps)
        return Builder(self, int(steps))(self._theta(theta))

    def _thetas(self, thetas: ArrayLike) -> FloatArray:
        """Check many parameter vectors (B, p)."""
        given = real_array(thetas, "theta")
        lowest = [-np.inf if bound is None or bound[0] is None else bound[0] for bound in self.bounds]
        highest = [np.inf if bound is None or bound[1] is None else bound[1] for bound in self.bounds]
        if given.shape[1:] != (len(lowest),):
            self._theta(given[0] if len(given) else np.zeros(given.shape[1]))
        good = (np.isfinite(given) & (lowest <= given) & (given <= highest)).all(axis=1)
        if not good.all():
            self._theta(given[np.argmin(good)])
        return given

    def _theta(self, theta: ArrayLike) -> FloatArray:
        given = np.atleast_1d(real_array(theta, "theta"))
        if given.shape != (len(self.names),):
            raise ShapeError(f"theta must have one number for each of {', '.join(self.names)}; got shape {given.shape}")
        for name, value, bound in zip(self.names, given, self.bounds):
            low, high = (None, None) if bound is None else bound
            low, high = -np.inf if low is None else low, np.inf if high is None else high
            if not (np.isfinite(value) and low <= value <= high):
                raise ModelError(f"{name} is {value:g}, but it must be a finite number between {low:g} and {high:g}")
        return given

    def _expect_parameters(self) -> None:
        if not self.names:
            raise ModelError(f"{self!r} has no parameters, and nothing in it is random: add kf.series.noise()")

    def fit(
        self,
        y: Any,
        *,
        theta0: ArrayLike | None = None,
        starts: int = 1,
        rng: np.random.Generator | None = None,
        bounds: Sequence[Bound] | None = None,
        max_iterations: int = 200,
    ) -> SeriesFit:
        """Estimate the parameters by maximum likelihood, in the diffuse sense where the start is flat.

        Parameters
        ----------
        y : array or pandas Series or DataFrame, shape (..., N), or (..., N, m) with m outputs
            The series, NaN where missing; leading axes are independent series with the same parameters. The rows of a
            DataFrame are steps; its columns are the outputs, or independent series where there is one output. Rows that
            are absent from a regular index are missing measurements; an index that is not regular is refused.
            Time is the last axis of an array: its rows are series, not steps. One with more rows than columns is
            refused, since it may be meant otherwise: give ``y.T``, or ``y[..., None]`` if its rows are series.
        theta0, starts, rng, bounds, max_iterations
            As for :func:`kfdyn.fit`; the search begins where the size of the series suggests, moved within the bounds.
            If none of them is given and the slope of a local_trend was found not to wander, the likelihood is asked
            whether the slope may explain what the level does, which may be its second and higher maximum.

        Returns
        -------
        SeriesFit
            The estimate, which can forecast.
        """
        self._expect_parameters()
        T, _ = given_series(y, self.outputs, self.parts)
        if self.outputs == 1:
            expect_rows_to_be_series(y)
        steps = T.shape[-1] // self.outputs
        build = Builder(self, steps)
        bounds = None if bounds is None else pairs_of(bounds, len(self.names))
        begin = self._theta(theta0) if theta0 is not None else self.start(T)
        if theta0 is None and bounds is not None:
            begin = moved_inside(begin, bounds, self.bounds)
        found = fit(
            build, begin, T, bounds=self.bounds if bounds is None else bounds, names=self.names, starts=starts, rng=rng,
            max_iterations=max_iterations,
        )  # fmt: skip
        if starts == 1 and theta0 is None and bounds is None:
            found = better_mode(self, build, found, begin, max_iterations)
        return SeriesFit(self, y, found)

    def likelihood(self, y: Any, *, gradient: bool = True) -> Callable[[ArrayLike], Any]:
        """Prepare the log-likelihood of a series as a function of the parameters, with its gradient.

        Parameters
        ----------
        y : array or pandas, shape (..., N), or (..., N, m)
            The series.
        gradient : bool
            Whether the gradient is wanted.

        Returns
        -------
        callable
            ``theta -> (llf, gradient)``, or ``theta -> llf``: what samplers and other optimisers call. Of many vectors
            theta (B, p) it returns arrays, (B,) and (B, p); where variances alone are unknown they are evaluated side
            by side, five to twenty times as fast as in a loop.

        Examples
        --------
        >>> import kfdyn as kf
        >>> llf = kf.series.local_level().likelihood([1.0, 3.0, 2.0])
        >>> value, gradient = llf([1.0, 0.5])
        >>> round(value, 6), gradient.round(6)
        (-4.395453, array([-0.099773, -0.181406]))
        """
        self._expect_parameters()
        T, _ = given_series(y, self.outputs, self.parts)
        if self.outputs == 1:
            expect_rows_to_be_series(y)
        groups = list(by_pattern(T))
        build = Builder(self, T.shape[-1] // self.outputs)

        def evaluate(theta: ArrayLike) -> Any:
            many = np.ndim(theta) == 2
            given = self._thetas(theta) if many else self._theta(theta)
            with np.errstate(all="ignore"):  # the error below names it
                ask: Any = build.evaluate_many if many else build._evaluate
                llf, slope = np.zeros(given.shape[:-1]), np.zeros(given.shape)
                for part in groups:
                    value, own = ask(given, part, gradient)
                    llf += value
                    slope += own if gradient else 0.0
            total = finite_likelihood(llf)
            return (total, slope) if gradient else total

        return evaluate

    def components(self, theta: ArrayLike, y: Any) -> list[Component]:
        """Take one series apart: what each part adds to it, given all of it.

        Parameters
        ----------
        theta : array, shape (p,)
            Parameters.
        y : array or pandas, shape (N,) or (N, m)
            One series.

        Returns
        -------
        list of Component
            One for each part.
        """
        T, rows = given_series(y, self.outputs, self.parts)
        _expect_one(T, y)
        x, S, H, steps = self._smoothed(theta, T)
        if rows is not None and rows.at is not None:
            x, S, H = x[rows.at], S[rows.at], H[rows.at]
        out, at = [], 0
        for part, share in zip(self.parts, self._shares(self._theta(theta))):
            n = len(part.matrices(share, steps).flat)
            own = slice(at, at + n)
            mean = np.einsum("kmi,ki->km", H[..., own], x[:, own])
            var = np.einsum("kmi,kij,kmj->km", H[..., own], S[:, own, own], H[..., own])
            made = (_squeezed(mean), _squeezed(np.sqrt(np.maximum(var, 0.0))))
            out.append(Component(part.kind, *(wrapped(y, values, part.kind) for values in made)))
            at += n
        return out

    def forecast(self, theta: ArrayLike, y: Any, steps: int, *, confidence: float = 0.95) -> Forecast:
        """Continue a series.

        Parameters
        ----------
        theta : array, shape (p,)
            Parameters, taken as known: their own uncertainty is not in the intervals.
        y : array or pandas, shape (N,) or (N, m)
            One series.
        steps : int
            How far.
        confidence : float
            Of the intervals.

        Returns
        -------
        Forecast
            Mean, standard deviation and interval of each future measurement; for pandas with the index that follows,
            and with its own times if the model has a part with times.
        """
        from scipy.stats import norm

        expect_steps(steps)
        if not 0.0 < confidence < 1.0:
            raise ModelError(f"confidence must lie between 0 and 1, such as 0.95; got {confidence!r}")
        T, rows = given_series(y, self.outputs, self.parts)
        _expect_one(T, y)
        have = T.size // self.outputs
        index = self._following(have, steps) if rows is None else rows.following(int(steps))
        if rows is not None:
            expect_rows(self.parts, index, have)
        mean, var = Builder(self, have + steps).predict(self._theta(theta), T)
        std, half = np.sqrt(np.maximum(var, 0.0)), norm.isf(0.5 - 0.5 * confidence)
        made = (mean, std, mean - half * std, mean + half * std)
        words = ("mean", "std", "lower", "upper")
        return Forecast(*(wrapped(y, _squeezed(value), word, index) for value, word in zip(made, words)))

    def _following(self, have: int, steps: int) -> Any:
        """Return the times of the future, where a part has them."""
        return next((part.times[have : have + steps] for part in self.parts if part.times is not None), None)

    def simulate(self, theta: ArrayLike, steps: int, rng: np.random.Generator, n: int | None = None) -> FloatArray:
        """Draw series; flat states begin at 0.

        Parameters
        ----------
        theta : array, shape (p,)
            Parameters.
        steps : int
            Length.
        rng : numpy Generator
            Where randomness comes from.
        n : int, optional
            Number of series; one without an axis if not given.

        Returns
        -------
        array, shape (N,) or (n, N), with an axis of outputs where there are several
            Measurements.
        """
        expect_steps(steps)
        ss = Builder(self, int(steps))._state_space(self._theta(theta), flat=False)
        T = draw(ss, rng, n).T
        return T if self.outputs == 1 else T.reshape(*T.shape[:-1], steps, self.outputs)

    def _smoothed(self, theta: ArrayLike, T: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, int]:
        """Return x̂ (N, n), S (N, n, n) and H (N, m, n) of one series."""
        steps = T.size // self.outputs
        ss = self.state_space(theta, steps)
        smooth = bryson_frazier(ss, kalman_filter(ss, T))
        n = int(ss.n[0])
        x, S, H = smooth.x.flat.reshape(steps, n), smooth.S.flat.reshape(steps, n, n), ss.H.flat
        return x, S, H.reshape(steps, self.outputs, n), steps


def _expect_one(T: FloatArray, y: Any) -> None:
    if T.ndim != 1:
        each = "y[column]" if hasattr(y, "columns") else "y[i]"
        raise ShapeError(
            f"y holds {math.prod(T.shape[:-1])} series, and one is taken at a time: with fit.model and fit.params of a "
            f"fit, fit.model.forecast(fit.params, {each}, steps) and fit.model.components(fit.params, {each})"
        )


def _squeezed(values: FloatArray) -> FloatArray:
    return values[:, 0] if values.shape[1] == 1 else values


def _middle(bound: Bound) -> float:
    low, high = (None, None) if bound is None else bound
    return 0.5 * (low + high) if low is not None and high is not None else 1.0
