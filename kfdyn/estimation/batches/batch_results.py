"""Filter, smoother and score of many models side by side."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.errors import ModelError, ShapeError
from kfdyn.estimation.batches.batch_sweep import BLOCKS, filtered_alone, run
from kfdyn.estimation.batches.state_space_batch import StateSpaceBatch
from kfdyn.estimation.flat.flat_score import score_of
from kfdyn.estimation.inference.filter_covariances import BoolArray
from kfdyn.estimation.model.blocks import Blocks, FloatArray
from kfdyn.estimation.model.overflow import finite_likelihood


@dataclass(frozen=True, eq=False)
class FilteredModels:
    """The filter's results for many models, each computed when first asked for.

    Attributes
    ----------
    ss : StateSpaceBatch
        The models.
    T : ndarray, shape (Σm_k,) or (B, Σm_k)
        The measurements: of all models, or of each.
    observed : ndarray of bool, shape (Σm_k,)
        Which outputs are measured.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> one = np.ones((1, 1))
    >>> walk = kf.StateSpace.chain(one, one, one, one, x0=[0.0], P0=one, steps=3)
    >>> filt = kf.kalman_filter(kf.StateSpaceBatch(walk, xi=[[0.0, 0.0, 0.0], [5.0, 0.0, 0.0]]), [1.0, 2.0, 3.0])
    >>> filt.llf.round(4), filt.P_plus[2].shape
    (array([-5.2316, -8.3085]), (2, 1, 1))
    """

    ss: StateSpaceBatch
    T: FloatArray
    observed: BoolArray = field(repr=False)

    @cached_property
    def llf(self) -> FloatArray:
        """Log-likelihood of each model, (B,)."""
        return np.asarray(finite_likelihood(likelihoods(self.ss, self._rows, self.observed)))

    @property
    def _rows(self) -> FloatArray:
        return self.T[..., None, :] if self.T.ndim > 1 else self.T[None, None]

    @cached_property
    def _found(self) -> dict[str, Any]:
        ss = self.ss
        if ss.like.flat is not None:
            raise ModelError(
                "of models with flat priors side by side there are likelihoods and scores; filter one of them alone, "
                "models[b], for its states"
            )
        found = run(ss, self._rows, self.observed, "filter")
        for b in found.pop("alone"):
            filt = filtered_alone(ss, b, self._rows, self.observed)[0]
            for name in ("P", "P_plus", "D", "G", "z", "z_plus"):
                found[name][b] = getattr(filt, name).flat.reshape(-1)
            found["eps"][b], found["L"][b] = filt.eps, filt.covariances.D_factor.flat
        return found

    def _blocks(self, like: Blocks, name: str) -> Blocks:
        return like.like(self._found[name])

    @property
    def P(self) -> Blocks:
        """Error covariance before a node's measurement, (B, n_k, n_k)."""
        return self._blocks(self.ss.like.Q, "P")

    @property
    def P_plus(self) -> Blocks:
        """Error covariance after it, (B, n_k, n_k)."""
        return self._blocks(self.ss.like.Q, "P_plus")

    @property
    def D(self) -> Blocks:
        """Innovations covariance, (B, m_k, m_k)."""
        return self._blocks(self.ss.like.R, "D")

    @property
    def G(self) -> Blocks:
        """Kalman gain, (B, n_k, m_k)."""
        return Blocks(self._found["G"], self.ss.like.n, self.ss.like.m, self.ss.like.H.offsets)

    @property
    def z(self) -> Blocks:
        """Predicted state, (B, n_k)."""
        return self.ss.like.state_blocks(self._found["z"])

    @property
    def z_plus(self) -> Blocks:
        """Updated state, (B, n_k)."""
        return self.ss.like.state_blocks(self._found["z_plus"])

    @property
    def eps(self) -> FloatArray:
        """Innovations, (B, Σm_k); 0 where T is missing."""
        return self._found["eps"]


@dataclass(frozen=True, eq=False)
class SmoothedModels:
    """The smoother's results for many models.

    Attributes
    ----------
    filt : FilteredModels
        The filter's results.
    x, costate : Blocks of (B, n_k)
        Smoothed states x̂ and co-states λ.
    a : ndarray, shape (B, Σm_k)
        Output co-state.
    S, Lambda : Blocks of (B, n_k, n_k)
        Covariances of the smoothed error and of the co-state.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> one = np.ones((1, 1))
    >>> level = kf.StateSpace.chain(one, one, 0 * one, one, x0=[0.0], P0=2 * one, steps=2)
    >>> many = kf.StateSpaceBatch(level, xi=[[0.0, 0.0], [3.0, 0.0]])
    >>> kf.bryson_frazier(kf.kalman_filter(many, [3.0, 4.0])).x[0].round(6)
    array([[2.8],
           [3.4]])
    """

    filt: FilteredModels = field(repr=False)
    x: Blocks = field(repr=False)
    costate: Blocks = field(repr=False)
    a: FloatArray = field(repr=False)
    S: Blocks = field(repr=False)
    Lambda: Blocks = field(repr=False)


