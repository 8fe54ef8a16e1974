"""The smoother under flat priors: the finite model's, with the estimated components put back."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from kfdyn.estimation.flat.filtering import FlatFiltered
from kfdyn.estimation.inference.factor import InnovationsFactor
from kfdyn.estimation.inference.smoothed import Smoothed, smoothed
from kfdyn.estimation.model.blocks import Blocks, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class FlatSmoothed(Smoothed):
    """Result of the smoother under flat priors; the attributes are those of :class:`Smoothed`, all finite.

    ::

        x̂ = x̂_s + J δ̂,   S = S_s + J cov(δ̂) J*,   λ = λ_s + λ_E δ̂,   Λ = Λ_s − λ_E cov(δ̂) λ_E*

    where J, λ_E are the smoothed states and co-states of the flat components' columns in the finite model.

    Examples
    --------
    >>> import kfdyn as kf
    >>> one = [[1.0]]
    >>> ss = kf.StateSpace.chain(one, one, [[0.0]], one, steps=2)
    >>> smooth = kf.bryson_frazier(ss, kf.kalman_filter(ss, [3.0, 4.0]))
    >>> smooth.x.flat.round(9), smooth.S.flat.round(9)
    (array([3.5, 3.5]), array([0.5, 0.5]))
    """

    flat: FlatFiltered = field(repr=False, default=None)  # type: ignore[assignment]
    finite: Smoothed = field(repr=False, default=None)  # type: ignore[assignment]
    columns: Smoothed = field(repr=False, default=None)  # type: ignore[assignment]

    @cached_property
    def costate_plus(self) -> Blocks:
        """λ⁺(k) = φ*(p,k) λ(p), (..., n_k); 0 at a root."""
        return self._put_back(self.finite.costate_plus, self.columns.costate_plus)

    @cached_property
    def costate(self) -> Blocks:
        """λ(k) = λ⁺ + η + H*a, (..., n_k)."""
        return self._put_back(self.finite.costate, self.columns.costate)

    @cached_property
    def x(self) -> Blocks:
        """Smoothed state x̂(k), (..., n_k): the mean of x given every measurement."""
        return self._put_back(self.finite.x, self.columns.x)

    def _put_back(self, own: Blocks, columns: Blocks) -> Blocks:
        return self.ss.state_blocks(restored(self.flat, own.flat, columns.flat, self.flat.layout.of_state))

    @property
    def Lambda(self) -> Blocks:
        """Covariance Λ(k) of the co-state λ(k), (n_k, n_k)."""
        self._expect_covariances()
        return self.costate_covariances

    @cached_property
    def costate_covariances(self) -> Blocks:
        """Λ(k), whether or not covariances are asked for: the score is made of them."""
        return self._with_columns(self.finite.filt.covariances.Lambda, self.columns.costate, -1.0)

    @cached_property
    def S(self) -> Blocks:
        """Covariance S(k) of the smoothed error, (n_k, n_k)."""
        self._expect_covariances()
        return self._with_columns(self.finite.filt.covariances.smoothed.S, self.columns.x, 1.0)

    def _with_columns(self, known: Blocks, columns: Blocks, sign: float) -> Blocks:
        own, at = spread(self.flat, columns.flat, self.flat.layout.of_state), self.ss.arrays.state
        return add_products(known, own, at, own, at, sign)

    @cached_property
    def inverse_blocks(self) -> Blocks:
        """Diagonal blocks of the limit of 𝓜⁻¹, (m_k, m_k)."""
        known = InnovationsFactor(self.finite.filt.covariances).inverse_blocks()
        a = spread(self.flat, self.columns.a, self.flat.layout.of_output)
        at = self.ss.arrays.output
        return add_products(known, a, at, a, at, -1.0)


def flat_smoother(filt: FlatFiltered, covariances: bool) -> FlatSmoothed:
    """Smooth the finite model for T and for the columns; called by :func:`bryson_frazier`."""
    finite, columns = (smoothed(f, covariances) for f in (filt.finite, filt.columns))
    a = restored(filt, finite.a, columns.a, filt.layout.of_output)
    return FlatSmoothed(filt, a, covariances, filt, finite, columns)  # type: ignore[arg-type]


def restored(filt: FlatFiltered, own: FloatArray, columns: FloatArray, of: IntArray) -> FloatArray:
    """Add the contribution of the estimated flat components; ``of`` is the tree of each entry."""
    delta = filt.fit.delta
    if delta.shape[1] == 1:
        return own + (delta[:, 0] @ columns).reshape(own.shape)
    out = own.reshape(-1, own.shape[-1]).copy()
    for i in range(filt.layout.most):
        out += delta[:, of, i] * columns[i]
    return out.reshape(own.shape)


def spread(filt: FlatFiltered, columns: FloatArray, of: IntArray) -> FloatArray:
    """Columns times the root W of the components' covariance, entry by entry: (entries, d)."""
    if len(filt.fit.W) == 1:
        return columns.T @ filt.fit.W[0]
    return np.einsum("is,sij->sj", columns, filt.fit.W[of])


def add_products(
    known: Blocks, left: FloatArray, left_at: IntArray, right: FloatArray, right_at: IntArray, sign: float
) -> Blocks:
    """Blocks + sign · L(k) R*(k), node by node, whose rows begin at the given places of L and R (entries, d)."""
    out = known.like(np.empty_like(known.flat))
    for nodes, block in known.grouped():
        if block.size:
            product = _parts(left, left_at[nodes], block.shape[1])
            product = product @ _parts(right, right_at[nodes], block.shape[2]).transpose(0, 2, 1)
            product *= sign
            product += block
            out.put(nodes, product)
    return out


def _parts(rows: FloatArray, at: IntArray, size: int) -> FloatArray:
    """Rows of nodes (count, size, d), which begin at the given places."""
    if len(rows) == at.size * size and (np.diff(at) == size).all():
        return rows.reshape(at.size, size, -1)
    return rows[at[:, None] + np.arange(size)]
