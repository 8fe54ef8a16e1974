"""Maximum likelihood by the score: BFGS, then Newton steps with the observed information."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from kfdyn.errors import ModelError, ShapeError
from kfdyn.estimation.fitting.newton_polish import settle
from kfdyn.estimation.fitting.objective import Derivative, Objective
from kfdyn.estimation.fitting.search import Found, Search
from kfdyn.estimation.fitting.transformed_objective import Bounds, Problem, Transform
from kfdyn.estimation.model.blocks import real_array

_PATIENCE = 2.0  # seconds before progress is shown


def fit(
    build: Any,
    theta0: Any,
    T: Any = None,
    *,
    derivative: Derivative | None = None,
    bounds: Bounds | None = None,
    names: Sequence[str] | None = None,
    starts: int = 1,
    rng: np.random.Generator | None = None,
    max_iterations: int = 200,
    progress: bool | None = None,
) -> Any:
    """Estimate the parameters of a model by maximum likelihood.

    ``fit(build, theta0, T)``, or ``fit(model, y)`` of a ready-made model of a time series.

    The gradient comes from one smoother pass (:func:`score`) and the derivative of ``build``, which is by differences
    of ``build`` alone if nothing better is given: that costs no filter. BFGS finds the maximum, Newton steps with the
    observed information settle its last digits.

    Parameters
    ----------
    build : callable
        ``build(theta) -> StateSpace`` (or OutwardTree) with theta (p,). ``ss.replace(Q=…)`` of a model built once is
        the quick way. It may have ``pullback(theta, score) -> (p,)``, the gradient in theta of a score. Or a model of
        :mod:`kfdyn.series`, whose own ``fit`` is called.
    theta0 : array, shape (p,)
        Where the search begins. It may be left out for a model of a series, which knows where to begin.
    T : array, shape (..., Σm_k), or (..., N, m) where all N nodes have m outputs
        Measurements, NaN where missing; leading axes are independent series of the same parameters, and each may lack
        other measurements.
    derivative : callable, optional
        ``derivative(theta)`` returns for each parameter a dict of what the blocks change by, such as ``{"Q": dQ}``.
    bounds : sequence of (low, high) or None, optional
        Limits of each parameter, None where there is none. The search moves log(θ − low) or the like, so a variance has
        ``(0, None)``. A parameter whose best value is a bound is put there, if the likelihood does not rise from it.
    names : sequence of str, optional
        Names of the parameters.
    starts : int
        Number of searches; all but the first begin at random around ``theta0``. The best is kept.
    rng : numpy Generator, optional
        For those; ``default_rng(0)`` if not given.
    max_iterations : int
        Limit of BFGS, for each start.
    progress : bool, optional
        Whether to show how far it is; after two seconds on a terminal if not given.

    Returns
    -------
    Fit, or SeriesFit for a model of a series
        ``params``, ``stderr``, ``llf``, ``aic``, ``bic``, ``converged``, ``message``, ``summary()``, ``model``, and
        ``unidentified``, the directions in which the likelihood is flat.

    Raises
    ------
    ModelError, ShapeError
        If there is no model or no finite likelihood at ``theta0``, or it does not fit T. Where ``build`` raises a
        ValueError, LinAlgError or ArithmeticError later on, that step is not taken.

    Notes
    -----
    O(N) for each evaluation. A maximum satisfies the first-order conditions, bounds included; there may be others,
    which ``starts`` looks for. Parameters without bounds are scaled by curvature, so units do not matter. Where values
    of the log-likelihood differ by rounding alone, slopes lead on; where these are rounding too, the search ends, and
    ``message`` says how large it is. The observed information is minus the derivative of the score, by central
    differences of it. Source: THEORY section 10; Durbin and Koopman (2012), chapter 7.

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
    if hasattr(build, "state_space"):
        return _fit_series(build, theta0, T, derivative, names, {
            "bounds": bounds, "starts": starts, "rng": rng, "max_iterations": max_iterations,
        })  # fmt: skip
    if T is None:
        raise ModelError("fit takes build, theta0 and the measurements T; only a model of kf.series begins by itself")
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
    problem.scale = np.where(transform.bounded | (z0 == 0.0), 1.0, np.abs(z0))
    first = problem.begin(z0)
    problem.find_scale(z0, first)
    rng = np.random.default_rng(0) if rng is None else rng
    spread = np.where(transform.bounded, 1.5, np.maximum(problem.scale, np.abs(z0)))
    best: Found | None = None
    begun = time.monotonic()
    for start in range(starts):
        begin = z0 if start == 0 else z0 + spread * rng.normal(size=z0.size)
        problem.held[:] = np.nan
        at = first if start == 0 else problem.attempt(begin)
        if at is not None:
            found = Search(problem, begin, at, max_iterations).run()
            if best is None or found.at.llf > best.at.llf:
                best = found
        assert best is not None
        if progress or (progress is None and sys.stderr.isatty() and time.monotonic() - begun > _PATIENCE):
            sys.stderr.write(f"\rfit: start {start + 1} of {starts}, log-likelihood {best.at.llf:.4f} ")
            sys.stderr.write("\n" if start + 1 == starts else "")
            sys.stderr.flush()
    assert best is not None
    return settle(problem, best, labels)


def _fit_series(model: Any, theta0: Any, y: Any, derivative: Any, names: Any, options: dict[str, Any]) -> Any:
    """Fit a ready-made model of a series, given (model, y) or (model, theta0, y)."""
    if derivative is not None or names is not None:
        raise ModelError(f"{model!r} has its own names and derivatives; leave names= and derivative= out")
    return model.fit(theta0, **options) if y is None else model.fit(y, theta0=theta0, **options)
