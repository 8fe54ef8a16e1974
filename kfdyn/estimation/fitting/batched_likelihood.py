"""Evaluate likelihood and score of many parameter vectors in one sweep, their models side by side."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.errors import ModelError, ShapeError
from kfdyn.estimation.batches.batch_results import likelihoods, score_models
from kfdyn.estimation.batches.state_space_batch import StateSpaceBatch, expect_alike
from kfdyn.estimation.fitting.objective import STEP, Build, Derivative, _along, by_differences, by_pattern, stacked
from kfdyn.estimation.inference.filter import kalman_filter
from kfdyn.estimation.inference.score import score
from kfdyn.estimation.model.blocks import FloatArray, real_array
from kfdyn.estimation.model.overflow import finite_likelihood
from kfdyn.estimation.model.state_space import StateSpace


class Likelihoods(NamedTuple):
    """Log-likelihoods and gradients of many parameter vectors.

    Attributes
    ----------
    llf : ndarray, shape (B,)
        Log-likelihood of all series, for each parameter vector.
    score : ndarray, shape (B, p), or None
        Its gradient in the parameters.

    Examples
    --------
    >>> Likelihoods(np.zeros(3), None).llf.shape
    (3,)
    """

    llf: FloatArray
    score: FloatArray | None


def likelihood(
    build: Any, thetas: ArrayLike, T: ArrayLike, *, derivative: Derivative | None = None, gradient: bool = True
) -> Likelihoods:
    """Evaluate the log-likelihood of many parameter vectors, and its gradient.

    For ensembles, samplers and surfaces: B models stand side by side (:class:`StateSpaceBatch`), one in each lane of
    the processor. A model of :mod:`kfdyn.series` is not even built, where variances alone are unknown.

    Parameters
    ----------
    build : callable
        ``build(theta) -> StateSpace``, as for :func:`fit`; all models have the same tree and sizes. Or a model of a
        series: then ``T`` is what its ``likelihood`` takes.
    thetas : array, shape (B, p)
        Parameter vectors.
    T : array, shape (..., Σm_k), or (..., N, m) where all N nodes have m outputs
        Measurements, NaN where missing; leading axes are independent series, and each may lack other measurements.
    derivative : callable, optional
        As for :func:`fit`.
    gradient : bool
        Whether to compute the gradient too.

    Returns
    -------
    Likelihoods
        ``llf`` (B,) and ``score`` (B, p).

    Raises
    ------
    ShapeError, ModelError
        If the models differ in tree or sizes, or one of them is none.

    Notes
    -----
    O(B N) in compiled sweeps; ``build`` is called B times, and 2p times as often for the gradient unless it has
    ``pullback`` or ``derivative`` is given.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> one = np.ones((1, 1))
    >>> def build(theta):
    ...     return kf.StateSpace.chain(one, one, theta[0] * one, one, x0=[0.0], P0=one, steps=3)
    >>> found = kf.likelihood(build, [[0.5], [1.0], [2.0]], [1.0, -1.0, 2.0])
    >>> found.llf.round(4), found.score.shape
    (array([-5.8747, -5.847 , -5.8474]), (3, 1))
    """
    given = real_array(thetas, "thetas")
    empty = given.ndim == 1 and not given.size
    given = np.atleast_2d(given)
    if given.ndim != 2 or not len(given) or empty:
        raise ShapeError(f"thetas must have shape (B, p) with at least one row, got {np.shape(thetas)}")
    if hasattr(build, "likelihood"):
        found = build.likelihood(T, gradient=gradient)(given)
        return Likelihoods(*found) if gradient else Likelihoods(found, None)
    models = [build(theta) for theta in given]
    for model in models:
        if not isinstance(model, StateSpace):
            raise ModelError(f"build(theta) must return a StateSpace here, not {type(model).__name__}")
    expect_alike(models)
    llf, slopes = np.full(len(models), float(getattr(build, "constant", 0.0))), np.zeros(given.shape)
    for part in by_pattern(stacked(models[0], T)):
        found, scores = _evaluated(models, part.reshape(-1, part.shape[-1]), gradient)
        llf += found
        for b, g in enumerate(scores):
            slopes[b] += _slope(build, derivative, given[b], models[b], g)
    return Likelihoods(np.asarray(finite_likelihood(llf)), slopes if gradient else None)


def _evaluated(models: list[StateSpace], T: FloatArray, gradient: bool) -> tuple[FloatArray, list[Any]]:
    """ℓ of all series T for each model, and its score if it is wanted: side by side, with an input of the co-state
    one by one.
    """
    if any(model.eta is not None for model in models):
        if not gradient:
            return np.array([np.sum(kalman_filter(model, T).llf) for model in models]), []
        scores: list[Any] = [score(model, T) for model in models]
        return np.array([np.sum(g.llf) for g in scores]), scores
    batch, seen = StateSpaceBatch.of(models), np.asarray(~np.isnan(T).any(axis=0))
    if not gradient:
        return likelihoods(batch, T[None], seen), []
    found = score_models(batch, T[None], seen)
    return found.llf, [found.of(b) for b in range(len(models))]


def _slope(
    build: Build, derivative: Derivative | None, theta: FloatArray, model: StateSpace, g: Any
) -> FloatArray | list[float]:
    """Return the gradient in the parameters of a model, from its score."""
    if hasattr(build, "pullback"):
        return build.pullback(theta, g)
    if derivative is not None:
        return [_along(g, model, change) for change in derivative(theta)]
    sizes = np.maximum(1.0, np.abs(theta))
    return [by_differences(build, theta, i, STEP * size, model, [g]) for i, size in enumerate(sizes)]
