"""Evaluate likelihood and score of many parameter vectors in one sweep over copies of the tree."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.errors import ModelError, ShapeError
from kfdyn.estimation.fitting.objective import STEP, Build, Derivative, _along, by_differences, by_pattern, stacked
from kfdyn.estimation.inference.filter import kalman_filter
from kfdyn.estimation.inference.score import score
from kfdyn.estimation.model.blocks import FloatArray, IntArray, real_array
from kfdyn.estimation.model.overflow import finite_likelihood
from kfdyn.estimation.model.state_space import StateSpace
from kfdyn.estimation.model.tree import Tree


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

    For ensembles, samplers and surfaces: B copies of the model's tree stand side by side, each with its own parameters.
    A model of :mod:`kfdyn.series` knows a quicker way, which is taken for each vector.

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
    forest = _side_by_side(models)
    B = len(models)
    llf = np.full(B, float(getattr(build, "constant", 0.0)))
    slopes = np.zeros(given.shape)
    for part in by_pattern(stacked(models[0], T)):
        tiled = np.tile(part, B)
        g: Any = score(forest, tiled) if gradient else SimpleNamespace(ss=forest, filt=kalman_filter(forest, tiled))
        with np.errstate(over="ignore", invalid="ignore"):  # the error below names it
            llf += finite_likelihood(_each(g, B))
        if gradient:
            _add_slopes(slopes, build, derivative, given, models, g)
    return Likelihoods(llf, slopes if gradient else None)


def _side_by_side(models: list[Any]) -> StateSpace:
    """Join the models into one, on the forest of all of them."""
    first = models[0]
    for model in models:
        if not isinstance(model, StateSpace):
            raise ModelError(f"build(theta) must return a StateSpace here, not {type(model).__name__}")
        if model.tree != first.tree or not (np.array_equal(model.n, first.n) and np.array_equal(model.m, first.m)):
            raise ShapeError("the models of different parameters must have the same tree and sizes")
        if not np.array_equal(_flat_of(model), _flat_of(first)):
            raise ModelError("the models of different parameters must have flat priors at the same states")
    B, N, parent = len(models), len(first), first.tree.parent
    above = np.where(parent >= 0, parent + N * np.arange(B)[:, None], -1).reshape(-1)
    flats = {name: np.concatenate([getattr(m, name).packed().flat for m in models]) for name in ("phi", "H", "Q", "R")}
    known = {
        name: np.concatenate([np.zeros(first.n_states) if (u := getattr(m, name)) is None else u for m in models])
        for name in ("xi", "eta")
        if any(getattr(m, name) is not None for m in models)
    }
    flat = (_flat_of(first) + first.n_states * np.arange(B)[:, None]).reshape(-1)
    return StateSpace.trusted(
        Tree(above), np.tile(first.n, B), np.tile(first.m, B), **flats, **known, flat=flat if flat.size else None
    )


def _flat_of(model: StateSpace) -> IntArray:
    return np.zeros(0, dtype=np.int64) if model.flat is None else model.flat


def _each(g: Any, B: int) -> FloatArray:
    """Log-likelihood of each copy, over all series."""
    flat = g.filt if g.ss.flat is not None else None
    filt = g.filt if flat is None else flat.finite
    logdet = 2.0 * np.log(filt.covariances.D_factor.diagonals()).reshape(B, -1).sum(axis=1)
    if flat is None:
        squares = filt.eps_centered * filt.nu_centered
    else:  # flat states are fitted in each tree by itself, and the copies' trees follow one another
        squares = flat.fit.fitted**2
        logdet = logdet + flat.fit.logdets.reshape(B, -1).sum(axis=1)
    count = filt.observed.reshape(B, -1).sum(axis=1)
    series = squares.size // squares.shape[-1] if squares.shape[-1] else 1
    return -0.5 * (_copies(squares, B).sum(axis=(0, 2)) + series * (logdet + count * np.log(2.0 * np.pi)))


def _copies(stacked: FloatArray, B: int) -> FloatArray:
    """Numbers of the forest, (series, B, those of one copy)."""
    return stacked.reshape(math.prod(stacked.shape[:-1]), B, stacked.shape[-1] // B)


def _add_slopes(
    slopes: FloatArray, build: Build, derivative: Derivative | None, given: FloatArray, models: list[Any], g: Any
) -> None:
    """Gradient in the parameters of each copy, from its part of the forest's score."""
    parts = {}
    B = len(models)
    for name in ("phi", "H", "Q", "R"):
        parts[name] = _copies(getattr(g, name).flat, B).sum(axis=0)
    for name in ("xi", "eta"):
        parts[name] = _copies(getattr(g, name), B).sum(axis=0)
    for b, (theta, model) in enumerate(zip(given, models)):
        like = {"phi": model.phi.packed(), "H": model.H, "Q": model.Q, "R": model.R}
        mine = SimpleNamespace(**{name: blocks.like(parts[name][b]) for name, blocks in like.items()})
        mine.xi, mine.eta = parts["xi"][b], parts["eta"][b]
        if hasattr(build, "pullback"):
            slopes[b] += build.pullback(theta, mine)
        elif derivative is not None:
            slopes[b] += [_along(mine, model, change) for change in derivative(theta)]
        else:
            for i in range(theta.size):
                slopes[b, i] += by_differences(build, theta, i, STEP * max(1.0, abs(theta[i])), model, [mine])
