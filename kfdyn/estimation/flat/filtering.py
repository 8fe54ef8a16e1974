"""The filter under flat priors: de Jong's augmentation, solved by generalised least squares.

T = Hφ(ξ + Eδ + w) + r with δ of infinite variance: the finite model is filtered for T and for each column of E, all in
one batch, and the whitened innovations e + Xδ are fitted by orthogonal factors, X = Q R. Then (THEORY section 13)::

    δ̂ = −R⁻¹Q*e,   ℓ = −½(m log 2π + log det 𝓜 + 2 log|det R| + |e + Xδ̂|²)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from kfdyn.errors import ModelError, SingularError
from kfdyn.estimation.flat.phase import Phase, phase_of, whitened
from kfdyn.estimation.flat.prior import TOGETHER, Columns, columns_of, finite_model
from kfdyn.estimation.inference.filter_covariances import BoolArray, Method, Riccati
from kfdyn.estimation.inference.filter_sweep import sweep
from kfdyn.estimation.inference.filtered import Filtered, FilterWords, filtered
from kfdyn.estimation.inference.riccati import riccati
from kfdyn.estimation.model.blocks import Blocks, FloatArray, IntArray
from kfdyn.estimation.model.overflow import finite_likelihood
from kfdyn.estimation.model.state_space import StateSpace
from kfdyn.estimation.operators.block_operators import block_diagonal, congruence

_RESOLVED = 1e-12  # of what a component would be seen with at best: below is rounding


class Fit(NamedTuple):
    """Least squares for δ of each tree: δ̂ (batch, trees, d), and W (trees, d, d) with cov δ̂ = W W*, 0 for no component.

    ``logdets`` (trees,) are 2 log|det R| in the units of the states, ``fitted`` (batch, Σm) is e + Xδ̂.
    """

    delta: FloatArray
    W: FloatArray
    logdets: FloatArray
    fitted: FloatArray


@dataclass(frozen=True, eq=False)
class FlatFiltered(FilterWords):
    """Result of the filter under flat priors. Finite and infinite parts of a covariance P + κP∞ are kept apart.

    Attributes
    ----------
    ss : StateSpace
        The model.
    finite : Filtered
        The finite model's filter on T.
    columns : Filtered
        The finite model's filter on each flat component alone.
    layout : Columns
        Where the components are.
    scale : ndarray, shape (Σn_k,)
        Deviations s that the finite model has in place of infinite ones.
    fit : Fit
        The components estimated.

    Examples
    --------
    A random walk of which nothing is known before its first measurement:

    >>> import kfdyn as kf
    >>> one = [[1.0]]
    >>> ss = kf.StateSpace.chain(one, one, one, one, steps=3)
    >>> filt = kf.kalman_filter(ss, [3.0, 4.0, 6.0])
    >>> filt.P_inf[0], filt.z_plus[0], filt.P_plus[0].round(9), filt.P_inf[1].round(9)
    (array([[1.]]), array([3.]), array([[1.]]), array([[0.]]))
    """

    ss: StateSpace
    finite: Filtered = field(repr=False)
    columns: Filtered = field(repr=False)
    layout: Columns = field(repr=False)
    scale: FloatArray = field(repr=False)
    fit: Fit = field(repr=False)

    @property
    def T(self) -> FloatArray:
        """The measurements, NaN where missing."""
        return self.finite.T

    @property
    def eta(self) -> FloatArray | None:
        """The known input of the co-state that was used."""
        return self.finite.eta

    @property
    def observed(self) -> BoolArray:
        """Mask of the measured outputs, (Σm_k,)."""
        return self.finite.observed

    @property
    def covariances(self) -> Riccati:
        """Refused: the covariances of a filter that begins at infinity are P, P_inf and so on."""
        raise ModelError(
            "the filter of a model with flat priors has no single set of covariances; use P and P_inf, or the smoother"
        )

    @cached_property
    def llf(self) -> float | FloatArray:
        """Log-likelihood in the convention of Durbin and Koopman, the limit of ℓ + ½ d log κ; one a batch entry."""
        seen = int(self.observed.sum())
        logdet = self.finite.covariances.logdet + float(self.fit.logdets.sum())
        with np.errstate(over="ignore"):  # the error below names it
            llf = -0.5 * (seen * np.log(2.0 * np.pi) + logdet + (self.fit.fitted**2).sum(axis=1))
        return finite_likelihood(llf.reshape(self.finite.eps.shape[:-1]))

    @cached_property
    def _phase(self) -> Phase:
        return phase_of(self)

    @property
    def z(self) -> Blocks:
        """Predicted state z(k), (..., n_k), 0 along what is not resolved yet."""
        return self._phase.z

    @property
    def z_plus(self) -> Blocks:
        """Updated state z⁺(k), (..., n_k)."""
        return self._phase.z_plus

    @property
    def P(self) -> Blocks:
        """Finite part of the prediction covariance, (n_k, n_k)."""
        return self._phase.P

    @property
    def P_inf(self) -> Blocks:
        """Part of the prediction covariance that is multiplied by κ → ∞; 0 once resolved."""
        return self._phase.P_inf

    @property
    def P_plus(self) -> Blocks:
        """Finite part of the updated covariance, (n_k, n_k)."""
        return self._phase.P_plus

    @property
    def P_plus_inf(self) -> Blocks:
        """Part of the updated covariance that is multiplied by κ → ∞."""
        return self._phase.P_plus_inf

    def at_end(self, count: int) -> tuple[FloatArray, FloatArray]:
        """Mean and covariance of the last ``count`` states of a chain, of which no later one is measured."""
        mean, cov = self.finite.at_end(count)
        n, own = mean.shape[-1], self.columns
        columns = np.empty((self.layout.most, count, n))
        for first in range(0, len(columns), TOGETHER):
            some = slice(first, first + TOGETHER)
            assert own.xi is not None
            z_plus = sweep(own.covariances, own.T, own.xi[some], None, states=True)[3]
            columns[some] = z_plus[:, -count * n :].reshape(-1, count, n)
        spread = np.tensordot(columns, self.fit.W[0], axes=(0, 0))
        return mean + np.tensordot(self.fit.delta[0, 0], columns, 1), cov + spread @ spread.transpose(0, 2, 1)

    @cached_property
    def eps(self) -> FloatArray:
        """Innovations ε = T − H z, (..., Σm_k); 0 where T is missing."""
        H = block_diagonal(self.ss.H)
        z = self.z.flat
        seen = H.forward(z.reshape(-1, z.shape[-1])).reshape(*z.shape[:-1], -1)
        return np.where(self.observed, np.nan_to_num(self.T) - seen, 0.0)

    @cached_property
    def D(self) -> Blocks:
        """Finite part of the innovations covariance H P H* + R, (m_k, m_k)."""
        return congruence(self.ss.H, self.P, self.ss.R.flat)

    @cached_property
    def D_inf(self) -> Blocks:
        """Part H P_inf H* of the innovations covariance that is multiplied by κ → ∞."""
        return congruence(self.ss.H, self.P_inf, np.zeros_like(self.ss.R.flat))


def flat_filter(
    ss: StateSpace,
    seen: BoolArray | None,
    T: FloatArray,
    xi: FloatArray | None,
    eta: FloatArray | None,
    method: Method,
) -> FlatFiltered:
    """Filter a model with flat priors; called by :func:`kalman_filter` with arguments that are checked."""
    if "flat" not in ss._cache:
        ss._cache["flat"] = finite_model(ss)
    inner, scale = ss._cache["flat"]
    layout = columns_of(ss)
    cov = riccati(inner, seen, method)
    finite = filtered(cov, T, xi, eta)
    nothing = np.where(finite.observed, 0.0, np.nan)
    columns = filtered(cov, nothing, layout.rows(ss.n_states), None)
    fit = _fit(ss, finite, columns, layout, scale)
    return FlatFiltered(ss, finite, columns, layout, scale, fit)


def _fit(ss: StateSpace, finite: Filtered, columns: Filtered, layout: Columns, scale: FloatArray) -> Fit:
    e, X = whitened(finite), whitened(columns)
    trees, d = layout.place.shape
    delta, W = np.zeros((len(e), trees, d)), np.zeros((trees, d, d))
    logdets, fitted = np.zeros(trees), e.copy()
    for tree in range(trees):
        place = layout.place[tree][layout.place[tree] >= 0]
        if not place.size:
            continue
        own = np.flatnonzero((layout.of_output == tree) & finite.observed)
        s = scale[place]
        A = X[: place.size, own].T * s
        if own.size < place.size:  # too few data; rows of zeros let the check below name what is open
            A, own = np.concatenate([A, np.zeros((place.size - own.size, place.size))]), own[:0]
        Q, R = np.linalg.qr(A)
        _expect_resolved(ss, R, place, s)
        inverse = s[:, None] * np.linalg.inv(R)
        step = -e[:, own] @ Q
        delta[:, tree, : place.size] = step @ inverse.T
        W[tree, : place.size, : place.size] = inverse
        fitted[:, own] = e[:, own] + step @ Q.T
        logdets[tree] = 2.0 * np.log(np.abs(np.diag(R)) / s).sum()
    return Fit(delta, W, logdets, fitted)


def _expect_resolved(ss: StateSpace, R: FloatArray, place: IntArray, s: FloatArray) -> None:
    """Refuse a combination of flat states that the data say nothing of, and name it."""
    _, value, Vt = np.linalg.svd(R)
    if value[-1] > _RESOLVED * max(1.0, value[0]):
        return
    direction = s * Vt[-1]
    direction = direction / direction[np.argmax(np.abs(direction))]
    nodes = np.searchsorted(ss.arrays.state, place, side="right") - 1
    parts = []
    for k in np.unique(nodes):
        own = np.zeros(int(ss.n[k]))
        own[place[nodes == k] - ss.arrays.state[k]] = direction[nodes == k]
        own[np.abs(own) < 1e-9] = 0.0
        if own.any():
            parts.append(f"[{', '.join(f'{x:.3g}' for x in own)}] of {ss.tree.label(int(k))}")
    more = f" and {len(parts) - 3} more nodes" if len(parts) > 3 else ""
    raise SingularError(
        f"flat prior: the data never resolve the direction {' with '.join(parts[:3])}{more}; measure what sees it, "
        "or give it a finite Q",
        int(nodes[np.argmax(np.abs(direction))]),
    )
