"""Posterior of an outward tree's nodes given its observations, of one pattern or of a batch that lacks others."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from kfdyn.errors import ModelError
from kfdyn.estimation.branching.outward_score import OutwardScore, outward_score
from kfdyn.estimation.inference.missing_data import gathered
from kfdyn.estimation.model.blocks import Blocks, FloatArray, IntArray

if TYPE_CHECKING:
    from kfdyn.estimation.branching.dual import Dual
    from kfdyn.estimation.branching.outward_score import OutwardScore
    from kfdyn.estimation.branching.outward_tree import OutwardTree


@dataclass(frozen=True, eq=False)
class OutwardPosterior:
    """The normal distribution of every node of an :class:`OutwardTree`, given the observations.

    Attributes
    ----------
    model : OutwardTree
        The tree.
    y : ndarray, shape (..., Σm_k)
        The observations, NaN where missing.
    dual : Dual
        The inward model that was solved.
    with_covariances : bool
        Whether the covariances were asked for.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> one, none = np.eye(1), np.zeros((0, 1))
    >>> tree = kf.OutwardTree([2, 2, -1], [one] * 3, [one] * 3, [one, one, none])
    >>> post = tree.smooth([1.0, 3.0])
    >>> round(post.llf, 6), post.std[2].round(6)
    (-3.184451, array([0.707107]))
    """

    model: OutwardTree = field(repr=False)
    y: FloatArray = field(repr=False)
    dual: Dual = field(repr=False)
    with_covariances: bool = True

    @cached_property
    def mean(self) -> Blocks:
        """Posterior mean of x(k), (..., n_k): the co-state of the dual model."""
        flat = self.dual.mean.flat
        return Blocks(flat.reshape(*self.y.shape[:-1], flat.shape[-1]), self.model.n)

    @property
    def cov(self) -> Blocks:
        """Posterior covariance of x(k), (n_k, n_k): the Λ of the dual model."""
        if not self.with_covariances:
            raise ModelError("the covariances were switched off; call smooth with covariances=True")
        return self.dual.Lambda

    @cached_property
    def std(self) -> Blocks:
        """Posterior standard deviation of each state, (n_k,)."""
        return Blocks(np.sqrt(np.maximum(self.cov.diagonals(), 0.0)), self.model.n)

    @cached_property
    def quadratic(self) -> float | FloatArray:
        """Sum of squares (y − mean)*V⁻¹(y − mean) of what was observed, with a flat root at its best."""
        value = self.dual.quadratic(self.model.root_cov is None).reshape(self.y.shape[:-1])
        return float(value) if value.ndim == 0 else value

    @cached_property
    def llf(self) -> float | FloatArray:
        """Log-likelihood of y, one for each batch entry; with flat roots in the convention of Durbin and Koopman."""
        seen = int((~np.isnan(self.y).any(axis=tuple(range(self.y.ndim - 1)))).sum())
        llf = -0.5 * (seen * np.log(2.0 * np.pi) + self.dual.log_determinant() + np.asarray(self.quadratic))
        return float(llf) if llf.ndim == 0 else llf

    @cached_property
    def score(self) -> OutwardScore:
        """Gradient of :attr:`llf` with respect to every block of the model."""
        if not self.with_covariances:
            raise ModelError("the score needs the covariances; call smooth with covariances=True")
        return outward_score(self)


@dataclass(frozen=True, eq=False)
class OutwardBatch:
    """Posteriors of a batch whose entries lack different observations, solved group by group.

    The attributes are those of :class:`OutwardPosterior`, in the order of the batch; since what is known depends on
    what was observed, covariances have batch axes too.

    Attributes
    ----------
    model : OutwardTree
        The tree.
    y : ndarray, shape (..., Σm_k)
        The observations, NaN where missing.
    groups : tuple of (ndarray of int, OutwardPosterior)
        Entries, counted in the flattened batch, that lack the same observations, and their posterior.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> one, none = np.eye(1), np.zeros((0, 1))
    >>> tree = kf.OutwardTree([2, 2, -1], [one] * 3, [one] * 3, [one, one, none])
    >>> post = tree.smooth([[1.0, 3.0], [np.nan, 3.0]])
    >>> post.mean[2].ravel(), post.cov[2].ravel()
    (array([2., 3.]), array([0.5, 1. ]))
    """

    model: OutwardTree = field(repr=False)
    y: FloatArray = field(repr=False)
    groups: tuple[tuple[IntArray, OutwardPosterior], ...] = field(repr=False)

    def _gathered(self, parts: list[FloatArray]) -> FloatArray:
        return gathered(self.y.shape[:-1], [entries for entries, _ in self.groups], parts)

    def _blocks(self, parts: list[Blocks]) -> Blocks:
        return parts[0].like(self._gathered([b.flat for b in parts]))

    @cached_property
    def mean(self) -> Blocks:
        """Posterior mean of x(k), (..., n_k)."""
        return self._blocks([post.mean for _, post in self.groups])

    @cached_property
    def cov(self) -> Blocks:
        """Posterior covariance of x(k), (..., n_k, n_k)."""
        return self._blocks([post.cov for _, post in self.groups])

    @cached_property
    def std(self) -> Blocks:
        """Posterior standard deviation of each state, (..., n_k)."""
        return self._blocks([post.std for _, post in self.groups])

    @cached_property
    def quadratic(self) -> FloatArray:
        """Sum of squares (y − mean)*V⁻¹(y − mean) of what was observed, (...)."""
        return self._gathered([np.reshape(post.quadratic, (-1, 1)) for _, post in self.groups])[..., 0]

    @cached_property
    def llf(self) -> FloatArray:
        """Log-likelihood of each entry, (...)."""
        return self._gathered([np.reshape(post.llf, (-1, 1)) for _, post in self.groups])[..., 0]

    @cached_property
    def score(self) -> OutwardScore:
        """Gradient of :attr:`llf` with respect to every block of the model, one for each entry."""
        parts = [post.score for _, post in self.groups]
        A, W, C, R = (self._blocks([getattr(part, name) for part in parts]) for name in ("A", "W", "C", "R"))
        return OutwardScore(A, W, C, R, self._gathered([part.mean for part in parts]))
