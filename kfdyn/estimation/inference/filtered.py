"""Results of the Kalman filter on a tree."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from kfdyn.errors import ModelError
from kfdyn.estimation.inference.batching import count_rows
from kfdyn.estimation.inference.factor import solve_D
from kfdyn.estimation.inference.filter_covariances import BoolArray, Riccati
from kfdyn.estimation.inference.filter_sweep import batch_of, sweep
from kfdyn.estimation.model.blocks import Blocks, FloatArray
from kfdyn.estimation.model.overflow import finite_likelihood
from kfdyn.estimation.model.state_space import StateSpace, described
from kfdyn.estimation.operators.model_operators import Operators

#: Results with more numbers than this are not stored on the way but swept again when asked for.
STORED_NUMBERS = 2**22
_LOG_2PI = float(np.log(2.0 * np.pi))


class FilterWords:
    """Properties by which a filter's z, z⁺, P, P⁺, ε and D are to be had by their words."""

    @property
    def predicted_state(self) -> Blocks:
        """The word for :attr:`z`."""
        return self.z  # type: ignore[attr-defined]

    @property
    def predicted_state_cov(self) -> Blocks:
        """The word for :attr:`P`."""
        return self.P  # type: ignore[attr-defined]

    @property
    def filtered_state(self) -> Blocks:
        """The word for :attr:`z_plus`."""
        return self.z_plus  # type: ignore[attr-defined]

    @property
    def filtered_state_cov(self) -> Blocks:
        """The word for :attr:`P_plus`."""
        return self.P_plus  # type: ignore[attr-defined]

    @property
    def innovations(self) -> FloatArray:
        """The word for :attr:`eps`."""
        return self.eps  # type: ignore[attr-defined]

    @property
    def innovations_cov(self) -> Blocks:
        """The word for :attr:`D`."""
        return self.D  # type: ignore[attr-defined]


