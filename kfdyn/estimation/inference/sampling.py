"""Draws from a model, and exact draws of its states given the measurements."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kfdyn.errors import ModelError
from kfdyn.estimation.inference.filter_sweep import sweep
from kfdyn.estimation.inference.filtered import Filtered, expect_filtered
from kfdyn.estimation.inference.smoother import bryson_frazier
from kfdyn.estimation.model.blocks import FloatArray
from kfdyn.estimation.model.covariance_factors import noise_roots
from kfdyn.estimation.model.packing import Packed
from kfdyn.estimation.model.state_space import StateSpace, expect_model, expect_proper
from kfdyn.estimation.model.validation import draw_axes, expect_covariance, expect_generator
from kfdyn.estimation.operators.model_operators import Operators


class Draw(NamedTuple):
    """One or many draws from a model, all stacked with the draws as leading axis."""

    w: FloatArray
    """Process noise w ~ N(ξ + Qφ*η, Q), shape (..., Σn_k)."""
    x: FloatArray
    """State x = φ w, shape (..., Σn_k)."""
    T: FloatArray
    """Output T = H x + r, shape (..., Σm_k)."""


def draw(ss: StateSpace, rng: np.random.Generator, n: int | None = None) -> Draw:
    """Draw (w, x, T) from a model: w ~ N(ξ + Qφ*η, Q), x = φ w, T = H x + r.

    Parameters
    ----------
    ss : StateSpace
        The model; Q and R may be singular or zero.
    rng : numpy Generator
        Source of randomness.
    n : int, optional
        Number of draws, a leading axis; none for a single draw.

    Returns
    -------
    Draw
        w, x, T; where ξ or η has batch axes, these follow that of the draws, and every entry is drawn for itself.

    Notes
    -----
    O(N) a draw. Factors of Q and R are taken by eigenvalues, so rank deficiency is exact (R86 (9.1)–(9.3)).

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> ss = kf.StateSpace([1, -1], np.ones((2, 1, 1)), np.ones((2, 1, 1)), np.ones((2, 1, 1)))
    >>> T = kf.draw(ss, np.random.default_rng(0), 200_000).T
    >>> (T.T @ T / len(T)).round(1)
    array([[1., 1.],
           [1., 2.]])
    """
    expect_model(ss)
    expect_generator(rng)
    mean = np.zeros(ss.n_states) if ss.xi is None else ss.xi
    op = Operators(ss)
    if ss.eta is not None:
        mean = mean + (op.Q @ op.phi.H).forward(ss.eta)
    free = draw_centered(ss, rng, (*draw_axes(n), *mean.shape[:-1]))
    x = op.phi.forward(mean)
    return Draw(free.w + mean, free.x + x, free.T + op.H.forward(x))


def draw_posterior(filt: Filtered, rng: np.random.Generator, n: int | None = None) -> FloatArray:
    """Draw states from their exact joint distribution given the measurements (simulation smoother).

    A draw of the model is corrected by what the smoother sees of it: x̂(T) + x° − x̂°(T°), with (x°, T°) drawn with zero
    means and smoothed under the same pattern of missing measurements.

    Parameters
    ----------
    filt : Filtered
        Result of :func:`kalman_filter` on the measurements.
    rng : numpy Generator
        Source of randomness.
    n : int, optional
        Number of draws, the leading axis; none for a single draw.

    Returns
    -------
    ndarray, shape (n, ..., Σn_k)
        Draws of the stacked state; the joint covariance over all nodes is that of the smoothed error.

    Raises
    ------
    ModelError
        If the model has flat priors, for which this is not implemented.

    Notes
    -----
    O(N) a draw; exact at R = 0, where H x = T holds for each draw. The idea is Durbin and Koopman's (2002).

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> ss = kf.StateSpace([1, -1], np.ones((2, 1, 1)), np.ones((2, 1, 1)), np.ones((2, 1, 1)))
    >>> kf.draw_posterior(kf.kalman_filter(ss, [1.0, np.nan]), np.random.default_rng(0), 3)[:, 0]
    array([1., 1., 1.])
    """
    expect_filtered(filt, "draw_posterior")
    expect_generator(rng)
    ss = filt.ss
    if ss.flat is not None:
        raise ModelError(
            "draw_posterior is not implemented for models with flat priors, although their posterior is proper: "
            "bryson_frazier(filt) has its means x and covariances S; for draws, give those nodes a finite Q"
        )
    x_hat = bryson_frazier(ss, filt, covariances=False).x.flat
    batch = (*draw_axes(n), *x_hat.shape[:-1])
    free = draw_centered(ss, rng, batch)
    eps, nu, _, _ = sweep(filt.covariances, free.T, None, None, states=False)
    blind = Filtered(ss, filt.covariances, free.T, None, None, eps, nu)
    return x_hat + free.x - bryson_frazier(ss, blind, covariances=False).x.flat


def draw_centered(ss: StateSpace, rng: np.random.Generator, batch: tuple[int, ...]) -> Draw:
    """Draw (w, x, T) of any batch shape with ξ = η = 0."""
    expect_proper(ss, "a draw")
    if ss.factors is None or ss.factors.Q is None:  # F F* is one; what was not checked may be none
        expect_covariance(ss.tree, "Q", Packed(ss.Q.flat.copy(), ss.n, ss.n), ss.vectors)
    op = Operators(ss)
    # Triangular roots are unique, so that a seed gives the same draws everywhere. Eigenvectors would not do: those of
    # equal eigenvalues, as every symmetric body has, are whatever a processor's library makes of them.
    Q_root, R_root = noise_roots(ss)
    w = op.block_diagonal(ss.Q.like(Q_root)).forward(rng.standard_normal((*batch, ss.n_states)))
    x = op.phi.forward(w)
    r = op.block_diagonal(ss.R.like(R_root)).forward(rng.standard_normal((*batch, ss.n_outputs)))
    return Draw(w, x, op.H.forward(x) + r)
