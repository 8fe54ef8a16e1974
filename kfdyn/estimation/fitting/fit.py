"""Maximum likelihood by the score: L-BFGS, then Newton steps with the observed information."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.errors import KfdynError, ModelError, ShapeError
from kfdyn.estimation.blocks import FloatArray, real_array
from kfdyn.estimation.fitting.lbfgs import Minimum, minimise
from kfdyn.estimation.fitting.objective import Build, Derivative, Objective
from kfdyn.estimation.fitting.result import Fit
from kfdyn.estimation.fitting.transforms import Bounds, Transform

_STEEP = 1e-8  # slope of the log-likelihood of a measurement, by the free parameters: below is a maximum
_POLISHED = 1e-9  # of the log-likelihood: a Newton step that gains less is the last
_ROUNDING = 1e-15  # of the log-likelihood
_FLAT = 1e-7  # of the log-likelihood: what a parameter at its bound may cost
_ENDLESS = 60.0  # by how much a logarithm may fall: a parameter of 1e-26 of its start is not found, but fled to
_PATIENCE = 2.0  # seconds before progress is shown

_NO_MAXIMUM = (
    "not converged: the log-likelihood has no maximum, it grows without limit as {} goes to its bound; the model fits "
    "some of the data exactly, as it does a constant series"
)


class _Search(NamedTuple):
    z: FloatArray
    llf: float
    gradient: FloatArray
    message: str
    iterations: int
    held: FloatArray
    start: FloatArray


def fit(
    build: Build,
    theta0: ArrayLike,
    T: ArrayLike,
    *,
    derivative: Derivative | None = None,
    bounds: Bounds | None = None,
    names: Sequence[str] | None = None,
    starts: int = 1,
    rng: np.random.Generator | None = None,
    max_iterations: int = 200,
    progress: bool | None = None,
) -> Fit:
    """Estimate the parameters of a model by maximum likelihood.

    The gradient comes from one smoother pass (:func:`score`) and the derivative of ``build``, which is by differences
    of ``build`` alone if nothing better is given: that costs no filter. L-BFGS finds the maximum, Newton steps with the
    observed information settle its last digits.

    Parameters
    ----------
    build : callable
        ``build(theta) -> StateSpace`` (or OutwardTree) with theta (p,). ``ss.replace(Q=…)`` of a model built once is
        the quick way. It may have ``pullback(theta, score) -> (p,)``, the gradient in theta of a score.
    theta0 : array, shape (p,)
        Where the search begins.
    T : array, shape (..., Σm_k)
        Measurements, NaN where missing; leading axes are independent series of the same parameters, and each may lack
        other measurements.
    derivative : callable, optional
        ``derivative(theta)`` returns for each parameter a dict of what the blocks change by, such as ``{"Q": dQ}``.
    bounds : sequence of (low, high) or None, optional
        Limits of each parameter, None where there is none. The search moves log(θ − low) or the like, so a variance has
        ``(0, None)``. A parameter whose best value is a bound is put there.
    names : sequence of str, optional
        Names of the parameters.
    starts : int
        Number of searches; all but the first begin at random around ``theta0``. The best is kept.
    rng : numpy Generator, optional
        For those; ``default_rng(0)`` if not given.
    max_iterations : int
        Limit of L-BFGS, for each start.
    progress : bool, optional
        Whether to show how far it is; after two seconds on a terminal if not given.

    Returns
    -------
    Fit
        ``params``, ``stderr``, ``llf``, ``aic``, ``bic``, ``converged``, ``message``, ``summary()``, ``model``, and
        ``unidentified``, the directions in which the likelihood is flat.

    Raises
    ------
    ModelError, ShapeError
        If there is no model at ``theta0``, or it does not fit T.

    Notes
    -----
    O(N) for each evaluation. The observed information is minus the derivative of the score, by central differences of
    it. Source: THEORY section 10; Durbin and Koopman (2012), chapter 7.

    Examples
    --------
    The local level of the Nile; Durbin and Koopman report 15099 and 1469.

    >>> import numpy as np, kfdyn as kf
    >>> from kfdyn.estimation.datasets import nile
    >>> one = np.ones((1, 1))
    >>> ss = kf.StateSpace.chain(one, one, one, one, x0=[0.0], P0=1e7 * one, steps=100)
    >>> def build(theta):
    ...     Q = np.full((100, 1, 1), theta[1])
    ...     Q[0] = 1e7
    ...     return ss.replace(Q=Q, R=np.full((100, 1, 1), theta[0]))
    >>> result = kf.fit(build, [1e4, 1e3], nile().flow, bounds=[(0, None)] * 2, names=["noise", "level"])
    >>> result.converged, result.params.round(-1), round(result.llf, 3)
    (True, array([15100.,  1470.]), -641.586)
    """
    theta = np.atleast_1d(real_array(theta0, "theta0")).astype(float)
    if theta.ndim != 1 or not np.isfinite(theta).all():
        raise ShapeError(f"theta0 must be a vector of finite numbers, got shape {theta.shape}")
    labels = [f"theta[{i}]" for i in range(theta.size)] if names is None else [str(name) for name in names]
    if len(labels) != theta.size:
        raise ShapeError(f"{len(labels)} names were given for {theta.size} parameters")
    if starts < 1:
        raise ModelError(f"starts must be at least 1, got {starts}")
    transform = Transform(bounds, theta.size)
    transform.expect_inside(theta, labels)
    objective = Objective(build, T, derivative)
    if not objective.n_observed:
        raise ModelError(f"T, of shape {np.shape(T)}, holds no measurement; there is nothing to fit")
    problem = Problem(objective, transform)
    z0 = transform.free(theta)
    problem(z0)  # errors of the model at its start are the caller's
    rng = np.random.default_rng(0) if rng is None else rng
    plain = ~(transform.only_low | transform.only_high | transform.both)
    spread = np.where(plain, np.maximum(1.0, np.abs(z0)), 1.5)
    best: _Search | None = None
    begun = time.monotonic()
    for start in range(starts):
        begin = z0 if start == 0 else z0 + spread * rng.normal(size=z0.size)
        found = _search(problem, begin, max_iterations)
        if best is None or found.llf > best.llf:
            best = found
        if progress or (progress is None and sys.stderr.isatty() and time.monotonic() - begun > _PATIENCE):
            sys.stderr.write(f"\rfit: start {start + 1} of {starts}, log-likelihood {best.llf:.4f} ")
            sys.stderr.write("\n" if start + 1 == starts else "")
            sys.stderr.flush()
    assert best is not None
    return _settle(problem, best, labels)


class Problem:
    """ℓ as a function of free parameters; those that are held at a bound stay there."""

    def __init__(self, objective: Objective, transform: Transform) -> None:
        self.objective, self.transform = objective, transform
        self.held = np.full(transform.low.size, np.nan)

    def theta(self, z: FloatArray) -> FloatArray:
        """Parameters, held ones at their bounds."""
        return np.where(np.isnan(self.held), self.transform.theta(z), self.held)

    def __call__(self, z: FloatArray) -> tuple[float, FloatArray]:
        """ℓ and its gradient, 0 for what is held."""
        llf, gradient = self.objective(self.theta(z), self.theta, z, self.transform.slope(z))
        return llf, np.where(np.isnan(self.held), gradient, 0.0)

    def driven(self, z: FloatArray, start: FloatArray) -> Any:
        """Which parameters a search has moved far towards a bound."""
        t = self.transform
        far = np.where(t.both, np.abs(z) > 7.0, (z - start < -4.0) & (t.only_low | t.only_high))
        return far & np.isnan(self.held)

    def try_bound(self, i: int, z: FloatArray) -> None:
        """Hold parameter i at the bound it is near, if the likelihood is not the worse for it."""
        before = self(z)[0]
        t = self.transform
        self.held[i] = t.high[i] if t.only_high[i] or (t.both[i] and z[i] > 0) else t.low[i]
        try:
            if self(z)[0] >= before - _FLAT * max(1.0, abs(before)):
                return
        except KfdynError:  # there is no model at the bound
            pass
        self.held[i] = np.nan

    def information(self, z: FloatArray, step: float = 1e-4) -> FloatArray:
        """−∂²ℓ/∂z∂z, by central differences of the gradient: relative error about 1e-8."""
        matrix = np.array([self._curvature(z, axis, step) for axis in np.eye(z.size)])
        return 0.5 * (matrix + matrix.T)

    def _curvature(self, z: FloatArray, axis: FloatArray, step: float) -> FloatArray:
        """One row of it; where there is no model a step away, the step is too long for so small a parameter."""
        try:
            there, back = (self(z + s * step * axis)[1] for s in (1.0, -1.0))
        except KfdynError:
            size = abs(float(axis @ z))
            if not 0.0 < 1e-4 * size < step:
                raise
            return self._curvature(z, axis, 1e-4 * size)
        return (back - there) / (2 * step)


class _Driven(Exception):
    """The search has driven parameters far towards a bound."""

    def __init__(self, z: FloatArray, which: FloatArray) -> None:
        super().__init__()
        self.z, self.which = z, which


class _Endless(Exception):
    """The likelihood grows as far as a parameter is driven towards a bound at which there is no model."""

    def __init__(self, z: FloatArray) -> None:
        super().__init__()
        self.z = z


def _search(problem: Problem, z0: FloatArray, max_iterations: int) -> _Search:
    """L-BFGS on −ℓ/N, from one start; a parameter that runs off to a bound is put there if the likelihood agrees."""
    problem.held[:] = np.nan
    scale = max(problem.objective.n_observed, 1)
    asked = np.zeros(z0.size, dtype=bool)
    one_sided = problem.transform.only_low | problem.transform.only_high

    def objective(z: FloatArray) -> tuple[float, FloatArray]:
        try:
            with np.errstate(over="ignore"):
                llf, gradient = problem(z)
        except (KfdynError, FloatingPointError):  # no model there: the line search comes back
            return np.inf, np.zeros(z.size)
        if not (np.isfinite(llf) and np.isfinite(gradient).all()):
            return np.inf, np.zeros(z.size)
        return -llf / scale, -gradient / scale

    def look(z: FloatArray) -> None:
        driven = problem.driven(z, z0) & ~asked
        if driven.any():
            raise _Driven(z.copy(), driven)
        if (z - z0 < -_ENDLESS)[one_sided & np.isnan(problem.held)].any():
            raise _Endless(z.copy())

    z, done = z0, 0
    while True:
        try:
            found = minimise(objective, z, steepness=_STEEP, max_iterations=max_iterations - done, callback=look)
        except _Driven as stop:
            z, done = stop.z, done + 1
            asked |= stop.which
            for i in np.flatnonzero(stop.which):
                problem.try_bound(int(i), z)
            continue
        except _Endless as stop:
            found = Minimum(stop.z, *objective(stop.z), done, _NO_MAXIMUM)
        llf, gradient = -float(found.value) * scale, -found.gradient * scale
        return _Search(found.x, llf, gradient, found.message, found.iterations, problem.held.copy(), z0)


def _settle(problem: Problem, found: _Search, names: list[str]) -> Fit:
    """Newton steps, where L-BFGS has left something; and say how it ended."""
    problem.held[:] = found.held
    z, llf, gradient = found.z, found.llf, found.gradient
    if found.message is _NO_MAXIMUM:
        far = [name for name, fell in zip(names, problem.driven(z, found.start)) if fell]
        message = _NO_MAXIMUM.format(" and ".join(far))
        return Fit(problem.theta(z), tuple(names), llf, False, message, ~np.isnan(problem.held), problem, z)
    scale = max(problem.objective.n_observed, 1)
    information = None
    for _ in range(5):
        if np.abs(gradient).max(initial=0.0) <= _STEEP * scale:
            break
        information = problem.information(z)
        step = _newton(information, gradient)
        gain = 0.5 * float(step @ gradient)
        if not gain > _ROUNDING * max(1.0, abs(llf)):
            break
        try:
            there, slope = problem(z + step)
        except KfdynError:
            break
        if not there >= llf - _ROUNDING * abs(llf):
            break
        z, llf, gradient = z + step, there, slope
        if gain < _POLISHED * max(1.0, abs(llf)):
            break
        information = None
    steep = float(np.abs(gradient).max(initial=0.0))
    left = 0.0
    if steep > 1e-6 * scale:
        information = problem.information(z) if information is None else information
        left = max(0.5 * float(_newton(information, gradient) @ gradient), 0.0)
    converged = left < 1e-6 * max(1.0, abs(llf)) and steep < 1e-3 * scale
    if converged:
        message = f"converged: the largest slope of the log-likelihood is {steep:.1e}"
    else:
        message = (
            f"not converged: the largest slope is {steep:.1e} after {found.iterations} iterations "
            f"({found.message.strip()}); begin nearer, raise max_iterations or starts, or see whether all parameters "
            "can be identified"
        )
    return Fit(problem.theta(z), tuple(names), llf, converged, message, ~np.isnan(problem.held), problem, z)


def _newton(information: FloatArray, gradient: FloatArray) -> FloatArray:
    """I⁻¹g on the directions in which the information is positive."""
    scale = np.sqrt(np.maximum(np.abs(np.diagonal(information)), 1e-300))
    values, vectors = np.linalg.eigh(information / np.outer(scale, scale))
    used = values > 1e-8
    part = vectors[:, used]
    return (part @ ((part.T @ (gradient / scale)) / values[used])) / scale