@dataclass(frozen=True, eq=False)
class ScoredModels:
    """Gradients of the log-likelihood of many models.

    Attributes
    ----------
    llf : ndarray, shape (B,)
        Log-likelihood of each.
    phi, H, Q, R : Blocks of (B, rows, columns)
        Derivatives in the blocks, those of Q and R symmetric; none of φ at a root.
    xi : ndarray, shape (B, Σn_k)
        Derivatives in ξ.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> one = np.ones((1, 1))
    >>> walk = kf.StateSpace.chain(one, one, one, one, x0=[0.0], P0=one, steps=2)
    >>> kf.score(kf.StateSpaceBatch(walk, xi=[[0.0, 0.0], [1.0, 0.0]]), [3.0, 1.0]).xi.round(6)
    array([[ 1.4, -0.2],
           [ 0.8, -0.4]])
    """

    llf: FloatArray
    phi: Blocks = field(repr=False)
    H: Blocks = field(repr=False)
    Q: Blocks = field(repr=False)
    R: Blocks = field(repr=False)
    xi: FloatArray = field(repr=False)

    def of(self, b: int) -> ScoredModels:
        """Those of model b alone, without a leading axis."""
        blocks = {name: getattr(self, name).like(getattr(self, name).flat[b]) for name in BLOCKS}
        return ScoredModels(self.llf[b], **blocks, xi=self.xi[b])


def filter_models(ss: StateSpaceBatch, T: ArrayLike, others: tuple[Any, ...]) -> FilteredModels:
    """The filter of :func:`kalman_filter` for models side by side; ``others`` are inputs that they do not take."""
    if any(value is not None for value in others):
        raise ModelError("models side by side have their own xi, and no eta: kf.StateSpaceBatch(like, xi=...)")
    measured = np.array(ss.like.check_outputs(T, "T", allow_nan=True))
    if measured.ndim > 2 or (measured.ndim == 2 and len(measured) != len(ss)):
        raise ShapeError(
            f"T has shape {measured.shape}; it is one series for all {len(ss)} models, (Σm_k,), or one for each, "
            f"({len(ss)}, Σm_k)"
        )
    seen = ~np.isnan(measured)
    if measured.ndim == 2 and not (seen == seen[0]).all():
        raise ShapeError("the models' series lack different measurements; one call takes one pattern of missing ones")
    return FilteredModels(ss, measured, seen[0] if measured.ndim == 2 else seen)


def score_series(ss: StateSpaceBatch, T: ArrayLike, others: tuple[Any, ...]) -> ScoredModels:
    """The score of :func:`kfdyn.score` for models side by side."""
    filt = filter_models(ss, T, others)
    return score_models(ss, filt._rows, filt.observed)


def smooth_models(filt: FilteredModels) -> SmoothedModels:
    """The smoother of :func:`bryson_frazier` for models side by side."""
    ss = filt.ss
    if ss.like.flat is not None:
        raise ModelError("models with flat priors are smoothed one by one: filter and smooth models[b]")
    found = run(ss, filt._rows, filt.observed, "smooth")
    for b in found.pop("alone"):
        smooth = filtered_alone(ss, b, filt._rows, filt.observed, smooth=True)[1]
        for name in ("x", "costate", "S", "Lambda"):
            found[name][b] = getattr(smooth, name).flat.reshape(-1)
        found["a"][b] = smooth.a
    states, squares = ss.like.state_blocks, ss.like.Q.like
    return SmoothedModels(
        filt, states(found["x"]), states(found["costate"]), found["a"], squares(found["S"]), squares(found["Lambda"])
    )


def score_models(ss: StateSpaceBatch, rows: FloatArray, seen: BoolArray) -> ScoredModels:
    """The score of models side by side; ``rows`` (B or 1, series, Σm) are measured where ``seen``."""
    found = run(ss, rows, seen, "score")
    for b in found.pop("alone"):
        filt, smooth = filtered_alone(ss, b, rows, seen, smooth=True)
        g = score_of(smooth)
        for name in ("phi", "H", "Q", "R"):
            found[name][b] = getattr(g, name).packed().flat.sum(axis=0)
        found["xi"][b], found["llf"][b] = g.xi.sum(axis=0), np.sum(filt.llf)
    like = ss.like
    blocks = {name: own.like(found[name]) for name, own in zip(BLOCKS, (like.phi.packed(), like.H, like.Q, like.R))}
    return ScoredModels(np.asarray(finite_likelihood(found["llf"])), **blocks, xi=found["xi"])


def likelihoods(ss: StateSpaceBatch, rows: FloatArray, seen: BoolArray) -> FloatArray:
    """ℓ of all series of each model, (B,); ``rows`` as for :func:`score_models`."""
    found = run(ss, rows, seen, "likelihood")
    for b in found["alone"]:
        found["llf"][b] = np.sum(filtered_alone(ss, b, rows, seen)[0].llf)
    return found["llf"]
