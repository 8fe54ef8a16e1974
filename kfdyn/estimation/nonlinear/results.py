"""Results of filters and smoothers of nonlinear models, in the engine's words."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfdyn.errors import ModelError, ShapeError
from kfdyn.estimation.model.blocks import FloatArray

if TYPE_CHECKING:
    from kfdyn.estimation.inference.filtered import Filtered
    from kfdyn.estimation.inference.smoothed import Smoothed
    from kfdyn.estimation.nonlinear.model import NonlinearModel
    from kfdyn.estimation.nonlinear.smoother import LastModel


class Estimates:
    """Shared by all results: states with covariances, and their distance from a known truth."""

    model: NonlinearModel
    x: FloatArray
    cov: FloatArray | None

    def std(self) -> FloatArray:
        """Standard deviations of the n tangent components, (..., N, n)."""
        return np.sqrt(np.clip(np.diagonal(self._known_cov(), axis1=-2, axis2=-1), 0.0, None))

    def error(self, x: ArrayLike) -> FloatArray:
        """x ⊖ estimate, (..., N, n), for a known truth x (..., N, nx)."""
        truth = np.asarray(x, np.float64)
        if truth.shape != self.x.shape:
            raise ShapeError(f"the truth has shape {truth.shape}, but the estimates have {self.x.shape}")
        rows = self.model.states.minus(truth.reshape(-1, truth.shape[-1]), self.x.reshape(-1, self.x.shape[-1]))
        return np.asarray(rows).reshape(*self.x.shape[:-1], -1)

    def nees(self, x: ArrayLike) -> FloatArray:
        """Normalised estimation error squared of each step, e*P⁻¹e, (..., N); χ²(n) in the mean over runs."""
        e, P = self.error(x), self._known_cov()
        return np.asarray(np.einsum("...i,...ij,...j->...", e, np.linalg.pinv(P, hermitian=True), e))

    def _known_cov(self) -> FloatArray:
        if self.cov is None:
            raise ShapeError("the covariances were switched off; call with covariances=True")
        return self.cov


@dataclass(frozen=True, eq=False)
class NonlinearFiltered(Estimates):
    """The estimate after each reading, by an extended or unscented filter.

    Attributes
    ----------
    model : NonlinearModel
        The model.
    x : ndarray, shape (..., N, nx)
        Updated means, the reading of their own step included.
    cov : ndarray, shape (..., N, n, n)
        Updated covariances, in the tangent at x.
    x_predicted, cov_predicted : ndarray
        The same before the reading.
    eps, nu : ndarray, shape (..., N·m)
        Innovations, and D⁻¹ε; 0 where missing. :func:`kfdyn.estimation.consistency.nis` takes the result as it is.
    D : ndarray, shape (..., N, m, m)
        Innovation covariances.
    observed : ndarray of bool, shape (..., N·m)
        Which outputs were read.
    llf : float or ndarray
        Log-likelihood of the readings, each innovation taken as normal: exact if the model is linear.
    kind : str
        "extended" or "unscented".

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> model = kf.NonlinearModel(lambda x, k: np.sin(x), lambda x, k: x**2, 0.1, 0.1, 1.0, 1.0)
    >>> filt = kf.extended_kalman_filter(model, [1.1, 0.9, np.nan, 0.5])
    >>> filt.std().ravel().round(3), filt.nis.round(3)
    (array([0.156, 0.159, 0.33 , 0.192]), array([0.002, 0.053, 0.   , 0.001]))
    """

    model: NonlinearModel = field(repr=False)
    x: FloatArray = field(repr=False)
    cov: FloatArray = field(repr=False)
    x_predicted: FloatArray = field(repr=False)
    cov_predicted: FloatArray = field(repr=False)
    eps: FloatArray = field(repr=False)
    nu: FloatArray = field(repr=False)
    D: FloatArray = field(repr=False)
    observed: NDArray[np.bool_] = field(repr=False)
    llf: Any
    kind: str

    def __repr__(self) -> str:
        llf = f"llf {self.llf:.6g}" if np.ndim(self.llf) == 0 else f"a batch {np.shape(self.llf)}"
        return f"{type(self).__name__}({self.kind}, {self.x.shape[-2]} steps, {llf}; {self.model!r})"

    @property
    def eps_centered(self) -> FloatArray:
        """Innovations, whose mean is 0."""
        return self.eps

    @property
    def nu_centered(self) -> FloatArray:
        """D⁻¹ε."""
        return self.nu

    @property
    def innovations(self) -> FloatArray:
        """Innovations as rows, (..., N, m); NaN where missing."""
        m = self.D.shape[-1]
        return np.where(self.observed, self.eps, np.nan).reshape(*self.x.shape[:-1], m)

    @property
    def innovations_cov(self) -> FloatArray:
        """The word for ``D``."""
        return self.D

    @property
    def nis(self) -> FloatArray:
        """Normalised innovation squared of each step, ε*D⁻¹ε, (..., N); χ² with as many degrees as were read."""
        m = self.D.shape[-1]
        return np.asarray((self.eps * self.nu).reshape(*self.x.shape[:-1], m).sum(axis=-1))

    @property
    def standardized_innovations(self) -> FloatArray:
        """L⁻¹ε with D = L L*, (..., N·m), NaN where missing: white if the model is right.

        :func:`kfdyn.estimation.consistency.tree_portmanteau` tests that, with ``parent`` = 1, 2, …, −1.
        """
        m = self.D.shape[-1]
        seen = self.observed.reshape(*self.x.shape[:-1], m)
        both = seen[..., :, None] & seen[..., None, :]
        L = np.linalg.cholesky(np.where(both, self.D, np.eye(m)))
        rows = np.linalg.solve(L, self.eps.reshape(seen.shape)[..., None])[..., 0]
        return np.where(seen, rows, np.nan).reshape(self.eps.shape)


@dataclass(frozen=True, eq=False)
class NonlinearSmoothed(Estimates):
    """The mode of the whole trajectory given all readings, and the normal approximation about it (Laplace's).

    Attributes
    ----------
    model : NonlinearModel
        The model.
    x : ndarray, shape (..., N, nx)
        The most probable trajectory.
    cov : ndarray, shape (..., N, n, n), or None
        Covariances S in the tangent at x, of the model linearised at the mode.
    costate : ndarray, shape (..., N, n)
        λ: the gradient of the log-posterior by a shift of x(k).
    noise : ndarray, shape (..., N−1, p), or (..., N, p) where readings see it
        The most probable w(k) = Q B* λ(k+1): the noise that nobody ordered.
    noise_cov : ndarray, shape (..., N−1, p, p), or None
        Its covariances Q − Q B* Λ(k+1) B Q.
    readings : ndarray, shape (..., N, my)
        Predicted readings at the mode.
    residuals : ndarray, shape (..., N, m)
        y ⊖ readings; NaN where missing.
    weights : ndarray, shape (..., N, groups), or None
        Of robust readings, 1 for one that is fully believed.
    llf : float or ndarray
        Log-likelihood of the model linearised at the mode: Laplace's approximation, exact if the model is linear.
        With robust readings, that of the reweighted model, which likelihood ratios cannot use.
    converged : bool, or ndarray of bool
        Whether the last step was below the tolerance.
    message : str
        How the iterations ended.
    iterations : int
        How many steps were taken: one filter and one smoother each, apart from backtracking.
    cost : ndarray, shape (..., iterations + 1)
        Half the weighted squares (or robust losses) at each iterate; defects are not in it.
    filt, smooth : Filtered, Smoothed
        The engine's results on the linearised model, all states stacked; ``filt`` serves
        :func:`kfdyn.estimation.consistency.nis`. With ``covariances=False`` they are computed when first asked for,
        and so is ``llf``.

    Examples
    --------
    The filter knows only the past, the smoother all four readings:

    >>> import numpy as np, kfdyn as kf
    >>> model = kf.NonlinearModel(lambda x, k: np.sin(x), lambda x, k: x**2, 0.1, 0.1, 1.0, 1.0)
    >>> post = kf.iterated_kalman_smoother(model, [1.1, 0.9, np.nan, 0.5])
    >>> post.std().ravel().round(3), post.iterations
    (array([0.145, 0.149, 0.283, 0.193]), 5)
    """

    model: NonlinearModel = field(repr=False)
    x: FloatArray = field(repr=False)
    cov: FloatArray | None = field(repr=False)
    costate: FloatArray = field(repr=False)
    noise: FloatArray = field(repr=False)
    noise_cov: FloatArray | None = field(repr=False)
    readings: FloatArray = field(repr=False)
    residuals: FloatArray = field(repr=False)
    weights: FloatArray | None = field(repr=False)
    converged: Any
    message: str
    iterations: int
    cost: FloatArray = field(repr=False)
    _base: FloatArray = field(repr=False)
    _last: LastModel = field(repr=False)

    @cached_property
    def llf(self) -> Any:
        """Log-likelihood of the model linearised at the mode, a float, or one for each series of a batch."""
        return self._last.llf

    @property
    def smooth(self) -> Smoothed:
        """The engine's smoothed result on the linearised model."""
        return self._last.smooth

    @property
    def filt(self) -> Filtered:
        """The engine's filtered result on the linearised model."""
        return self.smooth.filt

    def __repr__(self) -> str:
        llf = f"llf {self.llf:.6g}" if self.x.ndim == 2 else f"a batch {self.x.shape[:-2]}"
        return f"{type(self).__name__}({self.x.shape[-2]} steps, {llf}, {self.message}; {self.model!r})"

    @property
    def lagged_cov(self) -> FloatArray:
        """Covariances of x(k+1) with x(k), (..., N−1, n, n): F S(k) − Q Λ(k+1) F P⁺(k).

        With a prior that is flat at the first steps their P⁺ is not finite; give a wide one instead.
        """
        self._known_cov()
        ss, n = self.filt.ss, self.model.n
        if self.smooth.Lambda is None or (ss.flat is not None and len(ss.flat)):
            raise ModelError("covariances between steps need covariances=True and a prior that is nowhere flat")
        shape = (*self.x.shape[:-1], -1)
        S, P_plus, Lambda, Q = (
            blocks.flat.reshape(-1) for blocks in (self.smooth.S, self.filt.P_plus, self.smooth.Lambda, ss.Q)
        )
        size = int(np.sqrt(S.size / int(np.prod(self.x.shape[:-1]))))
        S, P_plus, Lambda, Q = (blocks.reshape(*shape[:-1], size, size) for blocks in (S, P_plus, Lambda, Q))
        edges = (*self.x.shape[:-2], self.x.shape[-2] - 1, size, size)
        F = ss.phi.flat.reshape(edges)
        between = F @ S[..., :-1, :, :] - Q[..., 1:, :, :] @ Lambda[..., 1:, :, :] @ F @ P_plus[..., :-1, :, :]
        return np.asarray(between[..., :n, :n])

    def draw(self, rng: np.random.Generator, n: int | None = None) -> FloatArray:
        """Draw trajectories from the Laplace approximation: (n, ..., N, nx), or (..., N, nx) without n.

        All steps jointly, by the engine's simulation smoother, in the tangent at the mode.
        """
        from kfdyn.estimation.inference.sampling import draw_posterior

        tangent = draw_posterior(self.filt, rng, 1 if n is None else n)
        size = self.model.n
        shape = (len(tangent), *self._base.shape[:-1])
        d = tangent.reshape(*shape, -1)[..., :size].reshape(-1, size)
        base = np.broadcast_to(self._base, (*shape, self._base.shape[-1])).reshape(-1, self._base.shape[-1])
        x = np.asarray(self.model.states.plus(base, d)).reshape(*shape, -1)
        return x[0] if n is None else x