@dataclass(frozen=True, eq=False)
class Filtered(FilterWords):
    """The filter's results. Letters are THEORY.md's; the words of estimation are properties.

    Attributes
    ----------
    ss : StateSpace
        The model.
    covariances : Riccati
        P, P⁺, D, G: the part that does not depend on T.
    T : ndarray, shape (..., Σm_k)
        The measurements, NaN where missing.
    xi, eta : ndarray, shape (..., Σn_k), or None
        The known inputs that were used.
    eps : ndarray, shape (..., Σm_k)
        Innovations ε = T − H z; 0 where T is missing.
    nu : ndarray, shape (..., Σm_k)
        Residuals ν = D⁻¹ ε; 0 where T is missing.

    Examples
    --------
    A level measured twice with variance 1, prior variance 2, no drift. The first measurement moves the estimate to 2:

    >>> import kfdyn as kf
    >>> one = [[1.0]]
    >>> ss = kf.StateSpace.chain(one, one, [[0.0]], one, x0=[0.0], P0=[[2.0]], steps=2)
    >>> filt = kf.kalman_filter(ss, [3.0, 4.0])
    >>> filt.z_plus[0].round(9), filt.P_plus[0].round(6), filt.eps
    (array([2.]), array([[0.666667]]), array([3., 2.]))
    """

    def __repr__(self) -> str:
        batch = self.T.shape[:-1]
        missing = f", {int((~self.observed).sum())} missing" if not self.observed.all() else ""
        llf = f"a batch {batch}"
        if not batch:
            try:
                llf = f"llf {float(self.llf):.6g}"
            except ModelError:
                llf = "llf beyond a double"
        return f"Filtered({len(self.ss)} nodes, {self.ss.n_outputs} outputs{missing}, {llf})"

    def _repr_html_(self) -> str:
        """The log-likelihood and a few nodes, for a notebook: measurement, innovation and its deviation."""
        from kfdyn.short_tables import html_table, rows_shown, vector

        starts, first = self.ss.arrays.output, (0,) * (self.T.ndim - 1)

        def row(k: int) -> tuple[object, ...]:
            own = slice(int(starts[k]), int(starts[k]) + int(self.ss.m[k]))
            deviation = self.D[k].diagonal() ** 0.5
            return self.ss.tree.label(k), vector(self.T[first][own]), vector(self.eps[first][own]), vector(deviation)

        title = repr(self) + (": the first of the batch" if first else "")
        return html_table(title, ("node", "T", "ε", "√D"), rows_shown(len(self.ss), row))

    ss: StateSpace
    covariances: Riccati
    T: FloatArray = field(repr=False)
    xi: FloatArray | None = field(repr=False)
    eta: FloatArray | None = field(repr=False)
    eps: FloatArray = field(repr=False)
    nu: FloatArray = field(repr=False)

    @property
    def observed(self) -> BoolArray:
        """The mask of measured outputs, (Σm_k,)."""
        return self.covariances.observed

    @property
    def P(self) -> Blocks:
        """Prediction covariance P(k), (n_k, n_k)."""
        return self.covariances.P

    @property
    def P_plus(self) -> Blocks:
        """Updated covariance P⁺(k), (n_k, n_k)."""
        return self.covariances.P_plus

    @property
    def D(self) -> Blocks:
        """Innovations covariance D(k), (m_k, m_k)."""
        return self.covariances.D

    @property
    def G(self) -> Blocks:
        """Kalman gain G(k), (n_k, m_k)."""
        return self.covariances.G

    @property
    def K(self) -> Blocks:
        """Gain on the parent K(k) = φ(p,k) G(k), (n_parent, m_k)."""
        return self.covariances.K

    @cached_property
    def _states(self) -> tuple[Blocks, Blocks]:
        _, _, z, z_plus = sweep(self.covariances, self.T, self.xi, self.eta, states=True)
        return self.ss.state_blocks(z), self.ss.state_blocks(z_plus)

    @property
    def z(self) -> Blocks:
        """Predicted state z(k), (..., n_k): from all outputs outboard of k, its own excluded."""
        return self._states[0]

    @property
    def z_plus(self) -> Blocks:
        """Updated state z⁺(k), (..., n_k): its own output included."""
        return self._states[1]

    def at_end(self, count: int) -> tuple[FloatArray, FloatArray]:
        """Mean and covariance of the last ``count`` states of a chain, of which no later one is measured."""
        n = int(self.ss.n[-1])
        mean, cov = self.z_plus.flat[-count * n :], self.P_plus.flat[-count * n * n :]
        return mean.reshape(count, n), cov.reshape(count, n, n)

    @cached_property
    def eps_centered(self) -> FloatArray:
        """Innovations with mean zero, ε − HPφ*η: these are white, with covariance D, for any η (THEORY section 3)."""
        if self.eta is None:
            return self.eps
        op = Operators(self.covariances)
        rows = self.eta.reshape(-1, self.ss.n_states)
        mean = (op.H @ op.P @ op.phi.H).forward(rows).reshape(*self.eta.shape[:-1], self.ss.n_outputs)
        return np.where(self.observed, self.eps - mean, 0.0)

    @cached_property
    def nu_centered(self) -> FloatArray:
        """D⁻¹ of :attr:`eps_centered`."""
        if self.eta is None:
            return self.nu
        return solve_D(self.covariances, self.eps_centered)

    @cached_property
    def llf(self) -> float | FloatArray:
        """Log-likelihood of T, −½ Σ(log 2π + log det D + ε*D⁻¹ε) over what was observed; one for each batch entry.

        With η ≠ 0 the centred innovations are used. O(N) (SKO "determinant"; THEORY section 4).
        """
        eps, nu = (self.eps, self.nu) if self.eta is None else (self.eps_centered, self.nu_centered)
        # one sum for one vector and for batches, so that both get the same bits; no warning of an overflow, told below
        quadratic = np.einsum("...i,...i->...", eps, nu)
        constant = np.count_nonzero(self.observed) * _LOG_2PI + self.covariances.logdet
        return finite_likelihood(-0.5 * (constant + quadratic))

    @property
    def kalman_gain(self) -> Blocks:
        """The word for :attr:`G`."""
        return self.G


def filtered(cov: Riccati, T: FloatArray, xi: FloatArray | None, eta: FloatArray | None) -> Filtered:
    """Filter measurements by covariances that are known, in a model without flat states."""
    ss, batch = cov.ss, batch_of(T, xi, eta)
    small = ss.n_states * count_rows(batch) <= STORED_NUMBERS
    eps, nu, z, z_plus = sweep(cov, T, xi, eta, states=small)
    filt = Filtered(ss, cov, T, xi, eta, eps, nu)
    if small:
        filt.__dict__["_states"] = (ss.state_blocks(z), ss.state_blocks(z_plus))
    return filt


def expect_filtered(filt: Any, function: str) -> None:
    """Refuse what no filter has returned, where ``function`` is asked to go on from it."""
    if not isinstance(filt, FilterWords):
        raise ModelError(
            f"{function} goes on from what a filter has found: filt must be the result of kf.kalman_filter(ss, T), "
            f"got {described(filt)}"
        )
